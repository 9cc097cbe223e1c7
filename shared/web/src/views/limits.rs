//! Limits of a run besides its budget.

use bench_domain::RunLimits;
use serde::Serialize;
use utoipa::ToSchema;

/// Limits on requests, answers and failures. Null for a limit that isn't ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct LimitsView {
    /// Maximum number of requests per minute to the model.
    pub requests_per_minute: Option<u32>,
    /// Time limit for one answer, in seconds.
    pub timeout_seconds: Option<u32>,
    /// Number of samples ended as infrastructure-error or too-long that stops the run.
    pub max_failures: Option<u32>,
}

impl From<RunLimits> for LimitsView {
    fn from(limits: RunLimits) -> Self {
        let RunLimits { requests_per_minute, timeout_seconds, max_failures } = limits;
        Self { requests_per_minute, timeout_seconds, max_failures }
    }
}
