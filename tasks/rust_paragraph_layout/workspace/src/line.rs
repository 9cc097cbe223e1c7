//! Lines: runs of pieces.

use std::ops::Range;

use crate::piece::{Break, Piece};

/// Returns the columns that pieces take as a line, with the `-` of a soft hyphen at its end.
pub fn natural_width(pieces: &[Piece]) -> usize {
    let Some((last, others)) = pieces.split_last() else { return 0 };
    let others: usize = others.iter().map(|piece| piece.width + usize::from(piece.after == Break::Space)).sum();
    others + last.width + usize::from(last.after == Break::Soft)
}

/// Returns the text of a line.
pub fn text(pieces: &[Piece]) -> String {
    let mut text = String::new();
    for (number, piece) in pieces.iter().enumerate() {
        text.push_str(&piece.text);
        match piece.after {
            Break::Space if number + 1 < pieces.len() => text.push(' '),
            Break::Soft if number + 1 == pieces.len() => text.push('-'),
            _ => {}
        }
    }
    text
}

/// A paragraph's lines, as ranges of its pieces.
pub type Lines = Vec<Range<usize>>;
