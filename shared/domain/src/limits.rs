//! Limits that an order sets for its run, besides the budget.

use serde::{Deserialize, Serialize};

/// Limits on requests, answers and failures of a run. `None` sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunLimits {
    /// Maximum number of requests per minute to the run's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Time limit for one answer, in seconds, instead of the benchmark's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Number of samples that may end as infrastructure-error or too-long; the run stops with the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
}

impl RunLimits {
    /// Maximum number of requests per minute that can be ordered.
    pub const REQUESTS_PER_MINUTE_MAX: u32 = 60_000;
    /// Maximum time limit for one answer, in seconds: one hour, like the longest limit of a benchmark, after which leases
    /// are dimensioned.
    pub const TIMEOUT_SECONDS_MAX: u32 = 3_600;
    /// Maximum number of failures that can be ordered.
    pub const FAILURES_MAX: u32 = 100_000_000;

    /// Returns true if any limit is set.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_set_limits_are_stored() {
        assert_eq!(serde_json::to_string(&RunLimits::default()).unwrap(), "{}");
        let limits = RunLimits { timeout_seconds: Some(30), ..RunLimits::default() };
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(text, r#"{"timeout_seconds":30}"#);
        assert_eq!(serde_json::from_str::<RunLimits>(&text).unwrap(), limits);
        assert!(limits.is_set() && !RunLimits::default().is_set());
    }
}
