//! Layout that fills each line as far as possible.

use crate::line::{self, Lines};
use crate::measure::Measure;
use crate::piece::Piece;

/// Breaks a paragraph into lines.
pub fn lay_out(pieces: &[Piece], measure: &Measure) -> Lines {
    let mut lines = Lines::new();
    let mut start = 0;
    while start < pieces.len() {
        let available = measure.available(lines.len() + 1);
        let mut end = start + 1;
        let mut width_without_break = pieces[start].width;
        for candidate in start + 2..=pieces.len() {
            width_without_break += pieces[candidate - 1].width;
            if width_without_break > available {
                break;
            }
            if line::natural_width(&pieces[start..candidate]) <= available {
                end = candidate;
            }
        }
        lines.push(start..end);
        start = end;
    }
    lines
}
