//! Counts the space of a folder that someone else may change meanwhile.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;

/// Unit of the number of blocks of a file, in bytes.
const BLOCK_BYTES: u64 = 512;
/// Number of entries between two looks at the clock.
const ENTRIES_PER_CHECK: u64 = 1_024;
/// Length of a path from which on it is counted from a folder on it, since the system limits the length of paths.
const PATH_BYTES_MAX: usize = 2_000;
/// Maximum number of such folders on a path. Each is an open file.
const PARTS_MAX: usize = 32;
/// Maximum memory for the names of folders that are still to be counted, in bytes.
const PENDING_BYTES_MAX: usize = 64 << 20;
/// Memory of such a folder besides its path, in bytes.
const PENDING_BYTES: usize = 64;

/// Reason why a folder wasn't counted.
#[derive(Debug)]
pub(super) enum Uncounted {
    /// There are too many files and folders.
    Files,
    /// A path is longer than this number of bytes.
    Depth(usize),
    /// The time was up.
    Time,
    /// Something can't be read.
    Io(io::Error),
}

impl From<Errno> for Uncounted {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// A folder that is still to be counted.
struct Pending {
    /// Open folder from which the path leads, and the number of such folders above it.
    start: (Arc<OwnedFd>, usize),
    path: CString,
}

/// Returns the space that everything below a folder takes on the disk, in bytes: a file with several names once, a file with
/// holes without them. Counts at most `files_max` files and folders until `deadline`, follows no link, and enters no other file
/// system.
pub(super) fn count(folder: &Path, files_max: u64, deadline: Instant) -> Result<u64, Uncounted> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let top = Arc::new(openat(rustix::fs::CWD, folder, flags, Mode::empty())?);
    let mut pending = vec![Pending { start: (top, 0), path: c".".to_owned() }];
    let (mut bytes, mut entries, mut pending_bytes, mut seen) = (0_u64, 0_u64, 0_usize, HashSet::new());
    while let Some(Pending { start: (start, parts), path }) = pending.pop() {
        pending_bytes = pending_bytes.saturating_sub(PENDING_BYTES + path.as_bytes().len());
        let opened = match openat2(&start, &path, flags, Mode::empty(), resolve) {
            Ok(opened) => Arc::new(opened),
            Err(error) if is_changed(error) => continue,
            Err(error) => return Err(error.into()),
        };
        for entry in Dir::read_from(&opened)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            entries += 1;
            if entries > files_max {
                return Err(Uncounted::Files);
            }
            if entries.is_multiple_of(ENTRIES_PER_CHECK) && Instant::now() > deadline {
                return Err(Uncounted::Time);
            }
            let found = match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => found,
                Err(error) if is_changed(error) => continue,
                Err(error) => return Err(error.into()),
            };
            let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            if is_folder || found.st_nlink < 2 || seen.insert(found.st_ino) {
                let blocks = u64::try_from(found.st_blocks).unwrap_or(0);
                bytes = bytes.saturating_add(blocks.saturating_mul(BLOCK_BYTES));
            }
            if is_folder {
                let below = below(&start, &opened, parts, &path, name)?;
                pending_bytes += PENDING_BYTES + below.path.as_bytes().len();
                if pending_bytes > PENDING_BYTES_MAX {
                    return Err(Uncounted::Files);
                }
                pending.push(below);
            }
        }
    }
    Ok(bytes)
}

/// Returns the way to a folder in an open one.
fn below(
    start: &Arc<OwnedFd>,
    opened: &Arc<OwnedFd>,
    parts: usize,
    path: &CStr,
    name: &CStr,
) -> Result<Pending, Uncounted> {
    let path = path.to_bytes();
    if path.len() + name.to_bytes().len() < PATH_BYTES_MAX {
        let joined = CString::new([path, b"/", name.to_bytes()].concat());
        let path = joined.map_err(|error| Uncounted::Io(error.into()))?;
        return Ok(Pending { start: (Arc::clone(start), parts), path });
    }
    if parts >= PARTS_MAX {
        return Err(Uncounted::Depth(PARTS_MAX * PATH_BYTES_MAX));
    }
    Ok(Pending { start: (Arc::clone(opened), parts + 1), path: name.to_owned() })
}

/// Returns true for errors of something that was there a moment ago, or is no folder any more.
fn is_changed(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::STALE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn counted(folder: &Path, files_max: u64) -> Result<u64, Uncounted> {
        count(folder, files_max, Instant::now() + Duration::from_secs(60))
    }

    #[test]
    fn files_count_once_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("large"), vec![1; 9 << 20]).unwrap();
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), vec![1; 1 << 20]).unwrap();
        std::fs::hard_link(at("a/b/file"), at("again")).unwrap();
        std::os::unix::fs::symlink(outside.path(), at("link")).unwrap();
        std::os::unix::fs::symlink("a/b/file", at("a/link")).unwrap();
        std::fs::File::create(at("holes")).unwrap().set_len(1 << 40).unwrap();
        let bytes = counted(folder.path(), 7).unwrap();
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
        assert!(matches!(counted(folder.path(), 6), Err(Uncounted::Files)));
        assert!(count(folder.path(), 7, Instant::now()).is_ok(), "few entries need no clock");
        assert!(matches!(counted(&at("absent"), 7), Err(Uncounted::Io(_))));
    }

    #[test]
    fn paths_may_be_longer_than_the_system_allows() {
        let folder = tempfile::tempdir().unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut at = openat(rustix::fs::CWD, folder.path(), flags, Mode::empty()).unwrap();
        let name = "x".repeat(200);
        // More than 4,096 bytes, then more than is counted.
        for (levels, is_counted) in [(30, true), (PARTS_MAX * 11, false)] {
            for _ in 0..levels {
                rustix::fs::mkdirat(&at, name.as_str(), Mode::RWXU).unwrap();
                at = openat(&at, name.as_str(), flags, Mode::empty()).unwrap();
            }
            let file = openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
            rustix::io::write(&file, &vec![1; 1 << 20]).unwrap();
            match counted(folder.path(), 1_000) {
                Ok(bytes) => assert!(is_counted && bytes >= 1 << 20, "{levels}: {bytes}"),
                Err(error) => assert!(!is_counted && matches!(error, Uncounted::Depth(_)), "{error:?}"),
            }
        }
        // Programs that use paths can't remove it.
        let removed = std::process::Command::new("rm").arg("-rf").arg(folder.path()).status();
        assert!(removed.unwrap().success());
    }
}
