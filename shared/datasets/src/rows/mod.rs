//! Rows of a file, one after the other.
//!
//! Files come from elsewhere: whatever their bytes are, reading them ends in rows or in an error that
//! says where, with bounded memory and without a panic.

mod csv;
mod json;
mod parquet;
mod quiet;
mod values;

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::Path;

use bench_items::Row;
pub(crate) use quiet::catch;
use tokio::sync::{mpsc, oneshot};

use crate::error::DatasetError;

/// Upper bound of one row: of its line in a text file, of its content in memory for others.
pub(crate) const ROW_BYTES_MAX: usize = 192 * 1024 * 1024;
/// Upper bound of rows in one file.
const ROWS_MAX: u64 = 20_000_000;
/// Rows travel between threads in batches of about this size.
const BATCH_BYTES: usize = 1024 * 1024;
const BATCH_ROWS_MAX: usize = 256;
const BATCHES_IN_FLIGHT: usize = 2;
/// A batch of this size is the only one in memory.
const LARGE_BYTES: usize = 4 * 1024 * 1024;

/// A file with rows.
#[derive(Debug)]
pub(crate) struct RowFile {
    /// What errors call it.
    pub(crate) name: String,
    pub(crate) input: Input,
}

#[derive(Debug)]
pub(crate) enum Input {
    /// CSV when the file's name says so, else parquet, JSON lines or a JSON array: that shows in its first bytes.
    File(File),
    /// JSON lines.
    Text(&'static str),
}

/// A row and where it was, counted from 1: its row, or its line in JSON lines.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) row: Row,
}

/// Takes rows; `false` when no more are wanted.
type Sink<'a> = &'a mut dyn FnMut(Numbered, usize) -> bool;

/// Whether a file of that name can hold rows that are read here.
pub(crate) fn is_readable_name(path: &str) -> bool {
    let ending = Path::new(path).extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    ending.is_some_and(|e| ["parquet", "jsonl", "ndjson", "json", "csv"].contains(&e.as_str()))
}

/// Some rows. While one of them is large, nothing is read ahead: the next comes when these have been let go.
#[derive(Debug)]
pub(crate) struct Batch {
    rows: Vec<Numbered>,
    held: Option<oneshot::Sender<()>>,
}

impl Deref for Batch {
    type Target = [Numbered];

    fn deref(&self) -> &[Numbered] {
        &self.rows
    }
}

impl IntoIterator for Batch {
    type Item = Numbered;
    type IntoIter = BatchRows;

    fn into_iter(self) -> BatchRows {
        BatchRows { rows: self.rows.into_iter(), _held: self.held }
    }
}

/// The rows of a batch; the batch is let go when this is dropped.
pub(crate) struct BatchRows {
    rows: std::vec::IntoIter<Numbered>,
    _held: Option<oneshot::Sender<()>>,
}

impl Iterator for BatchRows {
    type Item = Numbered;

    fn next(&mut self) -> Option<Numbered> {
        self.rows.next()
    }
}

/// Starts to read a file on a thread of its own. Its rows come in batches; an error is the last one.
pub(crate) fn read(file: RowFile) -> mpsc::Receiver<Result<Batch, DatasetError>> {
    let (sender, receiver) = mpsc::channel(BATCHES_IN_FLIGHT);
    tokio::task::spawn_blocking(move || {
        let mut batch = Vec::new();
        let mut batch_bytes = 0;
        let read = || {
            read_all(file, &mut |row, bytes| {
                batch.push(row);
                batch_bytes += bytes;
                if batch_bytes < BATCH_BYTES && batch.len() < BATCH_ROWS_MAX {
                    return true;
                }
                let is_large = std::mem::take(&mut batch_bytes) >= LARGE_BYTES;
                let (held, released) = is_large.then(oneshot::channel).unzip();
                let rows = std::mem::take(&mut batch);
                let sent = sender.blocking_send(Ok(Batch { rows, held })).is_ok();
                if let Some(released) = released {
                    // Nothing is ever sent: it ends when the batch is dropped.
                    released.blocking_recv().ok();
                }
                sent
            })
        };
        // A thread that just went away would look like the end of the file.
        let result = quiet::catch(read).unwrap_or_else(|panic| Err(DatasetError::Interrupted(panic)));
        // A receiver that has gone away wants neither the rest nor the error.
        if !batch.is_empty() {
            sender.blocking_send(Ok(Batch { rows: batch, held: None })).ok();
        }
        if let Err(error) = result {
            sender.blocking_send(Err(error)).ok();
        }
    });
    receiver
}

fn read_all(file: RowFile, sink: Sink<'_>) -> Result<(), DatasetError> {
    let name = file.name;
    let mut file = match file.input {
        Input::Text(text) => return json::lines(&name, &mut Cursor::new(text), sink),
        Input::File(file) => file,
    };
    let failed = |error: std::io::Error| DatasetError::content(&name, None, None, error.to_string());
    match kind(&name, &mut file).map_err(failed)? {
        Kind::Parquet => parquet::rows(&name, file, sink),
        Kind::Lines => json::lines(&name, &mut BufReader::new(file), sink),
        Kind::Csv => csv::rows(&name, &mut BufReader::new(file), sink),
        Kind::Array => json::array(&name, BufReader::new(file), sink),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Parquet,
    Lines,
    Array,
    Csv,
}

fn kind(name: &str, file: &mut File) -> std::io::Result<Kind> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.by_ref().take(4096).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    if head.starts_with(b"PAR1") {
        return Ok(Kind::Parquet);
    }
    // What CSV begins with may be anything.
    if name.to_lowercase().ends_with(".csv") {
        return Ok(Kind::Csv);
    }
    let text = head.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(&head);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(if first == Some(&b'[') { Kind::Array } else { Kind::Lines })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// All rows of some bytes, as they would be read from a file.
    pub(crate) fn rows_of(bytes: &[u8]) -> Result<Vec<Numbered>, DatasetError> {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        let mut rows = Vec::new();
        let file = RowFile { name: "f".into(), input: Input::File(file) };
        read_all(file, &mut |row, _| {
            rows.push(row);
            true
        })?;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Lines of these lengths.
    fn file_of(lengths: &[usize]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        for length in lengths {
            writeln!(file, "{{\"a\":\"{}\"}}", "x".repeat(length - 9)).unwrap();
        }
        file
    }

    #[tokio::test]
    async fn a_large_row_is_alone_in_memory() {
        const LINE: usize = 5 * 1024 * 1024;
        let file = file_of(&[LINE, LINE, 100, 100, LINE, 50]);
        let mut position = file.try_clone().unwrap();
        let mut rows = read(RowFile { name: "f".into(), input: Input::File(file) });
        let mut seen = Vec::new();
        while let Some(batch) = rows.recv().await {
            let batch = batch.unwrap();
            let lengths: Vec<usize> =
                batch.iter().map(|row| row.row["a"].as_str().unwrap().len() + 9).collect();
            if lengths.contains(&LINE) {
                // The handle shares its position with the reader's, which waits until the batch is dropped.
                let read: usize = seen.iter().sum::<usize>() + lengths.iter().sum::<usize>();
                let ahead = usize::try_from(position.stream_position().unwrap()).unwrap() - read;
                assert!(ahead <= 8 * 1024, "{ahead} bytes are read ahead");
            }
            seen.extend(lengths);
        }
        assert_eq!(seen, [LINE, LINE, 100, 100, LINE, 50]);
    }

    #[tokio::test]
    async fn whoever_gives_up_frees_the_reader() {
        let mut rows = read(RowFile { name: "f".into(), input: Input::File(file_of(&[LARGE_BYTES + 1; 4])) });
        let batch = rows.recv().await.unwrap().unwrap();
        drop(rows);
        drop(batch.into_iter());
    }

    #[test]
    fn a_row_over_the_limit_is_named() {
        let mut file = file_of(&[100, 100]);
        let at = file.seek(SeekFrom::End(0)).unwrap();
        file.set_len(at + ROW_BYTES_MAX as u64 + 10).unwrap();
        let mut count = 0;
        let error = read_all(RowFile { name: "f".into(), input: Input::File(file) }, &mut |_, _| {
            count += 1;
            true
        });
        let error = error.unwrap_err().to_string();
        assert_eq!((count, error), (2, format!("f, row 3: the line is longer than {ROW_BYTES_MAX} bytes")));
    }
}
