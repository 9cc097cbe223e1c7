//! Jobs: work in a sandbox that takes longer than one call.
//!
//! A job has five steps. Each consists of a few short calls and can safely be repeated, even concurrently: [`upload`]
//! until it returns [`UploadProgress::Ready`], [`start`] once or more (the script runs once), [`look`] until it returns
//! [`JobStatus::Over`], [`harvest`], and [`stop`] if the results aren't needed. Callers save their state between the
//! steps, and end the sandbox at last. For a small job, [`run`] does all of it with one call.
//!
//! A job's folder is `/workspace/jobs/JOB`. A wrapper starts the script there, enforces its time limit, limits its
//! output, and records how it ended. It ends the job if one of its processes stays stopped, since programs can stop
//! their supervisor. The script runs as the same user as the wrapper. On kernels with seccomp or Landlock 6, the job
//! can't send signals to the wrapper or slow it down; elsewhere [`look`] detects a stopped wrapper. Nothing found in
//! the folder is trusted. Only regular files are read, without following links, up to their size limits, by calls that
//! can't block.

mod command;
mod error;
mod harvest;
mod name;
mod probe;
mod run;
mod spec;
mod status;
mod upload;

use async_trait::async_trait;
use bench_domain::StoredFile;
use bytes::Bytes;

pub use error::{JobError, JobErrorKind, SourceError};
pub use harvest::harvest;
pub use name::JobName;
pub use probe::probe;
pub use run::{RUN_BYTES_MAX, RunStatus, run};
pub use spec::check;
pub use status::{JobStatus, look, overdue, start, stop};
pub use upload::{UploadProgress, upload};

/// Source of the bytes of stored files.
#[async_trait]
pub trait FileSource: Send + Sync {
    /// Reads `length` bytes at `offset`. The range is within the file.
    async fn read(&self, file: &StoredFile, offset: u64, length: u64) -> Result<Bytes, SourceError>;
}

/// A source for jobs without stored files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

#[async_trait]
impl FileSource for NoFiles {
    async fn read(&self, file: &StoredFile, _offset: u64, _length: u64) -> Result<Bytes, SourceError> {
        Err(SourceError { reason: format!("there is no `{}`", file.key), is_transient: false })
    }
}
