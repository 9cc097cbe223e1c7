//! Tables and connections of the index.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::StoreError;

const LAYOUT: i64 = 1;

/// Capacity of the statement cache; higher than the number of distinct statements.
const STATEMENTS_MAX: usize = 64;

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// WAL pages between checkpoints: 32 MiB, so that checkpoints rarely interrupt a burst of uploads.
const CHECKPOINT_PAGES: u32 = 4096;

// Keys are blobs: S3 orders them by bytes, and the position after a prefix may not be UTF-8.
// Content has its own table, so that listing doesn't read it, and ascending ids, so that it is appended instead of
// spread over the tree.
const TABLES: &str = "
CREATE TABLE bucket (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  region TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE object (
  bucket_id INTEGER NOT NULL,
  key BLOB NOT NULL,
  content_id INTEGER NOT NULL,
  segments INTEGER NOT NULL,
  size INTEGER NOT NULL,
  modified_ms INTEGER NOT NULL,
  etag TEXT NOT NULL,
  attrs TEXT NOT NULL,
  PRIMARY KEY (bucket_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE content (
  id INTEGER PRIMARY KEY,
  data BLOB
) STRICT;
CREATE TABLE segment (
  content_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  file TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  PRIMARY KEY (content_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE upload (
  bucket_id INTEGER NOT NULL,
  key BLOB NOT NULL,
  id TEXT NOT NULL UNIQUE,
  started_ms INTEGER NOT NULL,
  attrs TEXT NOT NULL,
  algorithm TEXT,
  PRIMARY KEY (bucket_id, key, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE part (
  upload_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  content_id INTEGER NOT NULL,
  size INTEGER NOT NULL,
  md5 BLOB NOT NULL,
  modified_ms INTEGER NOT NULL,
  checksums TEXT NOT NULL,
  PRIMARY KEY (upload_id, number)
) STRICT, WITHOUT ROWID;
";

/// Opens the only writing connection. With `full`, every commit survives a power failure.
pub(super) fn connect_writer(path: &Path, full: bool) -> Result<Connection, StoreError> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Measured with objects of 2 KiB, 64 per commit: a page of 4 KiB fits only one of them, and pages of 16 KiB
    // increase the written bytes by a quarter.
    conn.pragma_update(None, "page_size", 8192)?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", if full { "FULL" } else { "NORMAL" })?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    conn.pragma_update(None, "cache_size", -4_096)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    let layout: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match layout {
        LAYOUT => {}
        0 => {
            conn.execute_batch(&format!(
                "BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {LAYOUT}; COMMIT;"
            ))?;
        }
        found => return Err(StoreError::Layout { found, known: LAYOUT }),
    }
    Ok(conn)
}

/// Opens a read-only connection.
pub(super) fn connect_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        // On a full disk, the name is a URI.
        | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // A read needs a few pages, and there are several readers.
    conn.pragma_update(None, "cache_size", -512)?;
    Ok(conn)
}
