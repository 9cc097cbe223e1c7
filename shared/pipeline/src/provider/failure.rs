//! What the failures of a provider mean for the sample and the run.

use std::time::Duration;

use bench_domain::sample::{Effort, Stage, backoff};
use bench_domain::{Code, Timestamp, Verdict};
use bench_inference::{Failure, FailureKind};
use bench_lambda::metrics;

use crate::{AskError, Desk, InHand};

/// Longest single wait; a longer one is several messages anyway.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

impl Desk {
    /// Ends the run, or puts the sample off, or ends it as infrastructure-error when it was tried often enough or
    /// for long enough, or at once when the same request would be refused again. What says something about the sample itself is the caller's to look at first; here that is
    /// an infrastructure-error at once.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn failed(&self, hand: &InHand<'_>, failure: &Failure) -> Result<(), AskError> {
        let effort = hand.claimed.record.effort;
        match failure.kind {
            FailureKind::FatalForRun(_) => {
                let hint = self.hint_for_model(failure).map(|hint| format!("; {hint}")).unwrap_or_default();
                let why = format!("{}{hint}", self.told_of(&failure.cause));
                self.fail_run(hand, self.code_of(failure), &why).await
            }
            FailureKind::RateLimited => self.wait_for_provider(hand, failure, effort).await,
            FailureKind::Transient => self.try_again(hand, failure).await,
            FailureKind::Bad => self.refused(hand, failure).await,
            FailureKind::TooLong(_) | FailureKind::Refused | FailureKind::Unsupported => {
                let why = self.told_of(&failure.cause);
                self.end(hand, Verdict::ungraded(self.code_of(failure), why)).await
            }
            FailureKind::AnswerTooLarge => self.end_too_large(hand, failure).await,
        }
    }

    /// Ends a sample whose answer is larger than what is kept. It was paid for: its tokens count as far as the provider
    /// has counted them.
    async fn end_too_large(&self, hand: &InHand<'_>, failure: &Failure) -> Result<(), AskError> {
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(()) };
        let why = self.told_of(&failure.cause);
        let code = self.code_of(failure);
        tracing::warn!(run.id = %hand.sample.run, error.code = %code, "Sample {} ended: {why}", hand.sample);
        let verdict = Verdict::ungraded(code, why);
        let mut finished = hand.claimed.record.ended(verdict, Timestamp::now());
        let usage = failure.usage.filter(|usage| usage.estimated_tokens == 0);
        let sum = match self.stage {
            Stage::Answer => &mut finished.usage,
            Stage::Judge | Stage::Sandbox => &mut finished.judge_usage,
        };
        *sum = sum.map_or(usage, |sum| Some(sum.plus(usage.unwrap_or_default())));
        // A run with a budget has counted it when it came.
        let spent = usage.filter(|_| hand.run.ledger.is_none());
        self.commit(hand, benchmark, &finished, spent.unwrap_or_default()).await
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
            return self.end(hand, Verdict::ungraded(self.code_of(failure), why)).await;
        }
        let wait = failure.retry_after.unwrap_or_else(|| jittered(backoff(failures)));
        metrics::count(metrics::SAMPLES_WAITED, 1.0);
        self.put_off(hand, wait.min(WAIT_MAX), Effort { failures, ..effort }).await
    }

    /// A cause with who it is about, where that is not the model that is measured.
    pub(crate) fn told_of(&self, cause: &str) -> String {
        match self.stage {
            Stage::Answer => cause.to_owned(),
            Stage::Judge | Stage::Sandbox => format!("the judge could not be asked: {cause}"),
        }
    }

    /// Code of a failure, which depends on who was asked.
    pub(crate) fn code_of(&self, failure: &Failure) -> Code {
        match self.stage {
            Stage::Answer => failure.code(),
            Stage::Judge | Stage::Sandbox => failure.code().of_judge(),
        }
    }

    /// A planned wait: bounded by the time since the first one, not by their number.
    async fn wait_for_provider(
        &self,
        hand: &InHand<'_>,
        failure: &Failure,
        effort: Effort,
    ) -> Result<(), AskError> {
        let asked = failure.retry_after.unwrap_or(self.contexts.rate_limit_sleep()).min(WAIT_MAX);
        if failure.status.is_some() && !self.is_out_of_patience(&effort, self.config.patience) {
            self.contexts.wait_for(hand.run, asked).await?;
        }
        let why = self.told_of(&failure.cause);
        self.wait_or_end(hand, self.code_of(failure), &why, asked, self.config.patience).await
    }

    /// Puts the sample off for about `wait`, at most an hour, since something that it needs is not to be had now. It
    /// ends as infrastructure-error with `code` and `why` once it has waited for `patience`.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn wait_or_end(
        &self,
        hand: &InHand<'_>,
        code: Code,
        why: &str,
        wait: Duration,
        patience: Duration,
    ) -> Result<(), AskError> {
        let effort = hand.claimed.record.effort;
        let now = Timestamp::now();
        let since = effort.waiting_since.unwrap_or(now);
        if self.is_out_of_patience(&effort, patience) {
            let waited = now.since(since).as_secs();
            let why = format!("{why} (the runner gave up after waiting {waited} s)");
            return self.end(hand, Verdict::ungraded(code, why)).await;
        }
        // Spread out, so that not all that wait ask again in the same second.
        let wait = wait.min(WAIT_MAX);
        let wait = wait + jittered(wait.mul_f64(0.2).max(Duration::from_millis(500)));
        metrics::count(metrics::SAMPLES_WAITED, 1.0);
        let effort = Effort { waits: effort.waits + 1, waiting_since: Some(since), ..effort };
        self.put_off(hand, wait, effort).await
    }

    fn is_out_of_patience(&self, effort: &Effort, patience: Duration) -> bool {
        effort.waiting_since.is_some_and(|since| Timestamp::now().since(since) >= patience)
    }
}

/// Anywhere between half of a duration and all of it.
fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.5..=1.0))
}
