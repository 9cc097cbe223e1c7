//! Jobs: work in a sandbox that takes longer than one call.
//!
//! A benchmark says what is to be run ([`JobSpec`]); whoever runs it hands back what was left ([`JobReport`]). Between the
//! two stands the [`JobState`], which is saved before each side effect: what was not saved did not happen.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Work for one sandbox: files, and a script over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// What is put into the job's folder first.
    pub files: Vec<JobFile>,
    /// Text of a bash script, run in the job's folder with nothing on its standard input.
    pub script: String,
    /// How long it may run. Then its processes are killed.
    pub time_limit: Duration,
    /// Memory that it needs, in bytes; a host with less for each sandbox may refuse it.
    pub memory_bytes: u64,
    /// Text of a short bash command that finds out whether the sandbox has what the job needs, before anything untrusted
    /// is there. It writes one sentence about what is missing and fails, or succeeds. `None` where nothing is looked for.
    pub probe: Option<String>,
    /// Whether the script needs Landlock to keep files from programs that it doesn't trust. It has to keep these programs
    /// from calling Landlock themselves: their domains would be memory that not every host can count.
    pub needs_landlock: bool,
    /// Files that are read when it is over: those that are there, each up to its bound.
    pub results: Vec<ResultFile>,
}

/// A file of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    /// Path within the job's folder: letters, digits, `.`, `_`, `-` and `/`; no `..`.
    pub path: String,
    /// What is in it.
    pub content: FileContent,
}

/// What is in a file of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file that is too large to be held: an object of the blob store.
    Stored(StoredFile),
}

/// A file beside the items of a dataset, as the blob store has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Key of the object, whose bytes are the file's.
    pub key: String,
    /// SHA-256 of its bytes, lowercase hex.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Where anybody may download it, without a key; `None` where nobody can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A file that a job leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFile {
    /// Path within the job's folder, as in [`JobFile::path`].
    pub path: String,
    /// Bytes that are read at most; a longer file counts as [`Harvested::TooLong`].
    pub bytes_max: u64,
}

/// What was found in the place of a result file. A file that is not there is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Harvested {
    /// Its text; bytes that are not UTF-8 are replaced.
    Text(String),
    /// It is longer than was asked for: it has so many bytes.
    TooLong(u64),
    /// A link, a folder, a pipe: nothing that is read.
    NotAFile,
}

/// Variable of a command in a sandbox that may restrict itself with Landlock, by the value `1`. Other commands have no
/// Landlock where no cgroup counts memory. Only a request's variables count: a program can't set it for others. Hosts that
/// don't know it ignore it.
pub const ALLOW_LANDLOCK: &str = "SANDY_ALLOW_LANDLOCK";

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobEnd {
    /// Its script ended with this code; 128 + N by signal N.
    Exited(i32),
    /// Its time was up, and it was killed.
    TimedOut,
    /// It stopped without saying how: something killed all of it.
    Vanished,
    /// A program of it stopped (`SIGSTOP`) a process of the job, such as the one that supervises it, and it was killed.
    Halted,
    /// Its programs went over a limit of the sandbox (memory, processes, disk), and the host ended the sandbox for it.
    OverLimit,
}

impl JobEnd {
    /// Whether a program of the job kept it from ending by itself: it used up the job's time, stopped its supervisor, or
    /// went over the sandbox's limits. A supervisor that works ends before, and stays far below them.
    pub fn is_held_up(self) -> bool {
        matches!(self, Self::TimedOut | Self::Halted | Self::OverLimit)
    }
}

/// What a job left behind. Everything in it was written by untrusted programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReport {
    /// How it ended.
    pub end: JobEnd,
    /// The result files that are there, by path.
    pub files: BTreeMap<String, Harvested>,
    /// The end of what it wrote to standard output.
    pub stdout_tail: String,
    /// The end of what it wrote to standard error.
    pub stderr_tail: String,
    /// How long it ran, as the sandbox's clock says, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// How the sandbox was kept apart, as its host named it; `None` where the host does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
}

impl JobReport {
    /// The text of a result file.
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.files.get(path) {
            Some(Harvested::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Where a sample's job stands. Saved before each side effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "at")]
pub enum JobState {
    /// A sandbox is being asked for. One that was made and not noted ends by itself, by its host's rules.
    Creating,
    /// There is a sandbox; files are being put into it, and the script is being started. Both may be done twice.
    Starting {
        /// Its id at the host.
        sandbox: String,
    },
    /// The script was started.
    Running {
        /// Its id at the host.
        sandbox: String,
        /// When it is over at the latest, by its own time limit.
        until: Timestamp,
        /// How often it was looked at.
        polls: u32,
    },
}

impl JobState {
    /// The sandbox that is in use.
    pub fn sandbox(&self) -> Option<&str> {
        match self {
            Self::Creating => None,
            Self::Starting { sandbox } | Self::Running { sandbox, .. } => Some(sandbox),
        }
    }
}

/// A sample's job: where it stands, and how often it was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Which sandbox this is for the sample, from 1: one that is lost is followed by another.
    pub round: u32,
    /// Random text that is made anew for each round and told to nobody but the job's own programs: what they leave can be
    /// sealed with it.
    #[serde(default)]
    pub nonce: String,
    /// Where it stands.
    pub state: JobState,
}

impl Job {
    /// The same round, further on.
    #[must_use]
    pub fn at(&self, state: JobState) -> Self {
        Self { round: self.round, nonce: self.nonce.clone(), state }
    }
}

/// The wait before the n-th look at a running job (n from 1): 1, 2, 4 … 60 s.
pub fn poll_wait(polls: u32) -> Duration {
    crate::sample::backoff(polls)
}
