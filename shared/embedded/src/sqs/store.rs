//! The SQLite file with queues and messages. It doesn't contain in-flight state, since no message
//! is in flight after an open.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::attributes::Attributes;
use crate::Durability;
use crate::full_disk::database_name;

const SCHEMA_VERSION: i64 = 1;
const STATEMENTS_CACHED_MAX: usize = 32;

const SCHEMA: &str = "
    CREATE TABLE queues (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        attributes TEXT NOT NULL,
        created_s INTEGER NOT NULL,
        modified_s INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE messages (
        seq INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL,
        message_id TEXT NOT NULL,
        group_id TEXT,
        sent_ms INTEGER NOT NULL,
        due_ms INTEGER NOT NULL,
        receives INTEGER NOT NULL DEFAULT 0,
        first_received_ms INTEGER,
        source_arn TEXT,
        trace TEXT,
        attributes TEXT,
        body TEXT NOT NULL
    ) STRICT;
";

/// A stored queue.
#[derive(Debug)]
pub(super) struct QueueRow {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) attributes: Attributes,
    pub(super) created_s: i64,
    pub(super) modified_s: i64,
}

/// A stored message without its content.
#[derive(Debug)]
pub(super) struct MessageRow {
    pub(super) seq: i64,
    pub(super) queue: i64,
    pub(super) id: Uuid,
    pub(super) group: Option<String>,
    pub(super) sent_ms: i64,
    pub(super) due_ms: i64,
    pub(super) receives: u32,
    pub(super) first_received_ms: Option<i64>,
}

/// Parts of a message that are read from the file only when it is received.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) body: String,
    /// Message attributes as JSON.
    pub(super) attributes: Option<String>,
    pub(super) trace: Option<String>,
    pub(super) source_arn: Option<String>,
}

/// The open file. All changes belong to the transaction between [`Store::begin`] and
/// [`Store::commit`].
#[derive(Debug)]
pub(super) struct Store {
    connection: Connection,
    durability: Durability,
    /// True if commits wait for the disk.
    waits_for_disk: bool,
}

impl Store {
    pub(super) fn open(path: &Path, durability: Durability) -> Result<Self, String> {
        Self::connect(path, durability).map_err(|error| error.to_string())?.with_schema()
    }

    fn connect(path: &Path, durability: Durability) -> rusqlite::Result<Self> {
        let connection = Connection::open(database_name(path))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -2_000)?;
        // The data directory is locked, so no other process opens the file.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        Ok(Self { connection, durability, waits_for_disk: false })
    }

    fn with_schema(self) -> Result<Self, String> {
        let version: i64 = self
            .connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(|error| error.to_string())?;
        match version {
            0 => {
                let batch = format!("BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;");
                self.connection.execute_batch(&batch).map_err(|error| error.to_string())?;
            }
            SCHEMA_VERSION => {}
            other => {
                return Err(format!("it was written by another version of this program (schema {other})"));
            }
        }
        Ok(self)
    }

    /// Sets whether the following commits wait for the disk; they never do without [`Durability::Full`]. A commit that waits makes
    /// all earlier ones durable, too. Must not be called in a transaction.
    pub(super) fn set_waits_for_disk(&mut self, waits: bool) -> rusqlite::Result<()> {
        let waits = waits && self.durability == Durability::Full;
        if waits != self.waits_for_disk {
            self.connection.pragma_update(None, "synchronous", if waits { "FULL" } else { "NORMAL" })?;
            self.waits_for_disk = waits;
        }
        Ok(())
    }

    pub(super) fn begin(&self) -> rusqlite::Result<()> {
        if self.connection.is_autocommit() { self.run("BEGIN IMMEDIATE") } else { Ok(()) }
    }

    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        if self.connection.is_autocommit() { Ok(()) } else { self.run("COMMIT") }
    }

    pub(super) fn rollback(&self) -> rusqlite::Result<()> {
        if self.connection.is_autocommit() { Ok(()) } else { self.run("ROLLBACK") }
    }

    /// Simulates a disk that is full after `pages_max` pages.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages_max: i64) {
        let set = |row: &Row<'_>| row.get::<_, i64>(0);
        self.connection.query_row(&format!("PRAGMA max_page_count = {pages_max}"), [], set).unwrap();
    }

    /// Returns the value of `PRAGMA synchronous`: 1 for `NORMAL`, 2 for `FULL`.
    #[cfg(test)]
    pub(super) fn synchronous(&self) -> i64 {
        self.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    pub(super) fn queues(&self) -> rusqlite::Result<Vec<QueueRow>> {
        let mut statement =
            self.connection.prepare("SELECT id, name, attributes, created_s, modified_s FROM queues")?;
        let rows = statement.query_map([], |row| {
            let attributes: String = row.get(2)?;
            Ok(QueueRow {
                id: row.get(0)?,
                name: row.get(1)?,
                attributes: serde_json::from_str(&attributes).map_err(|error| unreadable(2, error))?,
                created_s: row.get(3)?,
                modified_s: row.get(4)?,
            })
        })?;
        rows.collect()
    }

    pub(super) fn for_each_message(&self, mut each: impl FnMut(MessageRow)) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(
            "SELECT seq, queue, message_id, group_id, sent_ms, due_ms, receives, first_received_ms
             FROM messages ORDER BY seq",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(message_row(row)?);
        }
        Ok(())
    }

    pub(super) fn insert_queue(
        &self,
        name: &str,
        attributes: &Attributes,
        now_s: i64,
    ) -> rusqlite::Result<i64> {
        self.begin()?;
        self.connection
            .prepare_cached(
                "INSERT INTO queues (name, attributes, created_s, modified_s) VALUES (?1, ?2, ?3, ?3)",
            )?
            .execute(params![name, json(attributes)?, now_s])?;
        Ok(self.connection.last_insert_rowid())
    }

    pub(super) fn update_queue(&self, id: i64, attributes: &Attributes, now_s: i64) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection
            .prepare_cached("UPDATE queues SET attributes = ?2, modified_s = ?3 WHERE id = ?1")?
            .execute(params![id, json(attributes)?, now_s])
            .map(drop)
    }

    pub(super) fn delete_queue(&self, id: i64) -> rusqlite::Result<()> {
        self.purge(id)?;
        self.connection.prepare_cached("DELETE FROM queues WHERE id = ?1")?.execute([id]).map(drop)
    }

    pub(super) fn purge(&self, queue: i64) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection.prepare_cached("DELETE FROM messages WHERE queue = ?1")?.execute([queue]).map(drop)
    }

    pub(super) fn insert_message(&self, row: &MessageRow, content: &Content) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection
            .prepare_cached(
                "INSERT INTO messages (seq, queue, message_id, group_id, sent_ms, due_ms, trace, attributes, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                row.seq,
                row.queue,
                row.id.hyphenated().to_string(),
                row.group,
                row.sent_ms,
                row.due_ms,
                content.trace,
                content.attributes,
                content.body,
            ])
            .map(drop)
    }

    /// Counts a receive and reads the content; `None` if the message doesn't exist.
    pub(super) fn receive(
        &self,
        seq: i64,
        receives: u32,
        first_received_ms: i64,
    ) -> rusqlite::Result<Option<Content>> {
        self.begin()?;
        self.connection
            .prepare_cached(
                "UPDATE messages SET receives = ?2, first_received_ms = ?3 WHERE seq = ?1
                 RETURNING body, attributes, trace, source_arn",
            )?
            .query_row(params![seq, receives, first_received_ms], |row| {
                Ok(Content {
                    body: row.get(0)?,
                    attributes: row.get(1)?,
                    trace: row.get(2)?,
                    source_arn: row.get(3)?,
                })
            })
            .optional()
    }

    /// Undoes a receive that reached no receiver.
    pub(super) fn unreceive(
        &self,
        seq: i64,
        receives: u32,
        first_received_ms: Option<i64>,
    ) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection
            .prepare_cached("UPDATE messages SET receives = ?2, first_received_ms = ?3 WHERE seq = ?1")?
            .execute(params![seq, receives, first_received_ms])
            .map(drop)
    }

    pub(super) fn delete_message(&self, seq: i64) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection.prepare_cached("DELETE FROM messages WHERE seq = ?1")?.execute([seq]).map(drop)
    }

    /// Moves a message to a dead-letter queue, where its receive count starts at zero.
    pub(super) fn move_message(&self, seq: i64, queue: i64, source_arn: &str) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection
            .prepare_cached(
                "UPDATE messages SET queue = ?2, source_arn = ?3, receives = 0, first_received_ms = NULL
                 WHERE seq = ?1",
            )?
            .execute(params![seq, queue, source_arn])
            .map(drop)
    }
}

fn message_row(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    let id: String = row.get(2)?;
    Ok(MessageRow {
        seq: row.get(0)?,
        queue: row.get(1)?,
        id: Uuid::try_parse(&id).map_err(|error| unreadable(2, error))?,
        group: row.get(3)?,
        sent_ms: row.get(4)?,
        due_ms: row.get(5)?,
        receives: row.get(6)?,
        first_received_ms: row.get(7)?,
    })
}

fn json(attributes: &Attributes) -> rusqlite::Result<String> {
    serde_json::to_string(attributes)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn unreadable(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
