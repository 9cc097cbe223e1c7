//! Users for sandboxes: one for each that runs, so that limits by user (processes) are by sandbox, and none may touch
//! what is another's. Only root may give them out.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Numbers that no distribution, no container manager and no service manager gives to anybody. The second range is for
/// containers that know of 65536 users only.
const RANGES: [Range<u32>; 2] = [0x7000_0000..0x7000_1000, 60_600..61_100];
/// For all hosts of this machine, so that no two take the same user.
const LOCKS: &str = "/run/bench-sandbox/users";

/// Whether sandboxes may be this user.
pub(crate) fn is_ours(uid: u32) -> bool {
    RANGES.iter().any(|range| range.contains(&uid))
}

/// Gives out users.
#[derive(Debug)]
pub(crate) struct Slots {
    range: Range<u32>,
    locks: PathBuf,
}

/// A user that is taken while this lives, by all hosts of the machine.
#[derive(Debug)]
pub(crate) struct Slot {
    uid: u32,
    _lock: File,
}

impl Slot {
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }
}

impl Slots {
    /// Users of this machine; `None` where its user namespace has none to spare.
    ///
    /// Where the machine has no place for the locks, they are in this host's `folder`, and other hosts may take the same
    /// users.
    pub(crate) fn find(folder: &Path) -> std::io::Result<Option<Self>> {
        let maps =
            [std::fs::read_to_string("/proc/self/uid_map")?, std::fs::read_to_string("/proc/self/gid_map")?];
        let Some(range) = RANGES.into_iter().find(|range| maps.iter().all(|map| is_mapped(map, range)))
        else {
            return Ok(None);
        };
        let make = |locks: PathBuf| -> std::io::Result<PathBuf> {
            std::fs::DirBuilder::new().recursive(true).mode(0o755).create(&locks)?;
            // A folder that is there may still be on a file system that is not to be written.
            File::options().create(true).truncate(false).write(true).mode(0o600).open(locks.join("lock"))?;
            Ok(locks)
        };
        let locks = make(LOCKS.into()).or_else(|_| make(folder.join("users")))?;
        Ok(Some(Self { range, locks }))
    }

    /// A user that no other sandbox is.
    pub(crate) fn take(&self) -> std::io::Result<Slot> {
        for uid in self.range.clone() {
            if let Some(lock) = lock(&self.locks.join(uid.to_string()))? {
                return Ok(Slot { uid, _lock: lock });
            }
        }
        Err(std::io::Error::other("every user for sandboxes is taken"))
    }
}

/// Locks a file for this process; `None` when another has it.
pub(crate) fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether root is root of a user namespace only, and outside of it somebody else.
pub(crate) fn is_root_by_map() -> bool {
    std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| is_other_outside(&map))
}

fn is_other_outside(map: &str) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers.as_slice(), &[0, outside, _] if outside != 0)
    })
}

/// Whether a user namespace's map has the whole range.
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
    fn root_of_a_namespace_is_told_from_root() {
        assert!(is_other_outside("         0       1000          1\n"));
        assert!(!is_other_outside("         0          0 4294967295\n"));
        assert!(!is_other_outside("      1000       1000          1\n") && !is_other_outside(""));
    }

    #[test]
    fn neither_root_nor_people_are_ours() {
        for uid in [0, 1, 1_000, 60_577, 61_184, 65_534, 100_000, u32::MAX] {
            assert!(!is_ours(uid), "{uid}");
        }
        assert!(is_ours(60_600) && is_ours(0x7000_0000));
    }

    #[test]
    fn a_lock_is_had_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = lock(&path).unwrap();
        assert!(first.is_some());
        assert!(lock(&path).unwrap().is_none());
        drop(first);
        assert!(lock(&path).unwrap().is_some());
    }
}
