//! Receives a build's context into a temporary file, copies its entries into another one, and appends the checked Dockerfile.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use rustix::fs::{Mode, OFlags};
use tokio::io::AsyncWriteExt;

use super::archive;

/// Size of the buffer for reading, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Failure to receive or read a context.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextError {
    #[error("the build's context can't be read: {0}")]
    Archive(&'static str),
    #[error("`{0}` is a link in the build's context; allowed: a file")]
    Link(String),
    #[error(
        "`{0}` in the build's context leads out of it, or through a link; allowed: files, and links without `..` to them"
    )]
    LeadsOut(String),
    #[error("the build's context has no file `{0}`")]
    Missing(String),
    #[error("the build's context is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the build's context is compressed in another way than gzip")]
    Compression,
    #[error("the build's context was not received: {0}")]
    Io(#[from] io::Error),
    #[error("the build's context was not received: {0}")]
    Body(#[from] hyper::Error),
}

/// A context whose entries are in an archive of our own, in a temporary file.
pub(crate) struct Context {
    archive: tar::Builder<File>,
    /// Text of the Dockerfile.
    pub(crate) dockerfile: String,
}

/// Receives a context of at most `bytes_max` bytes into `folder`, and finds the file `dockerfile` in it.
pub(crate) async fn receive(
    body: &mut Incoming,
    folder: &Path,
    bytes_max: u64,
    dockerfile: &str,
) -> Result<Context, ContextError> {
    let mut spool = tokio::fs::File::from_std(unnamed_file(folder)?);
    let mut bytes = 0;
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else { break };
        let Ok(data) = frame?.into_data() else { continue };
        bytes += data.len() as u64;
        if bytes > bytes_max {
            return Err(ContextError::TooLarge(bytes_max));
        }
        spool.write_all(&data).await?;
    }
    spool.flush().await?;
    let spool = spool.into_std().await;
    let (folder, wanted) = (folder.to_owned(), dockerfile.to_owned());
    let opened = tokio::task::spawn_blocking(move || open(spool, &folder, bytes_max, &wanted));
    opened.await.map_err(io::Error::other)?
}

impl Context {
    /// Appends the checked Dockerfile as `name` and returns the archive from its start.
    pub(crate) fn finish(mut self, name: &str) -> io::Result<File> {
        archive::append(&mut self.archive, name, 0o644, self.dockerfile.as_bytes())?;
        let mut file = self.archive.into_inner()?;
        file.rewind()?;
        Ok(file)
    }
}

/// Decompresses a context and copies its entries.
fn open(mut spool: File, folder: &Path, bytes_max: u64, wanted: &str) -> Result<Context, ContextError> {
    let mut magic = [0; 6];
    spool.rewind()?;
    let mut read = 0;
    while read < magic.len() {
        match spool.read(&mut magic[read..])? {
            0 => break,
            bytes => read += bytes,
        }
    }
    spool.rewind()?;
    let spool = BufReader::with_capacity(BUFFER_BYTES, spool);
    let from: Box<dyn Read> = match magic {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(spool)),
        // bzip2, xz and zstd.
        [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', ..] | [0x28, 0xb5, 0x2f, ..] => {
            return Err(ContextError::Compression);
        }
        _ => Box::new(spool),
    };
    let mut archive = tar::Builder::new(unnamed_file(folder)?);
    let text = archive::copy(from, bytes_max, &mut archive, wanted)?;
    let text = text.ok_or_else(|| ContextError::Missing(wanted.to_owned()))?;
    let dockerfile =
        String::from_utf8(text).map_err(|_| ContextError::Archive("the Dockerfile is not UTF-8"))?;
    Ok(Context { archive, dockerfile })
}

/// Creates a file without a name, which vanishes when it is closed.
fn unnamed_file(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Not every file system has files without a name.
        Err(_) => {
            let path = folder.join(format!("context-{}", uuid::Uuid::new_v4().simple()));
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
    }
}

/// Streams a file in pieces of 64 KiB.
pub(crate) fn stream(file: File) -> impl Body<Data = Bytes, Error = io::Error> + Send {
    let file = tokio::fs::File::from_std(file);
    let pieces = tokio_util::io::ReaderStream::with_capacity(file, 64 << 10);
    http_body_util::StreamBody::new(futures_util::StreamExt::map(pieces, |piece| {
        piece.map(hyper::body::Frame::data)
    }))
}
