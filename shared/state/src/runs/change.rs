//! Changes of the state of runs.

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use bench_domain::run::RunState;
use bench_domain::{RunSpec, Timestamp};

use super::provider_wait::{PROVIDER_WAIT, PROVIDER_WAIT_UNTIL};
use super::record::{ERRORS_ONLY, ONLY_SAMPLE, Resumption, RunRecord, SampleChoice, TAKEN_UP};
use crate::access::{LimitScope, OrderLimits};
use crate::attributes::{json, number, text};
use crate::credentials::SealedKey;
use crate::events::TRIES_MAX;
use crate::keys::{self, status_partition};
use crate::origin::{CONCURRENCY, ORIGIN, ORIGIN_START};
use crate::{NewEvent, Origin, State, StateError};

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

/// Changes to a run that is requeued or resumed.
#[derive(Clone, Copy, Default)]
pub struct Renewal<'a> {
    /// New keys of the caller.
    pub key: Option<&'a SealedKey>,
    /// New settings, with another budget.
    pub spec: Option<&'a RunSpec>,
    /// New origin of a run that is resumed or interrupted; it decides which processes work on it.
    pub origin: Option<Origin>,
    /// New concurrency of a run that a command resumes; `None` keeps the stored one.
    pub concurrency: Option<u32>,
    /// True if the new generation repeats only samples that ended with an infrastructure-error.
    pub errors_only: bool,
    /// The only ended sample that the new generation repeats; `None` repeats all that a requeue repeats.
    pub only_sample: Option<&'a SampleChoice>,
    /// Time of the requeue or resume, and the tokens spent until then.
    pub resumption: Option<Resumption>,
    /// Limits of open runs; `None` opens the run without checking limits.
    pub limits: Option<&'a OrderLimits>,
}

impl State {
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
        let only_sample = renewal.only_sample.filter(|_| is_new);
        let mut last = self.last_event(id).await?;
        for _ in 0..TRIES_MAX {
            let is_open = next.status().is_open();
            let update = Update::builder()
                .table_name(&self.table)
                .set_key(Some(keys::run(id)))
                .update_expression(format!(
                    "SET #state = :state, index_status = :status, generation = :generation, \
                      due_at = :due, revision = :next, resends = :zero, counted = :yes, counted_open = :open{}{}{}{}{}{}{}",
                    if renewal.spec.is_some() { ", spec = :spec" } else { "" },
                    if renewal.origin.is_some() { ", #origin = :origin, #start = :start" } else { "" },
                    if renewal.concurrency.is_some() { ", #concurrency = :concurrency" } else { "" },
                    if renewal.resumption.is_some() { ", #taken_up = :taken_up" } else { "" },
                    if is_new { ", #errors_only = :errors_only" } else { "" },
                    if only_sample.is_some() { ", #only_sample = :only_sample" } else { "" },
                    removal(is_new, only_sample.is_some(), renewal.resumption.is_some())
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
            let update = match renewal.origin {
                Some(origin) => update
                    .expression_attribute_names("#origin", ORIGIN)
                    .expression_attribute_names("#start", ORIGIN_START)
                    .expression_attribute_values(":origin", text(origin.name()))
                    .expression_attribute_values(":start", number(origin.start())),
                None => update,
            };
            let update = match renewal.concurrency {
                Some(concurrency) => update
                    .expression_attribute_names("#concurrency", CONCURRENCY)
                    .expression_attribute_values(":concurrency", number(concurrency)),
                None => update,
            };
            let update = if is_new {
                update
                    .expression_attribute_names("#errors_only", ERRORS_ONLY)
                    .expression_attribute_values(":errors_only", number(u8::from(renewal.errors_only)))
            } else {
                update
            };
            let update = match only_sample {
                Some(choice) => update
                    .expression_attribute_names("#only_sample", ONLY_SAMPLE)
                    .expression_attribute_values(":only_sample", json("run", choice)?),
                None => update,
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
        Err(StateError::Service { verb: "change the run", problem: "other writers took every number".into() })
    }
}

/// Returns the part of the update that removes what ends with the old state: the claim on planning, so that a requeued run is
/// planned immediately, and the wait for a provider, which a resumed run asks again.
fn removal(is_new: bool, is_for_one: bool, is_resumed: bool) -> String {
    let planning = is_new.then_some("plan_lease_until");
    let choice = (is_new && !is_for_one).then_some(ONLY_SAMPLE);
    let wait = is_resumed.then_some([PROVIDER_WAIT, PROVIDER_WAIT_UNTIL]);
    let removed: Vec<&str> = planning.into_iter().chain(choice).chain(wait.into_iter().flatten()).collect();
    if removed.is_empty() { String::new() } else { format!(" REMOVE {}", removed.join(", ")) }
}
