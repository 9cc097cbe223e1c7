//! Handles failures of a provider, for the sample and the run.

use std::time::Duration;

use bench_domain::sample::{AttemptHistory, backoff};
use bench_domain::{Code, ModelRole, Verdict};
use bench_inference::{Failure, FailureKind};
use bench_lambda::metrics;
use bench_state::WaitKind;

use crate::Pipeline;
use crate::context::{ClaimedSample, ModelClient};
use crate::error::PipelineError;
use crate::model::provider_wait::shown_wait;
use crate::model::wait::PROBE_EVERY;

/// Maximum length of a single wait. A longer wait would take several messages anyway.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Bounds of the time over which samples that wait until the same time are spread.
const SPREAD_MIN: Duration = Duration::from_millis(500);
const SPREAD_MAX: Duration = Duration::from_secs(15);

impl Pipeline {
    /// Ends the run, puts the sample off, or ends the sample as infrastructure-error. The sample ends after too
    /// many attempts or too long a wait, or immediately if the provider would refuse the same request again.
    /// Callers handle failures that say something about the answer before; any that remain here end the sample
    /// as infrastructure-error.
    pub(crate) async fn handle_provider_failure(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        match failure.kind {
            FailureKind::FatalForRun(_) => {
                let hint = client.model_hint(failure).map(|hint| format!("; {hint}")).unwrap_or_default();
                let why = format!("{}{hint}", client.role.explain(&failure.cause));
                self.fail_run(claimed, client.role.code(failure.code()), &why).await
            }
            FailureKind::RateLimited => self.wait_for_provider(claimed, client, failure).await,
            FailureKind::Transient => self.retry(claimed, client, failure).await,
            FailureKind::Bad => self.handle_refusal(claimed, client, failure).await,
            FailureKind::TooLong(_) | FailureKind::Refused | FailureKind::Unsupported => {
                let why = client.role.explain(&failure.cause);
                self.end(claimed, Verdict::ungraded(client.role.code(failure.code()), why)).await
            }
            FailureKind::AnswerTooLarge => self.end_too_large(claimed, client, failure).await,
        }
    }

    /// Puts the sample off after a failed attempt, or ends it after too many.
    pub(crate) async fn retry(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        let history = claimed.record.history;
        let failures = history.failures + 1;
        if failures >= self.config.attempts_max {
            let cause = client.role.explain(&failure.cause);
            let attempts = if failures == 1 { "attempt" } else { "attempts" };
            let why = format!("{cause} (after {failures} {attempts}; {})", failure.gave_up_by);
            return self.end(claimed, Verdict::ungraded(client.role.code(failure.code()), why)).await;
        }
        let wait = failure.retry_after.unwrap_or_else(|| jittered(backoff(failures))).min(WAIT_MAX);
        metrics::count(metrics::SAMPLES_WAITED, 1.0);
        if failure.kind == FailureKind::Transient {
            self.note_failed_request(claimed, client, failure, wait).await;
        }
        self.put_off(claimed, wait, AttemptHistory { failures, ..history }).await
    }

    /// Ends a sample whose answer is larger than the size limit. The answer was paid for, so its tokens count
    /// as far as the provider reported them.
    async fn end_too_large(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        let why = client.role.explain(&failure.cause);
        let (sample, code) = (&claimed.sample, client.role.code(failure.code()));
        tracing::warn!(run.id = %sample.run, error.code = %code, "Sample {sample} ended: {why}");
        let verdict = Verdict::ungraded(code, why);
        let mut finished = claimed.record.to_finished(verdict, bench_clock::now());
        let usage = failure.usage.filter(|usage| usage.estimated_tokens == 0);
        let sum = match client.role {
            ModelRole::Model => Some(&mut finished.usage),
            ModelRole::Judge => Some(&mut finished.judge_usage),
            // Its tokens are in the conversation's report.
            ModelRole::UserModel => None,
        };
        if let Some(sum) = sum {
            *sum = sum.map_or(usage, |sum| Some(sum.plus(usage.unwrap_or_default())));
        }
        // A run with a budget counted them at receipt.
        let spent = usage.filter(|_| claimed.run.ledger.is_none()).unwrap_or_default();
        self.commit(claimed, &finished, client.role.spending(spent), usage).await
    }

    /// Puts the sample off for as long as the provider asked. Limited by the time since the first wait, not
    /// by the number of waits.
    async fn wait_for_provider(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        let asked = failure.retry_after.unwrap_or(self.clients.rate_limit_sleep()).min(WAIT_MAX);
        let patience = self.config.patience;
        let is_patient = !is_out_of_patience(&claimed.record.history, patience);
        if let Some(status) = failure.status {
            let kind = if status == 429 { WaitKind::RateLimited } else { WaitKind::Unavailable };
            let now = bench_clock::now();
            // Before the wait is shared: another sample that meets it doesn't know the provider's sentence.
            let next = now.plus(asked.min(PROBE_EVERY));
            let shown = is_patient.then(|| shown_wait(claimed, client, kind, next, Some(&failure.cause)));
            self.share_wait(claimed, client, now.plus(asked), kind).await?;
            self.write_wait(claimed, shown.flatten()).await;
        } else if is_patient {
            self.note_shared_wait(claimed, client).await;
        }
        let why = client.role.explain(&failure.cause);
        let wait = asked.min(PROBE_EVERY);
        self.wait_or_end(claimed, client.role.code(failure.code()), &why, wait, patience).await
    }

    /// Puts the sample off for about `wait`, at most an hour, because a service that it needs isn't
    /// available. Ends the sample as infrastructure-error with `code` and `why` once it has waited for
    /// `patience`.
    pub(crate) async fn wait_or_end(
        &self,
        claimed: &ClaimedSample,
        code: Code,
        why: &str,
        wait: Duration,
        patience: Duration,
    ) -> Result<(), PipelineError> {
        let history = claimed.record.history;
        let now = bench_clock::now();
        let since = history.waiting_since.unwrap_or(now);
        if is_out_of_patience(&history, patience) {
            let waited = now.since(since).as_secs();
            let why = format!("{why} (the runner gave up after waiting {waited} s)");
            return self.end(claimed, Verdict::ungraded(code, why)).await;
        }
        // Adds jitter, so that waiting samples don't all ask again in the same second.
        let wait = wait.min(WAIT_MAX);
        let wait =
            wait + wait.mul_f64(0.2).clamp(SPREAD_MIN, SPREAD_MAX).mul_f64(rand::random_range(0.0..=1.0));
        metrics::count(metrics::SAMPLES_WAITED, 1.0);
        let history = AttemptHistory { waits: history.waits + 1, waiting_since: Some(since), ..history };
        self.put_off(claimed, wait, history).await
    }
}

fn is_out_of_patience(history: &AttemptHistory, patience: Duration) -> bool {
    history.waiting_since.is_some_and(|since| bench_clock::now().since(since) >= patience)
}

/// Returns a random duration between half of this one and all of it.
fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.5..=1.0))
}
