//! Wire protocols, which convert questions to requests, and responses to answers.
//!
//! A protocol is a file or folder here with a unit struct that implements [`Protocol`]. A provider names its protocol
//! in its entry of [`PROVIDERS`](crate::providers::PROVIDERS). A protocol builds requests and reads responses.
//! Connections, time limits, sizes, keys in responses and the wording of failures are the same for all protocols
//! (`transport`, [`response`](crate::response)).

mod dialect;
pub(crate) mod openai_chat;
mod target;
#[cfg(test)]
mod tests;

use std::fmt;

use reqwest::header::HeaderMap;
use reqwest::{Request, Url};

use crate::ChatRequest;
use crate::failure::FailureKind;
use crate::listed_model::{CatalogModel, ListPage};
use crate::response::{AnswerDraft, ErrorBody, Stop, classify};
use crate::settings::SettingFields;

pub use dialect::Dialect;
pub(crate) use target::{RequestError, Target};

/// A wire protocol.
///
/// It builds whole requests, so that it can put the model into the address, or sign address, headers and body with
/// the key. Header values that contain the key must be marked as sensitive.
pub(crate) trait Protocol: fmt::Debug + Sync {
    /// Builds the request for an answer.
    fn answer_request(&self, target: &Target, prepared: PreparedRequest<'_>)
    -> Result<Request, RequestError>;

    /// Builds the request for a page of the list of models that the key may use: the first page, or the one named by
    /// [`ListPage::next`].
    fn models_request(&self, target: &Target, page: Option<&str>) -> Result<Request, RequestError>;

    /// Builds a `GET` of another address of the provider, with the key.
    fn get_request(&self, target: &Target, url: Url) -> Result<Request, RequestError>;

    /// Returns true if a response is a stream, judging by its headers and its first bytes. Any other is read whole.
    fn is_stream(&self, headers: &HeaderMap, start: &[u8]) -> bool;

    /// Creates the reader of one successful response.
    fn answer_reader(&self) -> Box<dyn AnswerReader>;

    /// Returns the headers that may contain the provider's id of a request. The first one present counts.
    fn request_id_headers(&self) -> &'static [&'static str];

    /// Parses the body of an error, from an error status or from within a response.
    fn read_error(&self, body: &[u8]) -> ErrorBody {
        ErrorBody::parse(body)
    }

    /// Determines the meaning of an error.
    fn classify(&self, status: u16, error: &ErrorBody) -> FailureKind {
        classify(status, error)
    }

    /// Returns a dialect that avoids the part of the request that the server refused as unknown, if there is one.
    fn next_dialect(&self, _asked: PreparedRequest<'_>, _status: u16, _error: &ErrorBody) -> Option<Dialect> {
        None
    }

    /// Splits a page of the list of models into its entries. The error describes the problem.
    fn split_models<'a>(&self, body: &'a [u8]) -> Result<ListPage<'a>, String>;

    /// Parses one entry of the list of models. `None` if it has no usable name.
    fn listed_model(&self, entry: &str) -> Option<CatalogModel>;

    /// Returns a text in the form of a key that belongs to no account, to test whether a server checks keys at all.
    fn unknown_key(&self) -> &'static str {
        "bench-runner-is-no-key"
    }
}

/// The question that a request asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreparedRequest<'a> {
    pub(crate) request: &'a ChatRequest<'a>,
    /// Fields of the endpoint's API for generation settings.
    pub(crate) fields: &'static SettingFields,
    pub(crate) dialect: Dialect,
}

impl PreparedRequest<'_> {
    /// Returns true if the prompt has images, which a model may not support.
    pub(crate) fn has_images(&self) -> bool {
        self.request.prompt.messages.iter().any(|message| !message.images.is_empty())
    }
}

/// Reads one response into a draft.
pub(crate) trait AnswerReader: fmt::Debug + Send {
    /// Processes the next bytes of a stream, which may be split anywhere.
    fn push(&mut self, chunk: &[u8], draft: &mut AnswerDraft) -> Result<(), Stop>;

    /// Processes the remaining data at the end of the stream.
    fn end(&mut self, draft: &mut AnswerDraft) -> Result<(), Stop>;

    /// Processes a response that is not a stream.
    fn read_whole(&mut self, body: &[u8], draft: &mut AnswerDraft) -> Result<(), Stop>;
}
