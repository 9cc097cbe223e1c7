//! Parsing of a log that arrives in chunks.

use crate::error::ParseError;
use crate::record::Record;
use crate::scan::{self, Step};

/// Parser for a log that arrives in chunks. Chunks may end anywhere, also within a character.
///
/// A record or an error is returned for the chunk that has the end of its (last) line.
#[derive(Debug)]
pub struct Stream {
    pending: Vec<u8>,
    /// Number of the line in which `pending` begins.
    line: usize,
}

impl Stream {
    pub fn new() -> Self {
        Self { pending: Vec::new(), line: 1 }
    }

    /// Takes the next chunk and returns the items that are complete with it.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Result<Record, ParseError>> {
        self.pending.extend_from_slice(chunk);
        self.items(false)
    }

    /// Ends the log and returns what is left.
    pub fn finish(mut self) -> Vec<Result<Record, ParseError>> {
        self.items(true)
    }

    fn items(&mut self, is_last: bool) -> Vec<Result<Record, ParseError>> {
        let mut items = Vec::new();
        loop {
            let size = match scan::scan(&self.pending, is_last, self.line) {
                Step::Incomplete | Step::End => return items,
                Step::Skipped { size } => size,
                Step::Item { item, size } => {
                    items.push(item.clone());
                    size
                }
            };
            self.line += self.pending[..size].iter().filter(|byte| **byte == b'\n').count();
            self.pending = self.pending[size..].to_vec();
        }
    }
}

impl Default for Stream {
    fn default() -> Self {
        Self::new()
    }
}
