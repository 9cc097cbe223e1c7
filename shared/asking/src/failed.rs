//! What the failures of a provider mean for the sample and the run.

use std::time::Duration;

use bench_domain::sample::{Effort, Stage, backoff};
use bench_domain::{Outcome, Timestamp, Verdict};
use bench_inference::{Failure, FailureKind};

use crate::{AskError, Desk, InHand};

/// Longest single wait; a longer one is several messages anyway.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

impl Desk {
    /// Ends the run, or puts the sample off, or ends it as infrastructure-error when it was tried often enough or
    /// for long enough. What says something about the sample itself is the caller's to look at first; here that is
    /// an infrastructure-error at once.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn failed(&self, hand: &InHand<'_>, failure: &Failure) -> Result<(), AskError> {
        let effort = hand.claimed.record.effort;
        match failure.kind {
            FailureKind::FatalForRun => self.fail_run(hand, &self.told_of(&failure.cause)).await,
            FailureKind::RateLimited => self.wait_for_provider(hand, failure, effort).await,
            FailureKind::Transient | FailureKind::Bad => self.try_again(hand, failure).await,
            FailureKind::TooLong(_) | FailureKind::Refused | FailureKind::Unsupported => {
                let why = self.told_of(&failure.cause);
                self.end(hand, Verdict::ungraded(Outcome::InfrastructureError, why)).await
            }
        }
    }

    /// A failed attempt: bounded by number.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn try_again(&self, hand: &InHand<'_>, failure: &Failure) -> Result<(), AskError> {
        let effort = hand.claimed.record.effort;
        let failures = effort.failures + 1;
        if failures >= self.config.attempts_max {
            let cause = self.told_of(&failure.cause);
            let why = format!("{cause} (after {failures} attempts; {})", failure.gave_up_by);
            return self.end(hand, Verdict::ungraded(Outcome::InfrastructureError, why)).await;
        }
        let wait = failure.retry_after.unwrap_or_else(|| jittered(backoff(failures)));
        self.put_off(hand, wait.min(WAIT_MAX), Effort { failures, ..effort }).await
    }

    /// A cause with who it is about, where that is not the model that is measured.
    fn told_of(&self, cause: &str) -> String {
        match self.stage {
            Stage::Answer => cause.to_owned(),
            Stage::Judge | Stage::Sandbox => format!("the judge could not be asked: {cause}"),
        }
    }

    /// A planned wait: bounded by the time since the first one, not by their number.
    async fn wait_for_provider(
        &self,
        hand: &InHand<'_>,
        failure: &Failure,
        effort: Effort,
    ) -> Result<(), AskError> {
        let now = Timestamp::now();
        let since = effort.waiting_since.unwrap_or(now);
        if now.since(since) >= self.config.patience {
            let why = format!(
                "{} (the runner gave up after waiting {} s)",
                self.told_of(&failure.cause),
                now.since(since).as_secs()
            );
            return self.end(hand, Verdict::ungraded(Outcome::InfrastructureError, why)).await;
        }
        let asked = failure.retry_after.unwrap_or(self.contexts.rate_limit_sleep()).min(WAIT_MAX);
        if failure.status.is_some() {
            self.contexts.wait_for(hand.run, asked).await?;
        }
        // Spread out, so that not all that wait ask again in the same second.
        let wait = asked + jittered(asked.mul_f64(0.2).max(Duration::from_millis(500)));
        let effort = Effort { waits: effort.waits + 1, waiting_since: Some(since), ..effort };
        self.put_off(hand, wait, effort).await
    }
}

/// Anywhere between half of a duration and all of it.
fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.5..=1.0))
}
