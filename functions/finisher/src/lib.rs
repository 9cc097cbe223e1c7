//! Finishes runs from the SQS queue `finishes`: scores, metrics and final status.
//!
//! The finisher reads every sample of a run once, makes each benchmark's report and the index of its samples, and closes
//! the run by conditional writes. It also closes the open benchmarks of a run that ended early, removes the caller's key, and cleans up
//! after a deleted run. It can be killed at any point and repeated safely.

mod counted;
mod deleted;
mod index;
mod sandboxes;
mod stopped;

use std::collections::BTreeSet;
use std::time::Duration;

use bench_benchmarks::{FinishedSample, GroupTally};
use bench_blobs::{BlobError, Blobs};
use bench_domain::report::{BenchmarkReport, ReportBuilder};
use bench_domain::run::BenchmarkState;
use bench_domain::{CauseCounts, Code, Outcome, ReportedModels, RunId, RunStatus};
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent, forward, handle_batch};
use bench_queue::{Message, QueueError, QueueName, Queues};
use bench_state::credentials::Credentials;
use bench_state::{
    BenchmarkRecord, EventKind, ItemIndex, NewEvent, RunRecord, RunWithBenchmarks, Shards, State, StateError,
    Transition,
};

use crate::index::Index;

/// Number of samples read per page.
const PAGE: u64 = 200;
/// Maximum number of retries of a conditional write that conflicts with other writers.
const RACES_MAX: u32 = 20;
/// Maximum number of causes of errors that a report lists.
const CAUSES_LISTED_MAX: usize = 10;
/// Interval between checks of a stopped or deleted run while answers are pending.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The finisher's function.
pub struct Finisher {
    /// Runs and samples.
    pub state: State,
    /// The queues.
    pub queues: Queues,
    /// Bodies and exports, for deleted runs.
    pub blobs: Blobs,
    /// Callers' keys, which are deleted when their run is over.
    pub credentials: Credentials,
}

/// Report of a benchmark, with what was found while its samples were read.
struct Report {
    report: BenchmarkReport,
    /// Number of samples in progress.
    in_hand: u64,
    /// Index of the samples that was written.
    index: Option<ItemIndex>,
}

/// Reason why a run could not be closed now. Its message is delivered again.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// The state store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The blob store failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Other writers kept changing the run.
    #[error("the run kept changing while it was closed")]
    Races,
}

impl Finisher {
    /// Handles a batch of messages.
    pub async fn handle(&self, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        handle_batch(event, QueueName::Finishes, &self.queues, |message| async move {
            match message {
                Message::Finish { run, generation } => self.finish(run, generation, deadline).await,
                other => Ok(forward(other, QueueName::Finishes, &self.queues).await?),
            }
        })
        .await
    }

    async fn finish(&self, run: RunId, generation: u32, deadline: Deadline) -> Result<(), FinishError> {
        let mut claimed = false;
        for _ in 0..RACES_MAX {
            let Some(found) = self.state.any_run_with_benchmarks(run).await? else {
                self.state.note_settled(run, generation).await?;
                return Ok(());
            };
            if found.run.deleted {
                return self.clear_up(&found).await;
            }
            if found.run.generation != generation {
                return Ok(());
            }
            if !found.run.state.status().is_open() {
                return self.settle(&found).await;
            }
            if !found.is_complete() {
                return Ok(());
            }
            // Workers that end the last samples at the same time both send this message.
            if !claimed && !self.state.claim_finish(run, generation, bench_clock::now(), deadline.0).await? {
                return Ok(());
            }
            claimed = true;
            match self.close(&found).await {
                Ok(Transition::Done) => tracing::info!(run.id = %run, "Finished run {run}"),
                Ok(Transition::Raced | Transition::Limited(_)) => {}
                Err(error) => {
                    // Lets its message be handled before the claim ends.
                    self.release(run, generation).await;
                    return Err(error);
                }
            }
        }
        self.release(run, generation).await;
        Err(FinishError::Races)
    }

    /// Gives the claim back after an error, which the caller returns. If this fails too, the claim ends by itself.
    async fn release(&self, run: RunId, generation: u32) {
        if let Err(error) = self.state.release_finish(run, generation).await {
            tracing::warn!(run.id = %run, %error, "Finishing run {run} could not be given back: {error}");
        }
    }

    /// Closes every open benchmark, then the run.
    async fn close(&self, found: &RunWithBenchmarks) -> Result<Transition, FinishError> {
        let mut states = Vec::with_capacity(found.benchmarks.len());
        for benchmark in &found.benchmarks {
            let state = match &benchmark.state {
                BenchmarkState::Running { .. } => match self.close_benchmark(&found.run, benchmark).await? {
                    Some(closed) => closed,
                    None => return Ok(Transition::Raced),
                },
                other => other.clone(),
            };
            states.push((benchmark, state));
        }
        let now = bench_clock::now();
        let scores: Vec<Option<f64>> =
            states.iter().map(|(_, state)| state.report().and_then(|report| report.score)).collect();
        let failures: Vec<String> = states
            .iter()
            .filter_map(|(benchmark, state)| Some(format!("{}: {}", benchmark.name, state.error()?)))
            .collect();
        let (next, event) = if failures.is_empty() {
            let overall = mean(&scores);
            let data = serde_json::json!({ "overall_score": overall, "completed_benchmarks": states.len() });
            let message = match overall {
                Some(score) => format!("Run completed with overall score: {:.2}%", score * 100.0),
                None => "Run completed".to_owned(),
            };
            let next = found.run.state.succeed(now, overall).map_err(StateError::from)?;
            (next, NewEvent::new(EventKind::RunCompleted, message).with_data(data))
        } else {
            let error = if failures.len() == states.len() && failures.len() > 1 {
                format!("All benchmarks failed. {}", failures.join("; "))
            } else {
                failures.join("; ")
            };
            let code = code_of_all(states.iter().filter_map(|(_, state)| state.error_code()));
            let data = serde_json::json!({ "failed_benchmarks": failures.len() });
            let next = found.run.state.fail(now, code, error.clone()).map_err(StateError::from)?;
            (next, NewEvent::new(EventKind::RunFailed, format!("Run failed: {error}")).with_data(data))
        };
        // Conditional: closing the benchmarks didn't change the run, but a cancel may have.
        Ok(self.state.change_run(&found.run, &next, found.run.generation, &event, now).await?)
    }

    /// Closes one benchmark. Returns `None` if another writer changed it.
    async fn close_benchmark(
        &self,
        run: &RunRecord,
        benchmark: &BenchmarkRecord,
    ) -> Result<Option<BenchmarkState>, FinishError> {
        let Some(Report { report, index, .. }) = self.report(run, benchmark).await? else { return Ok(None) };
        self.note_index(run, benchmark, index).await?;
        let now = bench_clock::now();
        // Shows the last sample to clients that follow the events. Repeating the event is harmless.
        self.state.add_event(run.spec.id, &last_progress(benchmark, &report), now).await?;
        let next = benchmark.state.close(now, report).map_err(StateError::from)?;
        let event = closing_event(benchmark, &next);
        let changed =
            self.state.change_benchmark(run.spec.id, benchmark, &next, None, Some(&event), now).await?;
        Ok((changed == Transition::Done).then_some(next))
    }

    /// Returns the current report of a benchmark, and writes the index of its samples if none is in progress. `None` if the
    /// benchmark was not planned.
    async fn report(
        &self,
        run: &RunRecord,
        benchmark: &BenchmarkRecord,
    ) -> Result<Option<Report>, FinishError> {
        let Some(plan) = &benchmark.plan else { return Ok(None) };
        let (mut builder, mut in_hand) = (ReportBuilder::new(run.spec.model.is_asked()), 0);
        let known = bench_benchmarks::find_for_run(&run.spec, &benchmark.name);
        let mut metrics = known.and_then(|known| known.metrics());
        if let Some(metrics) = &mut metrics {
            metrics.begin(plan.items, plan.samples_per_item);
        }
        // An error message may quote an item that only the run's owner may see.
        let is_private = bench_benchmarks::is_private(&benchmark.name, Some(&plan.dataset));
        let mut causes = CauseCounts::default();
        let mut models = ReportedModels::default();
        let mut index = Index::new(self, run, benchmark, plan);
        let mut offset = 0;
        while offset < plan.samples() {
            let page = self.state.samples_page(run.spec.id, benchmark, offset, PAGE).await?;
            for sample in &page {
                in_hand += u64::from(self.is_in_hand(sample));
                if in_hand > 0 {
                    index.abandon();
                }
                index.add(sample).await;
                sample.summary().iter().for_each(|summary| builder.add(summary));
                sample.reported_model().into_iter().for_each(|model| models.add(model));
                if let Some(finished) = &sample.finished
                    && finished.verdict.outcome == Outcome::InfrastructureError
                    && !is_private
                {
                    causes.add(finished.verdict.code, &finished.verdict.reason, 1);
                }
                if let (Some(metrics), Some(finished)) = (&mut metrics, &sample.finished) {
                    let group = sample.group.as_deref();
                    metrics.add(&FinishedSample {
                        item: sample.position.item,
                        group,
                        verdict: &finished.verdict,
                    });
                }
            }
            offset += PAGE;
        }
        let mut report = builder
            .finish(plan.items, plan.samples_per_item, run.spec.coverage_min, run.spec.price)
            .with_judge_price(run.spec.prices().judge)
            .with_error_causes(causes.finish(CAUSES_LISTED_MAX))
            .with_reported_models(models);
        if let Some(known) = known {
            report.extra = known.extra_metrics(&tallies(&report));
            report = if known.scores_are_shares() {
                report.with_clamped_interval()
            } else {
                report.without_share_interval()
            };
        }
        if let Some(metrics) = metrics {
            report.extra.extend(metrics.finish(plan.samples()));
        }
        let has_budget = run.spec.budget.is_set();
        let simulates_users = run.spec.user.is_some()
            && bench_benchmarks::find(benchmark.name.as_str())
                .is_some_and(|known| known.dialogue().is_some());
        if has_budget
            || simulates_users
            || report.without_usage > 0
            || report.judge_usage.is_some()
            || run.spec.judge.is_some()
        {
            let shards = Shards::from_benchmark(benchmark);
            let count = self.state.run_count(run.spec.id, shards.as_slice()).await?;
            let (spent, judge_spent) = (count.spent(), count.judge_spent());
            // Estimates count for as long as the run is shown, so the report has to keep them.
            report.spent = Some(spent).filter(|spent| has_budget || spent.estimated_tokens > 0);
            if simulates_users {
                let spent = count.user_spent();
                report.user_spent = Some(spent);
                let price = run.spec.user.as_ref().and_then(|user| user.price);
                report.user_cost = price.map(|price| price.cost(spent));
            }
            report.judge_spent = Some(judge_spent)
                .filter(|_| run.spec.judge.is_some())
                .filter(|spent| has_budget || spent.estimated_tokens > 0);
        }
        Ok(Some(Report { report, in_hand, index: index.finish().await }))
    }

    /// Cleans up after a run that is over: closes or skips its open benchmarks and removes its key.
    async fn settle(&self, found: &RunWithBenchmarks) -> Result<(), FinishError> {
        let run = &found.run;
        if !self.close_stopped(found).await? {
            // Attempts are in progress, so the finisher checks again later with a new message.
            let (run, generation) = (run.spec.id, run.generation);
            return Ok(self.queues.send(&Message::Finish { run, generation }, LOOK_AGAIN).await?);
        }
        self.state.skip_open_benchmarks(run.spec.id, stopped::why_skipped(run), bench_clock::now()).await?;
        self.credentials.delete_up_to_generation(run.spec.id, run.generation).await?;
        if self.state.note_settled(run.spec.id, run.generation).await? {
            self.count_end(run.spec.id).await;
        }
        match run.state.status() {
            RunStatus::Succeeded => Ok(()),
            _ => self.end_sandboxes(run.spec.id, run.generation).await,
        }
    }
}

/// Converts the report's groups for the benchmark's metrics. A benchmark without groups counts as one group.
fn tallies(report: &BenchmarkReport) -> Vec<GroupTally> {
    if report.groups.is_empty() {
        let correct = report.outcomes.get(Outcome::Correct);
        let (graded, planned) = (report.graded, report.planned);
        return vec![GroupTally { group: None, correct, graded, planned }];
    }
    let groups = report.groups.iter().map(|(name, group)| {
        let (correct, graded) = (group.correct, group.graded);
        GroupTally { group: Some(name.clone()), correct, graded, planned: group.ended }
    });
    groups.collect()
}

/// Returns the unweighted mean. `None` unless every benchmark has a score.
#[allow(clippy::cast_precision_loss)] // a run has few benchmarks
fn mean(scores: &[Option<f64>]) -> Option<f64> {
    let known: Option<Vec<f64>> = scores.iter().copied().collect();
    known.filter(|known| !known.is_empty()).map(|known| known.iter().sum::<f64>() / known.len() as f64)
}

/// Returns the code shared by all benchmarks without a result, or the code for several reasons.
fn code_of_all(codes: impl Iterator<Item = Code>) -> Code {
    let codes: BTreeSet<Code> = codes.collect();
    match (codes.first(), codes.len()) {
        (Some(code), 1) => *code,
        _ => Code::BenchmarksFailed,
    }
}

fn last_progress(benchmark: &BenchmarkRecord, report: &BenchmarkReport) -> NewEvent {
    let total = report.planned;
    let data = serde_json::json!({
        "completed": report.outcomes.total(),
        "total": total,
        "graded": report.graded,
        "current_accuracy": report.accuracy_all,
    });
    let message = format!("Progress: {}/{total}", report.outcomes.total());
    NewEvent::new(EventKind::BenchmarkProgress, message).for_benchmark(&benchmark.name).with_data(data)
}

fn closing_event(benchmark: &BenchmarkRecord, state: &BenchmarkState) -> NewEvent {
    let data = state.report().map(report_data);
    let event = match (state, state.report().and_then(|report| report.score)) {
        (BenchmarkState::Succeeded { .. }, Some(score)) => {
            let message = format!("Completed {} with score {:.2}%", benchmark.name, score * 100.0);
            NewEvent::new(EventKind::BenchmarkCompleted, message)
        }
        _ => {
            let message = format!("Benchmark failed: {}", state.error().unwrap_or("no score"));
            NewEvent::new(EventKind::BenchmarkFailed, message)
        }
    };
    let event = event.for_benchmark(&benchmark.name);
    match data {
        Some(data) => event.with_data(data),
        None => event,
    }
}

/// Returns the figures of a report that fit into an event. Leaves out lists that grow with the benchmark.
fn report_data(report: &BenchmarkReport) -> serde_json::Value {
    serde_json::json!({
        "score": report.score,
        "accuracy": report.accuracy_all,
        "coverage": report.coverage,
        "sampled_items": report.items,
        "graded": report.graded,
        "outcomes": report.outcomes,
    })
}
