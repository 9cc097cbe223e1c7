//! How often and after how long a request is repeated.

use std::time::Duration;

use super::{Failure, Hub};
use crate::error::DatasetError;
use crate::progress::{Progress, Step};

/// Failures in a row after which the hub counts as unreachable.
const FAILURES_MAX: u32 = 6;
/// The same while not even a connection was made: without a network one should not wait long.
const FAILURES_UNCONNECTED_MAX: u32 = 3;
/// Failures of one download, however far it came in between.
const FAILURES_TOTAL_MAX: u32 = 50;
/// Longest wait by ourselves.
const BACKOFF_MAX: Duration = Duration::from_secs(20);
/// Longest wait that the hub may ask for; its limits are per five minutes.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(330);

/// Counts the failures of one piece of work.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    in_a_row: u32,
    in_total: u32,
}

impl Patience {
    /// Something arrived, so the next failure is the first of a new row.
    pub(super) fn progressed(&mut self) {
        self.in_a_row = 0;
    }

    /// Waits before the next try, or gives up.
    pub(super) async fn after(
        &mut self,
        hub: &Hub,
        failure: Failure,
        progress: &dyn Progress,
    ) -> Result<(), DatasetError> {
        let (problem, wait, never_connected) = match failure {
            Failure::Lasting(error) => return Err(error),
            Failure::Passing { problem, wait, never_connected } => (problem, wait, never_connected),
        };
        self.in_a_row += 1;
        self.in_total += 1;
        let limit = if never_connected { FAILURES_UNCONNECTED_MAX } else { FAILURES_MAX };
        if self.in_a_row >= limit || self.in_total >= FAILURES_TOTAL_MAX {
            return Err(hub.unreachable(format!("{problem}, {} times in a row", self.in_a_row)));
        }
        let own = backoff(hub.config().backoff, self.in_a_row);
        let wait = match wait {
            Some(asked) if asked > RETRY_AFTER_MAX => {
                return Err(hub.unreachable(format!("{problem}; it asks to wait {} s", asked.as_secs())));
            }
            Some(asked) => asked.max(own),
            None => own,
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
        let mut patience = Patience::default();
        let mut survived = 0;
        while patience.after(&hub(), Failure::passing("500"), &NoProgress).await.is_ok() {
            survived += 1;
        }
        assert_eq!(survived, FAILURES_MAX - 1);
    }

    #[tokio::test]
    async fn progress_does_not_make_failures_endless() {
        let mut patience = Patience::default();
        let mut survived = 0;
        while patience.after(&hub(), Failure::passing("500"), &NoProgress).await.is_ok() {
            patience.progressed();
            survived += 1;
        }
        assert_eq!(survived, FAILURES_TOTAL_MAX - 1);
    }

    #[tokio::test]
    async fn an_hour_is_not_waited_for() {
        let failure = Failure::Passing {
            problem: "429".into(),
            wait: Some(Duration::from_secs(3_600)),
            never_connected: false,
        };
        let error = Patience::default().after(&hub(), failure, &NoProgress).await.unwrap_err();
        assert!(error.to_string().contains("asks to wait 3600 s"), "{error}");
    }
}
