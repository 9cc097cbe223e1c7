//! What one host keeps on the machine while it lives: a private folder and cgroups. What a killed host left is removed
//! by the next one that uses the same folder; what root's hosts left by the next of root's, wherever their folders are.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::cgroups::{self, Cgroups};
use super::slots;

/// Held while a host moves in or cleans up.
const DOOR: &str = "lock";
/// In a host's folder: held while it lives, and lists what it has made elsewhere.
const ALIVE: &str = "alive";
/// The same for all of root's hosts on this machine, whose folders may vanish with what they list.
const HOSTS: &str = "/run/bench-sandbox/hosts";
/// What our folders and groups in places of others begin with.
const NAME: &str = "bench-sandbox-";
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
    /// What is made elsewhere is listed in them, and they are locked.
    records: Vec<Record>,
}

impl Instance {
    /// Moves in, after what dead hosts left is removed. With `others`, users of sandboxes must be able to enter the
    /// folder of their files.
    pub(crate) fn new(folder: &Path, others: bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = folder.canonicalize()?;
        let _door = open_door(&folder)?;
        for entry in entries(&folder).iter().filter(|entry| entry.is_dir()) {
            remove_dead(&entry.join(ALIVE));
        }
        let id = short(&uuid::Uuid::new_v4().simple().to_string()).to_owned();
        let own = folder.join(&id);
        DirBuilder::new().mode(0o711).create(&own)?;
        DirBuilder::new().mode(0o700).create(own.join(STAGING))?;
        let mut records = vec![Record::new(own.join(ALIVE))?];
        records.extend(among_all_hosts(&id));

        let mut work = own.join("sandboxes");
        if others && !is_entered_by_all(&own) {
            let place = ENTERED_BY_ALL.map(Path::new).into_iter().find(|place| is_entered_by_all(place));
            let place =
                place.ok_or_else(|| io::Error::other("there is no folder that other users may enter"))?;
            work = place.join(format!("{NAME}{id}"));
        }
        let name = format!("{NAME}{id}");
        for record in &mut records {
            // Before any of it is made; what is not there need not be removed.
            record.list("folder", &work)?;
            for group in Cgroups::possible(&name) {
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
        for record in &self.records {
            let _ = std::fs::remove_file(&record.path);
        }
    }
}

/// A locked list of what a host has made.
#[derive(Debug)]
struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    fn new(path: PathBuf) -> io::Result<Self> {
        let file = slots::lock(&path)?.ok_or_else(|| io::Error::other("a new file is locked"))?;
        Ok(Self { path, file })
    }

    fn list(&mut self, kind: &str, path: &Path) -> io::Result<()> {
        writeln!(self.file, "{kind} {}", path.display())
    }
}

/// Waits until no other host moves in or cleans up there.
fn open_door(folder: &Path) -> io::Result<File> {
    let door =
        File::options().create(true).truncate(false).write(true).mode(0o600).open(folder.join(DOOR))?;
    flock(&door, FlockOperation::LockExclusive)?;
    Ok(door)
}

/// A record where all of root's hosts look, after the dead among them are removed. `None` where there is no such place:
/// then only hosts of the same folder know of each other.
fn among_all_hosts(id: &str) -> Option<Record> {
    if !nix::unistd::Uid::effective().is_root() {
        return None;
    }
    let hosts = Path::new(HOSTS);
    DirBuilder::new().recursive(true).mode(0o755).create(hosts).ok()?;
    let _door = open_door(hosts).ok()?;
    for entry in entries(hosts).iter().filter(|entry| !entry.ends_with(DOOR)) {
        remove_dead(entry);
    }
    Record::new(hosts.join(id)).ok()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

/// Enough of an identifier for a folder: sockets in it have paths of 107 bytes at most.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Removes what a host left that is no more; nothing when it lives, for then it holds its record.
fn remove_dead(record: &Path) {
    if !record.is_file() {
        return;
    }
    let Ok(Some(_held)) = slots::lock(record) else { return };
    let text = std::fs::read_to_string(record).unwrap_or_default();
    for (kind, path) in text.lines().filter_map(|line| line.split_once(' ')) {
        let path = Path::new(path);
        // Only what bears the name that we give, or a record of ours: a damaged list does no harm.
        let named = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(NAME.as_bytes()));
        match kind {
            "group" if named => cgroups::remove(vec![path.to_owned()]),
            "folder" if named || path.join(ALIVE).is_file() => remove_tree(path),
            _ => {}
        }
    }
    let _ = std::fs::remove_file(record);
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

    /// What a killed process leaves: everything but its locks.
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
    fn the_next_host_removes_what_a_dead_one_left_and_no_more() {
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
    fn root_s_hosts_find_each_other_s_remains_wherever_they_are() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let left = kill(Instance::new(one.path(), true).unwrap());
        let next = Instance::new(other.path(), true).unwrap();
        let is_root = nix::unistd::Uid::effective().is_root();
        assert_eq!(left.iter().all(|path| !path.exists()), is_root, "{left:?}");
        drop(next);
    }

    #[test]
    fn folders_closed_to_others_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(!is_entered_by_all(folder.path()));
        assert!(is_entered_by_all(Path::new("/usr")));
    }
}
