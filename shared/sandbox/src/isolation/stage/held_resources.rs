//! Resources that the processes of a sandbox hold besides their own memory: open files, sockets and pipes, deleted
//! files in use, and mappings. Read from `/proc`, since no cgroup counts them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::stat::{FileStat, SFlag, stat};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

/// Capacity of a pipe, in bytes. The filter refuses to enlarge pipes.
const PIPE_BYTES: u64 = 64 << 10;
/// Default size of a socket's send buffer, in bytes.
const SEND_BYTES: u64 = 212_992;
/// Kernel memory of an open file, an upper estimate in bytes.
const OPEN_FILE_BYTES: u64 = 1 << 10;
/// Kernel memory of a file in an `epoll` set, in bytes.
const WATCH_BYTES: u64 = 256;
/// Memory of a Landlock ruleset, in bytes. The kernel doesn't report it; this allows a rule for every file that
/// programs may read.
const RULESET_BYTES: u64 = 8 << 20;
/// Kernel memory of a mapping, in bytes.
const MAPPING_BYTES: u64 = 256;
/// Maximum length of a process's list of mappings, in bytes. A process with a longer list counts as one with
/// [`MAPPINGS_MAX`], the kernel's limit.
const MAPPINGS_TEXT_MAX: u64 = 4 << 20;
const MAPPINGS_MAX: u64 = 65_536;
/// Minimum size counted for a file, in bytes, as for the folder.
const FILE_BYTES_MIN: u64 = 4 << 10;
/// A deleted file that is only mapped doesn't show its length beyond the mapping: it counts at least as this fraction
/// of the folder's limit.
const MAPPED_SHARE: u64 = 8;

/// Selects the resources to count.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountOptions<'a> {
    /// Folder of the sandbox's files, if deleted files count.
    pub(super) folder: Option<&'a Path>,
    /// Limit of the folder, in bytes.
    pub(super) disk_bytes: u64,
    /// Amount of memory after which counting stops, in bytes.
    pub(super) memory_bytes_max: u64,
    /// Sizes of socket buffers.
    pub(super) sockets: SocketBuffers,
}

/// Maximum memory in the buffers of one socket, in bytes, both directions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketBuffers {
    /// Sockets between programs on this machine (`AF_UNIX`).
    unix_bytes: u64,
    /// All other sockets.
    internet_bytes: u64,
}

impl SocketBuffers {
    /// Reads the sizes from the settings of this process's network namespace.
    pub(super) fn from_network_settings() -> Self {
        let largest = |name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(Path::new("/proc/sys/net").join(name)).ok()?;
            text.split_whitespace().last()?.parse().ok()
        };
        // The filter refuses larger buffers. The last message may exceed the limit.
        let unix_bytes = largest("core/wmem_default").unwrap_or(SEND_BYTES).saturating_mul(2);
        let tuned = largest("ipv4/tcp_rmem").zip(largest("ipv4/tcp_wmem"));
        let tuned = tuned.map_or(0, |(read, write)| read.saturating_add(write));
        Self { unix_bytes, internet_bytes: tuned.max(unix_bytes.saturating_mul(2)) }
    }

    /// Returns the maximum of all kinds of sockets.
    pub(super) fn largest_bytes(self) -> u64 {
        self.unix_bytes.max(self.internet_bytes)
    }
}

/// Resources that a set of processes holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HeldResources {
    /// Memory by process, in bytes. A shared object counts for the first process that was seen to hold it.
    pub(super) memory: BTreeMap<u32, u64>,
    /// Size of deleted files that are still open or mapped, in bytes.
    pub(super) deleted_bytes: u64,
    /// Number of open files in transit through sockets, which belong to no process meanwhile.
    pub(super) in_flight: u64,
    /// Processes whose files can't be inspected.
    pub(super) hidden: BTreeSet<u32>,
}

impl HeldResources {
    /// Inspects these processes. If `user` is set, inspects them as that user, since root without its capabilities
    /// can't inspect processes of others.
    pub(super) fn measure(processes: &BTreeSet<u32>, count: CountOptions<'_>, user: Option<u32>) -> Self {
        let _as_user = user.map(AsUser::new);
        let mut held_resources = Self::default();
        let mut seen = CountedFiles::default();
        let mut left = count.memory_bytes_max;
        for pid in processes {
            held_resources.add_process(*pid, CountOptions { memory_bytes_max: left, ..count }, &mut seen);
            left = left.saturating_sub(held_resources.memory.get(pid).copied().unwrap_or_default());
            if left == 0 {
                break;
            }
        }
        for (inode, extent) in &seen.mapped {
            if !seen.deleted.contains(inode) {
                held_resources.deleted_bytes = held_resources
                    .deleted_bytes
                    .saturating_add((*extent).max(count.disk_bytes / MAPPED_SHARE));
            }
        }
        held_resources
    }

    fn add_process(&mut self, pid: u32, count: CountOptions<'_>, seen: &mut CountedFiles) {
        let mut bytes = 0;
        // Threads share their open files, since the filter refuses others. The first thread may have ended while others
        // continue.
        let mut is_hidden = false;
        for thread in threads(pid) {
            let folder = format!("/proc/{pid}/task/{thread}/fd");
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    is_hidden |= error.kind() == std::io::ErrorKind::PermissionDenied;
                    continue;
                }
            };
            let before = bytes;
            for entry in entries.flatten() {
                if bytes > count.memory_bytes_max {
                    break;
                }
                bytes += OPEN_FILE_BYTES;
                let Ok(metadata) = stat(&entry.path()) else { continue };
                let number = entry.file_name();
                let info = format!("/proc/{pid}/task/{thread}/fdinfo/{}", number.to_string_lossy());
                bytes += if metadata.st_mode & SFlag::S_IFMT.bits() == 0 {
                    std::fs::read_link(entry.path()).map_or(0, |kind| object_bytes(&kind, &info))
                } else {
                    self.file(&metadata, count, seen, || std::fs::read_to_string(info).unwrap_or_default())
                };
            }
            if bytes > before {
                break;
            }
        }
        if is_hidden && bytes == 0 && !is_ending(pid) {
            self.hidden.insert(pid);
        }
        if let Ok(program) = stat(format!("/proc/{pid}/exe").as_str()) {
            self.file(&program, count, seen, String::new);
        }
        bytes += mappings(pid, count.folder, &mut seen.mapped) * MAPPING_BYTES;
        self.memory.insert(pid, bytes);
    }

    /// Counts a file once, and returns the memory that it takes.
    fn file(
        &mut self,
        metadata: &FileStat,
        count: CountOptions<'_>,
        seen: &mut CountedFiles,
        info: impl FnOnce() -> String,
    ) -> u64 {
        let kind = SFlag::from_bits_truncate(metadata.st_mode) & SFlag::S_IFMT;
        let is_deleted = kind == SFlag::S_IFREG && metadata.st_nlink == 0;
        if !(is_deleted || kind == SFlag::S_IFSOCK || kind == SFlag::S_IFIFO)
            || !seen.files.insert((metadata.st_dev, metadata.st_ino))
        {
            return 0;
        }
        if is_deleted {
            seen.deleted.insert(metadata.st_ino);
            if count.folder.is_some() {
                let bytes = u64::try_from(metadata.st_blocks).unwrap_or(u64::MAX).saturating_mul(512);
                self.deleted_bytes = self.deleted_bytes.saturating_add(bytes.max(FILE_BYTES_MIN));
            }
            return 0;
        }
        if kind == SFlag::S_IFIFO {
            return PIPE_BYTES;
        }
        let Some(in_flight) = in_flight(&info()) else { return count.sockets.internet_bytes };
        self.in_flight = self.in_flight.saturating_add(in_flight);
        // Files in transit may be sockets.
        count.sockets.unix_bytes.saturating_mul(in_flight.saturating_add(1))
    }
}

/// Files that were already counted.
#[derive(Debug, Default)]
struct CountedFiles {
    files: BTreeSet<(u64, u64)>,
    /// Inodes of deleted files that are open.
    deleted: BTreeSet<u64>,
    /// Inodes of deleted files that are mapped, with the end of the last mapping.
    mapped: BTreeMap<u64, u64>,
}

/// Returns the threads of a process, the first one first.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut threads: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    threads
}

/// Returns true if a process has released its memory, and therefore hides nothing.
pub(super) fn is_ending(pid: u32) -> bool {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    statm.split_whitespace().next().is_none_or(|pages| pages == "0")
}

/// Returns the memory of an open file that is on no file system, in bytes, from the kernel's name for its kind and the
/// path of its `fdinfo`.
fn object_bytes(kind: &Path, info: &str) -> u64 {
    match kind.as_os_str().as_bytes() {
        b"anon_inode:[eventpoll]" => {
            let Ok(file) = std::fs::File::open(info) else { return 0 };
            // Read line by line, since there may be millions.
            let lines = std::io::BufReader::new(file).split(b'\n').map_while(Result::ok);
            let watches = lines.filter(|line| line.starts_with(b"tfd:")).count() as u64;
            watches.saturating_mul(WATCH_BYTES)
        }
        b"anon_inode:[landlock-ruleset]" => RULESET_BYTES,
        _ => 0,
    }
}

/// Returns the number of open files that wait in a socket to be received; `None` for sockets that can't carry files.
fn in_flight(info: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix("scm_fds:")?.trim().parse().ok())
}

/// Returns the number of mappings of a process, and adds the folder's deleted files among them to `deleted`.
fn mappings(pid: u32, folder: Option<&Path>, deleted: &mut BTreeMap<u64, u64>) -> u64 {
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/maps")) else { return 0 };
    let mut text = Vec::new();
    if file.take(MAPPINGS_TEXT_MAX).read_to_end(&mut text).is_err() {
        return 0;
    }
    let mut count = 0;
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        count += 1;
        if let Some((inode, extent)) = folder.and_then(|folder| deleted_mapping(line, folder)) {
            let known = deleted.entry(inode).or_default();
            *known = extent.max(*known);
        }
    }
    if text.len() as u64 >= MAPPINGS_TEXT_MAX { MAPPINGS_MAX } else { count }
}

/// Parses a line of `/proc/PID/maps`. If it maps a deleted file of the folder, returns the inode and the end of the
/// mapping in the file.
fn deleted_mapping(line: &[u8], folder: &Path) -> Option<(u64, u64)> {
    let line = line.strip_suffix(b" (deleted)")?;
    let mut parts = line.splitn(6, |byte| *byte == b' ');
    let mut part = || std::str::from_utf8(parts.next()?).ok();
    let (range, _, offset, _, inode) = (part()?, part()?, part()?, part()?, part()?);
    let path = parts.next()?.trim_ascii_start();
    if !path.strip_prefix(folder.as_os_str().as_bytes())?.starts_with(b"/") {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let length = hex(end)?.checked_sub(hex(start)?)?;
    Some((inode.parse().ok()?, hex(offset)?.checked_add(length)?))
}

/// While this value lives, this thread accesses files as another user. Only root can do this; for others nothing
/// changes.
pub(super) struct AsUser;

impl AsUser {
    pub(super) fn new(uid: u32) -> Self {
        setfsgid(Gid::from_raw(uid));
        setfsuid(Uid::from_raw(uid));
        Self
    }
}

impl Drop for AsUser {
    fn drop(&mut self) {
        setfsuid(Uid::effective());
        setfsgid(Gid::effective());
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn count(folder: Option<&Path>) -> CountOptions<'_> {
        CountOptions {
            folder,
            disk_bytes: 1 << 30,
            memory_bytes_max: u64::MAX,
            sockets: SocketBuffers { unix_bytes: 1 << 20, internet_bytes: 1 << 30 },
        }
    }

    #[test]
    fn lines_of_mappings_are_parsed() {
        let folder = Path::new("/var/x/job");
        let line = "7f01000-7f03000 rw-s 00004000 fd:01 77   /var/x/job/a b (deleted)";
        assert_eq!(deleted_mapping(line.as_bytes(), folder), Some((77, 0x6000)));
        for line in [
            "7f01000-7f03000 rw-s 00004000 fd:01 77   /var/x/job/a b",
            "7f01000-7f03000 rw-s 00004000 fd:01 77   /var/x/jobs/a (deleted)",
            "7f01000-7f03000 rw-s 00000000 00:01 1024 /dev/zero (deleted)",
            "7f01000-7f03000 rw-s (deleted)",
            " (deleted)",
            "",
        ] {
            assert_eq!(deleted_mapping(line.as_bytes(), folder), None, "{line}");
        }
        assert_eq!((in_flight("pos:\t0\nscm_fds: 12\n"), in_flight("pos:\t0\n")), (Some(12), None));
    }

    /// Measures a child process, since other tests of this process open files as well.
    #[test]
    fn deleted_files_sockets_and_pipes_of_a_process_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let kept = std::fs::File::create(path.join("kept")).unwrap();
        let deleted = std::fs::File::create(path.join("deleted")).unwrap();
        std::io::Write::write_all(&mut &deleted, &vec![1; 1 << 20]).unwrap();
        deleted.sync_all().unwrap();
        std::fs::remove_file(path.join("deleted")).unwrap();
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .stdin(deleted.try_clone().unwrap())
            .stdout(kept.try_clone().unwrap())
            .stderr(std::os::fd::OwnedFd::from(socket.try_clone().unwrap()))
            .spawn()
            .unwrap();
        let held_resources = HeldResources::measure(&[child.id()].into(), count(Some(&path)), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            (1 << 20..2 << 20).contains(&held_resources.deleted_bytes),
            "{held_resources:?} {}",
            deleted.as_raw_fd()
        );
        let memory: u64 = held_resources.memory.values().sum();
        assert!((1 << 20..2 << 20).contains(&memory), "{held_resources:?}");
        assert!(held_resources.hidden.is_empty() && held_resources.in_flight == 0, "{held_resources:?}");
    }

    #[test]
    fn files_in_epoll_sets_are_counted() {
        let poll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::empty()).unwrap();
        let pipes: Vec<_> = (0..3).map(|_| rustix::pipe::pipe().unwrap()).collect();
        for (end, _) in &pipes {
            let data = rustix::event::epoll::EventData::new_u64(0);
            rustix::event::epoll::add(&poll, end, data, rustix::event::epoll::EventFlags::IN).unwrap();
        }
        let number = poll.as_raw_fd();
        let kind = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        let info = format!("/proc/self/fdinfo/{number}");
        assert_eq!(object_bytes(&kind, &info), 3 * WATCH_BYTES);
        assert_eq!(object_bytes(Path::new("anon_inode:[landlock-ruleset]"), &info), RULESET_BYTES);
        assert_eq!(object_bytes(Path::new("anon_inode:[eventfd]"), &info), 0);
    }

    #[test]
    fn files_in_transit_are_counted() {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = rustix::net::SendAncillaryBuffer::new(&mut space);
        let files = [std::os::fd::AsFd::as_fd(&file)];
        assert!(ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(&files)));
        let text = [std::io::IoSlice::new(b"x")];
        rustix::net::sendmsg(&one, &text, &mut ancillary, rustix::net::SendFlags::empty()).unwrap();
        let info = format!("/proc/self/fdinfo/{}", other.as_raw_fd());
        assert_eq!(in_flight(&std::fs::read_to_string(info).unwrap()), Some(1));
    }
}
