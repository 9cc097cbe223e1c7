//! Runs and their benchmarks.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Put, Select, TransactWriteItem, Update};
use bench_domain::run::{BenchmarkState, Plan, RunState};
use bench_domain::{BenchmarkName, Code, RunId, RunSpec, RunStatus, Spending, Timestamp};
use serde::{Deserialize, Serialize};

use crate::access::{LimitScope, OrderLimits};
use crate::attributes::{Reader, Record, json, number, text};
use crate::client::{condition_held, expires_at};
use crate::conflict::Canceled;
use crate::credentials::SealedKey;
use crate::events::TRIES_MAX;
use crate::idempotency::REMEMBER_S;
use crate::keys::{
    self, BY_STATUS, BY_TIME, RUNS, benchmark_sort, key, run_partition, status_partition, time_sort,
};
use crate::origin::{ORIGIN, ORIGIN_START};
use crate::{Idempotency, NewEvent, Origin, State, StateError};

/// Attribute of a run whose generation repeats only samples that ended with an infrastructure-error.
const ERRORS_ONLY: &str = "errors_only";
/// Attribute of a run that was requeued or resumed.
const TAKEN_UP: &str = "taken_up";
/// Status in the `by-status` index of a deleted run that still has records.
const DELETED: &str = "deleted";

/// Stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Settings of the run.
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
    /// True if its generation repeats only samples that ended with an infrastructure-error, including those of
    /// benchmarks that succeeded.
    pub errors_only: bool,
    /// Time at which its message should be handled next.
    pub due_at: Timestamp,
    /// Number of times that reconciliation sent its message again.
    pub resends: u32,
    /// Maximum number of planned samples; `None` for runs of older versions.
    pub samples_max: Option<u64>,
    /// Time of the last requeue or resume, with the tokens spent until then; `None` for a run that was never taken up
    /// again.
    pub resumption: Option<Resumption>,
    /// True if the run is in the counts by status. Runs of older versions aren't.
    counted: bool,
    /// True if the run is in the counts of open runs.
    counted_open: bool,
    /// Revision, raised by every write: the condition of the next write.
    revision: u64,
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
    revision: u64,
}

/// Run with its benchmarks, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithBenchmarks {
    /// The run.
    pub run: RunRecord,
    /// Its benchmarks, in the order of the run.
    pub benchmarks: Vec<BenchmarkRecord>,
}

/// Result of a change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// This call changed the state.
    Done,
    /// Another process changed the record first; read it again.
    Raced,
    /// A limit of open runs rejected the change. Only for changes that open a run with limits.
    Limited(LimitScope),
}

/// Result of writing a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// The run was written.
    Done,
    /// Another order took the idempotency key first; nothing was written.
    KeyTaken,
    /// A limit of open runs rejected it; nothing was written.
    Limited(LimitScope),
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
}

impl Resumption {
    /// Creates the record of a requeue or resume now, after `spent` was used.
    pub const fn new(spent: Spending, now: Timestamp) -> Self {
        Self { at: now, answer_tokens: spent.answers.total(), judge_tokens: spent.judge.total() }
    }
}

/// Changes to a run that is requeued or resumed.
#[derive(Clone, Copy, Default)]
pub struct Renewal<'a> {
    /// New keys of the caller.
    pub key: Option<&'a SealedKey>,
    /// New settings, with another budget.
    pub spec: Option<&'a RunSpec>,
    /// True if this process resumes the run, so that it and later processes of its kind work on it.
    pub resumes: bool,
    /// True if the new generation repeats only samples that ended with an infrastructure-error.
    pub errors_only: bool,
    /// Time of the requeue or resume, and the tokens spent until then.
    pub resumption: Option<Resumption>,
    /// Limits of open runs; `None` opens the run without checking limits.
    pub limits: Option<&'a OrderLimits>,
}

/// Filter of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Only runs of this model.
    pub model_id: Option<String>,
    /// Only runs whose model's name contains this text, ignoring case.
    pub model_slug: Option<String>,
}

/// Page of a list of runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunPage {
    /// Runs of the page.
    pub runs: Vec<RunId>,
    /// Total number of matching runs.
    pub total: u64,
}

/// Returns the limit that rejected the items of [`State::new_run_items`], if any.
pub(crate) fn new_run_limit(canceled: &Canceled) -> Option<LimitScope> {
    [LimitScope::Owner, LimitScope::Total]
        .into_iter()
        .zip(1..)
        .find_map(|(reached, index)| canceled.condition_failed(index).then_some(reached))
}

impl RunWithBenchmarks {
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
        let spec: RunSpec = reader.json("spec")?;
        Ok(Self {
            origin: Origin::read(&reader, &spec)?,
            errors_only: reader.number_or::<u8>(ERRORS_ONLY, 0)? == 1,
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
            counted: reader.number_or::<u8>("counted", 0)? == 1,
            counted_open: reader.number_or::<u8>("counted_open", 0)? == 1,
            revision: reader.number("revision")?,
        })
    }

    /// Returns the status that the run is counted under.
    fn counted_as(&self) -> Option<RunStatus> {
        self.counted.then(|| self.state.status())
    }
}

impl BenchmarkRecord {
    fn read(record: &Record) -> Result<Self, StateError> {
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
            revision: reader.number("revision")?,
        })
    }

    /// Returns the sort key in the run's partition.
    pub fn sort(&self) -> String {
        benchmark_sort(self.position, &self.name)
    }
}

impl State {
    /// Writes a new run, its benchmarks and its first event, all or none.
    ///
    /// Returns `false` if another order took the idempotency key first; then nothing was written.
    pub async fn create_run(
        &self,
        spec: &RunSpec,
        event: &NewEvent,
        idempotency: Option<&Idempotency>,
        due_at: Timestamp,
    ) -> Result<bool, StateError> {
        self.create_run_with(spec, event, idempotency, due_at, None).await
    }

    /// Like `create_run`, but also stores the caller's key.
    pub async fn create_run_with(
        &self,
        spec: &RunSpec,
        event: &NewEvent,
        idempotency: Option<&Idempotency>,
        due_at: Timestamp,
        sealed: Option<SealedKey>,
    ) -> Result<bool, StateError> {
        let created = self.create_run_with_limits(spec, event, idempotency, due_at, sealed, None).await?;
        Ok(created == Creation::Done)
    }

    /// Like `create_run_with`, but within limits: the write itself checks those of open runs, and the planner enforces
    /// those of planned samples.
    pub async fn create_run_with_limits(
        &self,
        spec: &RunSpec,
        event: &NewEvent,
        idempotency: Option<&Idempotency>,
        due_at: Timestamp,
        sealed: Option<SealedKey>,
        limits: Option<&OrderLimits>,
    ) -> Result<Creation, StateError> {
        let items = self.new_run_items(spec, event, idempotency, due_at, sealed, limits)?;
        match self.transact("create the run", items).await? {
            Ok(()) => Ok(Creation::Done),
            // The run's id is new, so its records can only exist because the first try succeeded.
            Err(canceled) if canceled.condition_failed(0) => Ok(Creation::Done),
            // A repeated order returns the run that it created, regardless of limits.
            Err(canceled) => match new_run_limit(&canceled) {
                Some(reached) if !self.is_key_taken(idempotency).await? => Ok(Creation::Limited(reached)),
                _ => Ok(Creation::KeyTaken),
            },
        }
    }

    pub(crate) async fn is_key_taken(&self, idempotency: Option<&Idempotency>) -> Result<bool, StateError> {
        match idempotency {
            Some(idempotency) => Ok(self.run_for_key(idempotency).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Returns the items that are written for a new run. Its own record comes first, then the counts of open runs;
    /// [`new_run_limit`] relies on that order.
    pub(crate) fn new_run_items(
        &self,
        spec: &RunSpec,
        event: &NewEvent,
        idempotency: Option<&Idempotency>,
        due_at: Timestamp,
        sealed: Option<SealedKey>,
        limits: Option<&OrderLimits>,
    ) -> Result<Vec<TransactWriteItem>, StateError> {
        let state = RunState::Queued;
        let mut run = keys::run(spec.id);
        run.insert("spec".into(), json("run", spec)?);
        run.insert("state".into(), json("run", &state)?);
        run.insert("generation".into(), number(1));
        run.insert("revision".into(), number(1));
        run.insert("counted".into(), number(1));
        self.own_origin().write(&mut run);
        run.insert("due_at".into(), number(due_at.as_micros()));
        run.insert("model_slug_lower".into(), text(spec.model.slug.to_lowercase()));
        run.insert("model_id".into(), text(spec.model.id.to_string()));
        run.insert("index_all".into(), text(RUNS));
        run.insert("index_status".into(), status_partition(state.status().as_str()));
        run.insert("index_sort".into(), text(time_sort(spec.created_at, spec.id)));
        run.insert("counted_open".into(), number(1));
        if let Some(limits) = limits {
            run.insert("samples_max".into(), number(limits.samples_per_order));
        }
        let mut items = vec![self.put_new(run)?];
        items.extend(self.open_items(&spec.owner, limits)?);
        for (position, name) in spec.benchmarks.iter().enumerate() {
            let mut record = key(run_partition(spec.id), benchmark_sort(position, name));
            record.insert("state".into(), json("benchmark", &BenchmarkState::Pending)?);
            record.insert("revision".into(), number(1));
            items.push(self.put_new(record)?);
        }
        items.push(self.event_put(spec.id, event, 0, spec.created_at)?);
        if let Some(idempotency) = idempotency {
            items.push(self.put_new(idempotency.record(spec.id, expires_at(spec.created_at, REMEMBER_S)))?);
        }
        items.extend(sealed.into_iter().flat_map(|sealed| sealed.0));
        items.extend(self.run_count_update(spec.id, None, Some(state.status()))?);
        Ok(items)
    }

    pub(crate) fn put_new(&self, record: Record) -> Result<TransactWriteItem, StateError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(record))
            .condition_expression("attribute_not_exists(pk)")
            .build()
            .map_err(|error| StateError::damaged("run", error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Returns a run; `None` if it doesn't exist or was deleted.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the run", error))?;
        let run = got.item().map(RunRecord::read).transpose()?;
        Ok(run.filter(|run| !run.deleted))
    }

    /// Returns a run with its benchmarks; `None` if it doesn't exist or was deleted.
    pub async fn run_with_benchmarks(&self, run: RunId) -> Result<Option<RunWithBenchmarks>, StateError> {
        Ok(self.any_run_with_benchmarks(run).await?.filter(|found| !found.run.deleted))
    }

    /// Returns a run with its benchmarks, even if it was deleted.
    pub async fn any_run_with_benchmarks(&self, run: RunId) -> Result<Option<RunWithBenchmarks>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :run")
            .expression_attribute_values(":run", text(run_partition(run)))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let (mut found, mut benchmarks) = (None, Vec::new());
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("read the run", error))?;
            match Reader::new(&record).text("sk")? {
                "RUN" => found = Some(RunRecord::read(&record)?),
                sort if sort.starts_with("BENCH#") => benchmarks.push(BenchmarkRecord::read(&record)?),
                _ => {}
            }
        }
        Ok(found.map(|run| RunWithBenchmarks { run, benchmarks }))
    }

    /// Lists at most `limit` matching runs from `offset` on, newest first, and the total number of matches.
    pub async fn list_runs(
        &self,
        filter: &RunFilter,
        offset: u64,
        limit: u64,
    ) -> Result<RunPage, StateError> {
        let (index, partition, value) = match filter.status {
            Some(status) => (BY_STATUS, "index_status", status_partition(status.as_str())),
            None => (BY_TIME, "index_all", text(RUNS)),
        };
        self.list_index(index, partition, value, filter, offset, limit).await
    }

    /// Lists deleted runs that still have records.
    pub async fn list_deleted(&self, limit: u64) -> Result<Vec<RunId>, StateError> {
        let value = status_partition(DELETED);
        let everything = RunFilter::default();
        Ok(self.list_index(BY_STATUS, "index_status", value, &everything, 0, limit).await?.runs)
    }

    async fn list_index(
        &self,
        index: &str,
        partition: &str,
        value: AttributeValue,
        filter: &RunFilter,
        offset: u64,
        limit: u64,
    ) -> Result<RunPage, StateError> {
        let mut conditions = Vec::new();
        let mut values = HashMap::from([(":partition".to_owned(), value)]);
        if let Some(slug) = &filter.model_slug {
            conditions.push("contains(model_slug_lower, :slug)");
            values.insert(":slug".into(), text(slug.to_lowercase()));
        }
        if let Some(model) = &filter.model_id {
            conditions.push("model_id = :model");
            values.insert(":model".into(), text(model));
        }
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(index)
            .key_condition_expression(format!("{partition} = :partition"))
            .set_filter_expression((!conditions.is_empty()).then(|| conditions.join(" AND ")))
            .set_expression_attribute_values(Some(values))
            .select(Select::AllProjectedAttributes)
            .scan_index_forward(false)
            .into_paginator()
            .items()
            .send();
        let mut page = RunPage::default();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list runs", error))?;
            if page.total >= offset && (page.runs.len() as u64) < limit {
                let sort = Reader::new(&record).text("index_sort")?;
                let id = sort.rsplit('#').next().and_then(|id| id.parse().ok());
                page.runs.push(id.ok_or_else(|| StateError::damaged(sort, "it names no run"))?);
            }
            page.total += 1;
        }
        Ok(page)
    }

    /// Changes a run's state together with the event that reports the change.
    ///
    /// `generation` is the run's new generation, which differs from the record's only for a requeue. The change takes
    /// place only if the run hasn't changed since it was read.
    pub async fn change_run(
        &self,
        run: &RunRecord,
        next: &RunState,
        generation: u32,
        event: &NewEvent,
        now: Timestamp,
    ) -> Result<Transition, StateError> {
        self.change_run_with(run, next, generation, event, now, Renewal::default()).await
    }

    /// Like `change_run`, but with the changes of a requeue or resume.
    pub async fn change_run_with(
        &self,
        run: &RunRecord,
        next: &RunState,
        generation: u32,
        event: &NewEvent,
        now: Timestamp,
        renewal: Renewal<'_>,
    ) -> Result<Transition, StateError> {
        let id = run.spec.id;
        let is_new = generation != run.generation;
        let mut last = self.last_event(id).await?;
        for _ in 0..TRIES_MAX {
            let is_open = next.status().is_open();
            let update = Update::builder()
                .table_name(&self.table)
                .set_key(Some(keys::run(id)))
                // The claim on planning ends with the old state, so that a requeued run is planned immediately.
                .update_expression(format!(
                    "SET #state = :state, index_status = :status, generation = :generation, \
                      due_at = :due, revision = :next, resends = :zero, counted = :yes, counted_open = :open{}{}{}{}{}",
                    if renewal.spec.is_some() { ", spec = :spec" } else { "" },
                    if renewal.resumes { ", #origin = :origin, #start = :start" } else { "" },
                    if renewal.resumption.is_some() { ", #taken_up = :taken_up" } else { "" },
                    if is_new { ", #errors_only = :errors_only" } else { "" },
                    if is_new { " REMOVE plan_lease_until" } else { "" }
                ))
                .condition_expression("revision = :revision AND attribute_not_exists(deleted)")
                .expression_attribute_names("#state", "state")
                .expression_attribute_values(":state", json("run", next)?)
                .expression_attribute_values(":status", status_partition(next.status().as_str()))
                .expression_attribute_values(":generation", number(generation))
                .expression_attribute_values(":due", number(now.as_micros()))
                .expression_attribute_values(":zero", number(0))
                .expression_attribute_values(":yes", number(1))
                .expression_attribute_values(":open", number(u8::from(is_open)))
                .expression_attribute_values(":revision", number(run.revision))
                .expression_attribute_values(":next", number(run.revision + 1));
            let update = match renewal.spec {
                Some(spec) => update.expression_attribute_values(":spec", json("run", spec)?),
                None => update,
            };
            let update = match renewal.resumption {
                Some(resumption) => update
                    .expression_attribute_names("#taken_up", TAKEN_UP)
                    .expression_attribute_values(":taken_up", json("run", &resumption)?),
                None => update,
            };
            let update = if renewal.resumes {
                let origin = self.own_origin();
                update
                    .expression_attribute_names("#origin", ORIGIN)
                    .expression_attribute_names("#start", ORIGIN_START)
                    .expression_attribute_values(":origin", text(origin.name()))
                    .expression_attribute_values(":start", number(origin.start()))
            } else {
                update
            };
            let update = if is_new {
                update
                    .expression_attribute_names("#errors_only", ERRORS_ONLY)
                    .expression_attribute_values(":errors_only", number(u8::from(renewal.errors_only)))
            } else {
                update
            };
            let update = update.build().map_err(|error| StateError::damaged("run", error))?;
            let mut items = vec![
                TransactWriteItem::builder().update(update).build(),
                self.event_put(id, event, last, now)?,
            ];
            match (run.state.status().is_open(), next.status().is_open()) {
                (_, false) => items.push(self.unsettled_put(id, generation, now)?),
                (false, true) => items.push(self.unsettled_delete(id)?),
                (true, true) => {}
            }
            items.extend(renewal.key.into_iter().flat_map(|sealed| sealed.0.clone()));
            items.extend(self.run_count_update(id, run.counted_as(), Some(next.status()))?);
            let first_open = items.len();
            match (run.counted_open, is_open) {
                (false, true) => items.extend(self.open_items(&run.spec.owner, renewal.limits)?),
                (true, false) => items.extend(self.close_items(&run.spec.owner)?),
                _ => {}
            }
            match self.transact("change the run", items).await? {
                Ok(()) => return Ok(Transition::Done),
                Err(canceled) if canceled.condition_failed(0) => {
                    // Either another process changed the run first, or the response to this call's first try was lost.
                    let mine = self.run(id).await?.is_some_and(|found| {
                        found.revision == run.revision + 1
                            && found.state == *next
                            && found.generation == generation
                    });
                    return Ok(if mine { Transition::Done } else { Transition::Raced });
                }
                Err(canceled) if canceled.condition_failed(first_open) => {
                    return Ok(Transition::Limited(LimitScope::Owner));
                }
                Err(canceled) if canceled.condition_failed(first_open + 1) => {
                    return Ok(Transition::Limited(LimitScope::Total));
                }
                Err(_) => last = self.last_event(id).await?,
            }
        }
        Err(StateError::Service { verb: "change the run", problem: "events were always faster".into() })
    }

    /// Changes the state of one benchmark of a run, and its plan if given, together with the event that reports the
    /// change, if any.
    pub async fn change_benchmark(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        next: &BenchmarkState,
        plan: Option<&Plan>,
        event: Option<&NewEvent>,
        now: Timestamp,
    ) -> Result<Transition, StateError> {
        let mut last = if event.is_some() { self.last_event(run).await? } else { 0 };
        for _ in 0..TRIES_MAX {
            let mut expression = "SET #state = :state, revision = :next".to_owned();
            let mut update = Update::builder()
                .table_name(&self.table)
                .set_key(Some(key(run_partition(run), benchmark.sort())))
                .condition_expression("revision = :revision")
                .expression_attribute_names("#state", "state")
                .expression_attribute_values(":state", json("benchmark", next)?)
                .expression_attribute_values(":revision", number(benchmark.revision))
                .expression_attribute_values(":next", number(benchmark.revision + 1));
            if let Some(plan) = plan {
                expression.push_str(", #plan = :plan, shards_done = :none");
                update = update
                    .expression_attribute_names("#plan", "plan")
                    .expression_attribute_values(":plan", json("benchmark", plan)?)
                    .expression_attribute_values(":none", number(0));
            }
            let update = update.update_expression(expression).build();
            let update = update.map_err(|error| StateError::damaged("benchmark", error))?;
            let mut items = vec![TransactWriteItem::builder().update(update).build()];
            if let Some(event) = event {
                items.push(self.event_put(run, event, last, now)?);
            }
            match self.transact("change the benchmark", items).await? {
                Ok(()) => return Ok(Transition::Done),
                Err(canceled) if canceled.condition_failed(0) => {
                    let found = self.any_run_with_benchmarks(run).await?;
                    let mine = found.as_ref().and_then(|f| f.benchmark(benchmark.name.as_str())).is_some_and(
                        |found| {
                            found.revision == benchmark.revision + 1
                                && found.state == *next
                                && (plan.is_none() || found.plan.as_ref() == plan)
                        },
                    );
                    return Ok(if mine { Transition::Done } else { Transition::Raced });
                }
                Err(_) => last = self.last_event(run).await?,
            }
        }
        Err(StateError::Service { verb: "change the benchmark", problem: "events were always faster".into() })
    }

    /// Records that all messages of a benchmark's samples were sent in this generation.
    pub async fn note_enqueued(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        generation: u32,
    ) -> Result<(), StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(run_partition(run), benchmark.sort())))
            .update_expression("SET enqueued_generation = :generation")
            // Must not recreate a part of a run that was deleted meanwhile.
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":generation", number(generation))
            .send()
            .await;
        condition_held("note the benchmark's messages", update).map(drop)
    }

    /// Closes the benchmarks that were still open when their run ended. Safe to repeat.
    pub async fn skip_open_benchmarks(
        &self,
        run: RunId,
        why: &str,
        now: Timestamp,
    ) -> Result<(), StateError> {
        for _ in 0..TRIES_MAX {
            let Some(found) = self.run_with_benchmarks(run).await? else { return Ok(()) };
            if found.run.state.status().is_open() {
                return Ok(());
            }
            let mut raced = false;
            for benchmark in &found.benchmarks {
                let Ok(next) = benchmark.state.skip(now, Code::RunEnded, why) else { continue };
                raced |= self.end_benchmark(&found.run, benchmark, &next).await? == Transition::Raced;
            }
            if !raced {
                return Ok(());
            }
        }
        Err(StateError::Service { verb: "close the benchmarks", problem: "they kept changing".into() })
    }

    /// Ends a benchmark of a run that is over, if neither the benchmark nor the run has changed since they were read: a
    /// run that was requeued meanwhile continues. Writes no event, since the run's end is its last event.
    pub async fn end_benchmark(
        &self,
        run: &RunRecord,
        benchmark: &BenchmarkRecord,
        next: &BenchmarkState,
    ) -> Result<Transition, StateError> {
        let damaged = |error| StateError::damaged("benchmark", error);
        let unchanged = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(keys::run(run.spec.id)))
            .condition_expression("revision = :revision")
            .expression_attribute_values(":revision", number(run.revision))
            .build()
            .map_err(damaged)?;
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(run_partition(run.spec.id), benchmark.sort())))
            .update_expression("SET #state = :state, revision = :next")
            .condition_expression("revision = :revision")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":state", json("benchmark", next)?)
            .expression_attribute_values(":revision", number(benchmark.revision))
            .expression_attribute_values(":next", number(benchmark.revision + 1))
            .build()
            .map_err(damaged)?;
        let items = vec![
            TransactWriteItem::builder().condition_check(unchanged).build(),
            TransactWriteItem::builder().update(update).build(),
        ];
        // A lost response looks like a race: the next read finds that the benchmark has ended.
        Ok(match self.transact("end the benchmark", items).await? {
            Ok(()) => Transition::Done,
            Err(_) => Transition::Raced,
        })
    }

    /// Hides a run that is over; [`State::purge_run`] removes its records afterwards.
    pub async fn mark_deleted(&self, run: &RunRecord) -> Result<Transition, StateError> {
        let id = run.spec.id;
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(keys::run(id)))
            .update_expression(
                "SET deleted = :yes, index_status = :deleted, revision = :next REMOVE index_all",
            )
            .condition_expression("revision = :revision")
            .expression_attribute_values(":yes", number(1))
            .expression_attribute_values(":deleted", status_partition(DELETED))
            .expression_attribute_values(":revision", number(run.revision))
            .expression_attribute_values(":next", number(run.revision + 1))
            .build()
            .map_err(|error| StateError::damaged("run", error))?;
        let mut items = vec![TransactWriteItem::builder().update(update).build()];
        items.extend(self.run_count_update(id, run.counted_as(), None)?);
        match self.transact("delete the run", items).await? {
            Ok(()) => Ok(Transition::Done),
            Err(_) => {
                let gone = self.run(id).await?.is_none();
                Ok(if gone { Transition::Done } else { Transition::Raced })
            }
        }
    }

    /// Removes all records of a deleted run. Safe to repeat. Does nothing if the run wasn't deleted.
    pub async fn purge_run(&self, run: RunId) -> Result<(), StateError> {
        let Some(found) = self.any_run_with_benchmarks(run).await? else { return Ok(()) };
        if !found.run.deleted {
            return Ok(());
        }
        for benchmark in &found.benchmarks {
            for plan in 1..=found.run.plan_attempts {
                // A planner's attempt that wasn't completed may have chosen another number of shards.
                let shards = benchmark.plan.as_ref().map_or(0, |plan| plan.shards).max(64);
                for shard in 0..shards {
                    self.purge_partition(keys::shard_partition(run, &benchmark.name, plan, shard)).await?;
                }
            }
        }
        self.purge_partition(keys::events_partition(run)).await?;
        self.forget_unsettled(run).await?;
        // The run's own partition is last, so that an interrupted purge is found again.
        self.purge_partition(run_partition(run)).await
    }

    pub(crate) async fn purge_partition(&self, partition: String) -> Result<(), StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :partition")
            .projection_expression("pk, sk")
            .expression_attribute_values(":partition", text(partition))
            .into_paginator()
            .send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| StateError::sdk("read what is to be removed", error))?;
            self.delete_batch(page.items.unwrap_or_default()).await?;
        }
        Ok(())
    }
}
