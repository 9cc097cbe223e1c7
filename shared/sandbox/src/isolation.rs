//! Sandboxes: processes that are isolated from the machine and from each other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

mod cgroups;
mod engine_folders;
mod form;
mod instance;
mod launched;
mod local;
mod options;
mod output;
mod probe;
mod resources;
mod sandbox;
mod stage;
mod uids;
mod wire;

pub use options::{IsolationOptions, SharedFolder};
pub use probe::{FormOutcome, forms, probe};
pub use stage::stage_main;

/// Resource limits of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all its processes together, including files in memory, in bytes. Without a memory cgroup, the kernel
    /// applies the limit to each process and the guard watches the sum.
    pub memory_bytes: u64,
    /// Maximum number of processes and threads.
    pub processes: u64,
    /// Maximum size of the files in its working folder, in bytes.
    pub disk_bytes: u64,
    /// Maximum number of open files of one process.
    pub open_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 4 << 30, processes: 256, disk_bytes: 1 << 30, open_files: 1_024 }
    }
}

/// A command to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// Command line for `bash -c`.
    pub command: String,
    /// Folder to run it in, relative to the working folder; the working folder itself if `None`.
    pub cwd: Option<String>,
    /// Environment variables, besides those that every command has. The sandbox itself reads
    /// [`ALLOW_LANDLOCK`](bench_domain::job::ALLOW_LANDLOCK).
    pub env: BTreeMap<String, String>,
    /// Time limit, after which the command's process group is killed. Background processes outside of the group
    /// continue.
    pub timeout: Duration,
    /// Maximum number of bytes kept of standard output and of standard error, each. The rest is read and dropped.
    pub output_bytes_max: usize,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Beginning of standard output.
    pub stdout: Vec<u8>,
    /// Beginning of standard error.
    pub stderr: Vec<u8>,
    /// Number of bytes of both outputs that were dropped.
    pub dropped_bytes: u64,
    /// Exit code; 128 + N if signal N ended it; `None` if the time was up.
    pub exit_code: Option<i32>,
}

/// Current usage of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// CPU time of its processes since it was created, in seconds; `None` if unknown.
    pub cpu_seconds: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// Size of the files in its working folder, in bytes.
    pub disk_bytes: Option<u64>,
}

/// A form of isolation, as this machine provides it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Form {
    /// `namespaces` (separate processes, files, network and users) or `confined` (the same limits on programs, without
    /// namespaces).
    pub name: &'static str,
    /// Protections that the form has, such as `pid namespace`, `landlock 7`, `seccomp`, `memory cgroup`, `uid per
    /// sandbox`.
    pub holds: Vec<String>,
    /// Protections that a stronger form would have and this one lacks, one sentence each.
    pub lacks: Vec<String>,
}

/// Errors of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsolationError {
    /// This machine allows no safe form.
    #[error("this machine cannot keep programs apart: {0}")]
    Unsafe(String),
    /// A sandbox could not be created, or an operation in it failed.
    #[error("the sandbox failed: {0}")]
    Failed(String),
    /// The sandbox has ended.
    #[error("the sandbox is gone")]
    Gone,
    /// Sandboxes of this form can't have a container engine.
    #[error("sandboxes of this machine cannot have a container engine: {0}")]
    NoEngine(String),
    /// The path isn't the path of a file in the working folder.
    #[error("`{0}` is not the path of a file in the working folder")]
    Path(String),
    /// A file could not be written, for example because the working folder is full.
    #[error("the file could not be written: {0}")]
    Write(String),
}

/// Creates sandboxes of one form.
#[async_trait]
pub trait Isolation: Send + Sync {
    /// Returns the form.
    fn form(&self) -> &Form;

    /// Creates a sandbox with an empty working folder.
    async fn create(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError>;

    /// Creates a sandbox that has [`Sandbox::engine_place`]: `DOCKER_HOST` of its commands is the socket there.
    async fn create_with_engine(&self, _: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        Err(IsolationError::NoEngine(format!("the form `{}` has no place for its socket", self.form().name)))
    }
}

/// Places on the machine that a container engine and a sandbox share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnginePlace {
    /// Path for the engine's socket, in a folder that only programs of this sandbox may enter.
    pub socket: PathBuf,
    /// The working folder, if it can be mounted into containers.
    pub workspace: Option<SharedFolder>,
}

/// One sandbox. Dropping the last reference ends all its processes and removes its files.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Runs a command until it ends. Several may run concurrently. Background processes live as long as the sandbox.
    async fn exec(&self, exec: &Exec) -> Result<Output, IsolationError>;

    /// Writes a file, creating the folders above it and replacing an existing file. The path is in the working folder,
    /// which commands see as `/workspace`: relative, or below `/workspace`. Doesn't follow links.
    async fn write(&self, path: &str, content: &[u8]) -> Result<(), IsolationError>;

    /// Returns the current usage.
    async fn usage(&self) -> Usage;

    /// Returns true if the sandbox has ended, by [`Sandbox::end`] or because its first process was killed.
    fn is_over(&self) -> bool;

    /// Kills its processes and removes its files. Does nothing if the sandbox has already ended.
    async fn end(&self);

    /// Returns the places that it shares with a container engine, if it was created with them.
    fn engine_place(&self) -> Option<&EnginePlace> {
        None
    }

    /// Returns the limit that the sandbox was ended for, if its programs exceeded one. Known when [`Sandbox::end`] has
    /// finished.
    fn over_limit(&self) -> Option<&str> {
        None
    }
}
