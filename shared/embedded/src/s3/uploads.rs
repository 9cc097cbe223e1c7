//! Multipart uploads in the store. Parts are content files; completing an upload only changes rows.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::PART_BYTES_MIN;
use super::attrs::{Algorithm, Attrs, Checksums};
use super::clock::now_ms;
use super::digest::{Digests, MD5_BYTES, composite};
use super::error::StoreError;
use super::receive::ReceivedBody;
use super::store::{ObjectRow, Store, WriteCondition, from_json, to_json};
use super::writer::Tx;

/// An uploaded part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartRow {
    pub(super) number: i32,
    pub(super) size_bytes: u64,
    pub(super) md5: [u8; MD5_BYTES],
    pub(super) checksums: Checksums,
    content_id: i64,
}

/// A part as listed in the request that completes an upload.
#[derive(Debug, Clone)]
pub(super) struct ListedPart {
    pub(super) number: i32,
    pub(super) etag: String,
    pub(super) checksums: Checksums,
}

/// Identifies an upload; all three fields must match.
#[derive(Debug, Clone)]
pub(super) struct UploadRef {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) id: String,
}

/// The object that an upload became.
#[derive(Debug, Clone)]
pub(super) struct CompletedUpload {
    pub(super) etag: String,
    pub(super) checksums: Checksums,
}

impl Store {
    pub(super) async fn create_upload(
        &self,
        bucket: String,
        key: String,
        attrs: Attrs,
        algorithm: Option<Algorithm>,
    ) -> Result<String, StoreError> {
        let attrs = to_json(&attrs)?;
        self.change(move |tx| {
            let bucket_id = tx.bucket_id(&bucket)?;
            let id = Uuid::new_v4().simple().to_string();
            tx.conn
                .prepare_cached(
                    "INSERT INTO upload (bucket_id, key, id, started_ms, attrs, algorithm)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    bucket_id,
                    key.as_bytes(),
                    id,
                    now_ms(),
                    attrs,
                    algorithm.map(Algorithm::name)
                ])?;
            Ok(id)
        })
        .await
    }

    pub(super) async fn put_part(
        &self,
        upload: UploadRef,
        number: i32,
        part: ReceivedBody,
    ) -> Result<(), StoreError> {
        let checksums = to_json(&part.checksums)?;
        self.change(move |tx| {
            require_upload(tx.conn, &upload)?;
            let old = parts(tx.conn, &upload.id, number, number)?;
            let content_id = tx.insert_content(&part.payload)?;
            tx.conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO part (upload_id, number, content_id, size, md5, modified_ms, checksums)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    upload.id,
                    number,
                    content_id,
                    part.size_bytes as i64,
                    part.md5,
                    now_ms(),
                    checksums
                ])?;
            for old in old {
                tx.remove_content(old.content_id, 1)?;
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn complete_upload(
        &self,
        upload: UploadRef,
        listed: Vec<ListedPart>,
        condition: WriteCondition,
        expected_bytes: Option<u64>,
    ) -> Result<CompletedUpload, StoreError> {
        self.change(move |tx| complete(tx, &upload, &listed, &condition, expected_bytes)).await
    }

    pub(super) async fn abort_upload(&self, upload: UploadRef) -> Result<(), StoreError> {
        self.change(move |tx| {
            let found = require_upload(tx.conn, &upload)?;
            for part in parts(tx.conn, &upload.id, 0, i32::MAX)? {
                tx.remove_content(part.content_id, 1)?;
            }
            remove_upload(tx, &upload, found.bucket_id)
        })
        .await
    }

    /// Checks that an upload is open before a part is received; returns the checksum algorithm that
    /// it was created with.
    pub(super) fn check_upload(&self, upload: &UploadRef) -> Result<Option<Algorithm>, StoreError> {
        let found = self.lookup(|conn| require_upload(conn, upload))?;
        Ok(found.algorithm.as_deref().and_then(Algorithm::from_name))
    }
}

/// Removes uploads that were started before this time and never completed, with their content. Returns their number. The
/// files are left to the sweep at the opening of the store.
pub(super) fn remove_unfinished(conn: &Connection, started_before_ms: i64) -> Result<usize, StoreError> {
    let transaction = conn.unchecked_transaction()?;
    let old = "SELECT id FROM upload WHERE started_ms < ?1";
    let content = format!("SELECT content_id FROM part WHERE upload_id IN ({old})");
    for statement in [
        format!("DELETE FROM segment WHERE content_id IN ({content})"),
        format!("DELETE FROM content WHERE id IN ({content})"),
        format!("DELETE FROM part WHERE upload_id IN ({old})"),
    ] {
        transaction.execute(&statement, [started_before_ms])?;
    }
    let removed = transaction.execute("DELETE FROM upload WHERE started_ms < ?1", [started_before_ms])?;
    transaction.commit()?;
    Ok(removed)
}

struct FoundUpload {
    bucket_id: i64,
    attrs: String,
    algorithm: Option<String>,
}

fn require_upload(conn: &Connection, upload: &UploadRef) -> Result<FoundUpload, StoreError> {
    conn.prepare_cached(
        "SELECT u.bucket_id, u.attrs, u.algorithm FROM bucket b
         JOIN upload u ON u.bucket_id = b.id AND u.key = ?2 AND u.id = ?3 WHERE b.name = ?1",
    )?
    .query_row(params![upload.bucket, upload.key.as_bytes(), upload.id], |row| {
        Ok(FoundUpload { bucket_id: row.get(0)?, attrs: row.get(1)?, algorithm: row.get(2)? })
    })
    .optional()?
    .ok_or(StoreError::NoSuchUpload)
}

fn parts(conn: &Connection, upload_id: &str, first: i32, last: i32) -> Result<Vec<PartRow>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT number, size, md5, checksums, content_id FROM part
         WHERE upload_id = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number",
    )?;
    let mut rows = statement.query(params![upload_id, first, last])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        parts.push(part_row(row)?);
    }
    Ok(parts)
}

fn part_row(row: &Row<'_>) -> Result<PartRow, StoreError> {
    let checksums: String = row.get(3)?;
    Ok(PartRow {
        number: row.get(0)?,
        size_bytes: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
        md5: row.get(2)?,
        checksums: from_json(&checksums)?,
        content_id: row.get(4)?,
    })
}

fn remove_upload(tx: &mut Tx<'_>, upload: &UploadRef, bucket_id: i64) -> Result<(), StoreError> {
    tx.conn.prepare_cached("DELETE FROM part WHERE upload_id = ?1")?.execute([&upload.id])?;
    tx.conn
        .prepare_cached("DELETE FROM upload WHERE bucket_id = ?1 AND key = ?2 AND id = ?3")?
        .execute(params![bucket_id, upload.key.as_bytes(), upload.id])?;
    Ok(())
}

/// Selects the listed parts among the uploaded ones, in order.
fn select(listed: &[ListedPart], uploaded: &mut BTreeMap<i32, PartRow>) -> Result<Vec<PartRow>, StoreError> {
    if !listed.is_sorted_by(|a, b| a.number < b.number) {
        return Err(StoreError::InvalidPartOrder);
    }
    let mut selected = Vec::with_capacity(listed.len());
    for (index, part) in listed.iter().enumerate() {
        let number = part.number;
        let found = uploaded.remove(&number).ok_or(StoreError::InvalidPart { number })?;
        let same_sums = Algorithm::ALL.iter().all(|algorithm| {
            part.checksums.get(*algorithm).is_none_or(|sum| found.checksums.get(*algorithm) == Some(sum))
        });
        if hex::encode(found.md5) != part.etag || !same_sums {
            return Err(StoreError::InvalidPart { number });
        }
        if index + 1 < listed.len() && found.size_bytes < PART_BYTES_MIN {
            return Err(StoreError::EntityTooSmall { number, size_bytes: found.size_bytes });
        }
        selected.push(found);
    }
    Ok(selected)
}

fn complete(
    tx: &mut Tx<'_>,
    upload: &UploadRef,
    listed: &[ListedPart],
    condition: &WriteCondition,
    expected_bytes: Option<u64>,
) -> Result<CompletedUpload, StoreError> {
    let found = require_upload(tx.conn, upload)?;
    let mut uploaded: BTreeMap<i32, PartRow> =
        parts(tx.conn, &upload.id, 0, i32::MAX)?.into_iter().map(|part| (part.number, part)).collect();
    let selected = select(listed, &mut uploaded)?;
    let size_bytes: u64 = selected.iter().map(|part| part.size_bytes).sum();
    if expected_bytes.is_some_and(|expected| expected != size_bytes) {
        return Err(StoreError::BadDigest { algorithm: "object size" });
    }
    let old = tx.find_existing(found.bucket_id, &upload.key)?;
    condition.check(old.as_ref())?;

    let mut digests = Digests::new(|_| false);
    for part in &selected {
        digests.update(&part.md5);
    }
    let etag = format!("{}-{}", hex::encode(digests.finish().0), selected.len());
    let mut attrs: Attrs = from_json(&found.attrs)?;
    if let Some(algorithm) = found.algorithm.as_deref().and_then(Algorithm::from_name) {
        let sums: Vec<Checksums> = selected.iter().map(|part| part.checksums.clone()).collect();
        if let Some(sum) = composite(algorithm, &sums) {
            attrs.checksums.set(algorithm, sum);
            attrs.composite = true;
        }
    }

    let content_id = tx.new_content_id();
    tx.conn.prepare_cached("INSERT INTO content (id, data) VALUES (?1, NULL)")?.execute([content_id])?;
    {
        // The parts' files become files of the object.
        let mut hand_over = tx.conn.prepare_cached(
            "UPDATE segment SET content_id = ?1, seq = ?2 WHERE content_id = ?3 AND seq = 0",
        )?;
        let mut forget = tx.conn.prepare_cached("DELETE FROM content WHERE id = ?1")?;
        for (seq, part) in selected.iter().enumerate() {
            hand_over.execute(params![content_id, seq as i64, part.content_id])?;
            forget.execute([part.content_id])?;
        }
    }
    for unused in uploaded.into_values() {
        tx.remove_content(unused.content_id, 1)?;
    }
    remove_upload(tx, upload, found.bucket_id)?;
    let attrs_json = to_json(&attrs)?;
    let row = ObjectRow {
        content_id,
        segments: selected.len() as i64,
        size_bytes,
        etag: &etag,
        attrs: &attrs_json,
    };
    tx.put_row(found.bucket_id, &upload.key, old, &row)?;
    Ok(CompletedUpload { etag, checksums: attrs.checksums })
}
