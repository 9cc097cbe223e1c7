//! Records of runs and of their benchmarks.

use bench_domain::run::{BenchmarkState, Plan, RunState};
use bench_domain::{BenchmarkName, Position, RunSpec, RunStatus, Spending, Timestamp};
use serde::{Deserialize, Serialize};

use super::provider_wait::{PROVIDER_WAIT, ProviderWait};
use crate::attributes::{Reader, Record};
use crate::keys::benchmark_sort;
use crate::origin::CONCURRENCY;
use crate::{Origin, StateError};

/// Attribute of a run whose generation repeats only samples that ended with an infrastructure-error.
pub(super) const ERRORS_ONLY: &str = "errors_only";
/// Attribute of a run whose generation repeats one sample only.
pub(super) const ONLY_SAMPLE: &str = "only_sample";
/// Attribute of a run with its name, tags and notes.
pub(super) const LABELS: &str = "labels";
/// Attribute of a benchmark with an index of its samples.
pub(super) const ITEM_INDEX: &str = "item_index";
/// Attribute of a run that was requeued or resumed.
pub(super) const TAKEN_UP: &str = "taken_up";

/// One sample of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleChoice {
    /// Its benchmark.
    pub benchmark: BenchmarkName,
    /// Its position.
    pub position: Position,
}

/// Stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Settings of the run, and its current labels.
    pub spec: RunSpec,
    /// State of the run.
    pub state: RunState,
    /// Generation, raised by every requeue. Messages of older generations are dropped.
    pub generation: u32,
    /// Number of the planner's attempts, over all generations.
    pub plan_attempts: u32,
    /// Generation that the planner has finished.
    pub planned_generation: u32,
    /// True if its owner deleted it.
    pub deleted: bool,
    /// Process that ordered the run, or resumed it last.
    pub origin: Origin,
    /// Number of samples that the command which ordered the run, or resumed it last, had in progress at once; `None` for
    /// runs of servers and of older versions.
    pub concurrency: Option<u32>,
    /// True if its generation repeats only samples that ended with an infrastructure-error, including those of
    /// benchmarks that succeeded.
    pub errors_only: bool,
    /// The only ended sample that its generation repeats, if one was chosen.
    pub only_sample: Option<Box<SampleChoice>>,
    /// Time at which its message should be handled next.
    pub due_at: Timestamp,
    /// Number of times that reconciliation sent its message again.
    pub resends: u32,
    /// Maximum number of planned samples; `None` for runs of older versions.
    pub samples_max: Option<u64>,
    /// Time of the last requeue or resume, with the tokens spent until then; `None` for a run that was never requeued or
    /// resumed.
    pub resumption: Option<Resumption>,
    /// Wait for a provider. May be over: only an answer removes it.
    pub provider_wait: Option<ProviderWait>,
    /// True if the run is in the counts by status. Runs of older versions aren't.
    pub(super) counted: bool,
    /// True if the run is in the counts of open runs.
    pub(super) counted_open: bool,
    /// Revision, raised by every write: the condition of the next write.
    pub(super) revision: u64,
}

/// Stored benchmark of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkRecord {
    /// Name of the benchmark.
    pub name: BenchmarkName,
    /// Position in the run, from 0.
    pub position: usize,
    /// State of the benchmark.
    pub state: BenchmarkState,
    /// Plan of the benchmark, once the planner made it.
    pub plan: Option<Plan>,
    /// Number of shards whose samples are all over.
    pub shards_done: u32,
    /// Generation whose messages were all sent.
    pub enqueued_generation: u32,
    /// Time of the last progress event.
    pub progress_at: Option<Timestamp>,
    /// Index of its samples that the finisher wrote last.
    pub item_index: Option<ItemIndex>,
    pub(super) revision: u64,
}

/// Index of the samples of a benchmark in S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemIndex {
    /// Generation of the run that wrote it.
    pub generation: u32,
    /// Number of parts.
    pub parts: u32,
    /// Number of samples.
    pub items: u64,
}

/// Run with its benchmarks, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithBenchmarks {
    /// The run.
    pub run: RunRecord,
    /// Its benchmarks, in the order of the run.
    pub benchmarks: Vec<BenchmarkRecord>,
}

/// Requeue of a run, or resume after its process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// Time of the requeue or resume.
    pub at: Timestamp,
    /// Tokens that the model had used by then.
    pub answer_tokens: u64,
    /// Tokens that the judge had used by then.
    pub judge_tokens: u64,
    /// Tokens that the user model had used by then.
    #[serde(default)]
    pub user_tokens: u64,
}

impl Resumption {
    /// Creates the record of a requeue or resume now, after `spent` was used.
    pub const fn new(spent: Spending, now: Timestamp) -> Self {
        let Spending { answers, judge, user } = spent;
        Self {
            at: now,
            answer_tokens: answers.total(),
            judge_tokens: judge.total(),
            user_tokens: user.total(),
        }
    }
}

/// Whether the results of a run are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// The run isn't over, or was canceled.
    Incomplete,
    /// The run is over, and the finisher is still closing its benchmarks.
    Settling,
    /// The results are complete since this time.
    Final(Timestamp),
}

impl RunWithBenchmarks {
    /// Returns whether the results can be exported.
    pub fn results(&self) -> Results {
        let is_open = |benchmark: &BenchmarkRecord| benchmark.state.status().is_open();
        match (self.run.state.status(), self.run.state.completed_at()) {
            // Answers of a run that its budget stopped may still arrive, and an archive would permanently show a running
            // benchmark.
            (RunStatus::Succeeded | RunStatus::Failed, _) if self.benchmarks.iter().any(is_open) => {
                Results::Settling
            }
            (RunStatus::Succeeded | RunStatus::Failed, Some(time)) => Results::Final(time),
            _ => Results::Incomplete,
        }
    }

    /// Returns a label for the run's overall score: `score of mmlu_pro`, or `mean of 3 benchmark scores` if several
    /// benchmarks count.
    pub fn overall_score_label(&self) -> String {
        let has_score =
            |record: &&BenchmarkRecord| record.state.report().is_some_and(|report| report.score.is_some());
        let mut counted: Vec<&BenchmarkRecord> = self.benchmarks.iter().filter(has_score).collect();
        if counted.is_empty() {
            counted = self.benchmarks.iter().collect();
        }
        match counted.as_slice() {
            [only] => format!("score of {}", only.name),
            several => format!("mean of {} benchmark scores", several.len()),
        }
    }

    /// Returns true if the finisher can close the run: every benchmark, or all of its samples, are over.
    pub fn is_complete(&self) -> bool {
        self.run.planned_generation == self.run.generation
            && self.benchmarks.iter().all(|benchmark| match (&benchmark.state, &benchmark.plan) {
                (BenchmarkState::Pending, _) => false,
                (BenchmarkState::Running { .. }, Some(plan)) => benchmark.shards_done >= plan.shards,
                (BenchmarkState::Running { .. }, None) => false,
                _ => true,
            })
    }

    /// Returns the benchmark with this name.
    pub fn benchmark(&self, name: &str) -> Option<&BenchmarkRecord> {
        self.benchmarks.iter().find(|benchmark| benchmark.name.as_str() == name)
    }
}

impl RunRecord {
    pub(crate) fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let mut spec: RunSpec = reader.json("spec")?;
        spec.labels = reader.maybe_json(LABELS)?.unwrap_or_default();
        Ok(Self {
            origin: Origin::read(&reader, &spec)?,
            concurrency: reader.maybe_number(CONCURRENCY)?,
            errors_only: reader.number_or::<u8>(ERRORS_ONLY, 0)? == 1,
            only_sample: reader.maybe_json(ONLY_SAMPLE)?,
            spec,
            state: reader.json("state")?,
            generation: reader.number("generation")?,
            plan_attempts: reader.number_or("plan_attempts", 0)?,
            planned_generation: reader.number_or("planned_generation", 0)?,
            deleted: reader.number_or::<u8>("deleted", 0)? == 1,
            due_at: reader.time("due_at")?,
            resends: reader.number_or("resends", 0)?,
            samples_max: reader.maybe_number("samples_max")?,
            resumption: reader.maybe_json(TAKEN_UP)?,
            provider_wait: reader.maybe_json(PROVIDER_WAIT)?,
            counted: reader.number_or::<u8>("counted", 0)? == 1,
            counted_open: reader.number_or::<u8>("counted_open", 0)? == 1,
            revision: reader.number("revision")?,
        })
    }

    /// Returns the status that the run is counted under.
    pub(super) fn counted_as(&self) -> Option<RunStatus> {
        self.counted.then(|| self.state.status())
    }
}

impl BenchmarkRecord {
    pub(super) fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let sort = reader.text("sk")?;
        let mut parts = sort.splitn(3, '#').skip(1);
        let position = parts.next().and_then(|digits| digits.parse().ok());
        let name = parts.next().and_then(|name| name.parse().ok());
        let (Some(position), Some(name)) = (position, name) else {
            return Err(StateError::damaged(reader.key(), "its key names no benchmark"));
        };
        Ok(Self {
            name,
            position,
            state: reader.json("state")?,
            plan: reader.maybe_json("plan")?,
            shards_done: reader.number_or("shards_done", 0)?,
            enqueued_generation: reader.number_or("enqueued_generation", 0)?,
            progress_at: reader.maybe_time("progress_at")?,
            item_index: reader.maybe_json(ITEM_INDEX)?,
            revision: reader.number("revision")?,
        })
    }

    /// Returns the index of the samples, if the benchmark is closed and has one.
    pub fn current_index(&self) -> Option<ItemIndex> {
        self.item_index.filter(|_| !self.state.status().is_open() && self.state.report().is_some())
    }

    /// Returns the sort key in the run's partition.
    pub fn sort(&self) -> String {
        benchmark_sort(self.position, &self.name)
    }
}
