//! Storing what came back, ending samples, telling of progress.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bench_blobs::BlobError;
use bench_domain::{Code, Outcome, RunId, SampleBody, Timestamp, Usage, Verdict};
use bench_inference::Keys;
use bench_lambda::metrics;
use bench_queue::Message;
use bench_state::{Commit, EventKind, Finished, NewEvent, ShardCount};

use crate::load::run::BenchmarkContext;
use crate::{AskError, Desk, InHand};

/// How often storing an answer is tried: it was paid for.
const STORE_TRIES: u32 = 6;
/// Progress of a benchmark is told of at most once in this time.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Where a body in hand is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBody {
    /// The attempt that stored it.
    pub attempt: u32,
    /// SHA-256 of the stored bytes, lowercase hex.
    pub sha256: String,
}

impl Desk {
    /// Stores what came back under this attempt, before anything else is done with it.
    ///
    /// # Errors
    /// When the store does not take it for some seconds.
    pub async fn store(&self, hand: &InHand<'_>, body: &SampleBody) -> Result<StoredBody, BlobError> {
        let attempt = hand.claimed.attempt;
        let mut wait = Duration::from_millis(200);
        for _ in 1..STORE_TRIES {
            match self.blobs.put_body(hand.sample, attempt, body).await {
                Ok(sha256) => return Ok(StoredBody { attempt, sha256 }),
                Err(error) => {
                    tracing::warn!(run.id = %hand.sample.run, %error, "Storing an answer failed: {error}")
                }
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        let sha256 = self.blobs.put_body(hand.sample, attempt, body).await?;
        Ok(StoredBody { attempt, sha256 })
    }

    /// Ends a sample without a grade, with the answer that was handed over if one was.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn end(&self, hand: &InHand<'_>, verdict: Verdict) -> Result<(), AskError> {
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(()) };
        if verdict.outcome == Outcome::InfrastructureError {
            let reason = hand.run.keys.redact(&verdict.reason);
            // The reason may tell of an item that nobody else may see.
            let why = if benchmark.is_private() { verdict.outcome.as_str() } else { &*reason };
            let code = verdict.code.map_or("", Code::as_str);
            tracing::warn!(run.id = %hand.sample.run, error.code = code, "Sample {} ended: {why}", hand.sample);
        }
        let finished = hand.claimed.record.ended(verdict, Timestamp::now());
        self.commit(hand, benchmark, &finished, Usage::default()).await
    }

    /// Ends a sample; `usage` are the tokens of this stage that count for a budget with it.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn commit(
        &self,
        hand: &InHand<'_>,
        benchmark: &BenchmarkContext,
        finished: &Finished,
        usage: Usage,
    ) -> Result<(), AskError> {
        let attempt = hand.claimed.attempt;
        let spent = self.spending_of(usage);
        let finished = &without_keys(finished, &hand.run.keys);
        match self.state.commit_spending(hand.sample, &benchmark.sort, attempt, finished, spent).await? {
            Commit::Lost => {
                self.count_lost(hand, finished.body.as_ref().map(|body| body.attempt), usage).await?;
                tracing::info!(run.id = %hand.sample.run, "Sample {} was taken over", hand.sample);
                return Ok(());
            }
            Commit::Done { closed } => {
                self.told_tokens(usage_of(self.stage, finished));
                if closed {
                    self.finish_if_complete(hand.sample.run).await?;
                }
            }
        }
        let is_graded = finished.verdict.outcome.is_graded();
        metrics::count(if is_graded { metrics::SAMPLES_GRADED } else { metrics::SAMPLES_FAILED }, 1.0);
        // Nothing depends on it: a sample that is over stays so when its progress cannot be told.
        if let Err(error) = self.tell_progress(hand, benchmark).await {
            tracing::debug!(%error, "Progress was not told");
        }
        Ok(())
    }

    /// Counts the tokens of an attempt whose sample was taken over, if nobody took over what it stored: that was
    /// paid for all the same.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub async fn count_lost(
        &self,
        hand: &InHand<'_>,
        stored: Option<u32>,
        usage: Usage,
    ) -> Result<(), AskError> {
        let attempt = hand.claimed.attempt;
        if hand.run.ledger.is_some()
            && stored == Some(attempt)
            && self.state.sample(hand.sample).await?.is_some_and(|now| now.counted != Some(attempt))
        {
            self.count(hand, usage).await;
        }
        Ok(())
    }

    /// Counts the tokens of an answer or a reply for operators.
    pub fn told_tokens(&self, usage: Option<Usage>) {
        self.vitals.count(usage);
    }

    /// Sends for the finisher when nothing is left to do for the run.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn finish_if_complete(&self, run: RunId) -> Result<(), AskError> {
        let found = self.state.run_with_benchmarks(run).await?;
        if let Some(found) = found.filter(bench_state::RunWithBenchmarks::is_complete) {
            let finish = Message::Finish { run, generation: found.run.generation };
            self.queues.send(&finish, Duration::ZERO).await?;
        }
        Ok(())
    }

    async fn tell_progress(&self, hand: &InHand<'_>, benchmark: &BenchmarkContext) -> Result<(), AskError> {
        let now = Timestamp::now();
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
        let (run, plan) = (hand.sample.run, &benchmark.plan);
        if !self.state.may_tell_progress(run, &benchmark.sort, now, PROGRESS_EVERY).await? {
            return Ok(());
        }
        let counts = self.state.shard_counts(run, &hand.sample.benchmark, plan.attempt, plan.shards).await?;
        let sum = counts.into_iter().fold(ShardCount::default(), ShardCount::plus);
        let event = progress_event(&sum).of(&hand.sample.benchmark);
        self.state.add_event(run, &event, now).await?;
        Ok(())
    }
}

/// The end of a sample without keys in what a grader, a provider or a sandbox host said of it.
fn without_keys(finished: &Finished, keys: &Keys) -> Finished {
    let mut finished = finished.clone();
    let Verdict { reason, extracted, detail, .. } = &mut finished.verdict;
    keys.redact_in(reason);
    extracted.as_mut().map(|text| keys.redact_in(text));
    keys.redact_object(detail);
    finished
}

/// Tokens that a commit tells operators of. Those of a judge are told of with each reply.
const fn usage_of(stage: bench_domain::sample::Stage, finished: &Finished) -> Option<Usage> {
    match stage {
        bench_domain::sample::Stage::Answer => finished.usage,
        bench_domain::sample::Stage::Judge | bench_domain::sample::Stage::Sandbox => None,
    }
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
    NewEvent::new(EventKind::BenchmarkProgress, format!("Progress: {}/{}", sum.done, sum.expected)).with(data)
}
