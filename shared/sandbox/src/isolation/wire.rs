//! Messages between the host and the stages of a sandbox.
//!
//! They use a socket that preserves message boundaries (`SOCK_SEQPACKET`). A message is a short JSON text; contents
//! that may be long (a command, a file's content) are in an anonymous file that is sent with it.

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

/// Maximum length of a message, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Maximum length of a reason that a stage reports, in bytes.
pub(crate) const REASON_BYTES_MAX: usize = 2 << 10;
/// Maximum number of file descriptors in a message.
const FILES_MAX: usize = 4;

/// Kind of isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FormKind {
    Namespaces,
    Confined,
}

impl FormKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Confined => "confined",
        }
    }
}

/// Instructions for the first stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) kind: FormKind,
    /// Unprivileged uid of the sandbox, if the host can choose one.
    pub(crate) uid: Option<u32>,
    /// Files to which the first stage writes its process id to join the cgroups.
    pub(crate) cgroup_procs: Vec<PathBuf>,
    /// Empty folder on which to mount the files that the sandbox is built from; used in a mount namespace only.
    pub(crate) staging: PathBuf,
    /// Folder of the sandbox's files, if it has no file system of its own.
    pub(crate) folder: Option<PathBuf>,
    /// Folder of the machine that becomes the working folder, instead of a file system of the sandbox's own.
    pub(crate) workspace: Option<PathBuf>,
    /// Folder of the machine with the socket of the sandbox's container engine.
    pub(crate) sockets: Option<PathBuf>,
    pub(crate) shared: Vec<SharedFolder>,
    pub(crate) allow_network: bool,
    pub(crate) limits: LimitsPlan,
    pub(crate) agent: AgentPlan,
}

/// [`Limits`](super::Limits) in messages.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LimitsPlan {
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) open_files: u64,
    /// True if a cgroup limits the memory of all processes together.
    pub(crate) memory_is_bounded: bool,
    /// True if the kernel limits the number of processes.
    pub(crate) processes_are_bounded: bool,
}

/// Instructions for the second stage, which lives in the sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AgentPlan {
    pub(crate) kind: FormKind,
    /// Uid that the second stage takes on itself, if the first stage keeps its privileges to clean up.
    pub(crate) uid: Option<u32>,
    pub(crate) limits: LimitsPlan,
    /// `RLIMIT_NPROC`.
    pub(crate) processes_max: u64,
    /// Priority of programs (a nice value), if no cgroup limits memory.
    pub(crate) priority: i32,
    pub(crate) home: PathBuf,
    /// Environment variables of every command.
    pub(crate) env: BTreeMap<String, String>,
    /// Readable and executable files and folders.
    pub(crate) read: Vec<PathBuf>,
    /// Writable folders.
    pub(crate) write: Vec<PathBuf>,
    /// Readable and writable device files.
    pub(crate) devices: Vec<PathBuf>,
    /// Folders with sockets to which programs may connect.
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) allow_network: bool,
}

/// A request from the host to the second stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum StageRequest {
    /// Runs a command. Attached files: its [`ExecBody`], standard output, standard error.
    Exec { id: u64 },
    /// Kills a command's process group.
    Kill { id: u64 },
    /// Writes a file. Attached files: the [`WriteBody`] and the content.
    Write { id: u64 },
    /// Measures the size of the files in the working folder.
    Disk { id: u64 },
}

/// The long part of [`StageRequest::Exec`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExecBody {
    pub(crate) command: String,
    pub(crate) cwd: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
}

/// The long part of [`StageRequest::Write`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WriteBody {
    pub(crate) path: String,
}

/// A message from the second stage to the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum StageMessage {
    /// The sandbox is ready.
    Ready(Ready),
    /// A command has exited.
    Exit { id: u64, code: i32 },
    /// A command was not started.
    Refused { id: u64, reason: Refusal },
    /// A file was written.
    Written { id: u64 },
    /// A file was not written.
    NotWritten { id: u64, reason: WriteRefusal },
    /// Size of the files in the working folder, in bytes; `None` if it isn't a separate file system.
    Disk { id: u64, bytes: Option<u64> },
}

/// Protections that the second stage could establish.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Version of the Landlock interface; 0 if the kernel has none.
    pub(crate) landlock: u32,
    /// True if programs may create local sockets (`AF_UNIX`).
    pub(crate) unix_sockets: bool,
}

/// Reason for which a command was not started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// An error for which a shell would print this text and exit with this code.
    Shell { code: i32, text: String },
    /// An error of the sandbox itself.
    Sandbox(String),
}

/// Reason for which a file was not written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum WriteRefusal {
    Path,
    Failed(String),
}

/// A message with its attached files.
pub(crate) struct ReceivedMessage<T> {
    pub(crate) message: T,
    pub(crate) files: Vec<OwnedFd>,
}

/// Sends one message. Fails with `WouldBlock` if the socket is non-blocking and full.
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

/// Receives one message; `None` if the other side is gone. Fails with `BADMSG` if the message can't be parsed.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> Result<Option<ReceivedMessage<T>>, Errno> {
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
    Ok(Some(ReceivedMessage { message, files }))
}

/// Creates an anonymous file with this content.
pub(crate) fn anonymous_file(content: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("bench-sandbox", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Creates an anonymous file with this value as JSON.
pub(crate) fn anonymous_json_file<T: Serialize>(value: &T) -> std::io::Result<OwnedFd> {
    anonymous_file(&serde_json::to_vec(value)?)
}

/// Reads the value from a file that [`anonymous_json_file`] created.
pub(crate) fn read_json<T: DeserializeOwned>(file: OwnedFd) -> std::io::Result<T> {
    let mut text = Vec::new();
    File::from(file).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Creates a pair of connected sockets that preserve message boundaries.
pub(crate) fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
}

/// Waits until the socket can be read or its other side is gone; false if the time is up first.
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

/// Shortens a text to the length of a reason, on one line.
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
    fn messages_keep_their_boundaries_and_carry_files() {
        let (here, there) = socket_pair().unwrap();
        let body = anonymous_file(b"content").unwrap();
        send(here.as_fd(), &StageRequest::Kill { id: 1 }, &[]).unwrap();
        send(here.as_fd(), &StageRequest::Exec { id: 2 }, &[body.as_fd(), body.as_fd(), body.as_fd()])
            .unwrap();
        drop(here);
        let first = receive::<StageRequest>(there.as_fd()).unwrap().unwrap();
        assert!(matches!(first.message, StageRequest::Kill { id: 1 }) && first.files.is_empty());
        let second = receive::<StageRequest>(there.as_fd()).unwrap().unwrap();
        assert!(matches!(second.message, StageRequest::Exec { id: 2 }));
        assert_eq!(second.files.len(), 3);
        assert!(receive::<StageRequest>(there.as_fd()).unwrap().is_none());
    }

    #[test]
    fn invalid_messages_are_errors_and_long_messages_are_not_sent() {
        let (here, there) = socket_pair().unwrap();
        rustix::net::send(&here, b"{\"Kill\":", SendFlags::empty()).unwrap();
        assert_eq!(receive::<StageRequest>(there.as_fd()).err(), Some(Errno::BADMSG));
        let long = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(send(here.as_fd(), &long, &[]).err(), Some(Errno::MSGSIZE));
    }

    #[test]
    fn reasons_are_one_short_line() {
        assert_eq!(reason(" a\nb  c\n"), "a b c");
        assert!(reason(&"ä".repeat(REASON_BYTES_MAX)).len() <= REASON_BYTES_MAX);
    }
}
