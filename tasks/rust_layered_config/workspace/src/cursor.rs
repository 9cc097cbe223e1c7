//! Character-wise reading with lines and columns.

use std::rc::Rc;

use crate::error::{ConfigError, ErrorKind, Place};

/// Reads a text from its start to its end.
pub struct Cursor<'a> {
    file: Rc<str>,
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(file: Rc<str>, text: &'a str) -> Self {
        Self { file, rest: text, line: 1, column: 1 }
    }

    pub fn place(&self) -> Place {
        Place { file: self.file.clone(), line: self.line, column: self.column }
    }

    pub fn rest(&self) -> &'a str {
        self.rest
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        if next == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(next)
    }

    /// Consumes `expected` if it comes next.
    pub fn eat(&mut self, expected: char) -> bool {
        let is_next = self.peek() == Some(expected);
        if is_next {
            self.next();
        }
        is_next
    }

    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next();
        }
    }

    /// Skips blanks and a comment.
    pub fn skip_comment(&mut self) {
        self.skip_blanks();
        if self.peek() == Some('#') {
            while !self.is_at_line_end() {
                self.next();
            }
        }
    }

    /// Skips blanks, comments and line ends.
    pub fn skip_lines(&mut self) {
        loop {
            self.skip_comment();
            if self.rest.is_empty() || !self.is_at_line_end() {
                return;
            }
            self.skip_line_end();
        }
    }

    /// Returns true at the end of a line or of the text.
    pub fn is_at_line_end(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with('\n') || self.rest.starts_with("\r\n")
    }

    pub fn skip_line_end(&mut self) {
        self.eat('\r');
        self.eat('\n');
    }

    /// Returns an error for the next character.
    pub fn unexpected(&self, wanted: &str) -> ConfigError {
        let found = match self.peek() {
            None => "the end of the file".to_owned(),
            Some(_) if self.is_at_line_end() => "the end of the line".to_owned(),
            Some(found) => format!("`{found}`"),
        };
        ConfigError::at(ErrorKind::Syntax, self.place(), format!("expected {wanted}, found {found}"))
    }
}
