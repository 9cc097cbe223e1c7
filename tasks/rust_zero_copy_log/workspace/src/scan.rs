//! Scanning of a record.

use std::collections::HashSet;

use crate::error::{ErrorKind, ParseError};
use crate::record::{Field, Record, Value};

/// Outcome of a scan.
#[derive(Debug)]
pub enum Step {
    /// More input is needed to know what comes next.
    Incomplete,
    /// The input is used up.
    End,
    /// A line without a record.
    Skipped { size: usize },
    /// A record or an error, which takes `size` bytes with its line end.
    Item { item: Result<Record, ParseError>, size: usize },
}

/// Reason to stop within a record.
enum Stop {
    Incomplete,
    Error(ParseError),
}

/// What comes next in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Char(char),
    /// LF or CR LF.
    LineEnd,
    End,
}

struct Scanner {
    input: Vec<u8>,
    /// True if no more input follows.
    is_last: bool,
    position: usize,
    line: usize,
    column: usize,
}

/// Scans the first line or record of `input`, which begins in the line with this number.
pub fn scan(input: &[u8], is_last: bool, line: usize) -> Step {
    let mut scanner = Scanner { input: input.to_vec(), is_last, position: 0, line, column: 1 };
    match scanner.first() {
        Ok(Some(step)) => return step,
        Ok(None) => {}
        Err(stop) => return scanner.stopped(stop),
    }
    match scanner.record() {
        Ok(record) => Step::Item { item: Ok(record), size: scanner.position },
        Err(stop) => scanner.stopped(stop),
    }
}

impl Scanner {
    /// Skips the blanks at the beginning of a line, and the line if it has no record.
    fn first(&mut self) -> Result<Option<Step>, Stop> {
        self.blanks()?;
        match self.input.get(self.position) {
            Some(b'#') => {
                self.rest_of_line()?;
                return Ok(Some(Step::Skipped { size: self.position }));
            }
            Some(_) => {}
            None if self.position == 0 => return Ok(Some(Step::End)),
            None => return Ok(Some(Step::Skipped { size: self.position })),
        }
        if self.next()? == Next::LineEnd {
            self.advance()?;
            return Ok(Some(Step::Skipped { size: self.position }));
        }
        Ok(None)
    }

    fn record(&mut self) -> Result<Record, Stop> {
        let line = self.line;
        let mut fields: Vec<Field> = Vec::new();
        let mut keys = HashSet::new();
        loop {
            let (key_line, key_column) = (self.line, self.column);
            let key = self.key()?;
            if !keys.insert(key.clone()) {
                let kind = ErrorKind::DuplicateKey(key);
                return Err(Stop::Error(ParseError { line: key_line, column: key_column, kind }));
            }
            let value = if self.next()? == Next::Char('=') {
                self.advance()?;
                if self.next()? == Next::Char('"') { Value::Text(self.string()?) } else { Value::Text(self.bare()?) }
            } else {
                Value::Flag
            };
            fields.push(Field { key, value });
            self.blanks()?;
            if matches!(self.next()?, Next::LineEnd | Next::End) {
                self.advance()?;
                return Ok(Record { line, fields });
            }
        }
    }

    fn key(&mut self) -> Result<String, Stop> {
        let mut key = String::new();
        loop {
            match self.next()? {
                Next::Char('=') if key.is_empty() => return Err(self.error(ErrorKind::ExpectedKey)),
                Next::Char(' ' | '\t' | '=') | Next::LineEnd | Next::End => return Ok(key.to_ascii_lowercase()),
                Next::Char('"') => return Err(self.error(ErrorKind::QuoteInKey)),
                Next::Char(control) if control.is_control() => return Err(self.error(ErrorKind::Control(control))),
                Next::Char(other) => key.push(other),
            }
            self.advance()?;
        }
    }

    fn bare(&mut self) -> Result<String, Stop> {
        let mut value = String::new();
        loop {
            match self.next()? {
                Next::Char(' ' | '\t') | Next::LineEnd | Next::End => return Ok(value),
                Next::Char('"') => return Err(self.error(ErrorKind::QuoteInValue)),
                Next::Char(control) if control.is_control() => return Err(self.error(ErrorKind::Control(control))),
                Next::Char(other) => value.push(other),
            }
            self.advance()?;
        }
    }

    fn string(&mut self) -> Result<String, Stop> {
        let unterminated = ParseError { line: self.line, column: self.column, kind: ErrorKind::UnterminatedString };
        self.advance()?;
        let mut text = String::new();
        loop {
            match self.next()? {
                Next::End => return Err(Stop::Error(unterminated)),
                Next::LineEnd => text.push('\n'),
                Next::Char('"') => break,
                Next::Char('\\') => {
                    let (line, column) = (self.line, self.column);
                    self.advance()?;
                    match self.next()? {
                        Next::End => return Err(Stop::Error(unterminated)),
                        Next::LineEnd => {
                            self.advance()?;
                            self.blanks()?;
                            continue;
                        }
                        Next::Char(same @ ('\\' | '"')) => text.push(same),
                        Next::Char('n') => text.push('\n'),
                        Next::Char('r') => text.push('\r'),
                        Next::Char('t') => text.push('\t'),
                        Next::Char(other) => {
                            let kind = ErrorKind::UnknownEscape(other);
                            return Err(Stop::Error(ParseError { line, column, kind }));
                        }
                    }
                }
                Next::Char(control) if control.is_control() && control != '\t' => {
                    return Err(self.error(ErrorKind::Control(control)));
                }
                Next::Char(other) => text.push(other),
            }
            self.advance()?;
        }
        self.advance()?;
        match self.next()? {
            Next::Char(' ' | '\t') | Next::LineEnd | Next::End => Ok(text),
            Next::Char(other) => Err(self.error(ErrorKind::AfterString(other))),
        }
    }

    /// Skips blanks. More of them may follow if the input isn't the last.
    fn blanks(&mut self) -> Result<(), Stop> {
        while let Some(b' ' | b'\t') = self.input.get(self.position) {
            self.position += 1;
            self.column += 1;
        }
        if self.position == self.input.len() && !self.is_last {
            return Err(Stop::Incomplete);
        }
        Ok(())
    }

    fn next(&self) -> Result<Next, Stop> {
        let rest = self.input[self.position..].to_vec();
        match rest.first() {
            None if self.is_last => return Ok(Next::End),
            None => return Err(Stop::Incomplete),
            Some(b'\n') => return Ok(Next::LineEnd),
            Some(b'\r') => {
                return match rest.get(1) {
                    Some(b'\n') => Ok(Next::LineEnd),
                    None if !self.is_last => Err(Stop::Incomplete),
                    _ => Ok(Next::Char('\r')),
                };
            }
            Some(_) => {}
        }
        let start = rest[..rest.len().min(4)].to_vec();
        let valid = match std::str::from_utf8(&start) {
            Ok(text) => text.to_owned(),
            Err(error) if error.valid_up_to() > 0 => String::from_utf8_lossy(&start[..error.valid_up_to()]).into_owned(),
            Err(error) if error.error_len().is_none() && !self.is_last => return Err(Stop::Incomplete),
            Err(_) => return Err(self.error(ErrorKind::InvalidUtf8)),
        };
        Ok(valid.chars().next().map_or(Next::End, Next::Char))
    }

    /// Consumes what comes next.
    fn advance(&mut self) -> Result<(), Stop> {
        match self.next()? {
            Next::End => {}
            Next::Char(character) => {
                self.position += character.len_utf8();
                self.column += 1;
            }
            Next::LineEnd => {
                self.position += if self.input[self.position] == b'\r' { 2 } else { 1 };
                self.line += 1;
                self.column = 1;
            }
        }
        Ok(())
    }

    /// Consumes bytes up to the line's end, and it, too.
    fn rest_of_line(&mut self) -> Result<(), Stop> {
        match self.input[self.position..].iter().position(|byte| *byte == b'\n') {
            Some(index) => self.position += index + 1,
            None if self.is_last => self.position = self.input.len(),
            None => return Err(Stop::Incomplete),
        }
        Ok(())
    }

    fn error(&self, kind: ErrorKind) -> Stop {
        Stop::Error(ParseError { line: self.line, column: self.column, kind })
    }

    fn stopped(&mut self, stop: Stop) -> Step {
        let Stop::Error(error) = stop else { return Step::Incomplete };
        match self.rest_of_line() {
            Ok(()) => Step::Item { item: Err(error), size: self.position },
            Err(_) => Step::Incomplete,
        }
    }
}
