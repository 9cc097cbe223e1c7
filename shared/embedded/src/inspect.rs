//! The state of a data directory, read from outside: nothing is created, changed or kept locked.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use crate::EmbeddedError;
use crate::data_dir::{Holder, LOCK_FILE};
use crate::private::must_restrict;

/// State of a data directory that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataDirState {
    /// It doesn't exist, and can be created.
    Missing,
    /// No process uses it.
    Free,
    /// Another process holds its lock.
    InUse {
        /// The process that wrote the lock file last, if it could be read.
        pid: Option<u32>,
        /// True if other processes can use the directory meanwhile.
        shares: bool,
    },
}

/// Checks that a data directory can be used, without changing anything.
///
/// Tests the lock by taking and immediately releasing it: a process that starts in these microseconds is refused.
///
/// # Errors
/// [`EmbeddedError::NotOwn`] for a folder that this program wouldn't close to other users; [`EmbeddedError::File`] for
/// one that isn't a folder, or can't be read, written or created.
pub fn inspect_data_dir(path: &Path) -> Result<DataDirState, EmbeddedError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = path.ancestors().skip(1).find(|folder| folder.exists());
            // The folder above a relative path of one part is the current one.
            let above = above.unwrap_or(Path::new("."));
            return writable(above)
                .map(|()| DataDirState::Missing)
                .map_err(|source| EmbeddedError::file("create", path, source));
        }
        Err(source) => return Err(EmbeddedError::file("read", path, source)),
    };
    if !metadata.is_dir() {
        return Err(EmbeddedError::file("use", path, io::ErrorKind::NotADirectory.into()));
    }
    must_restrict(path)?;
    writable(path).map_err(|source| EmbeddedError::file("write to", path, source))?;
    state_of_lock(&path.join(LOCK_FILE))
}

fn state_of_lock(path: &Path) -> Result<DataDirState, EmbeddedError> {
    let mut lock = match File::open(path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DataDirState::Free),
        Err(source) => return Err(EmbeddedError::file("open", path, source)),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(DataDirState::Free),
        Err(TryLockError::WouldBlock) => {
            let Holder { pid, shares } = Holder::read(&mut lock);
            Ok(DataDirState::InUse { pid, shares })
        }
        Err(TryLockError::Error(source)) => Err(EmbeddedError::file("lock", path, source)),
    }
}

/// Checks that files can be created in a folder, as the kernel decides it: by user, mode and file system.
#[cfg(unix)]
fn writable(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};

    if !fs::metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(not(unix))]
fn writable(folder: &Path) -> io::Result<()> {
    if fs::metadata(folder)?.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_dir::DataDir;

    #[test]
    fn a_data_directory_is_missing_then_in_use_then_free() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("a/b");
        assert_eq!(inspect_data_dir(&dir).unwrap(), DataDirState::Missing);
        assert!(!place.path().join("a").exists(), "nothing is created");
        let open = DataDir::open(&dir, false).unwrap();
        let in_use = DataDirState::InUse { pid: Some(std::process::id()), shares: false };
        assert_eq!(inspect_data_dir(&dir).unwrap(), in_use);
        drop(open);
        assert_eq!(inspect_data_dir(&dir).unwrap(), DataDirState::Free);
        let again = DataDir::open(&dir, false).unwrap();
        assert_eq!(again.epoch(), 2, "looking is no start, and keeps no lock");
    }

    #[test]
    fn a_path_that_is_not_a_folder_cannot_be_used() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "x").unwrap();
        for (path, part) in [(file.clone(), "Could not use"), (file.join("below"), "Could not read")] {
            let error = inspect_data_dir(&path).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("file"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_others_is_refused_and_one_of_ours_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;

        let place = tempfile::tempdir().unwrap();
        let set = |mode| fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        set(0o755);
        assert_eq!(inspect_data_dir(place.path()).unwrap(), DataDirState::Free);
        assert_eq!(fs::metadata(place.path()).unwrap().permissions().mode() & 0o777, 0o755);
        fs::write(place.path().join("notes.txt"), "x").unwrap();
        let error = inspect_data_dir(place.path()).unwrap_err();
        assert!(matches!(error, EmbeddedError::NotOwn { .. }), "{error}");
        set(0o500);
        // Root may write anywhere.
        if !rustix::process::geteuid().is_root() {
            let error = inspect_data_dir(place.path()).unwrap_err().to_string();
            assert!(error.contains("write to") && error.contains("Permission denied"), "{error}");
        }
        set(0o700);
    }
}
