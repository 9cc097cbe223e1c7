//! Lists keys: a walk over an index range that jumps over whatever a delimiter rolls up.

use rusqlite::{Connection, params};

use super::error::StoreError;
use super::store::Store;

/// What is listed.
#[derive(Debug, Clone)]
pub(super) struct ListQuery {
    pub(super) bucket: String,
    pub(super) prefix: String,
    /// Not empty.
    pub(super) delimiter: Option<String>,
    pub(super) from: ListFrom,
    pub(super) keys_max: usize,
}

/// Where a page begins.
#[derive(Debug, Clone)]
pub(super) enum ListFrom {
    Start,
    /// Behind this key.
    After(String),
    /// At this position, which an earlier page ended with.
    Position(Vec<u8>),
}

/// A key of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListEntry {
    pub(super) key: String,
    pub(super) size_bytes: u64,
    pub(super) modified_ms: i64,
    pub(super) etag: String,
}

/// One page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListPage {
    pub(super) entries: Vec<ListEntry>,
    pub(super) prefixes: Vec<String>,
    /// Where the next page begins, if there is one.
    pub(super) next: Option<Vec<u8>>,
}

impl ListPage {
    /// Keys and prefixes count alike.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.prefixes.len()
    }
}

impl Store {
    pub(super) async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.query(move |conn| {
            // One snapshot for all the jumps of a page.
            conn.execute_batch("BEGIN")?;
            let page = list(conn, &query);
            conn.execute_batch("ROLLBACK")?;
            page
        })
        .await
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
    let end = successor(prefix);
    let mut position = match &query.from {
        ListFrom::Start => Vec::new(),
        ListFrom::After(key) => behind(key.as_bytes()),
        ListFrom::Position(position) => position.clone(),
    };
    if position.as_slice() < prefix {
        position = prefix.to_vec();
    }
    let mut statement = conn.prepare_cached(
        "SELECT key, size, modified_ms, etag FROM object
         WHERE bucket_id = ?1 AND key >= ?2 AND key < ?3 ORDER BY key",
    )?;
    // Each round ends at a rolled-up prefix, the end of the page or the end of the range.
    'jump: loop {
        let mut rows = statement.query(params![bucket_id, position, end])?;
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_blob().map_err(|_| StoreError::Damaged("a key is no blob"))?;
            if page.len() == query.keys_max {
                page.next = Some(position);
                return Ok(page);
            }
            if let Some(rolled) = roll_up(key, prefix.len(), query.delimiter.as_deref()) {
                page.prefixes.push(text(rolled)?);
                position = successor(rolled);
                continue 'jump;
            }
            position = behind(key);
            page.entries.push(ListEntry {
                key: text(key)?,
                size_bytes: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                modified_ms: row.get(2)?,
                etag: row.get(3)?,
            });
        }
        return Ok(page);
    }
}

/// The common prefix that a key falls under: up to and with the first delimiter behind the prefix.
fn roll_up<'a>(key: &'a [u8], prefix_len: usize, delimiter: Option<&str>) -> Option<&'a [u8]> {
    let delimiter = delimiter?.as_bytes();
    let rest = key.get(prefix_len..)?;
    let at = rest.windows(delimiter.len()).position(|window| window == delimiter)?;
    key.get(..prefix_len + at + delimiter.len())
}

/// The smallest position behind a key.
fn behind(key: &[u8]) -> Vec<u8> {
    let mut position = key.to_vec();
    position.push(0);
    position
}

/// The smallest position behind everything that begins with `prefix`.
pub(super) fn successor(prefix: &[u8]) -> Vec<u8> {
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
        assert_eq!(successor(b"a/"), b"a0");
        assert_eq!(successor(b""), [0xff]);
        assert_eq!(successor(&[b'a', 0xff]), b"b");
        assert_eq!(successor(&[0xff, 0xff]), [0xff]);
    }

    #[test]
    fn rolls_up_behind_the_prefix() {
        assert_eq!(roll_up(b"a/b/c", 0, Some("/")), Some(&b"a/"[..]));
        assert_eq!(roll_up(b"a/b/c", 2, Some("/")), Some(&b"a/b/"[..]));
        assert_eq!(roll_up(b"a/b/c", 4, Some("/")), None);
        assert_eq!(roll_up(b"a--b", 0, Some("--")), Some(&b"a--"[..]));
        assert_eq!(roll_up(b"a/b", 0, None), None);
    }
}
