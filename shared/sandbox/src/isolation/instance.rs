//! What one host keeps on the machine while it lives: a private folder and cgroups. What a killed host left is removed
//! by the next one that uses the same folder.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::cgroups::{self, Cgroups};
use super::slots;

/// Held while a host moves in or cleans up.
const DOOR: &str = "lock";
/// In a host's folder: held while it lives.
const ALIVE: &str = "alive";
/// In a host's folder: other places that it has made, one a line.
const GROUPS: &str = "groups";
const ELSEWHERE: &str = "elsewhere";
/// An empty folder to mount on.
const STAGING: &str = "staging";
/// Where a folder is made that other users must be able to enter.
const ENTERED_BY_ALL: [&str; 3] = ["/var/tmp", "/tmp", "/run"];

/// A host's place on the machine. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    folder: PathBuf,
    /// Sandboxes' folders, where they have no file systems of their own.
    work: PathBuf,
    cgroups: Cgroups,
    _alive: File,
}

impl Instance {
    /// Moves in, after what dead hosts left is removed. With `others`, users of sandboxes must be able to enter the
    /// folder of their files.
    pub(crate) fn new(folder: &Path, others: bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = folder.canonicalize()?;
        let door = File::options().create(true).truncate(false).write(true).open(folder.join(DOOR))?;
        flock(&door, FlockOperation::LockExclusive)?;
        remove_dead(&folder);

        let id = short(&uuid::Uuid::new_v4().simple().to_string()).to_owned();
        let own = folder.join(&id);
        DirBuilder::new().mode(0o711).create(&own)?;
        let alive =
            slots::lock(&own.join(ALIVE))?.ok_or_else(|| io::Error::other("a new folder is locked"))?;
        DirBuilder::new().mode(0o700).create(own.join(STAGING))?;
        let mut work = own.join("sandboxes");
        if others && !is_entered_by_all(&own) {
            let place = ENTERED_BY_ALL.map(Path::new).into_iter().find(|place| is_entered_by_all(place));
            let place =
                place.ok_or_else(|| io::Error::other("there is no folder that other users may enter"))?;
            work = place.join(format!("bench-sandbox-{id}"));
            std::fs::write(own.join(ELSEWHERE), work.as_os_str().as_encoded_bytes())?;
        }
        DirBuilder::new().mode(0o711).create(&work)?;
        let cgroups = Cgroups::find(&format!("bench-sandbox-{id}"));
        let groups: Vec<String> =
            cgroups.folders().iter().map(|folder| format!("{}\n", folder.display())).collect();
        std::fs::write(own.join(GROUPS), groups.concat())?;
        Ok(Self { folder: own, work, cgroups, _alive: alive })
    }

    pub(crate) fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.folder.join(STAGING)
    }

    /// Where the files of a sandbox are that has no file system of its own.
    pub(crate) fn folder_of(&self, id: &str) -> PathBuf {
        self.work.join(short(id))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        cgroups::remove(self.cgroups.folders());
        remove_tree(&self.work);
        remove_tree(&self.folder);
    }
}

/// Enough of an identifier for a folder: sockets in it have paths of 107 bytes at most.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Removes what hosts left that are no more.
fn remove_dead(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let own = entry.path();
        // Whoever lives holds its lock. A folder without one was never moved into.
        if !matches!(slots::lock(&own.join(ALIVE)), Ok(Some(_))) {
            continue;
        }
        let listed = |file: &str| -> Vec<PathBuf> {
            let text = std::fs::read_to_string(own.join(file)).unwrap_or_default();
            text.lines().map(PathBuf::from).collect()
        };
        // Only what bears the name that we give: a damaged list does no harm.
        let is_ours = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"bench-sandbox-"))
        };
        cgroups::remove(listed(GROUPS).into_iter().filter(is_ours).collect());
        for path in listed(ELSEWHERE).iter().filter(|path| is_ours(path)) {
            remove_tree(path);
        }
        remove_tree(&own);
    }
}

/// Whether any user may enter the folder: it and all above it let others through.
fn is_entered_by_all(folder: &Path) -> bool {
    folder.ancestors().all(|folder| std::fs::metadata(folder).is_ok_and(|about| about.mode() & 0o001 != 0))
}

/// Removes a folder with everything in it, also folders that were closed to their own user. Links are not followed.
pub(crate) fn remove_tree(folder: &Path) {
    if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
        return;
    }
    open_folders(folder);
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "A sandbox's folder cannot be removed");
    }
}

/// Lets the owner into folders again. No process of the sandbox lives any more that could put a link in the way.
fn open_folders(folder: &Path) {
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let _ = std::fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        left.extend(
            entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_host_removes_what_a_dead_one_left_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let living = Instance::new(folder.path(), false).unwrap();
        let dead = Instance::new(folder.path(), false).unwrap();
        let (left, kept) = (dead.folder.clone(), living.folder.clone());
        std::fs::create_dir_all(left.join("sandboxes/x/closed")).unwrap();
        std::fs::set_permissions(left.join("sandboxes/x/closed"), Permissions::from_mode(0o000)).unwrap();
        let foreign = folder.path().join("foreign");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(left.join(ELSEWHERE), foreign.as_os_str().as_encoded_bytes()).unwrap();
        // As a killed process: its lock is gone, its files are not.
        let groups = dead.cgroups.folders();
        let Instance { .. } = &dead;
        let stolen = std::mem::ManuallyDrop::new(dead);
        flock(&stolen._alive, FlockOperation::Unlock).unwrap();

        let next = Instance::new(folder.path(), false).unwrap();
        assert!(!left.exists());
        assert!(groups.iter().all(|group| !group.exists()));
        assert!(kept.exists() && next.folder.exists());
        drop(living);
        assert!(!kept.exists());
    }

    #[test]
    fn folders_closed_to_others_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(!is_entered_by_all(folder.path()));
        assert!(is_entered_by_all(Path::new("/usr")));
    }
}
