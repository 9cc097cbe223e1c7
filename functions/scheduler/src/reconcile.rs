//! Reconciliation: sends lost messages again.
//!
//! Messages can be lost. Every open record has a due time; records long past it get another message. Duplicates are
//! harmless, since receivers check the record first.

use std::time::Duration;

use bench_domain::run::BenchmarkState;
use bench_domain::{RunId, RunStatus, SampleRef, Stage, Timestamp};
use bench_queue::{Message, QueueError, QueueName};
use bench_state::{RunFilter, RunWithBenchmarks, StateError};

use crate::scheduler::Scheduler;

/// Time past due after which a message is sent again. Doubles with each time.
pub const GRACE: Duration = Duration::from_secs(600);
/// Maximum number of doublings: 600 s · 2^7 is 21 hours.
const DOUBLINGS_MAX: u32 = 7;
/// Maximum number of open runs per pass.
const RUNS_MAX: u64 = 10_000;
/// Maximum number of unsettled runs per pass, which are over but not cleaned up.
const UNSETTLED_MAX: usize = 10_000;

/// Messages that reconciliation sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resent {
    /// Messages to plan runs.
    pub plans: u64,
    /// Messages of samples.
    pub samples: u64,
    /// Messages to close or clean up runs.
    pub finishes: u64,
}

/// Reason why reconciliation stopped. The next pass continues.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The state store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl Scheduler {
    /// Sends messages again for open runs that this process works on and that are past due by [`GRACE`].
    pub async fn reconcile(&self) -> Result<Resent, ReconcileError> {
        // Boxed, because the future is large and callers nest it further.
        Box::pin(self.reconcile_after(GRACE)).await
    }

    /// Sends messages again at the start of a host that is the only user of the state. All leases are void then, so
    /// every run that is not planned or not closed gets its message immediately. Samples get theirs only if the queue
    /// has lost its messages; otherwise their messages are still there and visible.
    pub async fn resume(&self) -> Result<Resent, ReconcileError> {
        let lost = Stages {
            answer: self.is_empty(QueueName::Items).await?,
            turns: self.is_empty(QueueName::Turns).await?,
        };
        let mut resent = Resent::default();
        for run in self.open_runs().await? {
            let visited = self.visit(run, When::Now, lost, &mut resent).await;
            visited.unwrap_or_else(|error| log_skipped_run(run, &error));
        }
        self.resend_unsettled(When::Now, &mut resent).await?;
        Ok(resent)
    }

    /// Sends messages again for open runs that this process works on and for all runs that are over but not cleaned
    /// up, if they are past due by `grace`.
    pub async fn reconcile_after(&self, grace: Duration) -> Result<Resent, ReconcileError> {
        let mut resent = Resent::default();
        let when = When::PastDueBy(grace);
        for run in self.open_runs().await? {
            let visited = self.visit(run, when, Stages::ALL, &mut resent).await;
            visited.unwrap_or_else(|error| log_skipped_run(run, &error));
        }
        self.resend_unsettled(when, &mut resent).await?;
        for run in self.state.list_deleted(RUNS_MAX).await? {
            self.queues.send(&Message::Finish { run, generation: 0 }, Duration::ZERO).await?;
            resent.finishes += 1;
        }
        if resent != Resent::default() {
            tracing::info!(
                resent.plans,
                resent.samples,
                resent.finishes,
                "Sent again: {} plans, {} samples, {} finishes",
                resent.plans,
                resent.samples,
                resent.finishes
            );
        }
        Ok(resent)
    }

    async fn is_empty(&self, queue: QueueName) -> Result<bool, QueueError> {
        let depth = self.queues.depth(queue).await?;
        Ok(depth.visible + depth.in_flight + depth.delayed == 0)
    }

    async fn open_runs(&self) -> Result<Vec<RunId>, StateError> {
        let mut open = Vec::new();
        for status in [RunStatus::Running, RunStatus::Queued] {
            let filter = RunFilter { status: Some(status), ..RunFilter::default() };
            open.extend(self.state.list_runs(&filter, 0, RUNS_MAX).await?.runs);
        }
        Ok(open)
    }

    async fn visit(
        &self,
        run: RunId,
        when: When,
        stages: Stages,
        resent: &mut Resent,
    ) -> Result<(), ReconcileError> {
        let Some(found) = self.state.run_with_benchmarks(run).await? else { return Ok(()) };
        if !self.state.works_on(&found.run) {
            // Interrupted: it makes no calls until it is resumed.
            return Ok(());
        }
        self.resend_run(&found, when, resent).await?;
        if stages.answer || stages.turns {
            self.resend_samples(&found, when, stages, resent).await?;
        }
        Ok(())
    }

    /// Sends the finisher's messages again for runs that are over but not settled, since theirs may have been lost.
    async fn resend_unsettled(&self, when: When, resent: &mut Resent) -> Result<(), ReconcileError> {
        for left in self.state.list_unsettled(UNSETTLED_MAX).await? {
            if when.includes(left.since, 0, bench_clock::now()) {
                let finish = Message::Finish { run: left.run, generation: left.generation };
                self.queues.send(&finish, Duration::ZERO).await?;
                resent.finishes += 1;
            }
        }
        Ok(())
    }

    async fn resend_run(
        &self,
        found: &RunWithBenchmarks,
        when: When,
        resent: &mut Resent,
    ) -> Result<(), ReconcileError> {
        let (record, now) = (&found.run, bench_clock::now());
        let (run, generation) = (record.spec.id, record.generation);
        let unplanned = record.planned_generation < generation;
        let complete = found.is_complete();
        if !(unplanned || complete) || !when.includes(record.due_at, record.resends, now) {
            return Ok(());
        }
        if unplanned {
            self.queues.send(&Message::Plan { run, generation }, Duration::ZERO).await?;
            resent.plans += 1;
        } else {
            self.queues.send(&Message::Finish { run, generation }, Duration::ZERO).await?;
            resent.finishes += 1;
        }
        if when != When::Now {
            self.state.note_run_resent(record, now).await?;
        }
        Ok(())
    }

    async fn resend_samples(
        &self,
        found: &RunWithBenchmarks,
        when: When,
        stages: Stages,
        resent: &mut Resent,
    ) -> Result<(), ReconcileError> {
        let (run, generation) = (found.run.spec.id, found.run.generation);
        for benchmark in &found.benchmarks {
            let (BenchmarkState::Running { .. }, Some(plan)) = (&benchmark.state, &benchmark.plan) else {
                continue;
            };
            let counts = self.state.shard_counts(run, &benchmark.name, plan.attempt, plan.shards).await?;
            let unfinished = counts.iter().zip(0_u32..).filter(|(count, _)| count.done < count.expected);
            for (_, shard) in unfinished {
                let mut from = None;
                loop {
                    let (open, next) =
                        self.state.shard_page(run, &benchmark.name, plan.attempt, shard, false, from).await?;
                    let now = bench_clock::now();
                    let mut messages = Vec::new();
                    for record in &open {
                        if !stages.include(record.stage())
                            || !when.includes(record.due_at, record.resends, now)
                        {
                            continue;
                        }
                        let sample = SampleRef {
                            run,
                            benchmark: benchmark.name.clone(),
                            plan: plan.attempt,
                            shards: plan.shards,
                            position: record.position,
                        };
                        // Recorded first: if the message then isn't sent, it is sent later; a missing record would
                        // repeat it in each pass.
                        if when == When::Now || self.state.note_resent(&sample, record).await? {
                            messages.push(Message::for_stage(record.stage(), sample, generation));
                        }
                    }
                    self.queues.send_all(&messages, Duration::ZERO).await?;
                    resent.samples += messages.len() as u64;
                    from = next;
                    if from.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Stages whose samples are checked.
#[derive(Debug, Clone, Copy)]
struct Stages {
    answer: bool,
    turns: bool,
}

impl Stages {
    const ALL: Self = Self { answer: true, turns: true };

    const fn include(self, stage: Stage) -> bool {
        if stage.is_turn() { self.turns } else { self.answer }
    }
}

/// Logs the error of one run, so that it doesn't block the others.
fn log_skipped_run(run: RunId, error: &ReconcileError) {
    tracing::error!(run.id = %run, %error, "Reconciliation passed over run {run}: {error}");
}

/// Selects what to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Everything, due or not: no other process is working, and earlier leases are void.
    Now,
    /// Everything past due by this time, doubled for each previous resend.
    PastDueBy(Duration),
}

impl When {
    fn includes(self, due_at: Timestamp, resends: u32, now: Timestamp) -> bool {
        match self {
            Self::Now => true,
            Self::PastDueBy(grace) => now >= due_at.plus(doubled(grace, resends)),
        }
    }
}

fn doubled(grace: Duration, times: u32) -> Duration {
    grace.saturating_mul(1 << times.min(DOUBLINGS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resend_waits_twice_as_long() {
        assert_eq!(doubled(GRACE, 0).as_secs(), 600);
        assert_eq!(doubled(GRACE, 3).as_secs(), 4_800);
        assert_eq!(doubled(GRACE, 99), doubled(GRACE, DOUBLINGS_MAX));
    }
}
