//! Creation of runs, within the limits of open runs.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use bench_domain::run::{BenchmarkState, RunState};
use bench_domain::{RunSpec, Timestamp};

use super::record::LABELS;
use crate::access::{LimitScope, OrderLimits};
use crate::attributes::{Record, json, number, text};
use crate::client::expires_at;
use crate::conflict::Canceled;
use crate::credentials::SealedKey;
use crate::idempotency::REMEMBER_S;
use crate::keys::{self, RUNS, benchmark_sort, key, run_partition, status_partition, time_sort};
use crate::origin::CONCURRENCY;
use crate::{Idempotency, NewEvent, State, StateError};

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

/// Returns the limit that rejected the items of [`State::new_run_items`], if any.
pub(crate) fn new_run_limit(canceled: &Canceled) -> Option<LimitScope> {
    [LimitScope::Owner, LimitScope::Total]
        .into_iter()
        .zip(1..)
        .find_map(|(reached, index)| canceled.condition_failed(index).then_some(reached))
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
        self.own_origin.write(&mut run);
        if let Some(concurrency) = self.own_concurrency {
            run.insert(CONCURRENCY.into(), number(concurrency));
        }
        run.insert("due_at".into(), number(due_at.as_micros()));
        run.insert("model_slug_lower".into(), text(spec.model.slug.to_lowercase()));
        run.insert("model_id".into(), text(spec.model.id.to_string()));
        run.insert("index_all".into(), text(RUNS));
        run.insert("index_status".into(), status_partition(state.status().as_str()));
        run.insert("index_sort".into(), text(time_sort(spec.created_at, spec.id)));
        run.insert("counted_open".into(), number(1));
        if !spec.labels.is_empty() {
            run.insert(LABELS.into(), json("run", &spec.labels)?);
        }
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
        items.extend(self.labels_put(spec, &spec.labels)?);
        items.push(self.owned_put(spec)?);
        if !spec.labels.visibility.is_public() {
            items.push(self.hidden_change(spec, &spec.labels)?);
        }
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
}
