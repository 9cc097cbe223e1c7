//! Listing of keys: a scan of an index range.

use rusqlite::{Connection, params};

use super::error::StoreError;
use super::store::Store;

/// Query for a page of keys.
#[derive(Debug, Clone)]
pub(super) struct ListQuery {
    pub(super) bucket: String,
    pub(super) prefix: String,
    /// Position at which the previous page ended; `None` for the first page.
    pub(super) from: Option<Vec<u8>>,
    pub(super) keys_max: usize,
}

/// A key on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListEntry {
    pub(super) key: String,
    pub(super) size_bytes: u64,
    pub(super) modified_ms: i64,
    pub(super) etag: String,
}

/// A page of keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListPage {
    pub(super) entries: Vec<ListEntry>,
    /// Position of the next page, if there is one.
    pub(super) next: Option<Vec<u8>>,
}

impl Store {
    pub(super) async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.query(move |conn| list(conn, &query)).await
    }
}

fn list(conn: &Connection, query: &ListQuery) -> Result<ListPage, StoreError> {
    let bucket_id: i64 = conn
        .prepare_cached("SELECT id FROM bucket WHERE name = ?1")?
        .query_row([&query.bucket], |row| row.get(0))
        .map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => StoreError::NoSuchBucket,
            error => error.into(),
        })?;
    let mut page = ListPage::default();
    if query.keys_max == 0 {
        return Ok(page);
    }
    let prefix = query.prefix.as_bytes();
    let end = prefix_end(prefix);
    let mut position = query.from.clone().unwrap_or_default();
    if position.as_slice() < prefix {
        position = prefix.to_vec();
    }
    let mut statement = conn.prepare_cached(
        "SELECT key, size, modified_ms, etag FROM object
         WHERE bucket_id = ?1 AND key >= ?2 AND key < ?3 ORDER BY key",
    )?;
    let mut rows = statement.query(params![bucket_id, position, end])?;
    while let Some(row) = rows.next()? {
        let key = row.get_ref(0)?.as_blob().map_err(|_| StoreError::Damaged("a key is not a blob"))?;
        if page.entries.len() == query.keys_max {
            page.next = Some(position);
            return Ok(page);
        }
        position = position_after(key);
        page.entries.push(ListEntry {
            key: text(key)?,
            size_bytes: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
            modified_ms: row.get(2)?,
            etag: row.get(3)?,
        });
    }
    Ok(page)
}

/// Returns the smallest position after a key.
fn position_after(key: &[u8]) -> Vec<u8> {
    let mut position = key.to_vec();
    position.push(0);
    position
}

/// Returns the smallest position after all keys that start with `prefix`.
fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut position = prefix.to_vec();
    while let Some(last) = position.pop() {
        if last < 0xff {
            position.push(last + 1);
            return position;
        }
    }
    // Keys are UTF-8, which has no byte 0xff.
    vec![0xff]
}

fn text(bytes: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| StoreError::Damaged("a key is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors() {
        assert_eq!(prefix_end(b"a/"), b"a0");
        assert_eq!(prefix_end(b""), [0xff]);
        assert_eq!(prefix_end(&[b'a', 0xff]), b"b");
        assert_eq!(prefix_end(&[0xff, 0xff]), [0xff]);
    }
}
