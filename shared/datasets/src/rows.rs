//! Readers for the rows of a file.
//!
//! Files come from outside: whatever their bytes are, reading them ends in rows or in an error with a location, with
//! bounded memory and without a panic.

mod csv;
mod json;
mod panics;
mod parquet;
mod values;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::Path;

use bench_items::Row;
pub(crate) use panics::catch_panic;
use tokio::sync::{mpsc, oneshot};

use crate::error::DatasetError;

/// Maximum size of one row: of its line in a text file, of its content in memory for other formats.
pub(crate) const ROW_BYTES_MAX: usize = 192 * 1024 * 1024;
/// Maximum number of rows in one file.
const ROWS_MAX: u64 = 20_000_000;
/// Approximate size of the batches of rows that are sent between threads.
const BATCH_BYTES: usize = 1024 * 1024;
const BATCH_ROWS_MAX: usize = 256;
const BATCHES_IN_FLIGHT: usize = 2;
/// From this size on, a batch is the only one in memory.
const LARGE_BYTES: usize = 4 * 1024 * 1024;

/// A file with rows.
#[derive(Debug)]
pub(crate) struct RowFile {
    /// Name of the file in errors.
    pub(crate) name: String,
    pub(crate) input: Input,
}

#[derive(Debug)]
pub(crate) enum Input {
    /// CSV if the file's name ends so, otherwise Parquet, JSON lines or a JSON array, as the first bytes show.
    File(File),
    /// JSON lines.
    Text(Cow<'static, str>),
}

/// A row and its position, counted from 1: the row number, or the line number in JSON lines.
#[derive(Debug)]
pub(crate) struct NumberedRow {
    pub(crate) number: u64,
    pub(crate) row: Row,
}

/// Receives rows with their size in bytes; returns `false` if no more are wanted.
type Sink<'a> = &'a mut dyn FnMut(NumberedRow, usize) -> bool;

/// Returns true if a file of that name may hold rows in a supported format.
pub(crate) fn is_readable_name(path: &str) -> bool {
    let ending = Path::new(path).extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    ending.is_some_and(|e| ["parquet", "jsonl", "ndjson", "json", "csv"].contains(&e.as_str()))
}

/// A batch of rows. While it contains a large row, the reader waits until the batch is dropped before it reads on.
#[derive(Debug)]
pub(crate) struct Batch {
    rows: Vec<NumberedRow>,
    release: Option<oneshot::Sender<()>>,
}

impl Deref for Batch {
    type Target = [NumberedRow];

    fn deref(&self) -> &[NumberedRow] {
        &self.rows
    }
}

impl IntoIterator for Batch {
    type Item = NumberedRow;
    type IntoIter = BatchRows;

    fn into_iter(self) -> BatchRows {
        BatchRows { rows: self.rows.into_iter(), _release: self.release }
    }
}

/// Iterator over the rows of a batch. Dropping it releases the batch.
pub(crate) struct BatchRows {
    rows: std::vec::IntoIter<NumberedRow>,
    _release: Option<oneshot::Sender<()>>,
}

impl Iterator for BatchRows {
    type Item = NumberedRow;

    fn next(&mut self) -> Option<NumberedRow> {
        self.rows.next()
    }
}

/// Starts to read a file on another thread. Its rows arrive in batches; an error is the last message.
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
                let (release, released) = is_large.then(oneshot::channel).unzip();
                let rows = std::mem::take(&mut batch);
                let sent = sender.blocking_send(Ok(Batch { rows, release })).is_ok();
                if let Some(released) = released {
                    // No value is ever sent: this returns when the batch is dropped.
                    released.blocking_recv().ok();
                }
                sent
            })
        };
        // Without this, a panic of the thread would look like the end of the file.
        let result = panics::catch_panic(read).unwrap_or_else(|panic| Err(DatasetError::Interrupted(panic)));
        // A receiver that is closed needs neither the remaining rows nor the error.
        if !batch.is_empty() {
            sender.blocking_send(Ok(Batch { rows: batch, release: None })).ok();
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
        Input::Text(text) => return json::lines(&name, &mut Cursor::new(text.as_bytes()), sink),
        Input::File(file) => file,
    };
    let failed = |error: std::io::Error| DatasetError::content(&name, None, None, error.to_string());
    match detect_format(&name, &mut file).map_err(failed)? {
        FileFormat::Parquet => parquet::rows(&name, file, sink),
        FileFormat::Lines => json::lines(&name, &mut BufReader::new(file), sink),
        FileFormat::Csv => csv::rows(&name, &mut BufReader::new(file), sink),
        FileFormat::Array => json::array(&name, BufReader::new(file), sink),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FileFormat {
    Parquet,
    Lines,
    Array,
    Csv,
}

fn detect_format(name: &str, file: &mut File) -> std::io::Result<FileFormat> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.by_ref().take(4096).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    if head.starts_with(b"PAR1") {
        return Ok(FileFormat::Parquet);
    }
    // A CSV file may begin with any byte.
    if name.to_lowercase().ends_with(".csv") {
        return Ok(FileFormat::Csv);
    }
    let text = head.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(&head);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(if first == Some(&b'[') { FileFormat::Array } else { FileFormat::Lines })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Reads all rows of these bytes through a temporary file.
    pub(crate) fn rows_of(bytes: &[u8]) -> Result<Vec<NumberedRow>, DatasetError> {
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

    /// Creates a file with lines of these lengths.
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
                // The handle shares its position with the reader, which waits until the batch is dropped.
                let read: usize = seen.iter().sum::<usize>() + lengths.iter().sum::<usize>();
                let ahead = usize::try_from(position.stream_position().unwrap()).unwrap() - read;
                assert!(ahead <= 8 * 1024, "{ahead} bytes are read ahead");
            }
            seen.extend(lengths);
        }
        assert_eq!(seen, [LINE, LINE, 100, 100, LINE, 50]);
    }

    #[tokio::test]
    async fn a_dropped_receiver_frees_the_reader() {
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
