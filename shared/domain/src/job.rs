//! Jobs: work in a sandbox that takes longer than one call.
//!
//! A benchmark describes the work ([`JobSpec`]), and the worker that runs it returns the output ([`JobReport`]). The
//! worker saves the [`JobState`] before each side effect, so a side effect that isn't saved didn't happen.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Files for a sandbox, and a script that runs over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// Files that are written to the job's folder first.
    pub files: Vec<JobFile>,
    /// Text of a bash script that runs in the job's folder with an empty standard input.
    pub script: String,
    /// Maximum run time. After it, the job's processes are killed.
    pub time_limit: Duration,
    /// Memory that the job needs, in bytes. A host that gives each sandbox less may refuse the job.
    pub memory_bytes: u64,
    /// Text of a short bash command that checks whether the sandbox has what the job needs, before any untrusted file
    /// is there. It either succeeds, or writes one sentence about what is missing and fails. `None` if nothing is
    /// checked.
    pub probe: Option<String>,
    /// True if the script needs Landlock to protect files from programs that it doesn't trust. The script must keep
    /// these programs from calling Landlock themselves: their domains would use memory that some hosts can't count.
    pub needs_landlock: bool,
    /// Files that are read when the job is over: those that exist, each up to its limit.
    pub results: Vec<ResultFile>,
}

/// A file of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    /// Path within the job's folder: letters, digits, `.`, `_`, `-` and `/`; no `..`.
    pub path: String,
    /// Content of the file.
    pub content: FileContent,
}

/// Content of a job's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// The bytes themselves.
    Bytes(Vec<u8>),
    /// An object of the blob store, for files too large to keep in memory.
    Stored(StoredFile),
}

/// File of a dataset beside its items, as stored in the blob store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Key of the object that contains the file.
    pub key: String,
    /// SHA-256 of the file, lowercase hex.
    pub sha256: String,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Public URL for downloading the file without a key, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Output file of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFile {
    /// Path within the job's folder, as in [`JobFile::path`].
    pub path: String,
    /// Maximum number of bytes to read; a longer file becomes [`HarvestedFile::TooLong`].
    pub bytes_max: u64,
}

/// Content found at the path of a result file. Missing files aren't listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarvestedFile {
    /// Text of the file; bytes that aren't UTF-8 are replaced.
    Text(String),
    /// The file is longer than requested; contains its size in bytes.
    TooLong(u64),
    /// A link, folder, pipe or other entry that isn't read.
    NotAFile,
}

/// Environment variable that allows a command in a sandbox to restrict itself with Landlock, if set to `1`. Without it,
/// a command has no Landlock on hosts where no cgroup counts memory. Only variables in a request count: a program can't
/// set it for others. Hosts that don't support the variable ignore it.
pub const ALLOW_LANDLOCK: &str = "SANDY_ALLOW_LANDLOCK";

/// Reason why a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobEnd {
    /// The script exited with this code; 128 + N if killed by signal N.
    Exited(i32),
    /// The job exceeded its time limit and was killed.
    TimedOut,
    /// The job stopped without a report, because all its processes were killed.
    Vanished,
    /// A program of the job stopped (`SIGSTOP`) a process of the job, such as the supervisor, and the job was killed.
    Halted,
    /// The job's programs exceeded a limit of the sandbox (memory, processes, disk), and the host ended the sandbox.
    OverLimit,
}

impl JobEnd {
    /// Returns true if a program of the job kept it from ending normally: it used up the job's time, stopped its
    /// supervisor, or exceeded the sandbox's limits. A working supervisor ends earlier and stays far below the limits.
    pub fn is_program_fault(self) -> bool {
        matches!(self, Self::TimedOut | Self::Halted | Self::OverLimit)
    }
}

/// Output of a job. Untrusted programs may have written all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReport {
    /// Reason why the job ended.
    pub end: JobEnd,
    /// Result files that exist, by path.
    pub files: BTreeMap<String, HarvestedFile>,
    /// End of the job's standard output.
    pub stdout_tail: String,
    /// End of the job's standard error.
    pub stderr_tail: String,
    /// Run time in milliseconds, by the sandbox's clock.
    pub elapsed_ms: Option<u64>,
    /// Isolation of the sandbox, as named by its host; `None` if the host doesn't report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
}

impl JobReport {
    /// Returns the text of a result file.
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.files.get(path) {
            Some(HarvestedFile::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// State of a sample's job. Saved before each side effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "at")]
pub enum JobState {
    /// The worker requests a sandbox. If the sandbox is created but its id isn't saved, its host ends it by itself.
    Creating,
    /// The sandbox exists; the worker writes files to it and starts the script. Both may happen twice.
    Starting {
        /// Id of the sandbox at the host.
        sandbox: String,
    },
    /// The script was started.
    Running {
        /// Id of the sandbox at the host.
        sandbox: String,
        /// Latest time at which the job is over, by its own time limit.
        until: Timestamp,
        /// Number of times that the worker polled the job.
        polls: u32,
    },
}

impl JobState {
    /// Returns the id of the sandbox in use.
    pub fn sandbox(&self) -> Option<&str> {
        match self {
            Self::Creating => None,
            Self::Starting { sandbox } | Self::Running { sandbox, .. } => Some(sandbox),
        }
    }
}

/// Job of a sample: its state, and its number of rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Number of the sample's sandbox, from 1. A lost sandbox is replaced with another.
    pub round: u32,
    /// Random text, generated for each round and known only to the job's own programs, which can seal their output with
    /// it.
    #[serde(default)]
    pub nonce: String,
    /// State of the job.
    pub state: JobState,
}

impl Job {
    /// Returns the same round in another state.
    #[must_use]
    pub fn with_state(&self, state: JobState) -> Self {
        Self { round: self.round, nonce: self.nonce.clone(), state }
    }
}

/// Returns the wait before the n-th poll of a running job (n from 1): 1, 2, 4 … 60 s.
pub fn poll_wait(polls: u32) -> Duration {
    crate::sample::backoff(polls)
}
