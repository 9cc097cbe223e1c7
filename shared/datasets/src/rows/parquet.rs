//! Rows of Parquet files, without Arrow.
//!
//! The record reader assembles one row at a time and decodes pages as it reaches them, so memory is
//! bounded by one page of each column. Reading a few values ahead instead of the default 1,024
//! keeps rows of many megabytes from accumulating.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use bench_items::Row;
use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};

use super::panics::catch_panic;
use super::values::to_json;
use super::{NumberedRow, ROW_BYTES_MAX, ROWS_MAX, Sink};
use crate::error::DatasetError;

/// Number of values of each column that are decoded ahead.
const VALUES_AHEAD: usize = 32;

/// An error in a row group: the row within the group, and the column if known.
struct GroupProblem {
    row: u64,
    column: Option<String>,
    problem: String,
}

pub(super) fn rows(name: &str, file: File, sink: Sink<'_>) -> Result<(), DatasetError> {
    let failed = |problem: String| DatasetError::content(name, None, None, shorten_message(&problem));
    let length = file.metadata().map_err(|error| failed(error.to_string()))?.len();
    let reader = catch_errors(|| SerializedFileReader::new(BoundedFile { file, length })).map_err(failed)?;
    let mut before = 0;
    for group in 0..reader.num_row_groups() {
        let read = read_group(&reader, group, &mut |row, bytes| {
            before += 1;
            sink(NumberedRow { number: before, row }, bytes)
        });
        match read {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(bad) => {
                let number = before + 1;
                let column = bad.column.or_else(|| find_unreadable_column(&reader, group, bad.row));
                return Err(DatasetError::content(name, number, column, shorten_message(&bad.problem)));
            }
        }
        if before > ROWS_MAX {
            return Err(failed(format!("it has more than {ROWS_MAX} rows")));
        }
    }
    Ok(())
}

/// Reads the rows of one group; returns `false` if the sink wants no more.
fn read_group(
    reader: &SerializedFileReader<BoundedFile>,
    group: usize,
    sink: &mut dyn FnMut(Row, usize) -> bool,
) -> Result<bool, GroupProblem> {
    let schema = checked_schema(reader).map_err(|problem| GroupProblem { row: 0, column: None, problem })?;
    let mut row = 0;
    let problem_at = |row, column, problem| GroupProblem { row, column, problem };
    let mut records = open(reader, group, schema).map_err(|problem| problem_at(0, None, problem))?;
    loop {
        let record = match catch_panic(|| records.next()) {
            Err(panic) => return Err(problem_at(row, None, panic)),
            Ok(None) => return Ok(true),
            Ok(Some(Err(error))) => return Err(problem_at(row, None, error.to_string())),
            Ok(Some(Ok(record))) => record,
        };
        let mut json = Row::new();
        let mut bytes = 0;
        for (column, field) in record.into_columns() {
            let value = catch_panic(|| to_json(field, &mut bytes)).and_then(|value| value);
            let value = value.map_err(|problem| problem_at(row, Some(column.clone()), problem))?;
            if bytes > ROW_BYTES_MAX {
                let problem = format!("the row is larger than {ROW_BYTES_MAX} bytes");
                return Err(problem_at(row, Some(column), problem));
            }
            json.insert(column, value);
        }
        if !sink(json, bytes) {
            return Ok(false);
        }
        row += 1;
        if row > ROWS_MAX {
            return Err(problem_at(row, None, format!("it has more than {ROWS_MAX} rows")));
        }
    }
}

fn open(
    reader: &SerializedFileReader<BoundedFile>,
    group: usize,
    schema: SchemaDescPtr,
) -> Result<ReaderIter, String> {
    catch_errors(|| {
        let group = reader.get_row_group(group)?;
        TreeBuilder::new().with_batch_size(VALUES_AHEAD).as_iter(schema, &*group)
    })
}

/// Returns the schema if rows can be assembled from it.
fn checked_schema(reader: &SerializedFileReader<BoundedFile>) -> Result<SchemaDescPtr, String> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    // A file could claim any number of rows without columns.
    if schema.num_columns() == 0 { Err("it has no columns".to_owned()) } else { Ok(schema) }
}

/// Finds the column that can't be read, by reading each column separately up to the row that
/// failed.
fn find_unreadable_column(
    reader: &SerializedFileReader<BoundedFile>,
    group: usize,
    row: u64,
) -> Option<String> {
    let schema = checked_schema(reader).ok()?;
    let root = schema.root_schema();
    root.get_fields().iter().find_map(|field| {
        let alone =
            Type::group_type_builder(root.name()).with_fields(vec![Arc::clone(field)]).build().ok()?;
        let alone = catch_panic(|| Arc::new(SchemaDescriptor::new(Arc::new(alone)))).ok()?;
        let fine = open(reader, group, alone).is_ok_and(|mut records| {
            (0..=row).all(|_| matches!(catch_panic(|| records.next()), Ok(Some(Ok(_)) | None)))
        });
        (!fine).then(|| field.name().to_owned())
    })
}

fn catch_errors<T>(work: impl FnOnce() -> ParquetResult<T>) -> Result<T, String> {
    catch_panic(work).and_then(|result| result.map_err(|error| error.to_string()))
}

/// Returns the first line of a message of the parquet crate, truncated since it may quote whole
/// values.
fn shorten_message(problem: &str) -> String {
    const CHARS_MAX: usize = 200;
    let line = problem.lines().next().unwrap_or_default();
    let line = line.strip_prefix("Parquet error: ").or_else(|| line.strip_prefix("EOF: ")).unwrap_or(line);
    let mut text: String = line.chars().take(CHARS_MAX).collect();
    if line.chars().count() > CHARS_MAX {
        text.push('…');
    }
    text
}

/// A file that refuses reads beyond its end before memory is allocated for them, since lengths come
/// from the file itself.
struct BoundedFile {
    file: File,
    length: u64,
}

impl Length for BoundedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for BoundedFile {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(BufReader::new(file))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!("it ends before byte {start} + {length}")));
        }
        let mut buffer = vec![0; length];
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut buffer)?;
        Ok(buffer.into())
    }
}

#[cfg(test)]
mod tests;
