//! Requeue: samples without a grade are repeated. An answer that was handed over to a judge or a sandbox is kept, and
//! is judged or run again.

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use bench_domain::sample::SampleState;
use bench_domain::{SampleRef, Stage, Timestamp};

use crate::attributes::{number, text};
use crate::conflict::pause;
use crate::keys::{self, COUNT, key};
use crate::{SampleRecord, State, StateError};

impl State {
    /// Reopens a sample that ended without a grade: the inverse of its commit.
    ///
    /// Returns `false` if there is nothing to reopen: the sample is already open, or was graded.
    pub async fn reopen(
        &self,
        sample: &SampleRef,
        benchmark_sort: &str,
        record: &SampleRecord,
        now: Timestamp,
    ) -> Result<bool, StateError> {
        let SampleState::Done { attempt, .. } = record.state else { return Ok(false) };
        if record.state.reopen(now).is_err() {
            return Ok(false);
        }
        // Replies that were recorded or committed contained no verdict. Later replies haven't been read yet.
        let read_up_to = record.turn.as_ref().map_or(record.cleared, |turn| {
            let last = record.finished.as_ref().and_then(|finished| finished.body.as_ref());
            record.cleared.max(last.unwrap_or(&turn.answer.body).attempt)
        });
        let usage = record.finished.as_ref().and_then(|finished| finished.usage).unwrap_or_default();
        let checkpoints: Vec<_> = Stage::ALL.into_iter().filter_map(Stage::checkpoint_attribute).collect();
        let mut closed = false;
        for repeat in 0..20 {
            if repeat > 1 {
                pause(repeat).await;
            }
            let open = Update::builder()
                .table_name(&self.table)
                .set_key(Some(keys::sample(sample)))
                .update_expression(format!(
                    "SET #state = :open, due_at = :now, failures = :zero, waits = :zero, resends = :zero, \
                     replies = :zero, cleared = :cleared \
                     REMOVE waiting_since, unended, {}, outcome, score, reason, extracted, detail, finished_at",
                    checkpoints.join(", "),
                ))
                .condition_expression("#state = :done AND attempt = :attempt")
                .expression_attribute_names("#state", "state")
                .expression_attribute_values(":open", text("open"))
                .expression_attribute_values(":done", text("done"))
                .expression_attribute_values(":now", number(now.as_micros()))
                .expression_attribute_values(":zero", number(0))
                .expression_attribute_values(":cleared", number(read_up_to))
                .expression_attribute_values(":attempt", number(attempt))
                .build()
                .map_err(|error| StateError::damaged("sample", error))?;
            let count = Update::builder()
                .table_name(&self.table)
                .set_key(Some(key(keys::sample_partition(sample), COUNT)))
                .update_expression("ADD done :less, input_tokens :input, output_tokens :output")
                .condition_expression(if closed { "done > #last" } else { "done <= #last" })
                .expression_attribute_names("#last", "last")
                .expression_attribute_values(":less", number(-1))
                .expression_attribute_values(":input", number(-i128::from(usage.input_tokens)))
                .expression_attribute_values(":output", number(-i128::from(usage.output_tokens)))
                .build()
                .map_err(|error| StateError::damaged("sample", error))?;
            let mut items = vec![
                TransactWriteItem::builder().update(open).build(),
                TransactWriteItem::builder().update(count).build(),
            ];
            if closed {
                items.push(self.shards_update(sample.run, benchmark_sort, -1)?);
            }
            match self.transact("reopen the sample", items).await? {
                Ok(()) => return Ok(true),
                Err(canceled) if canceled.condition_failed(0) => {
                    let found = self.sample(sample).await?;
                    return Ok(found.is_some_and(|found| matches!(found.state, SampleState::Open { .. })));
                }
                Err(_) => closed = !closed,
            }
        }
        Err(StateError::Service {
            verb: "reopen the sample",
            problem: "its shard's counters changed during every attempt".into(),
        })
    }
}
