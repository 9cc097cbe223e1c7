//! Parses JSON whose strings may end within a character.

use bench_domain::TextRepairs;
use serde::Deserialize;

use super::unicode::Assembler;

pub(crate) use super::unicode::mark;

/// Form of the JSON that a text was parsed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextForm {
    /// As received.
    Plain,
    /// After [`mark`], because a string in it was broken.
    Marked,
}

impl TextForm {
    pub(super) fn append(self, to: &mut Assembler, text: &str, repairs: &mut TextRepairs) {
        match self {
            Self::Plain => to.push(text, repairs),
            Self::Marked => to.push_marked(text, repairs),
        }
    }
}

/// Parses JSON as received, or marked if a string in it is broken. `marked` holds the bytes that the value then
/// borrows.
pub(crate) fn read_json<'a, T: Deserialize<'a>>(
    json: &'a [u8],
    marked: &'a mut Option<Vec<u8>>,
) -> serde_json::Result<(T, TextForm)> {
    let error = match serde_json::from_slice(json) {
        Ok(value) => return Ok((value, TextForm::Plain)),
        Err(error) => error,
    };
    *marked = mark(json);
    match marked.as_deref().map(serde_json::from_slice) {
        Some(Ok(value)) => Ok((value, TextForm::Marked)),
        _ => Err(error),
    }
}
