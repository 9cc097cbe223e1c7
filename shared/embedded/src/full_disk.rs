//! Opening databases on a full disk, so that stored data can be read.

use std::path::{Path, PathBuf};

/// Free space below which SQLite may not be able to create the files beside a database, in bytes.
const FREE_BYTES_MIN: u64 = 1024 * 1024;

/// Returns the name by which SQLite opens a database.
///
/// SQLite creates a file beside a database for the index of its log, which other processes share. On a full disk, the name
/// selects the file system `unix-excl`, which keeps the index in memory. No other process opens the databases, since the
/// data directory is locked.
pub(crate) fn database_name(path: &Path) -> PathBuf {
    if has_room(path) { path.to_owned() } else { exclusive_name(path) }
}

#[cfg(unix)]
fn has_room(path: &Path) -> bool {
    let dir = path.parent().unwrap_or(path);
    let disk = rustix::fs::statvfs(dir);
    disk.map_or(true, |disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= FREE_BYTES_MIN)
}

#[cfg(not(unix))]
fn has_room(_path: &Path) -> bool {
    true
}

fn exclusive_name(path: &Path) -> PathBuf {
    // A path that isn't UTF-8 can't be part of the name.
    let Some(text) = path.to_str() else { return path.to_owned() };
    let escaped = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{escaped}?vfs=unix-excl").into()
}

#[cfg(all(test, unix))]
mod tests {
    use rusqlite::{Connection, OpenFlags};

    use super::*;

    #[test]
    fn a_database_is_opened_and_read_without_new_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a ?#%.sqlite");
        let write = || {
            let connection = Connection::open(&path).unwrap();
            connection.pragma_update(None, "journal_mode", "WAL").unwrap();
            connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (7);").unwrap();
        };
        write();
        let name = exclusive_name(&path);
        let writer = Connection::open(&name).unwrap();
        writer.pragma_update(None, "journal_mode", "WAL").unwrap();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let reader = Connection::open_with_flags(&name, flags).unwrap();
        for connection in [&writer, &reader] {
            let found: i64 = connection.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
            assert_eq!(found, 7);
        }
        assert!(!dir.path().join("a ?#%.sqlite-shm").exists());
        assert_eq!(database_name(&path), path, "this disk has room");
    }
}
