//! Proof that a task is admitted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Result of a task's admission, kept beside it as `proof.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// [Digest](crate::CodeTask::digest) of the task that was checked.
    pub task_digest: String,
    /// [Digest](crate::CodeTask::solutions_digest) of the reference and the wrong solutions that were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solutions_digest: Option<String>,
    /// Names of the tests that the reference solution passes, sorted. An answer must pass all of them.
    pub tests: Vec<String>,
    /// Number of times that the reference solution was tested.
    pub repeats: u32,
    /// Time of the reference's build and tests, the longest of all repetitions, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_ms: Option<u64>,
    /// Time of the language's fixed program on the host that ran the reference, in milliseconds. Slower
    /// hosts give answers more time in proportion to theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ms: Option<u64>,
    /// Names of the tests that fail for each wrong solution.
    pub wrong: BTreeMap<String, Vec<String>>,
}
