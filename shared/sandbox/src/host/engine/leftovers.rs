//! What killed hosts left in the engine and in their folders.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bench_engine::{Client, reap};
use rustix::fs::{FlockOperation, flock};

/// Name of the file that a host keeps locked in its folder while it lives.
const RECORD: &str = "alive";

/// Locks the record of a host's folder; `None` if its host lives.
pub(super) fn lock_record(run_folder: &Path) -> io::Result<Option<File>> {
    let path = run_folder.join(RECORD);
    let record = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match flock(&record, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(record)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if the folder of a dead host is there.
pub(super) fn has_leftovers(folder: &Path) -> bool {
    host_folders(folder).iter().any(|host| matches!(lock_record(host), Ok(Some(_))))
}

/// Removes what dead hosts left in the engine, and then their folders. `own` is the name of this host's folder.
pub(super) async fn remove_leftovers(folder: &Path, own: &str, client: &Client, path: &OsStr) {
    for host in host_folders(folder) {
        let name = host.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == own {
            continue;
        }
        // Kept until the folder is gone, so that no other host removes it at the same time.
        let Ok(Some(_record)) = lock_record(&host) else { continue };
        match reap(client, &name, &BTreeSet::new(), true).await {
            Ok(()) => discard(&host, path, Some(client)).await,
            // The folder stays for the next attempt.
            Err(error) => tracing::warn!(%error, "Containers of a killed host were not removed"),
        }
    }
}

/// Removes the folder of a host whose sandboxes left nothing in the engine.
pub(super) async fn discard(run_folder: &Path, path: &OsStr, engine: Option<&Client>) {
    if let Err(error) = bench_engine::discard(run_folder, path, engine).await {
        tracing::warn!(folder = %run_folder.display(), %error, "Folder of a container engine was not removed");
    }
}

/// Returns the folders of all hosts. Only they have a record.
fn host_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join(RECORD).is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_dead_hosts_are_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_leftovers(folder.path()) && !has_leftovers(&folder.path().join("absent")));
        std::fs::create_dir(folder.path().join("image-uses")).unwrap();
        let host = folder.path().join("abc");
        std::fs::create_dir(&host).unwrap();
        assert!(!has_leftovers(folder.path()));
        let record = lock_record(&host).unwrap();
        assert!(record.is_some() && !has_leftovers(folder.path()));
        drop(record);
        assert!(has_leftovers(folder.path()));
    }
}
