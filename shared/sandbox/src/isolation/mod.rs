//! Sandboxes: processes that are kept apart from the machine and from each other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

mod cell;
mod cgroups;
mod form;
mod instance;
mod launched;
mod local;
mod options;
mod output;
mod probe;
mod sandbox;
mod slots;
mod stage;
mod wire;

pub use options::{IsolationOptions, SharedFolder};
pub use probe::{FormOutcome, forms, probe};
pub use stage::stage_main;

/// What one sandbox may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all its processes together, files in its memory included, in bytes. Where no memory cgroup may be made,
    /// each process is bounded by it and the sum is watched.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// What its working folder holds, in bytes.
    pub disk_bytes: u64,
    /// Open files of one process.
    pub open_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 4 << 30, processes: 256, disk_bytes: 1 << 30, open_files: 1_024 }
    }
}

/// A command for a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// Given to `bash -c`.
    pub command: String,
    /// Folder; relative to the working folder. The working folder itself when `None`.
    pub cwd: Option<String>,
    /// Variables beside those that every command has. [`ALLOW_LANDLOCK`](bench_domain::job::ALLOW_LANDLOCK) is one that the
    /// sandbox itself reads.
    pub env: BTreeMap<String, String>,
    /// After so long the command's process group is killed. What it left in the background goes on.
    pub timeout: Duration,
    /// Bytes kept of standard output and of standard error, each. What is beyond is read and dropped.
    pub output_bytes_max: usize,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Beginning of standard output.
    pub stdout: Vec<u8>,
    /// Beginning of standard error.
    pub stderr: Vec<u8>,
    /// Bytes that were dropped of either.
    pub dropped_bytes: u64,
    /// Exit code; 128 + N by signal N; `None` when the time was up.
    pub exit_code: Option<i32>,
}

/// What a sandbox uses now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// CPU time of its processes since it began, in seconds; `None` where it cannot be told.
    pub cpu_seconds: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// What its working folder holds, in bytes.
    pub disk_bytes: Option<u64>,
}

/// How sandboxes are kept apart on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Form {
    /// `namespaces` (of processes, files, network, users) or `confined` (the same user-level bounds without namespaces).
    pub name: &'static str,
    /// Everything that holds, such as `pid namespace`, `landlock 7`, `seccomp`, `memory cgroup`, `uid per sandbox`.
    pub holds: Vec<String>,
    /// What a stronger form would hold and this one does not, in one sentence each.
    pub lacks: Vec<String>,
}

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsolationError {
    /// This machine allows no form that is safe.
    #[error("this machine cannot keep programs apart: {0}")]
    Unsafe(String),
    /// A sandbox could not be made now.
    #[error("the sandbox could not be made: {0}")]
    Failed(String),
    /// The sandbox is over.
    #[error("the sandbox is gone")]
    Gone,
    /// The path is none in the working folder, or leads out of it.
    #[error("`{0}` is no path of a file in the working folder")]
    Path(String),
    /// A file could not be written, such as into a full working folder.
    #[error("the file could not be written: {0}")]
    Write(String),
}

/// Makes sandboxes of one form.
#[async_trait]
pub trait Isolation: Send + Sync {
    /// The form.
    fn form(&self) -> &Form;

    /// A new sandbox with an empty working folder.
    async fn create(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError>;
}

/// One sandbox. When the last reference is dropped, all its processes and files are gone.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Runs a command to its end. Several may run at once. Processes that it leaves in the background live as long as
    /// the sandbox.
    async fn exec(&self, exec: &Exec) -> Result<Output, IsolationError>;

    /// Writes a file, and the folders above it; an older one is replaced. The path is in the working folder, which
    /// commands see as `/workspace`: relative, or below `/workspace`. Links are not followed.
    async fn write(&self, path: &str, content: &[u8]) -> Result<(), IsolationError>;

    /// What it uses now.
    async fn usage(&self) -> Usage;

    /// Whether it is over, by [`Sandbox::end`] or because its first process was killed.
    fn is_over(&self) -> bool;

    /// Kills its processes and removes its files. Does nothing when it is over.
    async fn end(&self);

    /// The limit that it was ended for, because its programs went over it; known when [`Sandbox::end`] is through.
    fn over_limit(&self) -> Option<&str> {
        None
    }
}
