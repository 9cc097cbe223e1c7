//! Space that lines have.

/// Measures of a paragraph, in columns.
#[derive(Debug, Clone)]
pub struct Measure {
    pub width: usize,
    /// Indentation of the first line.
    pub first: usize,
    /// Indentation of all other lines.
    pub hang: usize,
}

impl Measure {
    /// Returns the indentation of a line, counted from 1.
    pub fn indent(&self, line: usize) -> usize {
        if line == 1 { self.first } else { self.hang }
    }

    /// Returns the columns that a line has for its pieces.
    pub fn available(&self, line: usize) -> usize {
        self.width - self.indent(line)
    }
}
