//! Stores answers, ends and counts samples, and sends the finisher its message.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bench_blobs::BlobError;
use bench_domain::{Code, Outcome, RunId, SampleBody, Spending, Timestamp, Usage, Verdict};
use bench_inference::Keys;
use bench_lambda::metrics;
use bench_queue::Message;
use bench_state::{
    BodyRef, Commit, EndedSample, EventKind, NewEvent, RunWithBenchmarks, SampleResult, ShardCount,
    planned_samples,
};

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;
use crate::failures::is_failure;

/// Maximum number of tries to store an answer, which has already been paid for.
const STORE_TRIES: u32 = 6;
/// Maximum time for which an answer waits for room on a full disk, and the interval of the tries.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(60);
const ROOM_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time at the end of an attempt that is left for the commit.
const COMMIT_TIME: Duration = Duration::from_secs(10);
/// Minimum interval between two progress events of a benchmark.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Reference to a stored body of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBody {
    /// Number of the attempt that stored it.
    pub(crate) attempt: u32,
    /// SHA-256 of the stored bytes, lowercase hex.
    pub(crate) sha256: String,
}

impl From<StoredBody> for BodyRef {
    fn from(StoredBody { attempt, sha256 }: StoredBody) -> Self {
        Self { attempt, sha256 }
    }
}

impl Pipeline {
    /// Finds a body stored by an earlier attempt that ended before it could commit it.
    pub(crate) async fn stored_body(
        &self,
        claimed: &ClaimedSample,
    ) -> Result<Option<(SampleBody, StoredBody)>, PipelineError> {
        for attempt in (claimed.record.cleared + 1..claimed.attempt).rev() {
            if let Some((body, sha256)) = self.blobs.get_body(&claimed.sample, attempt, None).await? {
                return Ok(Some((body, StoredBody { attempt, sha256 })));
            }
        }
        Ok(None)
    }

    /// Stores the body under this attempt, before anything else is done with it. If it can't be stored, counts the
    /// tokens `spent` for it, since no commit will: the next attempt asks again.
    pub(crate) async fn store(
        &self,
        claimed: &ClaimedSample,
        body: &SampleBody,
        spent: Spending,
    ) -> Result<StoredBody, BlobError> {
        let attempt = claimed.attempt;
        let started = Instant::now();
        let (mut tries, mut wait) = (1, Duration::from_millis(200));
        loop {
            let error = match self.blobs.put_body(&claimed.sample, attempt, body).await {
                Ok(sha256) => return Ok(StoredBody { attempt, sha256 }),
                Err(error) => error,
            };
            let is_full = error.is_disk_full();
            let gives_up = match is_full {
                true => {
                    started.elapsed() >= ROOM_WAIT_MAX || claimed.deadline.remaining(COMMIT_TIME).is_zero()
                }
                false => tries >= STORE_TRIES,
            };
            if gives_up {
                self.count_spent(claimed, spent).await;
                return Err(error);
            }
            if is_full {
                // The process reports the full disk once.
                tokio::time::sleep(ROOM_POLL_INTERVAL).await;
                continue;
            }
            tracing::warn!(run.id = %claimed.sample.run, %error, "Storing an answer failed: {error}");
            tokio::time::sleep(wait).await;
            wait *= 2;
            tries += 1;
        }
    }

    /// Ends a sample with a verdict. Keeps the answer if one was handed over.
    pub(crate) async fn end(&self, claimed: &ClaimedSample, verdict: Verdict) -> Result<(), PipelineError> {
        if verdict.outcome == Outcome::InfrastructureError {
            let reason = claimed.run.keys.redact(&verdict.reason);
            // The reason may quote an item that only the run's owner may see.
            let why = if claimed.benchmark.is_private() { verdict.outcome.as_str() } else { &*reason };
            let code = verdict.code.map_or("", Code::as_str);
            tracing::warn!(run.id = %claimed.sample.run, error.code = code, "Sample {} ended: {why}", claimed.sample);
        }
        let mut finished = claimed.record.to_finished(verdict, bench_clock::now());
        finished.usage = finished.usage.or_else(|| claimed.paid());
        // The sample's record has no place for these. A run with a budget counted each call when it was stored.
        let user = claimed.user_paid().filter(|_| claimed.run.ledger.is_none());
        self.commit(claimed, &finished, Spending::user_only(user.unwrap_or_default()), None).await
    }

    /// Ends a sample. Changes nothing if another attempt holds the sample or has ended it. `spent` are the
    /// tokens to count for a budget, `tokens` those to count for operators.
    ///
    /// # Errors
    /// Fails if the sample could not be ended, or if it was ended but the message to the finisher could not
    /// be sent. Redelivery of the sample's message then sends the finisher's message, and counts nothing
    /// twice.
    pub(crate) async fn commit(
        &self,
        claimed: &ClaimedSample,
        finished: &SampleResult,
        spent: Spending,
        tokens: Option<Usage>,
    ) -> Result<(), PipelineError> {
        let ClaimedSample { run, benchmark, sample, attempt, .. } = claimed;
        let ended = EndedSample {
            sample: sample.clone(),
            benchmark_sort: benchmark.sort.clone(),
            attempt: *attempt,
            result: without_keys(finished, &run.keys),
            spent,
            planned: planned_samples(&benchmark.plan, sample.shard()),
        };
        let closed = match self.commits.commit(ended).await? {
            Commit::Done { closed } => closed,
            Commit::Lost => {
                self.count_lost(claimed, finished.body.as_ref().map(|body| body.attempt), spent).await?;
                tracing::info!(run.id = %sample.run, "Another attempt took over sample {sample}");
                return Ok(());
            }
        };
        self.activity.count_tokens(tokens);
        let is_graded = finished.verdict.outcome.is_graded();
        metrics::count(if is_graded { metrics::SAMPLES_GRADED } else { metrics::SAMPLES_FAILED }, 1.0);
        // Optional: a sample stays over even if its progress event can't be written.
        if let Err(error) = self.add_progress_event(claimed).await {
            tracing::debug!(%error, "No progress event was written");
        }
        if is_failure(finished.verdict.outcome) {
            self.stop_if_too_many_failures(claimed, &finished.verdict).await?;
        }
        // Last, because the next delivery of the message repeats only this step.
        if closed { self.finish_if_complete(sample.run).await } else { Ok(()) }
    }

    /// Counts the tokens of an attempt whose sample another attempt took over, since they were paid for.
    /// Skips them if the other attempt used the stored body.
    pub(crate) async fn count_lost(
        &self,
        claimed: &ClaimedSample,
        stored: Option<u32>,
        spent: Spending,
    ) -> Result<(), PipelineError> {
        let attempt = claimed.attempt;
        if claimed.run.ledger.is_some()
            && stored == Some(attempt)
            && self.state.sample(&claimed.sample).await?.is_some_and(|now| now.counted != Some(attempt))
        {
            self.count_spent(claimed, spent).await;
        }
        Ok(())
    }

    /// Sends the finisher its message once the run has no work left.
    pub(crate) async fn finish_if_complete(&self, run: RunId) -> Result<(), PipelineError> {
        let found = self.state.run_with_benchmarks(run).await?;
        if let Some(found) = found.filter(RunWithBenchmarks::is_complete) {
            let finish = Message::Finish { run, generation: found.run.generation };
            self.queues.send(&finish, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Writes a progress event, unless one was written within the last second.
    async fn add_progress_event(&self, claimed: &ClaimedSample) -> Result<(), PipelineError> {
        let (benchmark, now) = (&claimed.benchmark, bench_clock::now());
        let last = benchmark.progress_at.load(Ordering::Relaxed);
        let due = now.since(Timestamp::from_micros(last)) >= PROGRESS_EVERY;
        let mine = due
            && benchmark
                .progress_at
                .compare_exchange(last, now.as_micros(), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !mine {
            return Ok(());
        }
        let (run, plan) = (claimed.sample.run, &benchmark.plan);
        if !self.state.claim_progress_event(run, &benchmark.sort, now, PROGRESS_EVERY).await? {
            return Ok(());
        }
        let counts =
            self.state.shard_counts(run, &claimed.sample.benchmark, plan.attempt, plan.shards).await?;
        let sum = counts.into_iter().fold(ShardCount::default(), ShardCount::plus);
        let event = progress_event(&sum).for_benchmark(&claimed.sample.benchmark);
        self.state.add_event(run, &event, now).await?;
        Ok(())
    }
}

/// Removes keys from texts by a grader, a provider or a sandbox host.
fn without_keys(finished: &SampleResult, keys: &Keys) -> SampleResult {
    let mut finished = finished.clone();
    let Verdict { reason, extracted, detail, .. } = &mut finished.verdict;
    keys.redact_in(reason);
    extracted.as_mut().map(|text| keys.redact_in(text));
    keys.redact_object(detail);
    finished
}

#[allow(clippy::cast_precision_loss)] // counts are far below 2^53
fn progress_event(sum: &ShardCount) -> NewEvent {
    let accuracy = if sum.done == 0 { 0.0 } else { sum.correct as f64 / sum.done as f64 };
    let data = serde_json::json!({
        "completed": sum.done,
        "total": sum.expected,
        "graded": sum.graded,
        "current_accuracy": accuracy,
    });
    NewEvent::new(EventKind::BenchmarkProgress, format!("Progress: {}/{}", sum.done, sum.expected))
        .with_data(data)
}
