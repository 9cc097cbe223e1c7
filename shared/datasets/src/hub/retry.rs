//! Limits and waits for retries of requests to the hub.

use std::time::Duration;

use super::{Failure, Hub};
use crate::error::DatasetError;
use crate::progress::{Progress, Step};

/// Consecutive failures after which the hub counts as unreachable.
const FAILURES_MAX: u32 = 6;
/// The same limit while no connection was ever made, so that users without a network don't wait
/// long.
const FAILURES_UNCONNECTED_MAX: u32 = 3;
/// Maximum number of failures of one download, regardless of its progress in between.
const FAILURES_TOTAL_MAX: u32 = 50;
/// Longest wait that we choose ourselves.
const BACKOFF_MAX: Duration = Duration::from_secs(20);
/// Longest wait that the hub may ask for. Its rate limits are per five minutes.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(330);

/// Counts the failures of one operation.
#[derive(Debug, Default)]
pub(crate) struct RetryState {
    consecutive: u32,
    total: u32,
}

impl RetryState {
    /// Resets the count of consecutive failures, since data arrived.
    pub(super) fn reset(&mut self) {
        self.consecutive = 0;
    }

    /// Waits before the next attempt, or returns an error if a limit is reached or the failure is
    /// permanent.
    pub(super) async fn wait_or_fail(
        &mut self,
        hub: &Hub,
        failure: Failure,
        progress: &dyn Progress,
    ) -> Result<(), DatasetError> {
        let (problem, wait, never_connected) = match failure {
            Failure::Permanent(error) => return Err(error),
            Failure::Transient { problem, wait, never_connected } => (problem, wait, never_connected),
        };
        self.consecutive += 1;
        self.total += 1;
        let limit = if never_connected { FAILURES_UNCONNECTED_MAX } else { FAILURES_MAX };
        if self.consecutive >= limit || self.total >= FAILURES_TOTAL_MAX {
            return Err(hub.unreachable(format!("{problem}, {} times in a row", self.consecutive)));
        }
        let backoff_wait = backoff(hub.config().backoff, self.consecutive);
        let wait = match wait {
            Some(requested) if requested > RETRY_AFTER_MAX => {
                return Err(hub.unreachable(format!("{problem}; it asks to wait {} s", requested.as_secs())));
            }
            Some(requested) => requested.max(backoff_wait),
            None => backoff_wait,
        };
        progress.step(Step::Waiting { wait, problem: &problem });
        tracing::info!(problem, wait_ms = wait.as_millis(), "A request to the hub is repeated");
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

fn backoff(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LibraryConfig;
    use crate::progress::NoProgress;

    fn hub() -> Hub {
        Hub::new(LibraryConfig { backoff: Duration::ZERO, ..LibraryConfig::new("c") })
    }

    #[test]
    fn waits_double_up_to_a_bound() {
        let first = Duration::from_millis(500);
        assert_eq!(backoff(first, 1), first);
        assert_eq!(backoff(first, 3), first * 4);
        assert_eq!(backoff(first, u32::MAX), BACKOFF_MAX);
        assert_eq!(backoff(Duration::MAX, 2), BACKOFF_MAX);
    }

    #[tokio::test]
    async fn failures_in_a_row_are_bounded() {
        let mut retries = RetryState::default();
        let mut retried = 0;
        while retries.wait_or_fail(&hub(), Failure::transient("500"), &NoProgress).await.is_ok() {
            retried += 1;
        }
        assert_eq!(retried, FAILURES_MAX - 1);
    }

    #[tokio::test]
    async fn progress_does_not_make_failures_endless() {
        let mut retries = RetryState::default();
        let mut retried = 0;
        while retries.wait_or_fail(&hub(), Failure::transient("500"), &NoProgress).await.is_ok() {
            retries.reset();
            retried += 1;
        }
        assert_eq!(retried, FAILURES_TOTAL_MAX - 1);
    }

    #[tokio::test]
    async fn a_requested_wait_of_an_hour_fails() {
        let failure = Failure::Transient {
            problem: "429".into(),
            wait: Some(Duration::from_secs(3_600)),
            never_connected: false,
        };
        let error = RetryState::default().wait_or_fail(&hub(), failure, &NoProgress).await.unwrap_err();
        assert!(error.to_string().contains("asks to wait 3600 s"), "{error}");
    }
}
