//! Private folder and cgroups of one host. A host removes what killed hosts left behind: those that used the same
//! folder, and, if both ran as root, those of any folder.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::cgroups::{self, Cgroups};
use super::engine_folders::unmount_below;
use super::uids;

/// Name of the lock file that a host holds while it starts or cleans up.
const LOCK_FILE: &str = "lock";
/// Name of the record in a host's folder. The host holds its lock while it lives, and lists in it what it has created
/// elsewhere.
const RECORD_FILE: &str = "alive";
/// Folder with the records of all hosts on this machine that run as root, since their own folders may disappear
/// together with their records.
const ROOT_RECORDS: &str = "/run/bench-sandbox/hosts";
/// Prefix of the names of our folders and groups in shared places.
const NAME_PREFIX: &str = "bench-sandbox-";
/// Name of an empty folder to mount on.
const STAGING: &str = "staging";
/// Candidates for a folder that other users must be able to enter.
const WORLD_ACCESSIBLE: [&str; 3] = ["/var/tmp", "/tmp", "/run"];

/// Folders and cgroups of one host. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    folder: PathBuf,
    /// Folder for the files of sandboxes that have no file system of their own.
    work: PathBuf,
    cgroups: Cgroups,
    /// Locked records that list what this host has created elsewhere.
    records: Vec<Record>,
}

impl Instance {
    /// Removes what dead hosts left behind, then creates folders and cgroups for this host. If `others` is true, the
    /// users of sandboxes must be able to enter the folder of their files.
    pub(crate) fn new(folder: &Path, others: bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = folder.canonicalize()?;
        let _lock = lock_folder(&folder)?;
        for entry in entries(&folder).iter().filter(|entry| entry.is_dir()) {
            remove_leftovers(&entry.join(RECORD_FILE));
        }
        let id = short_id(&uuid::Uuid::new_v4().simple().to_string()).to_owned();
        let own = folder.join(&id);
        DirBuilder::new().mode(0o711).create(&own)?;
        DirBuilder::new().mode(0o700).create(own.join(STAGING))?;
        let mut records = vec![Record::new(own.join(RECORD_FILE))?];
        records.extend(register_root_host(&id));

        let mut work = own.join("sandboxes");
        if others && !is_accessible_to_all(&own) {
            let place = WORLD_ACCESSIBLE.map(Path::new).into_iter().find(|place| is_accessible_to_all(place));
            let place = place.ok_or_else(|| io::Error::other("no folder is accessible to other users"))?;
            work = place.join(format!("{NAME_PREFIX}{id}"));
        }
        let name = format!("{NAME_PREFIX}{id}");
        for record in &mut records {
            // Listed before creation; removing entries that don't exist does no harm.
            record.list("folder", &work)?;
            for group in Cgroups::candidates(&name) {
                record.list("group", &group)?;
            }
            record.list("folder", &own)?;
        }
        DirBuilder::new().mode(0o711).create(&work)?;
        Ok(Self { cgroups: Cgroups::find(&name), folder: own, work, records })
    }

    pub(crate) fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.folder.join(STAGING)
    }

    /// Returns the folder for the files of a sandbox without a file system of its own.
    pub(crate) fn sandbox_folder(&self, id: &str) -> PathBuf {
        self.work.join(short_id(id))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        cgroups::remove(self.cgroups.folders());
        remove_tree(&self.work);
        remove_tree(&self.folder);
        for record in &self.records {
            let _ = std::fs::remove_file(&record.path);
        }
    }
}

/// A locked list of what a host has created.
#[derive(Debug)]
struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    fn new(path: PathBuf) -> io::Result<Self> {
        let file = uids::lock(&path)?.ok_or_else(|| io::Error::other("a new file is locked"))?;
        Ok(Self { path, file })
    }

    fn list(&mut self, kind: &str, path: &Path) -> io::Result<()> {
        writeln!(self.file, "{kind} {}", path.display())
    }
}

/// Waits until no other host is starting or cleaning up in this folder.
fn lock_folder(folder: &Path) -> io::Result<File> {
    let lock_file =
        File::options().create(true).truncate(false).write(true).mode(0o600).open(folder.join(LOCK_FILE))?;
    flock(&lock_file, FlockOperation::LockExclusive)?;
    Ok(lock_file)
}

/// Removes what dead hosts of root left behind, and creates a record for this host in [`ROOT_RECORDS`]. Returns `None`
/// if that isn't possible; then only hosts with the same folder clean up after each other.
fn register_root_host(id: &str) -> Option<Record> {
    if !nix::unistd::Uid::effective().is_root() {
        return None;
    }
    let hosts = Path::new(ROOT_RECORDS);
    DirBuilder::new().recursive(true).mode(0o755).create(hosts).ok()?;
    let _lock = lock_folder(hosts).ok()?;
    for entry in entries(hosts).iter().filter(|entry| !entry.ends_with(LOCK_FILE)) {
        remove_leftovers(entry);
    }
    Record::new(hosts.join(id)).ok()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

/// Shortens an identifier for use in a path: socket paths have at most 107 bytes.
fn short_id(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Removes what a dead host left behind. Does nothing if the host is alive, since then it holds the lock of its record.
fn remove_leftovers(record: &Path) {
    if !record.is_file() {
        return;
    }
    let Ok(Some(_lock)) = uids::lock(record) else { return };
    let text = std::fs::read_to_string(record).unwrap_or_default();
    for (kind, path) in text.lines().filter_map(|line| line.split_once(' ')) {
        let path = Path::new(path);
        // Remove only paths that have our prefix or contain one of our records, so that a damaged list does no harm.
        let has_prefix =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(NAME_PREFIX.as_bytes()));
        match kind {
            "group" if has_prefix => cgroups::remove(vec![path.to_owned()]),
            "folder" if has_prefix || path.join(RECORD_FILE).is_file() => remove_tree(path),
            _ => {}
        }
    }
    let _ = std::fs::remove_file(record);
}

/// Returns true if every user may enter the folder and all its ancestors.
fn is_accessible_to_all(folder: &Path) -> bool {
    folder
        .ancestors()
        .all(|folder| std::fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o001 != 0))
}

/// Removes a folder with its content, including folders whose permissions exclude their owner. Doesn't follow links.
pub(crate) fn remove_tree(folder: &Path) {
    if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
        return;
    }
    // The first attempt has emptied what is mounted, so that nothing keeps its memory.
    unmount_below(folder);
    restore_access(folder);
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "A sandbox's folder cannot be removed");
    }
}

/// Gives the owner access to all folders below. No process of the sandbox is left that could insert a link.
fn restore_access(folder: &Path) {
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

    /// Simulates a killed host, which leaves everything but its locks. Returns the folders that it leaves.
    fn kill(host: Instance) -> Vec<PathBuf> {
        let mut left = host.cgroups.folders();
        left.push(host.folder.clone());
        let dead = std::mem::ManuallyDrop::new(host);
        for record in &dead.records {
            flock(&record.file, FlockOperation::Unlock).unwrap();
        }
        left
    }

    #[test]
    fn the_next_host_removes_only_leftovers_of_dead_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let living = Instance::new(folder.path(), false).unwrap();
        let mut dead = Instance::new(folder.path(), false).unwrap();
        let kept = living.folder.clone();
        std::fs::create_dir_all(dead.work.join("x/closed")).unwrap();
        std::fs::set_permissions(dead.work.join("x/closed"), Permissions::from_mode(0o000)).unwrap();
        let foreign = folder.path().join("foreign");
        std::fs::create_dir(&foreign).unwrap();
        dead.records[0].list("folder", &foreign).unwrap();
        dead.records[0].list("group", &foreign).unwrap();
        let left = kill(dead);

        let next = Instance::new(folder.path(), false).unwrap();
        assert!(left.iter().all(|path| !path.exists()), "{left:?}");
        assert!(foreign.exists() && kept.exists() && next.folder.exists());
        drop(living);
        assert!(!kept.exists());
    }

    #[test]
    fn hosts_of_root_clean_up_after_each_other_in_any_folder() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let left = kill(Instance::new(one.path(), true).unwrap());
        let next = Instance::new(other.path(), true).unwrap();
        let is_root = nix::unistd::Uid::effective().is_root();
        assert_eq!(left.iter().all(|path| !path.exists()), is_root, "{left:?}");
        drop(next);
    }

    #[test]
    fn inaccessible_folders_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(!is_accessible_to_all(folder.path()));
        assert!(is_accessible_to_all(Path::new("/usr")));
    }
}
