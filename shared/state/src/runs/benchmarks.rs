//! Changes of the state of a run's benchmarks.

use aws_sdk_dynamodb::types::{ConditionCheck, TransactWriteItem, Update};
use bench_domain::run::{BenchmarkState, Plan};
use bench_domain::{Code, RunId, Timestamp};

use super::change::Transition;
use super::record::{BenchmarkRecord, ITEM_INDEX, ItemIndex, RunRecord};
use crate::attributes::{json, number};
use crate::client::condition_held;
use crate::events::TRIES_MAX;
use crate::keys::{self, key, run_partition};
use crate::{NewEvent, State, StateError};

impl State {
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
        Err(StateError::Service {
            verb: "change the benchmark",
            problem: "other writers took every number".into(),
        })
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

    /// Records the index of a benchmark's samples, before the benchmark is closed; `None` removes the record of an earlier
    /// one. The condition holds back a late finisher, whose benchmark was closed or reopened meanwhile. Returns whether it
    /// was recorded.
    pub async fn note_item_index(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        index: Option<ItemIndex>,
    ) -> Result<bool, StateError> {
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(run_partition(run), benchmark.sort())))
            .condition_expression("revision = :revision")
            .expression_attribute_values(":revision", number(benchmark.revision));
        update = match &index {
            Some(index) => update
                .update_expression(format!("SET {ITEM_INDEX} = :index"))
                .expression_attribute_values(":index", json("benchmark", index)?),
            None => update.update_expression(format!("REMOVE {ITEM_INDEX}")),
        };
        condition_held("note the index of the samples", update.send().await)
    }

    /// Closes the benchmarks that were still open when their run ended, without reports. Safe to repeat.
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
                let Ok(next) = benchmark.state.skip(now, None, Code::RunEnded, why) else { continue };
                raced |= self.end_benchmark(&found.run, benchmark, &next).await? == Transition::Raced;
            }
            if !raced {
                return Ok(());
            }
        }
        Err(StateError::Service {
            verb: "close the benchmarks",
            problem: "they changed during every attempt".into(),
        })
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
}
