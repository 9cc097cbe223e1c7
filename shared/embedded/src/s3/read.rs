//! Lookup of objects.
//!
//! A lookup is one statement on a pooled connection, run on the caller's thread: it takes a few microseconds, less than
//! a change of thread. Lists run on a blocking thread.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::PoisonError;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::task::spawn_blocking;

use super::attrs::Attrs;
use super::error::StoreError;
use super::schema;
use super::store::{BucketRow, Content, Inner, Store, from_json};
use super::stream::{FileStream, Segment};

/// Maximum number of idle connections.
const IDLE_READERS_MAX: usize = 8;

/// Maximum number of lookups of an object that is constantly being overwritten.
const LOOKUPS_MAX: usize = 64;

/// Metadata of an object, from its row.
#[derive(Debug, Clone)]
pub(super) struct ObjectMeta {
    pub(super) size_bytes: u64,
    pub(super) modified_ms: i64,
    /// Without quotes.
    pub(super) etag: String,
    pub(super) attrs: Attrs,
    content_id: i64,
    segments: i64,
}

/// A connection from the pool, returned on drop.
pub(super) struct Reader<'a> {
    inner: &'a Inner,
    conn: Option<Connection>,
}

impl Inner {
    fn reader(&self) -> Result<Reader<'_>, StoreError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => schema::connect_reader(&self.index)?,
        };
        Ok(Reader { inner: self, conn: Some(conn) })
    }
}

impl Reader<'_> {
    fn conn(&self) -> Result<&Connection, StoreError> {
        self.conn.as_ref().ok_or(StoreError::Closed)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut idle = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_READERS_MAX
            && let Some(conn) = self.conn.take()
        {
            idle.push(conn);
        }
    }
}

impl Store {
    /// Runs a short lookup on the current thread.
    pub(super) fn lookup<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let reader = self.inner.reader()?;
        work(reader.conn()?)
    }

    /// Runs a longer query on a blocking thread.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        spawn_blocking(move || store.lookup(work)).await?
    }

    pub(super) fn bucket(&self, name: &str) -> Result<BucketRow, StoreError> {
        self.lookup(|conn| {
            conn.prepare_cached("SELECT region FROM bucket WHERE name = ?1")?
                .query_row([name], |row| Ok(BucketRow { region: row.get(0)? }))
                .optional()?
                .ok_or(StoreError::NoSuchBucket)
        })
    }

    pub(super) fn head(&self, bucket: &str, key: &str) -> Result<ObjectMeta, StoreError> {
        self.lookup(|conn| {
            conn.prepare_cached(
                "SELECT o.size, o.modified_ms, o.etag, o.attrs, o.content_id, o.segments
                 FROM bucket b JOIN object o ON o.bucket_id = b.id AND o.key = ?2 WHERE b.name = ?1",
            )?
            .query_row(params![bucket, key.as_bytes()], |row| Ok(object_meta(row)))
            .optional()?
            .unwrap_or_else(|| Err(missing(conn, bucket)))
        })
    }

    /// Returns an object and a consistent snapshot of its content.
    pub(super) fn get(&self, bucket: &str, key: &str) -> Result<(ObjectMeta, Content), StoreError> {
        for _ in 0..LOOKUPS_MAX {
            let (meta, inline) = self.row_and_inline(bucket, key)?;
            if meta.segments == 0 {
                return Ok((meta, Content::Inline(inline)));
            }
            // The object was overwritten meanwhile, and its files are being removed: look it up again.
            if let Some(content) = self.open_files(&meta)? {
                return Ok((meta, content));
            }
        }
        Err(StoreError::Damaged("a content file is missing"))
    }

    fn row_and_inline(&self, bucket: &str, key: &str) -> Result<(ObjectMeta, Bytes), StoreError> {
        self.lookup(|conn| {
            conn.prepare_cached(
                "SELECT o.size, o.modified_ms, o.etag, o.attrs, o.content_id, o.segments, c.data
                 FROM bucket b JOIN object o ON o.bucket_id = b.id AND o.key = ?2
                 JOIN content c ON c.id = o.content_id WHERE b.name = ?1",
            )?
            .query_row(params![bucket, key.as_bytes()], |row| {
                let inline =
                    row.get_ref(6)?.as_blob_or_null()?.map(Bytes::copy_from_slice).unwrap_or_default();
                Ok(object_meta(row).map(|meta| (meta, inline)))
            })
            .optional()?
            .unwrap_or_else(|| Err(missing(conn, bucket)))
        })
    }

    fn open_files(&self, meta: &ObjectMeta) -> Result<Option<Content>, StoreError> {
        let files = &self.inner.files;
        let Some(pin) = files.pin(meta.content_id) else { return Ok(None) };
        let segments: Vec<Segment> = self.lookup(|conn| {
            let mut rows =
                conn.prepare_cached("SELECT file, size FROM segment WHERE content_id = ?1 ORDER BY seq")?;
            let rows = rows.query_map([meta.content_id], |row| {
                let name: String = row.get(0)?;
                let size: i64 = row.get(1)?;
                Ok(Segment { path: files.path(&name), size_bytes: u64::try_from(size).unwrap_or(0) })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        if segments.len() as i64 != meta.segments {
            return Ok(None);
        }
        // The pin protects files that existed when it was taken; if the first file exists, all of them do.
        if let Some(first) = segments.first() {
            match File::open(&first.path) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(Content::Files { segments, pin }))
    }
}

impl Content {
    /// Returns the bytes of `range`, which must be within the content.
    pub(super) fn into_body(self, range: Range<u64>) -> ContentBody {
        match self {
            Self::Inline(bytes) => {
                let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(bytes.len());
                let end = usize::try_from(range.end).unwrap_or(usize::MAX).clamp(start, bytes.len());
                ContentBody::Bytes(bytes.slice(start..end))
            }
            Self::Files { segments, pin } => ContentBody::Stream(FileStream::new(segments, range, pin)),
        }
    }
}

/// Body of a response with content.
pub(super) enum ContentBody {
    Bytes(Bytes),
    Stream(FileStream),
}

fn object_meta(row: &Row<'_>) -> Result<ObjectMeta, StoreError> {
    let size: i64 = row.get(0)?;
    Ok(ObjectMeta {
        size_bytes: u64::try_from(size).map_err(|_| StoreError::Damaged("a size is negative"))?,
        modified_ms: row.get(1)?,
        etag: row.get(2)?,
        attrs: from_json(row.get_ref(3)?.as_str().map_err(|_| StoreError::Damaged("headers are not text"))?)?,
        content_id: row.get(4)?,
        segments: row.get(5)?,
    })
}

/// Returns the reason why a key wasn't found.
fn missing(conn: &Connection, bucket: &str) -> StoreError {
    let found = conn
        .prepare_cached("SELECT 1 FROM bucket WHERE name = ?1")
        .and_then(|mut statement| statement.exists([bucket]));
    match found {
        Ok(true) => StoreError::NoSuchKey,
        Ok(false) => StoreError::NoSuchBucket,
        Err(error) => error.into(),
    }
}
