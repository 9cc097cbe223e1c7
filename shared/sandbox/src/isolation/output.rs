//! What a command writes, of which the beginning is kept.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Read at once, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// What background processes write after their command's end is dropped, at no more than a chunk in this time.
const DRAIN_EVERY: Duration = Duration::from_millis(20);

/// Reads one stream of a command.
pub(crate) struct Capture {
    pipe: Option<Receiver>,
    pub(crate) kept: Vec<u8>,
    pub(crate) dropped_bytes: u64,
    bytes_max: usize,
    chunk: Vec<u8>,
}

impl Capture {
    /// Reads from the pipe and keeps so many bytes.
    pub(crate) fn new(pipe: OwnedFd, bytes_max: usize) -> io::Result<Self> {
        Ok(Self {
            pipe: Some(Receiver::from_owned_fd(pipe)?),
            kept: Vec::new(),
            dropped_bytes: 0,
            bytes_max,
            chunk: vec![0; CHUNK_BYTES],
        })
    }

    /// Whether every writer is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.pipe.is_none()
    }

    /// Reads once. Waits for ever when all is read. Nothing is lost when the wait is given up.
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

    /// The pipe, when background processes still hold its other end.
    pub(crate) fn into_rest(self) -> (Vec<u8>, u64, Option<Receiver>) {
        (self.kept, self.dropped_bytes, self.pipe)
    }
}

/// Reads on for background processes, slowly, so that they are not killed for writing and do not keep us busy.
pub(crate) async fn drain(mut pipe: Receiver) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while matches!(pipe.read(&mut chunk).await, Ok(1..)) {
        tokio::time::sleep(DRAIN_EVERY).await;
    }
}
