//! Spending of runs, for their budgets.

use bench_domain::{BenchmarkName, RunId, SampleRef, Spending};

use crate::attributes::{Reader, Record, number};
use crate::client::condition_held;
use crate::keys::{self, COUNT, key, shard_partition};
use crate::samples::READ_BATCH_MAX;
use crate::{BenchmarkRecord, ShardCount, State, StateError};

/// Shards of one benchmark's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shards {
    /// Name of the benchmark.
    pub benchmark: BenchmarkName,
    /// Number of the planner's attempt that made the plan.
    pub plan: u32,
    /// Number of shards.
    pub count: u32,
}

impl Shards {
    /// Returns the shards of a benchmark, once it is planned.
    pub fn from_benchmark(benchmark: &BenchmarkRecord) -> Option<Self> {
        let plan = benchmark.plan.as_ref()?;
        Some(Self { benchmark: benchmark.name.clone(), plan: plan.attempt, count: plan.shards })
    }
}

impl State {
    /// Returns the sum of all counters of a run, with one batch read per hundred shards.
    pub async fn run_count(&self, run: RunId, shards: &[Shards]) -> Result<ShardCount, StateError> {
        let wanted: Vec<Record> = shards
            .iter()
            .flat_map(|of| {
                (0..of.count).map(|shard| key(shard_partition(run, &of.benchmark, of.plan, shard), COUNT))
            })
            .collect();
        let mut sum = ShardCount::default();
        for batch in wanted.chunks(READ_BATCH_MAX) {
            for record in self.read_batch(batch.to_vec()).await? {
                sum = sum.plus(ShardCount::read(&Reader::new(&record))?);
            }
        }
        Ok(sum)
    }

    /// Counts tokens of an attempt that returned no answer.
    ///
    /// A retry after a lost response counts them twice; the budget then stops its run a little early.
    pub async fn add_spent(&self, sample: &SampleRef, spent: impl Into<Spending>) -> Result<(), StateError> {
        let Spending { answers, judge, user } = spent.into();
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(keys::sample_partition(sample), COUNT)))
            .update_expression(
                "ADD spent_input :input, spent_output :output, spent_estimated :estimated, \
                 judge_spent_input :judge_input, judge_spent_output :judge_output, \
                 judge_spent_estimated :judge_estimated, user_spent_input :user_input, \
                 user_spent_output :user_output, user_spent_estimated :user_estimated",
            )
            // Must not recreate the counters of a run that was deleted meanwhile.
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":input", number(answers.input_tokens))
            .expression_attribute_values(":output", number(answers.output_tokens))
            .expression_attribute_values(":judge_input", number(judge.input_tokens))
            .expression_attribute_values(":judge_output", number(judge.output_tokens))
            .expression_attribute_values(":estimated", number(answers.estimated_tokens))
            .expression_attribute_values(":judge_estimated", number(judge.estimated_tokens))
            .expression_attribute_values(":user_input", number(user.input_tokens))
            .expression_attribute_values(":user_output", number(user.output_tokens))
            .expression_attribute_values(":user_estimated", number(user.estimated_tokens))
            .send()
            .await;
        condition_held("count what was spent", update).map(drop)
    }
}
