//! Archives on their way into the store.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use bench_terminal_tasks::{ArchiveProblem, Refusal};
use tokio::io::AsyncWriteExt;

use crate::error::TaskError;

/// Received archive: a file that nothing refers to once this value is dropped.
#[derive(Debug)]
pub struct UploadedArchive {
    file: File,
    bytes: u64,
}

impl UploadedArchive {
    /// Takes a file with a whole archive.
    ///
    /// # Errors
    /// If the file's length can't be determined.
    pub fn from_file(mut file: File) -> io::Result<Self> {
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, bytes })
    }

    /// Writes an archive to an unnamed temporary file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        Self::from_file(file)
    }

    /// Returns the size in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a reader of the whole archive. Only one reader may be in use at a time, since all share a position.
    pub(crate) fn reader(&mut self) -> io::Result<impl Read + Seek + '_> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(io::BufReader::new(&mut self.file))
    }

    /// Reads up to `buffer.len()` bytes at an offset; fewer only at the end.
    pub(crate) fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(offset))?;
        let mut read = 0;
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.file.read(rest) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }
}

/// Archive that is being received, with a limit on its size.
#[derive(Debug)]
pub struct IncomingArchive {
    file: tokio::fs::File,
    bytes: u64,
    bytes_max: u64,
}

impl IncomingArchive {
    /// Creates an unnamed temporary file for an archive of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// If the file can't be created.
    pub async fn new(bytes_max: u64) -> Result<Self, TaskError> {
        let file = tokio::task::spawn_blocking(tempfile::tempfile).await;
        let file = file.map_err(|error| TaskError::Internal(error.to_string()))??;
        Ok(Self { file: tokio::fs::File::from_std(file), bytes: 0, bytes_max })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`TaskError::Refused`] if the archive has too many, or if the file can't be written.
    pub async fn write(&mut self, piece: &[u8]) -> Result<(), TaskError> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if self.bytes > self.bytes_max {
            let problem = ArchiveProblem::ArchiveTooLarge { bytes_max: self.bytes_max };
            return Err(TaskError::Refused(Refusal::whole(problem)));
        }
        Ok(self.file.write_all(piece).await?)
    }

    /// Returns the whole archive.
    ///
    /// # Errors
    /// If the file can't be written.
    pub async fn finish(mut self) -> Result<UploadedArchive, TaskError> {
        self.file.flush().await?;
        Ok(UploadedArchive { file: self.file.into_std().await, bytes: self.bytes })
    }
}
