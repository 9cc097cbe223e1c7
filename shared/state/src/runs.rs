//! Runs and their benchmarks.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Put, Select, TransactWriteItem, Update};
use bench_domain::run::{BenchmarkState, Plan, RunState};
use bench_domain::{BenchmarkName, Code, RunId, RunSpec, RunStatus, Spending, Timestamp};
use serde::{Deserialize, Serialize};

use crate::access::{OrderLimits, Reached};
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

/// The attribute of a run whose generation asks again for infrastructure-errors only.
const ERRORS_ONLY: &str = "errors_only";
/// The attribute of a run that was taken up again.
const TAKEN_UP: &str = "taken_up";
/// In the `by-status` index, a deleted run whose records are not all gone.
const DELETED: &str = "deleted";

/// A run as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// What was ordered.
    pub spec: RunSpec,
    /// Where it stands.
    pub state: RunState,
    /// Raised by every requeue; a message of an older one is dropped.
    pub generation: u32,
    /// Attempts of the planner, over all generations.
    pub plan_attempts: u32,
    /// The generation that the planner is done with.
    pub planned_generation: u32,
    /// Set once its owner deleted it.
    pub deleted: bool,
    /// Where it was ordered, or last resumed.
    pub origin: Origin,
    /// Whether its generation asks again for infrastructure-errors only, of benchmarks that succeeded, too.
    pub errors_only: bool,
    /// When its message should be handled next.
    pub due_at: Timestamp,
    /// How often reconciliation sent its message again.
    pub resends: u32,
    /// Maximum number of planned samples; `None` for runs that an earlier version of the program created.
    pub samples_max: Option<u64>,
    /// When it was last taken up again, and with what; `None` for a run that works on its first order.
    pub taken_up: Option<TakenUp>,
    /// Whether it is in the counts by status; not so when an earlier version of the program made it.
    counted: bool,
    /// Set while the run is in the counts of open runs.
    counted_open: bool,
    /// Raised by every write: the condition of the next one.
    revision: u64,
}

/// One benchmark of a run as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkRecord {
    /// Its name.
    pub name: BenchmarkName,
    /// Its place in the run, from 0.
    pub position: usize,
    /// Where it stands.
    pub state: BenchmarkState,
    /// How it is carried out, once planned.
    pub plan: Option<Plan>,
    /// Shards whose samples are all over.
    pub shards_done: u32,
    /// The generation whose messages were all sent.
    pub enqueued_generation: u32,
    revision: u64,
}

/// A run with its benchmarks, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithBenchmarks {
    /// The run.
    pub run: RunRecord,
    /// Its benchmarks, in the order of the run.
    pub benchmarks: Vec<BenchmarkRecord>,
}

/// Whether a change of state took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// It did, by this call.
    Done,
    /// Somebody else changed the record first; read it again.
    Raced,
    /// A limit of open runs does not allow it. Only for a change that comes with limits.
    Limited(Reached),
}

/// Outcome of writing a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// The run was written.
    Done,
    /// The idempotency key was taken meanwhile: nothing was written.
    KeyTaken,
    /// A limit of open runs does not allow it: nothing was written.
    Limited(Reached),
}

/// When a run was taken up again: queued anew, or resumed after its process had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenUp {
    /// When.
    pub at: Timestamp,
    /// Tokens that its model had used until then.
    pub answer_tokens: u64,
    /// Tokens that its judge had used until then.
    pub judge_tokens: u64,
}

impl TakenUp {
    /// Taken up now, after this was spent.
    pub const fn after(spent: Spending, now: Timestamp) -> Self {
        Self { at: now, answer_tokens: spent.answers.total(), judge_tokens: spent.judge.total() }
    }
}

/// What a run has anew when it is taken up again.
#[derive(Clone, Copy, Default)]
pub struct Renewal<'a> {
    /// The caller's keys.
    pub key: Option<&'a SealedKey>,
    /// What was ordered, with another budget.
    pub spec: Option<&'a RunSpec>,
    /// Whether this process takes the run up, and processes of its kind after it.
    pub resumes: bool,
    /// Whether the new generation asks again for infrastructure-errors only.
    pub errors_only: bool,
    /// When the run is taken up, and what it has spent until then.
    pub taken_up: Option<TakenUp>,
    /// Limits of open runs; `None` opens the run regardless.
    pub limits: Option<&'a OrderLimits>,
}

/// Which runs a list shows.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only those with this status.
    pub status: Option<RunStatus>,
    /// Only those of this model.
    pub model_id: Option<String>,
    /// Only those whose model's name contains this, in any case.
    pub model_slug: Option<String>,
}

/// One page of a list of runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The page.
    pub runs: Vec<RunId>,
    /// How many runs match in all.
    pub total: u64,
}

/// The limit that refused the items of [`State::new_run_items`], if one did.
pub(crate) fn new_run_limit(canceled: &Canceled) -> Option<Reached> {
    [Reached::Owner, Reached::Total]
        .into_iter()
        .zip(1..)
        .find_map(|(reached, index)| canceled.condition_failed(index).then_some(reached))
}

impl RunWithBenchmarks {
    /// Returns what the run's overall score is: `score of mmlu_pro`, or `mean of 3 benchmark scores` where several
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

    /// Whether every benchmark is over or all its samples are: the finisher's turn.
    pub fn is_complete(&self) -> bool {
        self.run.planned_generation == self.run.generation
            && self.benchmarks.iter().all(|benchmark| match (&benchmark.state, &benchmark.plan) {
                (BenchmarkState::Pending, _) => false,
                (BenchmarkState::Running { .. }, Some(plan)) => benchmark.shards_done >= plan.shards,
                (BenchmarkState::Running { .. }, None) => false,
                _ => true,
            })
    }

    /// The benchmark of that name.
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
            taken_up: reader.maybe_json(TAKEN_UP)?,
            counted: reader.number_or::<u8>("counted", 0)? == 1,
            counted_open: reader.number_or::<u8>("counted_open", 0)? == 1,
            revision: reader.number("revision")?,
        })
    }

    /// Under which status it is counted.
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

    /// Its sort key in the run's partition.
    pub fn sort(&self) -> String {
        benchmark_sort(self.position, &self.name)
    }
}

impl State {
    /// Writes a new run, its benchmarks and its first event, all or none.
    ///
    /// `false` when the idempotency key was taken meanwhile: nothing was written.
    pub async fn create_run(
        &self,
        spec: &RunSpec,
        event: &NewEvent,
        idempotency: Option<&Idempotency>,
        due_at: Timestamp,
    ) -> Result<bool, StateError> {
        self.create_run_with(spec, event, idempotency, due_at, None).await
    }

    /// The same, together with the caller's key.
    pub async fn create_run_with(
        &self,
        spec: &RunSpec,
        event: &NewEvent,
        idempotency: Option<&Idempotency>,
        due_at: Timestamp,
        sealed: Option<SealedKey>,
    ) -> Result<bool, StateError> {
        let created = self.create_run_within(spec, event, idempotency, due_at, sealed, None).await?;
        Ok(created == Creation::Done)
    }

    /// The same within limits: of open runs, checked by the write itself, and of planned samples, which the planner
    /// enforces.
    pub async fn create_run_within(
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
            // The run's id is new, so its own records can only be there because the first try had worked.
            Err(canceled) if canceled.condition_failed(0) => Ok(Creation::Done),
            // A repeated order gets the run that it made, however many runs there are.
            Err(canceled) => match new_run_limit(&canceled) {
                Some(reached) if !self.is_taken(idempotency).await? => Ok(Creation::Limited(reached)),
                _ => Ok(Creation::KeyTaken),
            },
        }
    }

    pub(crate) async fn is_taken(&self, idempotency: Option<&Idempotency>) -> Result<bool, StateError> {
        match idempotency {
            Some(idempotency) => Ok(self.run_of_key(idempotency).await?.is_some()),
            None => Ok(false),
        }
    }

    /// What is written for a new run. Its own record comes first, then the counts of open runs: see
    /// [`new_run_limit`].
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

    /// A run, `None` when there is none or it was deleted.
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

    /// A run with its benchmarks, `None` when there is none or it was deleted.
    pub async fn run_with_benchmarks(&self, run: RunId) -> Result<Option<RunWithBenchmarks>, StateError> {
        Ok(self.any_run_with_benchmarks(run).await?.filter(|found| !found.run.deleted))
    }

    /// A run with its benchmarks, deleted or not.
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

    /// Runs that match, newest first: those from `offset` on, `limit` at most, and how many there are in all.
    pub async fn list_runs(
        &self,
        filter: &RunFilter,
        offset: u64,
        limit: u64,
    ) -> Result<Listing, StateError> {
        let (index, partition, value) = match filter.status {
            Some(status) => (BY_STATUS, "index_status", status_partition(status.as_str())),
            None => (BY_TIME, "index_all", text(RUNS)),
        };
        self.list_index(index, partition, value, filter, offset, limit).await
    }

    /// Deleted runs whose records are not all gone.
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
    ) -> Result<Listing, StateError> {
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
        let mut listing = Listing::default();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list runs", error))?;
            if listing.total >= offset && (listing.runs.len() as u64) < limit {
                let sort = Reader::new(&record).text("index_sort")?;
                let id = sort.rsplit('#').next().and_then(|id| id.parse().ok());
                listing.runs.push(id.ok_or_else(|| StateError::damaged(sort, "it names no run"))?);
            }
            listing.total += 1;
        }
        Ok(listing)
    }

    /// Changes a run's state together with the event that tells of it.
    ///
    /// `generation` is the run's new one (it differs from the record's only for a requeue). The change
    /// takes place only if nobody changed the run since it was read.
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

    /// The same, together with what a requeued run has anew.
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
                // A plan's lease ends with what it was taken for: a requeued run is planned at once.
                .update_expression(format!(
                    "SET #state = :state, index_status = :status, generation = :generation, \
                      due_at = :due, revision = :next, resends = :zero, counted = :yes, counted_open = :open{}{}{}{}{}",
                    if renewal.spec.is_some() { ", spec = :spec" } else { "" },
                    if renewal.resumes { ", #origin = :origin, #start = :start" } else { "" },
                    if renewal.taken_up.is_some() { ", #taken_up = :taken_up" } else { "" },
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
            let update = match renewal.taken_up {
                Some(taken_up) => update
                    .expression_attribute_names("#taken_up", TAKEN_UP)
                    .expression_attribute_values(":taken_up", json("run", &taken_up)?),
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
                    // Either somebody else was first, or the answer to our own first try was lost.
                    let mine = self.run(id).await?.is_some_and(|found| {
                        found.revision == run.revision + 1
                            && found.state == *next
                            && found.generation == generation
                    });
                    return Ok(if mine { Transition::Done } else { Transition::Raced });
                }
                Err(canceled) if canceled.condition_failed(first_open) => {
                    return Ok(Transition::Limited(Reached::Owner));
                }
                Err(canceled) if canceled.condition_failed(first_open + 1) => {
                    return Ok(Transition::Limited(Reached::Total));
                }
                Err(_) => last = self.last_event(id).await?,
            }
        }
        Err(StateError::Service { verb: "change the run", problem: "events were always faster".into() })
    }

    /// Changes the state of one benchmark of a run, and its plan when one is given, with the event that
    /// tells of it if there is one.
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

    /// Notes that all messages of a benchmark's samples were sent in this generation.
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
            // A run that was deleted meanwhile must not come back by half.
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":generation", number(generation))
            .send()
            .await;
        condition_held("note the benchmark's messages", update).map(drop)
    }

    /// Closes the benchmarks that a run left open when it ended. Safe to repeat.
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

    /// Ends a benchmark of a run that is over if nothing happened to it, nor to its run: one that was requeued
    /// meanwhile goes on. There is no event of it: the run's end was the last one.
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
        // A lost answer looks like a race: what is read next is ended already.
        Ok(match self.transact("end the benchmark", items).await? {
            Ok(()) => Transition::Done,
            Err(_) => Transition::Raced,
        })
    }

    /// Hides a run that is over; its records are removed afterwards by [`State::purge_run`].
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

    /// Removes all records of a deleted run. Safe to repeat; a run that was not deleted is left alone.
    pub async fn purge_run(&self, run: RunId) -> Result<(), StateError> {
        let Some(found) = self.any_run_with_benchmarks(run).await? else { return Ok(()) };
        if !found.run.deleted {
            return Ok(());
        }
        for benchmark in &found.benchmarks {
            for plan in 1..=found.run.plan_attempts {
                // An attempt that did not become the plan may have chosen another number of shards.
                let shards = benchmark.plan.as_ref().map_or(0, |plan| plan.shards).max(64);
                for shard in 0..shards {
                    self.purge_partition(keys::shard_partition(run, &benchmark.name, plan, shard)).await?;
                }
            }
        }
        self.purge_partition(keys::events_partition(run)).await?;
        self.forget_unsettled(run).await?;
        // Last, so that a purge that was cut off is found again.
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
