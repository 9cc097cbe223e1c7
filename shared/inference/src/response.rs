//! Parts of responses that every wire protocol needs: lines and server-sent events, broken texts, token counts, error
//! bodies, and the [`AnswerDraft`] that a protocol's reader fills.
//!
//! Limits on sizes, redaction of keys and the meaning of failures are applied here, so that no protocol can omit
//! them.

mod classify;
mod draft;
mod error_body;
mod images;
mod json_text;
pub(crate) mod lines;
mod sse;
mod unicode;
mod usage;

pub(crate) use classify::{classify, status_in_body};
pub(crate) use draft::{AnswerDraft, CallPiece, Part};
pub(crate) use error_body::ErrorBody;
pub use error_body::error_message;
pub(crate) use images::with_images;
pub(crate) use json_text::{TextForm, mark, read_json};
pub(crate) use lines::FrameTooLarge;
pub(crate) use sse::{Event, SseParser};
pub use usage::ReportedUsage;
pub(crate) use usage::TokenCount;

/// Reason to stop reading a response.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The provider reports an error. Contains its body.
    Error(Vec<u8>),
    /// The response violates the protocol. Contains the problem, and the bytes to quote after it, if any.
    Garbage(String, Vec<u8>),
    /// The response exceeds a limit. Contains the name of the limit.
    TooLarge(&'static str),
}

impl From<FrameTooLarge> for Stop {
    fn from(_: FrameTooLarge) -> Self {
        Self::TooLarge("one event of the answer is larger than 8 MiB")
    }
}
