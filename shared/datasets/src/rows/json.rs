//! Rows of JSON lines files and JSON arrays.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use bench_items::Row;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::Value;

use super::{NumberedRow, ROW_BYTES_MAX, ROWS_MAX, Sink};
use crate::error::DatasetError;

/// Maximum capacity of a line buffer that is reused for the next line.
const LINE_KEPT_BYTES_MAX: usize = 1024 * 1024;

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads one object per line. Blank lines are counted but skipped.
pub(super) fn lines(name: &str, input: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), DatasetError> {
    let mut line = Vec::new();
    for number in 1..=ROWS_MAX {
        let failed = |problem: String| DatasetError::content(name, number, None, problem);
        line.clear();
        let limit = ROW_BYTES_MAX as u64 + 1;
        let read =
            input.take(limit).read_until(b'\n', &mut line).map_err(|error| failed(error.to_string()))?;
        if read == 0 {
            return Ok(());
        }
        if read > ROW_BYTES_MAX {
            return Err(failed(format!("the line is longer than {ROW_BYTES_MAX} bytes")));
        }
        let text = if number == 1 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let value = serde_json::from_slice(text).map_err(|error| failed(explain(&error)))?;
        if line.capacity() > LINE_KEPT_BYTES_MAX {
            // The row of this line is processed next and is just as large, so free the buffer
            // first.
            line = Vec::new();
        }
        if !sink(NumberedRow { number, row: object(value).map_err(failed)? }, read) {
            return Ok(());
        }
    }
    Err(too_many(name))
}

/// Reads an array of objects one by one.
pub(super) fn array(name: &str, input: impl BufRead, sink: Sink<'_>) -> Result<(), DatasetError> {
    let bytes_left = Rc::new(Cell::new(ROW_BYTES_MAX));
    let mut input = BoundedReader { input, bytes_left: Rc::clone(&bytes_left) };
    skip_byte_order_mark(&mut input.input)
        .map_err(|error| DatasetError::content(name, None, None, error.to_string()))?;
    let mut rows = Rows { sink, bytes_left, number: 0, stopped: false, problem: None };
    let mut reader = serde_json::Deserializer::from_reader(input);
    let result = rows.deserialize(&mut reader).and_then(|()| reader.end());
    let Rows { number, stopped, problem, .. } = rows;
    match (problem, result) {
        _ if stopped => Ok(()),
        (Some(problem), _) => Err(DatasetError::content(name, number, None, problem)),
        (None, Err(error)) => Err(DatasetError::content(name, number + 1, None, explain(&error))),
        (None, Ok(())) => Ok(()),
    }
}

fn object(value: Value) -> Result<Row, String> {
    match value {
        Value::Object(row) => Ok(row),
        Value::Array(_) => Err("expected an object as row, found a list".to_owned()),
        other => Err(format!("expected an object as row, found {}", shorten(&other.to_string()))),
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

/// Formats the parser's message without its position, which counts from wherever the parser
/// started.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    format!("it is not JSON: {text} (character {})", error.column())
}

fn too_many(name: &str) -> DatasetError {
    DatasetError::content(name, None, None, format!("it has more than {ROWS_MAX} rows"))
}

fn skip_byte_order_mark(input: &mut impl BufRead) -> io::Result<()> {
    let marked = input.fill_buf()?.starts_with(BYTE_ORDER_MARK);
    input.consume(if marked { BYTE_ORDER_MARK.len() } else { 0 });
    Ok(())
}

/// Reader that fails when more than [`ROW_BYTES_MAX`] bytes are read without completing a row.
struct BoundedReader<R> {
    input: R,
    bytes_left: Rc<Cell<usize>>,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes_left = self.bytes_left.get();
        if bytes_left == 0 {
            return Err(io::Error::other(format!("the row is longer than {ROW_BYTES_MAX} bytes")));
        }
        let wanted = buffer.len().min(bytes_left);
        let read = self.input.read(buffer.get_mut(..wanted).unwrap_or_default())?;
        self.bytes_left.set(bytes_left - read);
        Ok(read)
    }
}

struct Rows<'a> {
    sink: Sink<'a>,
    bytes_left: Rc<Cell<usize>>,
    number: u64,
    stopped: bool,
    problem: Option<String>,
}

impl Rows<'_> {
    fn deserialize<'de, D: serde::Deserializer<'de>>(&mut self, reader: D) -> Result<(), D::Error> {
        DeserializeSeed::deserialize(self, reader)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Rows<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        use serde::de::Error;
        while let Some(value) = elements.next_element::<Value>()? {
            self.number += 1;
            let row = match object(value) {
                Ok(_) if self.number > ROWS_MAX => Err(format!("it has more than {ROWS_MAX} rows")),
                other => other,
            };
            let row = row.map_err(|problem| {
                self.problem = Some(problem.clone());
                A::Error::custom(problem)
            })?;
            let bytes = ROW_BYTES_MAX - self.bytes_left.replace(ROW_BYTES_MAX);
            if !(self.sink)(NumberedRow { number: self.number, row }, bytes) {
                self.stopped = true;
                return Err(A::Error::custom("no more rows are wanted"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::rows::testing::rows_of;

    fn error(bytes: &[u8]) -> String {
        rows_of(bytes).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_rows() {
        let rows = rows_of(b"\xef\xbb\xbf{\"a\":1}\r\n\n  {\"a\":\"\xc3\xbc\"}").unwrap();
        assert_eq!(rows.iter().map(|r| r.number).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(rows[1].row["a"], "ü");
        assert!(rows_of(b"").unwrap().is_empty());
        assert!(rows_of(b"\n \n").unwrap().is_empty());
    }

    #[test]
    fn an_invalid_line_is_reported_with_its_number() {
        assert!(error(b"{\"a\":1}\n{\"a\":}\n").starts_with("f, row 2: it is not JSON: "));
        assert!(error(b"{\"a\":1}\n7\n").starts_with("f, row 2: expected an object as row, found 7"));
        assert!(error(b"{\"a\":1} {\"a\":2}\n").starts_with("f, row 1: it is not JSON: trailing"));
        assert!(error(b"{\"a\":\"\xff\"}\n").starts_with("f, row 1: "));
        assert!(error(b"{\"a\":1e999}").starts_with("f, row 1: "));
        assert!(error(&[b"[".as_slice(); 5_000].concat()).contains("recursion"));
    }

    #[test]
    fn an_array_is_rows() {
        let rows = rows_of(b" [{\"a\":1},\n {\"a\":2}]\n").unwrap();
        assert_eq!(rows.iter().map(|r| r.number).collect::<Vec<_>>(), [1, 2]);
        assert!(rows_of(b"[]").unwrap().is_empty());
        assert!(rows_of(b"\xef\xbb\xbf[{}]").unwrap().len() == 1);
    }

    #[test]
    fn an_invalid_array_is_reported_with_its_row() {
        assert!(error(b"[{\"a\":1}, 7]").starts_with("f, row 2: expected an object as row"));
        assert!(error(b"[{\"a\":1}, {").starts_with("f, row 2: it is not JSON"));
        assert!(error(b"[{\"a\":1}] x").starts_with("f, row 2: it is not JSON"));
    }
}
