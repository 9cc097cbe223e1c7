//! Counts the locks on parts of files (`fcntl`, `F_SETLK`) that processes hold. The kernel keeps a record of each,
//! which no limit counts, not even a memory cgroup.
//!
//! A lock belongs to the open files of its process and disappears when the process closes the file, so the file's
//! `fdinfo` lists all locks. Locks that belong to the open file itself (`F_OFD_SETLK`) aren't counted here: they
//! persist while the file is mapped or in transit through a socket, where `/proc` doesn't show them, so the filter
//! refuses them. `flock` locks a whole file and takes one lock per open file, which is counted.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::held_resources::{AsUser, is_ending, threads};

/// Maximum number of locks. Real programs need fewer: databases hold a few per connection.
pub(super) const LOCKS_MAX: u64 = 16_384;
/// Maximum CPU time for counting. The kernel goes through all locks of a file once per open file, so programs can make
/// counting slow. For comparison, 60,000 open files without locks take half a second.
const COUNTING_MAX: Duration = Duration::from_secs(4);
/// Size of one read of `fdinfo`, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Prefix of a lock's line.
const LOCK: &[u8] = b"lock:";

/// Locks of a set of processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Locks {
    /// True if there are more than [`LOCKS_MAX`], or if counting them takes too long.
    pub(super) are_too_many: bool,
    /// Processes whose files can't be inspected.
    pub(super) hidden: BTreeSet<u32>,
}

impl Locks {
    /// Counts the locks of these processes, up to the limit. If `user` is set, inspects them as that user, since root
    /// without its capabilities can't inspect processes of others.
    pub(super) fn count(processes: &BTreeSet<u32>, user: Option<u32>) -> Self {
        let _as_user = user.map(AsUser::new);
        let until = cpu_time() + COUNTING_MAX;
        let mut found = Self::default();
        let mut left = LOCKS_MAX;
        let mut chunk = vec![0; CHUNK_BYTES];
        for pid in processes {
            let mut is_hidden = false;
            let mut files = files(&format!("/proc/{pid}/fdinfo"), &mut is_hidden);
            if files.is_empty() {
                // The first thread may have ended while others, which share its files, continue.
                let others =
                    threads(*pid).into_iter().map(|thread| format!("/proc/{pid}/task/{thread}/fdinfo"));
                files = others
                    .map(|folder| self::files(&folder, &mut is_hidden))
                    .find(|files| !files.is_empty())
                    .unwrap_or_default();
            }
            if is_hidden && files.is_empty() && !is_ending(*pid) {
                found.hidden.insert(*pid);
            }
            for file in files {
                let Some(rest) = left.checked_sub(locks(&file, left, &mut chunk)) else {
                    found.are_too_many = true;
                    return found;
                };
                left = rest;
            }
            if cpu_time() > until {
                found.are_too_many = true;
                return found;
            }
        }
        found
    }
}

/// Returns the paths of the `fdinfo` of all open files.
fn files(folder: &str, is_hidden: &mut bool) -> Vec<std::path::PathBuf> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) => {
            *is_hidden |= error.kind() == std::io::ErrorKind::PermissionDenied;
            Vec::new()
        }
    }
}

/// Returns the number of locks of an open file; at most `most + 1`.
fn locks(path: &std::path::Path, most: u64, chunk: &mut [u8]) -> u64 {
    let Ok(mut file) = std::fs::File::open(path) else { return 0 };
    let mut count = 0;
    // Number of matched bytes of [`LOCK`] in the current line; `None` if the line begins differently.
    let mut matched = Some(0);
    while let Ok(length @ 1..) = file.read(chunk) {
        for byte in &chunk[..length] {
            matched = match matched {
                _ if *byte == b'\n' => Some(0),
                Some(at) if *byte == LOCK[at] && at + 1 == LOCK.len() => {
                    count += 1;
                    if count > most {
                        return count;
                    }
                    None
                }
                Some(at) if *byte == LOCK[at] => Some(at + 1),
                _ => None,
            };
        }
    }
    count
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    let elapsed = usage.user_time() + usage.system_time();
    Duration::from_micros(elapsed.num_microseconds().try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a process that holds this number of locks.
    fn holder(locks: u64) -> Child {
        let program = format!(
            "import fcntl, sys, tempfile\nfile = tempfile.TemporaryFile()\n\
             for at in range({locks}, 0, -1): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * at)\n\
             print('held', flush=True)\nsys.stdin.read()"
        );
        let mut python = Command::new("python3");
        let python = python.args(["-c", &program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = python.spawn().unwrap();
        let mut line = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"held\n");
        child
    }

    #[test]
    fn locks_of_processes_are_counted_together() {
        let mut children = [holder(LOCKS_MAX - 10), holder(20)];
        let pids = [children[0].id(), children[1].id()];
        for pid in pids {
            assert_eq!(Locks::count(&[pid].into(), None), Locks::default());
        }
        assert!(Locks::count(&pids.into(), None).are_too_many);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(Locks::count(&pids.into(), None), Locks::default());
    }

    #[test]
    fn lines_of_locks_are_found_wherever_reads_are_split() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"pos:\t0\nlock:\t1: POSIX\nlo\nlock\n:\nblock:\nlock:\tlock: 2\n\nlock:").unwrap();
        for bytes in 1..50 {
            assert_eq!(locks(file.path(), 10, &mut vec![0; bytes]), 3, "{bytes}");
        }
        assert_eq!(locks(file.path(), 1, &mut [0; 64]), 2);
    }
}
