//! A sandbox as its callers see it.

use bench_domain::Timestamp;
use serde::Serialize;

use super::priority::Priority;

/// A sandbox as its callers see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxView {
    /// Its id.
    pub sandbox_id: String,
    /// `running`: what is over is not found.
    pub status: &'static str,
    /// 0 to 3.
    pub priority: Priority,
    /// Whether it gives way to sandboxes of higher priority.
    pub preemptable: bool,
    /// How it is kept apart.
    pub isolation: &'static str,
    /// Whether it holds a slot; an idle one may have lent it to others.
    pub has_slot: bool,
    /// Commands that run in it now and were not left in the background.
    pub commands: usize,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, by the end of a command or a file.
    pub used_at: Timestamp,
    /// When it is ended at the latest.
    pub expires_at: Timestamp,
}
