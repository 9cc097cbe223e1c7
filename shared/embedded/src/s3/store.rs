//! The store: buckets, and changes to objects.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::attrs::Attrs;
use super::clock::now_ms;
use super::error::StoreError;
use super::files::Files;
use super::receive::Payload;
use super::schema;
use super::uploads;
use super::writer::{Tx, Writer};
use crate::full_disk::database_name;

/// Maximum time until an upload must be completed, as in the rule of the deployed bucket.
const UPLOAD_MS_MAX: i64 = 24 * 60 * 60 * 1_000;

/// A durable object store in one folder. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) files: Arc<Files>,
    pub(super) index: PathBuf,
    /// Idle read connections.
    pub(super) readers: Mutex<Vec<Connection>>,
    writer: Option<Writer>,
    thread: Option<JoinHandle<()>>,
    /// Locked while the store is open.
    lock: File,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Close the writer's connection last, so that it empties the WAL.
        if let Ok(readers) = self.readers.get_mut() {
            readers.clear();
        }
        self.writer = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("The thread that writes the object index panicked");
        }
        // Closing the file isn't enough while a process that is being started has a copy of its descriptor.
        let _ = self.lock.unlock();
    }
}

/// A bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BucketRow {
    pub(super) region: String,
}

/// An object to be written.
#[derive(Debug)]
pub(super) struct NewObject {
    pub(super) size_bytes: u64,
    /// Without quotes.
    pub(super) etag: String,
    pub(super) attrs: Attrs,
    pub(super) payload: Payload,
}

/// Precondition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteCondition {
    Always,
    /// The key does not exist.
    Absent,
    /// The key exists, with this ETag if one is given.
    Present(Option<String>),
}

/// The existing object that a change replaces.
pub(super) struct ExistingObject {
    pub(super) content_id: i64,
    pub(super) segments: i64,
    pub(super) etag: String,
}

impl Store {
    /// Opens the store in `dir`, creating it if necessary, and removes leftovers of a crash, and uploads that were started more
    /// than a day ago and never completed.
    ///
    /// With `full`, every acknowledged change survives a power failure, at the cost of an fsync per commit. Otherwise
    /// changes survive the end of the process at any moment, but a power failure may lose the last ones.
    ///
    /// Blocking: reads the name of every content file.
    ///
    /// # Errors
    /// Returns [`StoreError::InUse`] if another store has the folder open, [`StoreError::Layout`] if another version of
    /// the program wrote it, and errors of the file system and the index.
    pub fn open(dir: impl AsRef<Path>, full: bool) -> Result<Self, StoreError> {
        Self::open_with(dir.as_ref(), full, |_| Ok(()))
    }

    pub(super) fn open_with(
        dir: &Path,
        full: bool,
        prepare: impl FnOnce(&Connection) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        std::fs::create_dir_all(dir)?;
        let lock = File::create(dir.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => StoreError::InUse,
            TryLockError::Error(error) => error.into(),
        })?;
        let files = Arc::new(Files::open(dir, full)?);
        let index = database_name(&dir.join("index.sqlite"));
        let conn = schema::connect_writer(&index, full)?;
        let uploads = uploads::remove_unfinished(&conn, now_ms().saturating_sub(UPLOAD_MS_MAX))?;
        if uploads > 0 {
            tracing::info!(uploads, "Removed what was sent of uploads that were never completed");
        }
        let removed = {
            let mut named = conn.prepare("SELECT 1 FROM segment WHERE file = ?1")?;
            files.sweep(|name| Ok(named.exists([name])?))?
        };
        if removed > 0 {
            tracing::info!(files = removed, "Removed content files that a crash left behind");
        }
        prepare(&conn)?;
        let (writer, thread) = Writer::start(conn, files.clone())?;
        Ok(Self {
            inner: Arc::new(Inner {
                files,
                index,
                readers: Mutex::default(),
                writer: Some(writer),
                thread: Some(thread),
                lock,
            }),
        })
    }

    pub(super) async fn change<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.inner.writer.as_ref().ok_or(StoreError::Closed)?.submit(work).await
    }

    pub(super) async fn create_bucket(&self, name: String, region: String) -> Result<(), StoreError> {
        self.change(move |tx| {
            let added = tx
                .conn
                .prepare_cached(
                    "INSERT INTO bucket (name, region, created_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                )?
                .execute(params![name, region, now_ms()])?;
            if added == 0 { Err(StoreError::BucketExists) } else { Ok(()) }
        })
        .await
    }

    pub(super) async fn put(
        &self,
        bucket: String,
        key: String,
        condition: WriteCondition,
        object: NewObject,
    ) -> Result<(), StoreError> {
        let attrs = to_json(&object.attrs)?;
        self.change(move |tx| {
            let bucket_id = tx.bucket_id(&bucket)?;
            let old = tx.find_existing(bucket_id, &key)?;
            condition.check(old.as_ref())?;
            let content_id = tx.insert_content(&object.payload)?;
            let row = ObjectRow {
                content_id,
                segments: object.payload.segments(),
                size_bytes: object.size_bytes,
                etag: &object.etag,
                attrs: &attrs,
            };
            tx.put_row(bucket_id, &key, old, &row)
        })
        .await
    }

    /// Deletes keys. Missing keys aren't errors. With `if_match`, the single key must match it.
    pub(super) async fn delete(
        &self,
        bucket: String,
        keys: Vec<String>,
        if_match: Option<WriteCondition>,
    ) -> Result<(), StoreError> {
        self.change(move |tx| {
            let bucket_id = tx.bucket_id(&bucket)?;
            let mut done = HashSet::new();
            for key in &keys {
                if !done.insert(key.as_str()) {
                    continue;
                }
                let old = tx.find_existing(bucket_id, key)?;
                if let Some(condition) = &if_match {
                    condition.check(old.as_ref())?;
                }
                if let Some(old) = old {
                    tx.conn
                        .prepare_cached("DELETE FROM object WHERE bucket_id = ?1 AND key = ?2")?
                        .execute(params![bucket_id, key.as_bytes()])?;
                    tx.remove_content(old.content_id, old.segments)?;
                }
            }
            Ok(())
        })
        .await
    }
}

impl WriteCondition {
    pub(super) fn check(&self, old: Option<&ExistingObject>) -> Result<(), StoreError> {
        match (self, old) {
            (Self::Always, _) | (Self::Absent, None) | (Self::Present(None), Some(_)) => Ok(()),
            (Self::Present(Some(etag)), Some(old)) if *etag == old.etag => Ok(()),
            // As on AWS, a condition on a missing object fails with "not found", not with "differs".
            (Self::Present(_), None) => Err(StoreError::NoSuchKey),
            (Self::Absent | Self::Present(_), Some(_)) => Err(StoreError::PreconditionFailed),
        }
    }
}

/// Row of an object to be written.
pub(super) struct ObjectRow<'a> {
    pub(super) content_id: i64,
    pub(super) segments: i64,
    pub(super) size_bytes: u64,
    pub(super) etag: &'a str,
    pub(super) attrs: &'a str,
}

impl Tx<'_> {
    pub(super) fn find_existing(
        &self,
        bucket_id: i64,
        key: &str,
    ) -> Result<Option<ExistingObject>, StoreError> {
        Ok(self
            .conn
            .prepare_cached(
                "SELECT content_id, segments, etag FROM object WHERE bucket_id = ?1 AND key = ?2",
            )?
            .query_row(params![bucket_id, key.as_bytes()], |row| {
                Ok(ExistingObject { content_id: row.get(0)?, segments: row.get(1)?, etag: row.get(2)? })
            })
            .optional()?)
    }

    /// Writes the row and removes the content that it replaces.
    pub(super) fn put_row(
        &mut self,
        bucket_id: i64,
        key: &str,
        old: Option<ExistingObject>,
        row: &ObjectRow<'_>,
    ) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(
                "INSERT INTO object (bucket_id, key, content_id, segments, size, modified_ms, etag, attrs)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (bucket_id, key) DO UPDATE SET content_id = excluded.content_id,
                   segments = excluded.segments, size = excluded.size, modified_ms = excluded.modified_ms,
                   etag = excluded.etag, attrs = excluded.attrs",
            )?
            .execute(params![
                bucket_id,
                key.as_bytes(),
                row.content_id,
                row.segments,
                row.size_bytes as i64,
                now_ms(),
                row.etag,
                row.attrs
            ])?;
        if let Some(old) = old {
            self.remove_content(old.content_id, old.segments)?;
        }
        Ok(())
    }
}

pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| StoreError::Damaged("headers have no JSON form"))
}

pub(super) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    // Most objects have only a content type.
    serde_json::from_str(text).map_err(|_| StoreError::Damaged("headers are not JSON"))
}

/// Content of an object for a reader.
#[derive(Debug)]
pub(super) enum Content {
    Inline(Bytes),
    Files { segments: Vec<super::stream::Segment>, pin: super::files::Pin },
}
