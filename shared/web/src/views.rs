//! Runs, benchmarks, items and events as JSON.
//!
//! Each view has every field of the compatible system's object, always present and null if it has no value,
//! and additional fields. A score is always accompanied by its coverage.

mod benchmark;
mod budget;
mod clean;
mod episode;
mod event;
mod execution;
mod item;
mod judge;
mod limits;
mod run;
mod summary;
mod verification;
mod waiting;

pub use benchmark::{AttachmentView, DatasetView, GenerationView, IntervalView, RunBenchmarkView, metrics};
pub use budget::{BudgetView, SpentView};
pub use event::EventView;
pub use execution::StepView;
pub use item::{ItemView, item_error, item_view};
pub use judge::{JudgeOrderView, JudgeView, RejudgesView};
pub use limits::LimitsView;
pub use run::{CanView, ProgressView, QueuePosition, RunView, by_benchmark_name};
pub use summary::{ErrorCount, SummaryBuilder, SummaryView};
pub use verification::verification_files;
pub use waiting::WaitingView;

use bench_domain::{Cost, Outcome, Price, RunId, Usage};
use bench_state::{BenchmarkRecord, ShardCount, State, StateError};
use serde::Serialize;
use utoipa::ToSchema;

/// Cost of tokens, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct CostView {
    /// Cost of the prompts.
    pub input_usd: f64,
    /// Cost of the answers.
    pub output_usd: f64,
    /// Sum of both.
    pub total_usd: f64,
}

impl CostView {
    /// Returns the cost of these tokens, if the price is known.
    pub fn new(price: Option<Price>, input_tokens: u64, output_tokens: u64) -> Option<Self> {
        let usage = Usage::counted(input_tokens, output_tokens, 0);
        let cost: Cost = price?.cost(usage);
        Some(Self { input_usd: cost.input_usd, output_usd: cost.output_usd, total_usd: cost.total_usd() })
    }
}

/// Returns the progress of a benchmark: from its report once it has one, else from the counters of its shards.
///
/// # Errors
/// When the counters can't be read.
pub async fn benchmark_counts(
    state: &State,
    run: RunId,
    benchmark: &BenchmarkRecord,
) -> Result<ShardCount, StateError> {
    if let Some(report) = benchmark.state.report() {
        let spent = report.spent.unwrap_or(report.usage);
        let judge_spent = report.judge_spent.or(report.judge_usage).unwrap_or_default();
        let user_spent = report.user_spent.unwrap_or_default();
        return Ok(ShardCount {
            expected: report.planned,
            done: report.outcomes.total(),
            graded: report.graded,
            correct: report.outcomes.get(Outcome::Correct),
            input_tokens: report.usage.input_tokens,
            output_tokens: report.usage.output_tokens,
            spent_input: spent.input_tokens,
            spent_output: spent.output_tokens,
            judge_spent_input: judge_spent.input_tokens,
            judge_spent_output: judge_spent.output_tokens,
            spent_estimated: spent.estimated_tokens,
            judge_spent_estimated: judge_spent.estimated_tokens,
            user_spent_input: user_spent.input_tokens,
            user_spent_output: user_spent.output_tokens,
            user_spent_estimated: user_spent.estimated_tokens,
        });
    }
    let Some(plan) = &benchmark.plan else { return Ok(ShardCount::default()) };
    let counts = state.shard_counts(run, &benchmark.name, plan.attempt, plan.shards).await?;
    Ok(counts.into_iter().fold(ShardCount::default(), ShardCount::plus))
}

#[allow(clippy::cast_precision_loss)] // counts are far below 2^53
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
