//! Folders and databases that other users of this machine can't read.

use std::fs;
use std::path::Path;

use crate::EmbeddedError;

/// Files that identify a data directory of this program. A folder without them that others can read may be anything.
#[cfg(unix)]
const MARKER_FILES: [&str; 6] =
    ["epoch", "dynamodb.sqlite", "sqs.sqlite", "master.key", "keys/keys.json", "sandbox-files"];
/// Folders in a data directory that are private. Sandboxes use other folders.
const PRIVATE_FOLDERS: [&str; 3] = ["s3", "keys", "downloads"];
/// Suffixes of the files that SQLite keeps next to a database, with the same mode.
const DATABASE_FILE_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

/// Creates a data directory for its owner only, or removes the access of others to an existing one.
///
/// A folder that others may only traverse (0711) keeps its mode: sandboxes of another user require that on machines
/// without namespaces.
///
/// # Errors
/// Returns [`EmbeddedError::NotOwn`] for a folder that others can read and whose mode this program must not change: one
/// of another user, one like `/tmp`, or one with other files in it.
pub fn secure_data_dir(path: &Path) -> Result<(), EmbeddedError> {
    private_folder(path)?;
    restrict_data_dir(path)?;
    for name in PRIVATE_FOLDERS {
        let folder = path.join(name);
        if folder.is_dir() {
            restrict(&folder, 0o700)?;
        }
    }
    Ok(())
}

/// Creates a folder for its owner only, unless it exists.
pub(crate) fn private_folder(path: &Path) -> Result<(), EmbeddedError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| EmbeddedError::file("create", path, source))
}

/// Creates the file of a SQLite database for its owner only, or removes the access of others to an existing one. An
/// empty file is a valid new database, and SQLite gives its other files the same mode.
pub(crate) fn private_database(path: &Path) -> Result<(), EmbeddedError> {
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|source| EmbeddedError::file("open", path, source))?;
    restrict(path, 0o600)?;
    for suffix in DATABASE_FILE_SUFFIXES {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        private_file(Path::new(&file))?;
    }
    Ok(())
}

/// Removes the access of others to a file, if it exists.
pub(crate) fn private_file(path: &Path) -> Result<(), EmbeddedError> {
    if path.is_file() { restrict(path, 0o600) } else { Ok(()) }
}

fn restrict_data_dir(path: &Path) -> Result<(), EmbeddedError> {
    if must_restrict(path)? { set_mode(path, 0o700) } else { Ok(()) }
}

/// Returns true if others can access a data directory, and it is the user's own to restrict.
///
/// # Errors
/// [`EmbeddedError::NotOwn`] if others can access it, and it isn't.
#[cfg(unix)]
pub(crate) fn must_restrict(path: &Path) -> Result<bool, EmbeddedError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    const READ_OR_WRITE: u32 = 0o066;
    const STICKY: u32 = 0o1000;

    let metadata = fs::metadata(path).map_err(|source| EmbeddedError::file("read", path, source))?;
    let mode = metadata.permissions().mode();
    if mode & READ_OR_WRITE == 0 {
        return Ok(false);
    }
    let not_own = |reason| Err(EmbeddedError::NotOwn { dir: path.to_owned(), reason });
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return not_own("it belongs to another user");
    }
    if mode & STICKY != 0 {
        return not_own("every user may have files there");
    }
    let mut entries = fs::read_dir(path).map_err(|source| EmbeddedError::file("read", path, source))?;
    if entries.next().is_some() && !MARKER_FILES.iter().any(|name| path.join(name).exists()) {
        return not_own("it holds other files");
    }
    Ok(true)
}

/// Other systems use access lists that are inherited from the user's own folder.
#[cfg(not(unix))]
pub(crate) fn must_restrict(_path: &Path) -> Result<bool, EmbeddedError> {
    Ok(false)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> Result<(), EmbeddedError> {
    use std::os::unix::fs::PermissionsExt as _;

    let metadata = fs::metadata(path).map_err(|source| EmbeddedError::file("read", path, source))?;
    if metadata.permissions().mode() & 0o077 == 0 { Ok(()) } else { set_mode(path, mode) }
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> Result<(), EmbeddedError> {
    Ok(())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<(), EmbeddedError> {
    use std::os::unix::fs::PermissionsExt as _;

    let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set.map_err(|source| EmbeddedError::file("change the permissions of", path, source))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> Result<(), EmbeddedError> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn folder(mode: u32, with: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in with {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        dir
    }

    #[test]
    fn an_existing_folder_is_restricted_if_it_is_ours() {
        for (before, with, after) in [
            (0o755, &[][..], 0o700),
            (0o777, &[], 0o700),
            (0o750, &["epoch", "notes.txt"], 0o700),
            (0o755, &["master.key"], 0o700),
            (0o700, &["notes.txt"], 0o700),
            // Sandboxes of another user traverse the folder.
            (0o711, &["epoch"], 0o711),
        ] {
            let dir = folder(before, with);
            secure_data_dir(dir.path()).unwrap();
            assert_eq!(mode(dir.path()), after, "{before:o} {with:?}");
        }
        for (before, with) in
            [(0o755, &["notes.txt"][..]), (0o755, &["lock"]), (0o1777, &[]), (0o1777, &["epoch"])]
        {
            let dir = folder(before, with);
            let error = secure_data_dir(dir.path()).unwrap_err();
            assert!(matches!(error, EmbeddedError::NotOwn { .. }), "{before:o}");
            assert!(error.to_string().contains("--data-dir"), "{error}");
            assert_eq!(mode(dir.path()), before, "it stays as it was");
        }
    }

    #[test]
    fn databases_are_private_before_and_after() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sqlite");
        private_database(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").unwrap();
        let files = ["a.sqlite", "a.sqlite-wal", "a.sqlite-shm"].map(|name| dir.path().join(name));
        assert_eq!(files.each_ref().map(|file| mode(file)), [0o600; 3]);
        for file in &files {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        private_database(&path).unwrap();
        assert_eq!(files.each_ref().map(|file| mode(file)), [0o600; 3]);
    }
}
