//! Sandboxes in the API.

use bench_domain::Timestamp;
use serde::Serialize;

use super::priority::Priority;

/// A sandbox, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxView {
    /// Id of the sandbox.
    pub sandbox_id: String,
    /// Always `running`, since ended sandboxes aren't found.
    pub status: &'static str,
    /// Priority, 0 to 3.
    pub priority: Priority,
    /// True if sandboxes of higher priority may take its slot.
    pub preemptable: bool,
    /// Name of the form of isolation.
    pub isolation: &'static str,
    /// Name and version of its container engine, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// True if it holds a slot; an idle sandbox may have lent its own.
    pub has_slot: bool,
    /// Number of running commands, not counting background processes.
    pub commands: usize,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which the last command ended or the last file was written.
    pub used_at: Timestamp,
    /// Time at which the host ends it at the latest.
    pub expires_at: Timestamp,
}
