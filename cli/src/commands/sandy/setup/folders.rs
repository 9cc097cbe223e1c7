//! The folders of environments, and the link to the current one.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::Context;

use crate::exit::Problem;

const LOCK: &str = "lock";

/// Folder that is removed on drop, such as after cancellation, unless it was completed.
pub(super) struct UnfinishedFolder<'a>(Option<&'a Path>);

impl<'a> UnfinishedFolder<'a> {
    pub(super) const fn new(path: &'a Path) -> Self {
        Self(Some(path))
    }

    /// Keeps the folder, which is complete.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for UnfinishedFolder<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            // If this fails, the next setup removes the folder.
            let _ = fs::remove_dir_all(place);
        }
    }
}

/// Locks the folder of all environments, so that only one setup works there.
pub(super) fn lock(all: &Path) -> anyhow::Result<File> {
    let path = all.join(LOCK);
    let lock = File::create(&path).with_context(|| format!("could not write {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            Err(Problem::failure("another `bench sandy setup` is running in this data directory").into())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("could not lock {}", path.display()))
        }
    }
}

/// Grants everyone the read and execute permissions of the owner, since sandboxes run as another user.
pub(super) fn make_readable(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            make_readable(&entry.path())?;
        }
        make_one_readable(&entry.path())?;
    }
    make_one_readable(folder)
}

fn make_one_readable(path: &Path) -> std::io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    let readable = (mode & 0o500) >> 3 | (mode & 0o500) >> 6;
    if mode & readable == readable {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode((mode | readable) & 0o7777))
}

/// Points the link to the name atomically.
pub(super) fn set_link(link: &Path, name: &Path) -> anyhow::Result<()> {
    let new = link.with_extension("new");
    let failed = || format!("could not write {}", link.display());
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(failed),
        _ => {}
    }
    symlink(name, &new).and_then(|()| fs::rename(&new, link)).with_context(failed)
}

/// Removes all environments except `kept`: older and incomplete ones. `kept` has the previous one, which may be in use.
pub(super) fn remove_others(all: &Path, kept: [Option<&OsStr>; 2]) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("env-"));
        if !is_ours || kept.contains(&Some(name.as_os_str())) {
            continue;
        }
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, "Could not remove {}: {error}", entry.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_switched_at_once_and_old_ones_are_cleared() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("current");
        for name in ["env-1", "env-2", "env-3", "other"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        // Left behind by a setup that was killed.
        symlink("env-0", link.with_extension("new")).unwrap();
        for name in ["env-1", "env-2"] {
            set_link(&link, Path::new(name)).unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(name));
        }
        remove_others(place.path(), [Some(OsStr::new("env-2")), Some(OsStr::new("env-1"))]);
        let there = |name: &str| place.path().join(name).exists();
        assert!(there("env-1") && there("env-2") && there("other") && !there("env-3"));
    }

    #[test]
    fn all_users_may_read_what_the_owner_can() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("x"), "").unwrap();
        fs::write(folder.join("y"), "").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&folder.join("x"), 0o600);
        set(&folder.join("y"), 0o700);
        set(&folder, 0o700);
        make_readable(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&folder), mode(&folder.join("x")), mode(&folder.join("y"))), (0o755, 0o644, 0o755));
    }

    #[test]
    fn one_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = lock(place.path()).unwrap();
        assert!(lock(place.path()).unwrap_err().to_string().contains("is running"));
        drop(first);
        lock(place.path()).unwrap();
    }
}
