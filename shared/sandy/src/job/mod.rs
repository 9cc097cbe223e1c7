//! Jobs: work in a sandbox that takes longer than one call.
//!
//! Five steps, each a few short calls, each safe to be made twice, also at the same time: [`upload`] until it says
//! [`Uploaded::Ready`], [`start`] once or more (the script is run once), [`look`] until it is [`JobStatus::Over`],
//! [`harvest`], and [`stop`] where nobody wants the rest. Whoever makes the steps saves between them and ends the
//! sandbox when all is done.
//!
//! A job's folder is `/workspace/jobs/JOB`. A wrapper starts the script there, keeps its time limit, holds what it
//! writes within bounds, notes how it ended, and ends it when one of its processes stays stopped, as a program may do to
//! the one that supervises it. The script's programs run as the same user as the wrapper. Where the kernel has seccomp or
//! landlock 6 they can't send it signals, nor hold it up otherwise; elsewhere a wrapper that was stopped is seen by [`look`].
//! Nothing that is found in the folder is trusted. Files are read only where they are regular files that no link leads to,
//! up to their bounds, in calls that end.

mod command;
mod error;
mod harvest;
mod name;
mod run;
mod spec;
mod upload;

use async_trait::async_trait;
use bench_domain::StoredFile;
use bytes::Bytes;

pub use error::{JobError, JobErrorKind, SourceError};
pub use harvest::harvest;
pub use name::JobName;
pub use run::{JobStatus, look, overdue, start, stop};
pub use spec::check;
pub use upload::{Uploaded, upload};

/// Gives the bytes of stored files.
#[async_trait]
pub trait FileSource: Send + Sync {
    /// `length` bytes from `offset` on. The range is within the file.
    async fn read(&self, file: &StoredFile, offset: u64, length: u64) -> Result<Bytes, SourceError>;
}

/// For jobs without stored files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

#[async_trait]
impl FileSource for NoFiles {
    async fn read(&self, file: &StoredFile, _offset: u64, _length: u64) -> Result<Bytes, SourceError> {
        Err(SourceError { reason: format!("there is no `{}`", file.key), is_passing: false })
    }
}
