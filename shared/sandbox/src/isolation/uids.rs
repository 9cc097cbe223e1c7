//! Users for sandboxes. Each running sandbox has its own uid, so that per-user limits (processes) apply per sandbox,
//! and sandboxes can't touch each other's files and processes. Only root can assign them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Uids that distributions, container managers and service managers don't assign. The second range is for containers
/// that have only 65,536 users.
const RANGES: [Range<u32>; 2] = [0x7000_0000..0x7000_1000, 60_600..61_100];
/// Lock files of all hosts on this machine, so that no two take the same uid.
const LOCKS: &str = "/run/bench-sandbox/users";

/// Returns true if this uid is reserved for sandboxes.
pub(crate) fn is_sandbox_uid(uid: u32) -> bool {
    RANGES.iter().any(|range| range.contains(&uid))
}

/// Assigns uids to sandboxes.
#[derive(Debug)]
pub(crate) struct UidPool {
    range: Range<u32>,
    locks: PathBuf,
}

/// A uid that is reserved on this machine until this value is dropped.
#[derive(Debug)]
pub(crate) struct ReservedUid {
    uid: u32,
    _lock: File,
}

impl ReservedUid {
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }
}

impl UidPool {
    /// Finds a range of uids; `None` if the machine's user namespace has none to spare.
    ///
    /// If the machine has no place for the lock files, they are in this host's `folder`, and other hosts may take the
    /// same uids.
    pub(crate) fn find(folder: &Path) -> std::io::Result<Option<Self>> {
        let maps =
            [std::fs::read_to_string("/proc/self/uid_map")?, std::fs::read_to_string("/proc/self/gid_map")?];
        let Some(range) = RANGES.into_iter().find(|range| maps.iter().all(|map| is_mapped(map, range)))
        else {
            return Ok(None);
        };
        let make = |locks: PathBuf| -> std::io::Result<PathBuf> {
            std::fs::DirBuilder::new().recursive(true).mode(0o755).create(&locks)?;
            // The folder may exist on a read-only file system.
            File::options().create(true).truncate(false).write(true).mode(0o600).open(locks.join("lock"))?;
            Ok(locks)
        };
        let locks = make(LOCKS.into()).or_else(|_| make(folder.join("users")))?;
        Ok(Some(Self { range, locks }))
    }

    /// Reserves a uid that no other sandbox has.
    pub(crate) fn take(&self) -> std::io::Result<ReservedUid> {
        for uid in self.range.clone() {
            if let Some(lock) = lock(&self.locks.join(uid.to_string()))? {
                return Ok(ReservedUid { uid, _lock: lock });
            }
        }
        Err(std::io::Error::other("all users for sandboxes are taken"))
    }
}

/// Locks a file for this process; `None` if another process holds the lock.
pub(crate) fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if this process is root only within its user namespace, and another user outside of it.
pub(crate) fn is_root_only_in_namespace() -> bool {
    std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| maps_root_to_other_user(&map))
}

fn maps_root_to_other_user(map: &str) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers.as_slice(), &[0, outside, _] if outside != 0)
    })
}

/// Returns true if a user namespace maps the whole range.
fn is_mapped(map: &str, range: &Range<u32>) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let &[inside, _, count] = numbers.as_slice() else { return false };
        u64::from(range.start) >= inside && u64::from(range.end) <= inside + count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_in_maps() {
        let [large, small] = RANGES;
        let all = "         0          0 4294967295\n";
        let container = "         0     100000      65536\n";
        assert!(is_mapped(all, &large) && is_mapped(all, &small));
        assert!(!is_mapped(container, &large) && is_mapped(container, &small));
        assert!(!is_mapped("0 0 1\n", &small) && !is_mapped("", &small));
    }

    #[test]
    fn root_of_a_namespace_is_distinguished_from_root() {
        assert!(maps_root_to_other_user("         0       1000          1\n"));
        assert!(!maps_root_to_other_user("         0          0 4294967295\n"));
        assert!(
            !maps_root_to_other_user("      1000       1000          1\n") && !maps_root_to_other_user("")
        );
    }

    #[test]
    fn uids_of_root_and_people_are_not_sandbox_uids() {
        for uid in [0, 1, 1_000, 60_577, 61_184, 65_534, 100_000, u32::MAX] {
            assert!(!is_sandbox_uid(uid), "{uid}");
        }
        assert!(is_sandbox_uid(60_600) && is_sandbox_uid(0x7000_0000));
    }

    #[test]
    fn a_lock_is_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = lock(&path).unwrap();
        assert!(first.is_some());
        assert!(lock(&path).unwrap().is_none());
        drop(first);
        assert!(lock(&path).unwrap().is_some());
    }
}
