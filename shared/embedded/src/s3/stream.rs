//! Streaming of content files to a reader.

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future as _;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::pin::Pin as StdPin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use s3s::StdError;
use s3s::stream::{ByteStream, RemainingLength};
use tokio::task::{JoinHandle, spawn_blocking};

use super::files::Pin;

/// Number of bytes that are read at a time.
const CHUNK_BYTES: u64 = 256 * 1024;

/// A file of a content.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) size_bytes: u64,
}

/// A stream of known length over a range of a content in files. It pins the files until it is
/// dropped.
pub(super) struct FileStream {
    state: State,
    remaining_bytes: u64,
}

enum State {
    Idle(Box<Reader>),
    Reading(JoinHandle<(Box<Reader>, io::Result<Bytes>)>),
    Done,
}

struct Reader {
    pieces: VecDeque<Piece>,
    current: Option<File>,
    /// Memory of the chunks, used in turn: a receiver drops a chunk after it has asked for the next one. Memory of a chunk that is
    /// still in use isn't written again.
    buffers: [BytesMut; 2],
    _pin: Pin,
}

/// The remaining range of a segment.
struct Piece {
    path: PathBuf,
    offset: u64,
    left: u64,
}

impl FileStream {
    /// Creates a stream of `range`, which must be within the total size of the segments.
    pub(super) fn new(segments: Vec<Segment>, range: Range<u64>, pin: Pin) -> Self {
        let mut pieces = VecDeque::new();
        let mut start = 0;
        for segment in segments {
            let end = start + segment.size_bytes;
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                pieces.push_back(Piece { path: segment.path, offset: from - start, left: to - from });
            }
            start = end;
        }
        let remaining_bytes = pieces.iter().map(|piece| piece.left).sum();
        let reader = Reader { pieces, current: None, buffers: Default::default(), _pin: pin };
        Self { state: State::Idle(Box::new(reader)), remaining_bytes }
    }
}

impl Reader {
    fn next(&mut self) -> io::Result<Bytes> {
        let Some(piece) = self.pieces.front_mut() else { return Ok(Bytes::new()) };
        let mut file = match self.current.take() {
            Some(file) => file,
            None => {
                let mut file = File::open(&piece.path)?;
                file.seek(SeekFrom::Start(piece.offset))?;
                file
            }
        };
        let want = piece.left.min(CHUNK_BYTES);
        self.buffers.swap(0, 1);
        let [buffer, _] = &mut self.buffers;
        buffer.resize(want as usize, 0);
        file.read_exact(buffer)?;
        piece.left -= want;
        if piece.left == 0 {
            self.pieces.pop_front();
        } else {
            self.current = Some(file);
        }
        Ok(buffer.split().freeze())
    }
}

impl Stream for FileStream {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: StdPin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Poll::Ready(None),
                State::Idle(_) if self.remaining_bytes == 0 => return Poll::Ready(None),
                State::Idle(mut reader) => {
                    self.state = State::Reading(spawn_blocking(move || {
                        let read = reader.next();
                        (reader, read)
                    }));
                }
                State::Reading(mut handle) => {
                    let polled = StdPin::new(&mut handle).poll(cx);
                    if polled.is_pending() {
                        self.state = State::Reading(handle);
                        return Poll::Pending;
                    }
                    let (reader, read) = match ready!(polled) {
                        Ok(finished) => finished,
                        Err(error) => return Poll::Ready(Some(Err(Box::new(error)))),
                    };
                    return Poll::Ready(Some(match read {
                        Ok(bytes) => {
                            self.remaining_bytes -= bytes.len() as u64;
                            self.state = State::Idle(reader);
                            Ok(bytes)
                        }
                        Err(error) => {
                            tracing::error!(error = %error, "A content file could not be read");
                            Err(Box::new(error))
                        }
                    }));
                }
            }
        }
    }
}

impl ByteStream for FileStream {
    fn remaining_length(&self) -> RemainingLength {
        usize::try_from(self.remaining_bytes)
            .map_or_else(|_| RemainingLength::unknown(), RemainingLength::new_exact)
    }
}
