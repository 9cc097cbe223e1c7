//! What the host and the stages of a sandbox tell each other.
//!
//! They talk over a socket that keeps messages apart (`SOCK_SEQPACKET`). A message is a short JSON text; what may be
//! long (a command, a file's content) is in an anonymous file that travels with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::options::SharedFolder;

/// The longest message, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// The longest sentence that a stage gives as a reason, in bytes.
pub(crate) const REASON_BYTES_MAX: usize = 2 << 10;
/// File descriptors that travel with a message, at most.
const FILES_MAX: usize = 4;

/// How a sandbox is kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Namespaces,
    Confined,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Confined => "confined",
        }
    }
}

/// For the first stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// The unprivileged user that the sandbox is, where the host may choose one.
    pub(crate) uid: Option<u32>,
    /// Files to write this process' id to: it joins those cgroups.
    pub(crate) joins: Vec<PathBuf>,
    /// An empty folder to mount what the sandbox is built of on; used in a mount namespace only.
    pub(crate) staging: PathBuf,
    /// The sandbox's files, where it has no file system of its own.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) shared: Vec<SharedFolder>,
    pub(crate) allow_network: bool,
    pub(crate) limits: LimitsPlan,
    pub(crate) agent: AgentPlan,
}

/// [`Limits`](super::Limits) on the wire.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LimitsPlan {
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) open_files: u64,
    /// Whether a cgroup bounds the memory of all processes together.
    pub(crate) memory_is_bounded: bool,
    /// Whether the kernel bounds how many processes it has.
    pub(crate) processes_are_bounded: bool,
}

/// For the second stage, the one that lives in the sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AgentPlan {
    pub(crate) kind: Kind,
    /// Taken on by the second stage itself where the first keeps its privileges to clean up.
    pub(crate) uid: Option<u32>,
    pub(crate) limits: LimitsPlan,
    /// `RLIMIT_NPROC`.
    pub(crate) processes_max: u64,
    /// Priority of programs (a nice value), where no cgroup bounds memory.
    pub(crate) priority: i32,
    pub(crate) home: PathBuf,
    /// Variables of every command.
    pub(crate) env: BTreeMap<String, String>,
    /// Readable and executable.
    pub(crate) read: Vec<PathBuf>,
    /// Writable folders.
    pub(crate) write: Vec<PathBuf>,
    /// Device files that may be read and written.
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) allow_network: bool,
}

/// From the host to the second stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Run a command. With it: its [`ExecBody`], where its output and its errors go.
    Exec { id: u64 },
    /// Kill a command's process group.
    Kill { id: u64 },
    /// Write a file. With it: the [`WriteBody`] and the content.
    Write { id: u64 },
    /// How much the working folder holds.
    Disk { id: u64 },
}

/// The long part of [`Ask::Exec`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExecBody {
    pub(crate) command: String,
    pub(crate) cwd: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
}

/// The long part of [`Ask::Write`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WriteBody {
    pub(crate) path: String,
}

/// From the second stage to the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Tell {
    /// The sandbox is made; what holds in it.
    Ready(Ready),
    /// A command is over.
    Exit { id: u64, code: i32 },
    /// A command was not started.
    Refused { id: u64, reason: Refusal },
    /// A file is written.
    Written { id: u64 },
    /// A file is not written.
    NotWritten { id: u64, reason: WriteRefusal },
    /// Bytes in the working folder; `None` where it has no file system of its own.
    Disk { id: u64, bytes: Option<u64> },
}

/// What the second stage found to hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Version of landlock's interface; 0 when there is none.
    pub(crate) landlock: u32,
    /// Whether programs may make sockets of the machine's own (`AF_UNIX`).
    pub(crate) unix_sockets: bool,
}

/// Why a command was not started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// As a shell would say it, with its exit code.
    Shell { code: i32, text: String },
    /// The sandbox cannot.
    Sandbox(String),
}

/// Why a file was not written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum WriteRefusal {
    Path,
    Failed(String),
}

/// A message with the files that came with it.
pub(crate) struct Parcel<T> {
    pub(crate) message: T,
    pub(crate) files: Vec<OwnedFd>,
}

/// Sends one message. `WouldBlock` where the socket does not block and is full.
pub(crate) fn send<T: Serialize>(
    socket: BorrowedFd<'_>,
    message: &T,
    files: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let text = serde_json::to_vec(message).map_err(|_| Errno::INVAL)?;
    if text.len() > MESSAGE_BYTES_MAX || files.len() > FILES_MAX {
        return Err(Errno::MSGSIZE);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::MSGSIZE);
    }
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
    }
}

/// Receives one message; `None` when the other side is gone. What is no message of ours is an error (`BADMSG`).
pub(crate) fn receive<T: DeserializeOwned>(socket: BorrowedFd<'_>) -> Result<Option<Parcel<T>>, Errno> {
    let mut text = [0_u8; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match rustix::net::recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut text)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error),
            Ok(received) => break received,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut files = Vec::new();
    for item in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = item {
            files.extend(fds);
        }
    }
    let message =
        serde_json::from_slice(&text[..received.bytes.min(text.len())]).map_err(|_| Errno::BADMSG)?;
    Ok(Some(Parcel { message, files }))
}

/// An anonymous file with this content.
pub(crate) fn anonymous(content: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("bench-sandbox", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// An anonymous file with this value as JSON.
pub(crate) fn anonymous_json<T: Serialize>(value: &T) -> std::io::Result<OwnedFd> {
    anonymous(&serde_json::to_vec(value)?)
}

/// What [`anonymous_json`] put there.
pub(crate) fn read_json<T: DeserializeOwned>(file: OwnedFd) -> std::io::Result<T> {
    let mut text = Vec::new();
    File::from(file).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// A pair of connected sockets that keep messages apart.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
}

/// Waits until the socket can be read or its other side is gone; `false` when the time is up.
pub(crate) fn wait_readable(socket: impl AsFd, wait: std::time::Duration) -> Result<bool, Errno> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = std::time::Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(count) => return Ok(count > 0),
        }
    }
}

/// A text cut to what a reason may be, on one line.
pub(crate) fn reason(text: &str) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut end = REASON_BYTES_MAX.min(line.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_apart_and_carry_files() {
        let (here, there) = pair().unwrap();
        let body = anonymous(b"content").unwrap();
        send(here.as_fd(), &Ask::Kill { id: 1 }, &[]).unwrap();
        send(here.as_fd(), &Ask::Exec { id: 2 }, &[body.as_fd(), body.as_fd(), body.as_fd()]).unwrap();
        drop(here);
        let first = receive::<Ask>(there.as_fd()).unwrap().unwrap();
        assert!(matches!(first.message, Ask::Kill { id: 1 }) && first.files.is_empty());
        let second = receive::<Ask>(there.as_fd()).unwrap().unwrap();
        assert!(matches!(second.message, Ask::Exec { id: 2 }));
        assert_eq!(second.files.len(), 3);
        assert!(receive::<Ask>(there.as_fd()).unwrap().is_none());
    }

    #[test]
    fn garbage_is_an_error_and_long_messages_are_not_sent() {
        let (here, there) = pair().unwrap();
        rustix::net::send(&here, b"{\"Kill\":", SendFlags::empty()).unwrap();
        assert_eq!(receive::<Ask>(there.as_fd()).err(), Some(Errno::BADMSG));
        let long = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(send(here.as_fd(), &long, &[]).err(), Some(Errno::MSGSIZE));
    }

    #[test]
    fn reasons_are_one_short_line() {
        assert_eq!(reason(" a\nb  c\n"), "a b c");
        assert!(reason(&"ä".repeat(REASON_BYTES_MAX)).len() <= REASON_BYTES_MAX);
    }
}
