//! Wire protocols: how a question becomes a request, and what comes back an answer.
//!
//! A protocol is one file (or folder) here with a unit struct that implements [`Protocol`]. A provider names the one that it
//! speaks in its entry of [`PROVIDERS`](crate::providers::PROVIDERS). Connections, time limits, server-sent events, sizes,
//! keys in what comes back and the wording of failures are the same for all and stand outside.

mod dialect;
pub(crate) mod openai_chat;
#[cfg(test)]
mod tests;

use std::fmt;

use bench_domain::{Answer, Secret, Usage};
use reqwest::header::{HeaderMap, InvalidHeaderValue};

use crate::failure::FailureKind;
use crate::listed_model::CatalogueModel;
use crate::sse::{Event, EventTooLarge};
use crate::{ChatRequest, Keys};

pub use dialect::Dialect;

/// A wire protocol.
pub(crate) trait Protocol: fmt::Debug + Sync {
    /// Path below the base URL that takes a question.
    fn answer_path(&self) -> &'static str;

    /// Path below the base URL that lists models.
    fn models_path(&self) -> &'static str;

    /// Headers of every request, with the key if there is one. The value that holds the key is marked as sensitive.
    fn headers(&self, key: Option<&Secret>) -> Result<HeaderMap, InvalidHeaderValue>;

    /// Body of a streaming request in the server's dialect.
    fn request_body(&self, request: &ChatRequest<'_>, dialect: Dialect) -> serde_json::Result<Vec<u8>>;

    /// Reader of one response with a good status.
    fn answer_reader(&self, keys: Keys, has_images: bool) -> Box<dyn AnswerReader>;

    /// Meaning of a response with a bad status. `text` is what is quoted of it; `asked` is `None` for lists.
    fn read_error(&self, status: u16, body: &[u8], text: &str, asked: Option<Asked<'_>>) -> ServerRefusal;

    /// One entry of the list of models; `None` for one without a usable name.
    fn listed_model(&self, json: &str) -> Option<CatalogueModel>;
}

/// The request that a server refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a ChatRequest<'a>,
    pub(crate) dialect: Dialect,
}

impl Asked<'_> {
    /// Whether the prompt has images, which a model may not be able to take.
    pub(crate) fn has_images(&self) -> bool {
        self.request.prompt.messages.iter().any(|message| !message.images.is_empty())
    }
}

/// What a response with a bad status means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerRefusal {
    pub(crate) kind: FailureKind,
    /// The dialect that avoids what was refused, where that is a field which the server does not know.
    pub(crate) next: Option<Dialect>,
}

/// Puts an answer together from a response.
pub(crate) trait AnswerReader: fmt::Debug + Send {
    /// Takes one event of a stream.
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop>;

    /// Takes a whole answer that came as one JSON object.
    fn whole(&mut self, body: &[u8]) -> Result<(), Stop>;

    /// Whether the model has said why it stopped, or the server that this is all.
    fn is_complete(&self) -> bool;

    /// Whether nothing more will come.
    fn is_done(&self) -> bool;

    /// Whether the server has sent any part of an answer, be it an empty one.
    fn has_begun(&self) -> bool;

    /// Bytes of text so far.
    fn bytes(&self) -> usize;

    /// Tokens of what has come so far: as the provider counted them, else estimated without those of the prompt.
    /// `None` before the model has said anything.
    fn usage_so_far(&self) -> Option<Usage>;

    /// The answer. Times are left at zero.
    fn finish(self: Box<Self>, request_id: Option<String>) -> Answer;
}

/// Why the rest of a response is of no use.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The provider reports an error: what it means, and its text.
    Error(ReportedError, String),
    /// What came is not what the protocol promises.
    Garbage(String),
    /// More than the bounds allow: which one.
    TooLarge(&'static str),
}

/// Meaning of an error in a response that began well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportedError {
    /// The status that it names or implies.
    pub(crate) status: Option<u16>,
    pub(crate) kind: FailureKind,
}

impl From<EventTooLarge> for Stop {
    fn from(_: EventTooLarge) -> Self {
        Self::TooLarge("one event of the answer is larger than 8 MiB")
    }
}
