//! Captures the beginning of a command's output.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Size of one read, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Interval between reads of output that background processes write after their command has ended. It is dropped, at
/// most one chunk per interval.
const DRAIN_EVERY: Duration = Duration::from_millis(20);

/// Reads one output stream of a command.
pub(crate) struct Capture {
    pipe: Option<Receiver>,
    pub(crate) kept: Vec<u8>,
    pub(crate) dropped_bytes: u64,
    bytes_max: usize,
    chunk: Vec<u8>,
}

impl Capture {
    /// Creates a capture that keeps at most `bytes_max` bytes.
    pub(crate) fn new(pipe: OwnedFd, bytes_max: usize) -> io::Result<Self> {
        Ok(Self {
            pipe: Some(Receiver::from_owned_fd(pipe)?),
            kept: Vec::new(),
            dropped_bytes: 0,
            bytes_max,
            chunk: vec![0; CHUNK_BYTES],
        })
    }

    /// Returns true if all writers have closed the stream.
    pub(crate) fn is_over(&self) -> bool {
        self.pipe.is_none()
    }

    /// Reads once. Waits forever when everything is read. Canceling the wait loses no data.
    pub(crate) async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        match pipe.read(&mut self.chunk).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(bytes) => {
                let room = self.bytes_max - self.kept.len();
                self.kept.extend_from_slice(&self.chunk[..bytes.min(room)]);
                self.dropped_bytes += bytes.saturating_sub(room) as u64;
            }
        }
    }

    /// Returns the kept output, the number of dropped bytes, and the pipe if background processes still hold its other
    /// end.
    pub(crate) fn into_rest(self) -> (Vec<u8>, u64, Option<Receiver>) {
        (self.kept, self.dropped_bytes, self.pipe)
    }
}

/// Keeps reading slowly for background processes, so that writing doesn't kill them and they don't keep the host busy.
pub(crate) async fn drain(mut pipe: Receiver) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while matches!(pipe.read(&mut chunk).await, Ok(1..)) {
        tokio::time::sleep(DRAIN_EVERY).await;
    }
}
