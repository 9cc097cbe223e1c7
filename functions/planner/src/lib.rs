//! Plans runs from the SQS queue `plans`: chooses their items and creates their samples.
//!
//! The planner holds a run under a lease. For each benchmark it copies the dataset into the blob store, chooses the
//! items, writes the samples' records under keys that contain its attempt, makes them visible with one conditional
//! write, and sends a message for each. It can be killed at any point and repeated safely: records that an earlier
//! attempt wrote but didn't make visible are never read.

mod choose;
mod judge;
mod outline;
mod rejudged;
mod requeue;
mod selection;
mod support;

use std::panic::AssertUnwindSafe;

use bench_benchmarks::{Benchmark, effective_options};
use bench_blobs::BlobError;
use bench_datasets::{DatasetError, Library, NoProgress, Progress};
use bench_domain::run::{BenchmarkState, DatasetUse, OwnTimeout, Plan};
use bench_domain::sample::shards_for;
use bench_domain::{BenchmarkName, Code, Position, RunId, RunState, SampleRef, Stage};
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent, forward, handle_batch, panic_text};
use bench_queue::{Message, QueueError, QueueName, Queues};
use bench_state::{
    BenchmarkRecord, EventKind, NewEvent, PlanClaim, PlannedSample, RunRecord, RunWithBenchmarks, State,
    StateError, Transition,
};
use futures_util::FutureExt;

use crate::requeue::Reopened;

pub use crate::outline::{Outline, Wording, outline};
pub use crate::selection::{Obstacle, Selection};

/// Maximum number of retries of a conditional write that conflicts with other writers.
const RACES_MAX: u32 = 20;
/// Number of messages passed to the queue at once.
const MESSAGES_AT_ONCE: usize = 1_000;

/// The planner's function.
pub struct Planner {
    /// Runs and samples.
    pub state: State,
    /// Queues for the messages of samples.
    pub queues: Queues,
    /// Source of datasets.
    pub library: Library,
    /// Receives the progress of downloads.
    pub progress: Box<dyn Progress>,
    /// Maximum number of shards of a benchmark of a run. Where one process commits all samples, a second shard gains nothing,
    /// and a group of commits writes one counter for each.
    pub shards_max: u32,
}

/// Reason why a run could not be planned now. Its message is delivered again.
#[derive(Debug, thiserror::Error)]
enum PlanError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Dataset(DatasetError),
    #[error("the run kept changing while it was planned")]
    Races,
    #[error("planning panicked: {0}")]
    Panic(String),
}

impl Planner {
    /// Creates a planner that doesn't report progress and has as many shards as the items need.
    pub fn new(state: State, queues: Queues, library: Library) -> Self {
        Self { state, queues, library, progress: Box::new(NoProgress), shards_max: u32::MAX }
    }

    /// Handles a batch of messages.
    pub async fn handle(&self, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        handle_batch(event, QueueName::Plans, &self.queues, |message| async move {
            match message {
                // Boxed, as below it: the levels hold the states of all that they call, and threads have little stack.
                Message::Plan { run, generation } => Box::pin(self.plan(run, generation, deadline)).await,
                other => Ok(forward(other, QueueName::Plans, &self.queues).await?),
            }
        })
        .await
    }

    /// Returns the number of shards for `items` items.
    fn shards_for(&self, items: u64) -> u32 {
        shards_for(items).min(self.shards_max)
    }

    async fn plan(&self, run: RunId, generation: u32, deadline: Deadline) -> Result<(), PlanError> {
        let attempt = match self.state.claim_plan(run, generation, bench_clock::now(), deadline.0).await? {
            PlanClaim::Claimed { attempt } => attempt,
            // Busy: the current holder will finish, or reconciliation sends the message again after the lease.
            PlanClaim::Busy | PlanClaim::Nothing => return Ok(()),
        };
        tracing::info!(run.id = %run, run.generation = generation, plan.attempt = attempt, "Planning run {run}");
        let planned =
            AssertUnwindSafe(Box::pin(self.plan_claimed(run, generation, attempt))).catch_unwind().await;
        let planned = planned.unwrap_or_else(|panic| Err(PlanError::Panic(panic_text(panic.as_ref()))));
        // Lets the next attempt plan the run before the lease ends.
        if !matches!(planned, Ok(true))
            && let Err(error) = self.state.release_plan(run, attempt, bench_clock::now()).await
        {
            // Only the error of planning is returned; this one just means that the lease has to end first.
            tracing::warn!(run.id = %run, %error, "The plan of run {run} could not be given back: {error}");
        }
        planned.map(drop)
    }

    /// Returns `false` if the run ended meanwhile.
    async fn plan_claimed(&self, run: RunId, generation: u32, attempt: u32) -> Result<bool, PlanError> {
        let Some(mut found) = self.started(run, generation).await? else { return Ok(false) };
        for index in 0..found.benchmarks.len() {
            if index > 0 {
                // A run that was canceled meanwhile needs no more plans.
                match self.open_run(run, generation).await? {
                    Some(fresh) => found = fresh,
                    None => return Ok(false),
                }
            }
            let Some(benchmark) = found.benchmarks.get(index) else { continue };
            Box::pin(self.plan_benchmark(&found, benchmark, generation, attempt)).await?;
        }
        self.state.note_planned(run, generation).await?;
        let complete = self.open_run(run, generation).await?.is_some_and(|found| found.is_complete());
        if complete {
            let finish = Message::Finish { run, generation };
            self.queues.send(&finish, std::time::Duration::ZERO).await?;
        }
        Ok(true)
    }

    async fn open_run(&self, run: RunId, generation: u32) -> Result<Option<RunWithBenchmarks>, StateError> {
        let found = self.state.run_with_benchmarks(run).await?;
        Ok(found.filter(|found| found.run.generation == generation && found.run.state.status().is_open()))
    }

    /// Sets the run to running if necessary, and returns it. `None` if it is over or of another generation.
    async fn started(&self, run: RunId, generation: u32) -> Result<Option<RunWithBenchmarks>, PlanError> {
        for _ in 0..RACES_MAX {
            let Some(found) = self.open_run(run, generation).await? else { return Ok(None) };
            if matches!(found.run.state, RunState::Running { .. }) {
                return Ok(Some(found));
            }
            let now = bench_clock::now();
            let next = found.run.state.start(now).map_err(StateError::from)?;
            let event = match generation {
                1 => NewEvent::new(EventKind::RunStarted, "Run started"),
                _ => NewEvent::new(EventKind::RunResumed, "Run resumed"),
            };
            self.state.change_run(&found.run, &next, generation, &event, now).await?;
        }
        Err(PlanError::Races)
    }

    async fn plan_benchmark(
        &self,
        found: &RunWithBenchmarks,
        benchmark: &BenchmarkRecord,
        generation: u32,
        attempt: u32,
    ) -> Result<(), PlanError> {
        let run = found.run.spec.id;
        if benchmark.enqueued_generation >= generation {
            return Ok(());
        }
        let what = Reopened::select(&found.run);
        let benchmark = match &benchmark.state {
            BenchmarkState::Succeeded { report, .. } if !what.reaches(benchmark, report) => return Ok(()),
            BenchmarkState::Running { .. } => {
                if generation > 1 {
                    self.reopen(run, benchmark, what).await?;
                }
                benchmark.clone()
            }
            BenchmarkState::Pending => match Box::pin(self.make_plan(found, benchmark, attempt)).await? {
                Some(planned) => planned,
                None => return Ok(()),
            },
            // Left over from an earlier generation.
            _ => match self.requeue(run, benchmark, what).await? {
                Some(reopened) if reopened.plan.is_some() => reopened,
                Some(pending) => match self.make_plan(found, &pending, attempt).await? {
                    Some(planned) => planned,
                    None => return Ok(()),
                },
                None => return Ok(()),
            },
        };
        if generation == 1 {
            self.send_all_samples(&found.run, &benchmark).await?;
        } else {
            self.send_open_samples(&found.run, &benchmark).await?;
        }
        self.state.note_enqueued(run, &benchmark, generation).await?;
        Ok(())
    }

    /// Plans a pending benchmark. Returns `None` if it can't be run; its state then says so.
    async fn make_plan(
        &self,
        found: &RunWithBenchmarks,
        record: &BenchmarkRecord,
        attempt: u32,
    ) -> Result<Option<BenchmarkRecord>, PlanError> {
        let spec = &found.run.spec;
        let run = spec.id;
        let outcome = match bench_benchmarks::find_for_run(spec, &record.name) {
            Some(benchmark) => Box::pin(self.prepare(found, record, benchmark, attempt)).await?,
            None => {
                let why = format!("this program has no benchmark `{}`", record.name);
                Err(Obstacle::Failed(Code::BenchmarkNotFound, why))
            }
        };
        let now = bench_clock::now();
        let (next, plan, event) = match outcome {
            Ok((plan, items)) => {
                self.state.write_plan(run, &record.name, &plan, &items, now).await?;
                let next = record.state.start(now).map_err(StateError::from)?;
                let data = serde_json::json!({ "completed": 0, "total": plan.samples() });
                let message = format!("Started {} with {} samples", record.name, plan.samples());
                let event = NewEvent::new(EventKind::BenchmarkStarted, message)
                    .for_benchmark(&record.name)
                    .with_data(data);
                (next, Some(plan), Some(event))
            }
            Err(Obstacle::NeedsSetup(code, error)) => {
                (record.state.needs_setup(code, error).map_err(StateError::from)?, None, None)
            }
            Err(Obstacle::Failed(code, error)) => {
                let message = format!("Benchmark failed: {error}");
                let event = NewEvent::new(EventKind::BenchmarkFailed, message).for_benchmark(&record.name);
                (record.state.fail(now, code, error).map_err(StateError::from)?, None, Some(event))
            }
        };
        let changed =
            self.state.change_benchmark(run, record, &next, plan.as_ref(), event.as_ref(), now).await?;
        if changed == Transition::Raced {
            // Another attempt was faster, and its plan counts.
            tracing::info!(run.id = %run, benchmark = %record.name, "Another attempt planned {}", record.name);
        }
        let fresh = self.state.run_with_benchmarks(run).await?;
        let fresh = fresh.and_then(|fresh| fresh.benchmark(record.name.as_str()).cloned());
        Ok(fresh.filter(|fresh| matches!(fresh.state, BenchmarkState::Running { .. })))
    }

    async fn prepare(
        &self,
        found: &RunWithBenchmarks,
        record: &BenchmarkRecord,
        benchmark: &'static dyn Benchmark,
        attempt: u32,
    ) -> Result<Result<(Plan, Vec<PlannedSample>), Obstacle>, PlanError> {
        let spec = &found.run.spec;
        if let Some(rejudges) = spec.rejudges {
            return self.prepare_again(spec, rejudges, &record.name, benchmark, attempt).await;
        }
        let selection = Selection::of_run(spec, benchmark, &record.name);
        // A failure of the store may be temporary, so the run is planned again.
        let outlined = Box::pin(outline(&self.library, self.progress.as_ref(), &selection)).await;
        let Outline { items: chosen, of, wording } = match outlined.map_err(PlanError::Dataset)? {
            Ok(outline) => outline,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let facts = benchmark.metadata();
        let judge = match judge::of_run(spec, benchmark, &wording.texts) {
            Ok(judge) => judge,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let items = chosen.len() as u64;
        let samples_per_item = spec.samples.unwrap_or(facts.samples_per_item);
        if let Some(obstacle) = over_limit(found, &record.name, items, samples_per_item) {
            return Ok(Err(obstacle));
        }
        if let Some(obstacle) = self.store_official_files(benchmark, &wording.dataset, &chosen).await? {
            return Ok(Err(obstacle));
        }
        let protocol_generation = (facts.generation)();
        let generation = spec.generation.over(&protocol_generation);
        let plan = Plan {
            attempt,
            shards: self.shards_for(items),
            items,
            samples_per_item,
            dataset_items: of,
            dataset: wording.dataset,
            prompt_digest: wording.template.digest,
            prompt_source: wording.template.source.as_str().to_owned(),
            protocol: facts.protocol.to_owned(),
            protocol_name: facts.protocol_name.to_owned(),
            options: effective_options(benchmark, selection.options),
            generation: generation.clone(),
            protocol_generation: Some(protocol_generation).filter(|protocol| *protocol != generation),
            protocol_samples: Some(facts.samples_per_item).filter(|protocol| *protocol != samples_per_item),
            timeout: OwnTimeout::new(spec.limits.timeout_seconds, facts.item_timeout_seconds),
            templates: wording.templates,
            judge,
        };
        Ok(Ok((plan, chosen)))
    }

    /// Stores the official files of the chosen items before any of them is asked. Returns the obstacle if one isn't available.
    async fn store_official_files(
        &self,
        benchmark: &dyn Benchmark,
        used: &DatasetUse,
        chosen: &[PlannedSample],
    ) -> Result<Option<Obstacle>, PlanError> {
        let items: Vec<(&str, Option<&str>)> =
            chosen.iter().map(|item| (item.item_id.as_str(), item.source_id.as_deref())).collect();
        let stored = self.library.store_official_files(benchmark, used, &items, self.progress.as_ref());
        match Box::pin(stored).await {
            Ok(()) => Ok(None),
            Err(error @ DatasetError::Blob(BlobError::Store { .. })) => Err(PlanError::Dataset(error)),
            Err(error) => {
                let why = format!("official files of its items are not available: {error}");
                Ok(Some(Obstacle::Failed(Code::DatasetUnavailable, why)))
            }
        }
    }

    async fn send_all_samples(&self, run: &RunRecord, benchmark: &BenchmarkRecord) -> Result<(), PlanError> {
        let Some(plan) = &benchmark.plan else { return Ok(()) };
        let items = u32::try_from(plan.items).unwrap_or(u32::MAX);
        let mut positions = (0..items)
            .flat_map(|item| (0..plan.samples_per_item).map(move |sample| Position { item, sample }))
            .peekable();
        while positions.peek().is_some() {
            let some = positions.by_ref().take(MESSAGES_AT_ONCE);
            let messages: Vec<Message> =
                some.map(|position| message(run, benchmark, plan, position, Stage::Answer)).collect();
            self.queues.send_all(&messages, std::time::Duration::ZERO).await?;
        }
        Ok(())
    }
}

/// Returns an obstacle if a benchmark's samples, together with those of the benchmarks planned before it, exceed the
/// run's limit. The order was checked against the size of the published dataset; this checks the size of the actual
/// one.
fn over_limit(
    found: &RunWithBenchmarks,
    name: &BenchmarkName,
    items: u64,
    samples_per_item: u32,
) -> Option<Obstacle> {
    let limit = found.run.samples_max?;
    let others = found.benchmarks.iter().filter(|other| other.name != *name);
    let planned: u64 = others.filter_map(|other| other.plan.as_ref()).map(Plan::samples).sum();
    let samples = items.saturating_mul(samples_per_item.into());
    (planned.saturating_add(samples) > limit).then(|| {
        Obstacle::Failed(Code::SamplesLimit, format!(
            "{name} has {samples} samples in this run, and {planned} are planned for its other benchmarks: more than \
             the {limit} that the server takes in one order (BENCH_LIMIT_SAMPLES_PER_ORDER); order fewer samples or \
             items"
        ))
    })
}

fn message(
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    plan: &Plan,
    position: Position,
    stage: Stage,
) -> Message {
    let (benchmark, plan, shards) = (benchmark.name.clone(), plan.attempt, plan.shards);
    let sample = SampleRef { run: run.spec.id, benchmark, plan, shards, position };
    Message::for_stage(stage, sample, run.generation)
}

#[cfg(test)]
mod tests;
