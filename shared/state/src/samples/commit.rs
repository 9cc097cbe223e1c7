//! Commits: ends a sample and counts it, in one transaction.

use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use bench_domain::{RunId, SampleRef, Spending};

use super::counts::ShardCount;
use super::finished::SampleResult;
use super::record::UNENDED;
use crate::attributes::{Reader, number, text};
use crate::conflict::pause;
use crate::keys::{self, COUNT, key};
use crate::{State, StateError};

/// Result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// This attempt ended the sample. `closed` is true if the sample was, or may have been, the last of its shard.
    Done {
        /// True if the caller must check whether the run is complete.
        closed: bool,
    },
    /// Another attempt holds or ended the sample; nothing was changed.
    Lost,
}

/// Condition of a commit on the samples of its shard that aren't over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remaining {
    /// There are more than the one that is committed.
    Others,
    /// There is only the one that is committed.
    None,
    /// There are more than these, out of all samples planned for the shard. Fails, too, if `planned` is wrong.
    MoreThan { committed: u64, planned: u64 },
}

impl State {
    /// Ends a sample that `attempt` holds, and counts it. `spent` are the tokens that count toward a budget.
    ///
    /// `benchmark_sort` is the sort key of the run's benchmark, whose closed shards are counted.
    pub async fn commit(
        &self,
        sample: &SampleRef,
        benchmark_sort: &str,
        attempt: u32,
        finished: &SampleResult,
        spent: impl Into<Spending>,
    ) -> Result<Commit, StateError> {
        let spent = spent.into();
        let mut closing = false;
        // The usual form and the closing form alternate only while other samples of the shard are reopened
        // concurrently.
        for repeat in 0..20 {
            if repeat > 1 {
                pause(repeat).await;
            }
            let remaining = if closing { Remaining::None } else { Remaining::Others };
            let count = ShardCount::of(finished, spent);
            let mut items = vec![
                self.finish_update(sample, attempt, finished)?,
                self.count_update(keys::sample_partition(sample), &count, remaining)?,
            ];
            if closing {
                items.push(self.shards_update(sample.run, benchmark_sort, 1)?);
            }
            let Err(canceled) = self.transact("commit the sample", items).await? else {
                return Ok(Commit::Done { closed: closing });
            };
            if canceled.condition_failed(0) {
                let mine = canceled.record(0).is_some_and(|record| {
                    let reader = Reader::new(record);
                    reader.maybe_text("state") == Some("done")
                        && reader.maybe_number("attempt").ok().flatten() == Some(attempt)
                });
                // An earlier try succeeded and its response was lost; it may have been the shard's last sample.
                return Ok(if mine { Commit::Done { closed: true } } else { Commit::Lost });
            }
            closing = !closing;
        }
        Err(StateError::Service {
            verb: "commit the sample",
            problem: "its shard's counters changed during every attempt".into(),
        })
    }

    pub(super) fn finish_update(
        &self,
        sample: &SampleRef,
        attempt: u32,
        finished: &SampleResult,
    ) -> Result<TransactWriteItem, StateError> {
        let (assignments, values) = finished.assignments(attempt)?;
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression(format!("SET #state = :done, {assignments} ADD {UNENDED} :ended"))
            .condition_expression("#state = :claimed AND attempt = :attempt")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":done", text("done"))
            .expression_attribute_values(":claimed", text("claimed"))
            .expression_attribute_values(":attempt", number(attempt))
            .expression_attribute_values(":ended", number(-1))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (name, value) in values {
            update = update.expression_attribute_values(name, value);
        }
        let update = update.build().map_err(|error| StateError::damaged("sample", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Builds the update that adds `count` to the counters of a shard.
    pub(super) fn count_update(
        &self,
        partition: String,
        count: &ShardCount,
        remaining: Remaining,
    ) -> Result<TransactWriteItem, StateError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(partition, COUNT)))
            .update_expression(
                "ADD done :done, graded :graded, correct :correct, input_tokens :input, output_tokens :output, \
                 spent_input :spent_input, spent_output :spent_output, spent_estimated :estimated, \
                 judge_spent_input :judge_input, judge_spent_output :judge_output, \
                 judge_spent_estimated :judge_estimated, user_spent_input :user_input, \
                 user_spent_output :user_output, user_spent_estimated :user_estimated",
            )
            .expression_attribute_names("#last", "last")
            .expression_attribute_values(":done", number(count.done))
            .expression_attribute_values(":graded", number(count.graded))
            .expression_attribute_values(":correct", number(count.correct))
            .expression_attribute_values(":input", number(count.input_tokens))
            .expression_attribute_values(":output", number(count.output_tokens))
            .expression_attribute_values(":spent_input", number(count.spent_input))
            .expression_attribute_values(":spent_output", number(count.spent_output))
            .expression_attribute_values(":estimated", number(count.spent_estimated))
            .expression_attribute_values(":judge_input", number(count.judge_spent_input))
            .expression_attribute_values(":judge_output", number(count.judge_spent_output))
            .expression_attribute_values(":judge_estimated", number(count.judge_spent_estimated))
            .expression_attribute_values(":user_input", number(count.user_spent_input))
            .expression_attribute_values(":user_output", number(count.user_spent_output))
            .expression_attribute_values(":user_estimated", number(count.user_spent_estimated));
        let update = match remaining {
            Remaining::Others => update.condition_expression("done < #last"),
            Remaining::None => update.condition_expression("done = #last"),
            // A condition can't calculate, so the caller says what `last` has to be.
            Remaining::MoreThan { committed, planned } => update
                .condition_expression("done < :below AND #last = :last")
                .expression_attribute_values(":below", number(planned.saturating_sub(committed)))
                .expression_attribute_values(":last", number(i128::from(planned) - 1)),
        };
        let update = update.build().map_err(|error| StateError::damaged("sample", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    pub(crate) fn shards_update(
        &self,
        run: RunId,
        benchmark_sort: &str,
        by: i32,
    ) -> Result<TransactWriteItem, StateError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(keys::run_partition(run), benchmark_sort)))
            .update_expression("ADD shards_done :by")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":by", number(by))
            .build()
            .map_err(|error| StateError::damaged("benchmark", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}
