//! Rows of CSV files: a header, then one record per row, with values as text.
//!
//! Follows the readers that the datasets' authors use (RFC 4180, pandas): a quoted value may contain line ends and
//! doubled quotes, quotes within an unquoted value are part of it, an empty value is null, a column without a name is
//! called `Unnamed: N`, and a repeated name gets the suffix `.1`, `.2`. Unlike pandas, this reader doesn't convert
//! values to numbers, doesn't treat words such as `None` as missing, and rejects rows with more or fewer values than
//! the header.

use std::collections::HashSet;
use std::io::BufRead;

use bench_items::Row;
use serde_json::Value;

use super::json::BYTE_ORDER_MARK;
use super::{NumberedRow, ROW_BYTES_MAX, ROWS_MAX, Sink};
use crate::error::DatasetError;

/// Maximum number of columns.
const COLUMNS_MAX: usize = 4_096;

/// Passes rows to `sink`, numbered from 1 after the header.
pub(super) fn rows(name: &str, input: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), DatasetError> {
    let failed = |row: Option<u64>, problem: String| DatasetError::content(name, row, None, problem);
    let mut reader = Reader { input, started: false };
    let Some(header) = reader.record().map_err(|problem| failed(None, problem))? else { return Ok(()) };
    let columns = columns(header).map_err(|problem| failed(None, problem))?;
    for number in 1..=ROWS_MAX {
        let Some(values) = reader.record().map_err(|problem| failed(Some(number), problem))? else {
            return Ok(());
        };
        if values.len() != columns.len() {
            let (found, expected) = (values.len(), columns.len());
            let missing = columns.get(found).cloned().filter(|_| found < expected);
            let problem = format!("the row has {found} values, the header {expected}");
            return Err(DatasetError::content(name, number, missing, problem));
        }
        let mut row = Row::new();
        let mut bytes = 0;
        for (column, value) in columns.iter().zip(values) {
            let value = String::from_utf8(value).map_err(|error| {
                let problem = format!("byte {} of it is not UTF-8", error.utf8_error().valid_up_to());
                DatasetError::content(name, number, Some(column.clone()), problem)
            })?;
            bytes += size_of::<Value>() + column.len() + value.len();
            row.insert(column.clone(), if value.is_empty() { Value::Null } else { Value::String(value) });
        }
        if !sink(NumberedRow { number, row }, bytes) {
            return Ok(());
        }
    }
    Err(failed(None, format!("it has more than {ROWS_MAX} rows")))
}

/// Returns a unique name for each column.
fn columns(header: Vec<Vec<u8>>) -> Result<Vec<String>, String> {
    let mut used_names = HashSet::new();
    let mut names = Vec::with_capacity(header.len());
    for (position, name) in header.into_iter().enumerate() {
        let name = String::from_utf8(name).map_err(|_| "the header is not UTF-8".to_owned())?;
        let name = if name.is_empty() { format!("Unnamed: {position}") } else { name };
        let mut unique = name.clone();
        let mut again = 0;
        while !used_names.insert(unique.clone()) {
            again += 1;
            unique = format!("{name}.{again}");
        }
        names.push(unique);
    }
    Ok(names)
}

struct Reader<'a> {
    input: &'a mut dyn BufRead,
    started: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first byte of a value.
    Start,
    /// In a value without quotes, or after its closing quote.
    Plain,
    /// Between quotes.
    Quoted,
    /// After a quote that closes the value unless another quote follows.
    Closing,
}

impl Reader<'_> {
    /// Returns the values of the next record, skipping blank lines; `None` at the end.
    fn record(&mut self) -> Result<Option<Vec<Vec<u8>>>, String> {
        let mut values: Vec<Vec<u8>> = Vec::new();
        let mut value = Vec::new();
        let mut place = Place::Start;
        let mut bytes = 0;
        if !self.started {
            self.started = true;
            let marked = self.chunk()?.starts_with(BYTE_ORDER_MARK);
            self.input.consume(if marked { BYTE_ORDER_MARK.len() } else { 0 });
        }
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                if place == Place::Quoted {
                    return Err("a quote that opens a value in it is never closed".to_owned());
                }
                // The last line may lack a line end.
                let is_nothing = values.is_empty() && value.is_empty() && place == Place::Start;
                values.extend((!is_nothing).then_some(value));
                return Ok((!is_nothing).then_some(values));
            }
            let mut used = 0;
            let mut is_done = false;
            for &byte in chunk {
                used += 1;
                match (place, byte) {
                    (Place::Quoted, b'"') => place = Place::Closing,
                    (Place::Quoted, _) => value.push(byte),
                    (Place::Start, b'"') => place = Place::Quoted,
                    (Place::Closing, b'"') => {
                        value.push(byte);
                        place = Place::Quoted;
                    }
                    (_, b',') => {
                        values.push(std::mem::take(&mut value));
                        place = Place::Start;
                        if values.len() > COLUMNS_MAX {
                            return Err(format!("it has more than {COLUMNS_MAX} values"));
                        }
                    }
                    (_, b'\n' | b'\r') => {
                        let is_blank = place == Place::Start && values.is_empty();
                        if !is_blank {
                            values.push(std::mem::take(&mut value));
                            is_done = true;
                            break;
                        }
                    }
                    _ => {
                        value.push(byte);
                        place = Place::Plain;
                    }
                }
            }
            bytes += used;
            self.input.consume(used);
            if is_done {
                // The second byte of `\r\n` is skipped as a blank line by the next call.
                return Ok(Some(values));
            }
            if bytes > ROW_BYTES_MAX {
                return Err(format!("the row is longer than {ROW_BYTES_MAX} bytes"));
            }
        }
    }

    fn chunk(&mut self) -> Result<&[u8], String> {
        self.input.fill_buf().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use serde_json::json;

    use super::*;

    /// All rows, read in chunks of `chunk_bytes`.
    fn rows_in_chunks(chunk_bytes: usize, bytes: &[u8]) -> Result<Vec<Row>, String> {
        let mut found = Vec::new();
        let mut input = BufReader::with_capacity(chunk_bytes, Cursor::new(bytes));
        rows("f.csv", &mut input, &mut |row, _| {
            assert_eq!(row.number, found.len() as u64 + 1);
            found.push(row.row);
            true
        })
        .map_err(|error| error.to_string())?;
        Ok(found)
    }

    fn rows_of(bytes: &[u8]) -> Result<Value, String> {
        let whole = rows_in_chunks(8_192, bytes);
        for chunk_bytes in [3, 7] {
            assert_eq!(rows_in_chunks(chunk_bytes, bytes), whole);
        }
        Ok(Value::from_iter(whole?.into_iter().map(Value::Object)))
    }

    #[test]
    fn values_are_text_as_written() {
        let file = "\u{feff},q,\"a, b\",q\r\n0, x ,\"two\nlines \"\"so\"\"\r\n\",7\r\n\r\n1,\"\",,\"ü\"x\"\"\n2,5\" disk,None,\"\"";
        assert_eq!(
            rows_of(file.as_bytes()).unwrap(),
            json!([
                {"Unnamed: 0": "0", "q": " x ", "a, b": "two\nlines \"so\"\r\n", "q.1": "7"},
                {"Unnamed: 0": "1", "q": null, "a, b": null, "q.1": "üx\"\""},
                {"Unnamed: 0": "2", "q": "5\" disk", "a, b": "None", "q.1": null},
            ])
        );
        assert_eq!(rows_of(b"").unwrap(), json!([]));
        assert_eq!(rows_of(b"a,b\n").unwrap(), json!([]));
        assert_eq!(rows_of(b"a\rx\ry").unwrap(), json!([{"a": "x"}, {"a": "y"}]));
        assert_eq!(rows_of(b"a,a,a.1\n1,2,3").unwrap(), json!([{"a": "1", "a.1": "2", "a.1.1": "3"}]));
    }

    #[test]
    fn errors_name_row_and_column() {
        let error = |bytes: &[u8]| rows_of(bytes).unwrap_err();
        assert_eq!(error(b"a,b\n1,2\n3\n"), "f.csv, row 2, column `b`: the row has 1 values, the header 2");
        assert_eq!(error(b"a,b\n1,2,3\n"), "f.csv, row 1: the row has 3 values, the header 2");
        assert_eq!(
            error(b"a,b\n1,2\n3,\"x\ny,4\n"),
            "f.csv, row 2: a quote that opens a value in it is never closed"
        );
        assert_eq!(error(b"a,b\n1,x\xff\n"), "f.csv, row 1, column `b`: byte 1 of it is not UTF-8");
        assert_eq!(error(b"a,\xff\n"), "f.csv: the header is not UTF-8");
        assert!(error(&[b','; 5_000]).contains("more than 4096 values"));
    }

    #[test]
    fn no_more_rows_are_read_than_wanted() {
        let mut seen = 0;
        let mut input = Cursor::new(b"a\n1\n2\n3,\n");
        rows("f", &mut input, &mut |_, _| {
            seen += 1;
            seen < 2
        })
        .unwrap();
        assert_eq!(seen, 2);
    }

    #[test]
    fn quoted_values_round_trip() {
        // Values made of every special character, written with quotes.
        let alphabet = ["a", "\"", ",", "\n", "\r\n", " ", "ü", "'", "\\"];
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..500 {
            let mut file = "a,b\n".to_owned();
            let mut expected = Vec::new();
            for _ in 0..=next(4) {
                let values: [String; 2] =
                    std::array::from_fn(|_| (0..next(6)).map(|_| alphabet[next(9)]).collect());
                let quoted: Vec<_> =
                    values.iter().map(|v| format!("\"{}\"", v.replace('"', "\"\""))).collect();
                file.push_str(&(quoted.join(",") + "\n"));
                let value = |text: &String| if text.is_empty() { Value::Null } else { json!(text) };
                expected.push(json!({"a": value(&values[0]), "b": value(&values[1])}));
            }
            assert_eq!(rows_of(file.as_bytes()).unwrap(), Value::from(expected), "{file}");
        }
    }
}
