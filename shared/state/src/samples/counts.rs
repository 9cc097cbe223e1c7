//! Counters of a benchmark's shards.

use bench_domain::{BenchmarkName, Outcome, RunId, Spending, Usage};

use super::finished::SampleResult;
use super::read::READ_BATCH_MAX;
use crate::attributes::{Reader, Record};
use crate::keys::{COUNT, key, shard_partition};
use crate::{State, StateError};

/// Counters of one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardCount {
    /// Planned samples.
    pub expected: u64,
    /// Samples that are over.
    pub done: u64,
    /// Graded samples among them.
    pub graded: u64,
    /// Correct samples among them.
    pub correct: u64,
    /// Tokens of their prompts.
    pub input_tokens: u64,
    /// Tokens of their answers.
    pub output_tokens: u64,
    /// Prompt tokens that count toward a budget. They are never lowered, and estimated if the provider counted nothing.
    /// For a run with a budget, they include attempts without an answer.
    pub spent_input: u64,
    /// Answer tokens that count toward a budget.
    pub spent_output: u64,
    /// Prompt tokens of the judge that count toward a budget.
    pub judge_spent_input: u64,
    /// Reply tokens of the judge that count toward a budget.
    pub judge_spent_output: u64,
    /// Part of `spent_input` and `spent_output` together that is an estimate.
    pub spent_estimated: u64,
    /// Part of the judge's tokens that is an estimate.
    pub judge_spent_estimated: u64,
    /// Prompt tokens of the user simulator that count toward a budget.
    pub user_spent_input: u64,
    /// Reply tokens of the user simulator that count toward a budget.
    pub user_spent_output: u64,
    /// Part of the user simulator's tokens that is an estimate.
    pub user_spent_estimated: u64,
}

impl ShardCount {
    /// Counts one sample that is over, with the tokens of it that count toward a budget.
    pub(super) fn of(finished: &SampleResult, spent: Spending) -> Self {
        let usage = finished.usage.unwrap_or_default();
        let outcome = finished.verdict.outcome;
        Self {
            expected: 0,
            done: 1,
            graded: u64::from(outcome.is_graded()),
            correct: u64::from(outcome == Outcome::Correct),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            spent_input: spent.answers.input_tokens,
            spent_output: spent.answers.output_tokens,
            judge_spent_input: spent.judge.input_tokens,
            judge_spent_output: spent.judge.output_tokens,
            spent_estimated: spent.answers.estimated_tokens,
            judge_spent_estimated: spent.judge.estimated_tokens,
            user_spent_input: spent.user.input_tokens,
            user_spent_output: spent.user.output_tokens,
            user_spent_estimated: spent.user.estimated_tokens,
        }
    }

    /// Returns the model's tokens that count toward a budget.
    pub const fn spent(&self) -> Usage {
        Usage {
            estimated_tokens: self.spent_estimated,
            ..Usage::counted(self.spent_input, self.spent_output, 0)
        }
    }

    /// Returns the judge's tokens that count toward a budget.
    pub const fn judge_spent(&self) -> Usage {
        Usage {
            estimated_tokens: self.judge_spent_estimated,
            ..Usage::counted(self.judge_spent_input, self.judge_spent_output, 0)
        }
    }

    /// Returns the user simulator's tokens that count toward a budget.
    pub const fn user_spent(&self) -> Usage {
        Usage {
            estimated_tokens: self.user_spent_estimated,
            ..Usage::counted(self.user_spent_input, self.user_spent_output, 0)
        }
    }

    /// Returns all tokens that count toward a budget.
    pub const fn spending(&self) -> Spending {
        Spending { answers: self.spent(), judge: self.judge_spent(), user: self.user_spent() }
    }

    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            expected: self.expected + other.expected,
            done: self.done + other.done,
            graded: self.graded + other.graded,
            correct: self.correct + other.correct,
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            spent_input: self.spent_input.saturating_add(other.spent_input),
            spent_output: self.spent_output.saturating_add(other.spent_output),
            judge_spent_input: self.judge_spent_input.saturating_add(other.judge_spent_input),
            judge_spent_output: self.judge_spent_output.saturating_add(other.judge_spent_output),
            spent_estimated: self.spent_estimated.saturating_add(other.spent_estimated),
            judge_spent_estimated: self.judge_spent_estimated.saturating_add(other.judge_spent_estimated),
            user_spent_input: self.user_spent_input.saturating_add(other.user_spent_input),
            user_spent_output: self.user_spent_output.saturating_add(other.user_spent_output),
            user_spent_estimated: self.user_spent_estimated.saturating_add(other.user_spent_estimated),
        }
    }

    /// Reads counters from their record. Counters of older versions have no spent tokens, so all their tokens count as
    /// spent.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Self, StateError> {
        let input_tokens = reader.count_or("input_tokens", 0)?;
        let output_tokens = reader.count_or("output_tokens", 0)?;
        Ok(Self {
            expected: reader.number("expected")?,
            done: reader.number_or("done", 0)?,
            graded: reader.number_or("graded", 0)?,
            correct: reader.number_or("correct", 0)?,
            input_tokens,
            output_tokens,
            spent_input: reader.count_or("spent_input", input_tokens)?,
            spent_output: reader.count_or("spent_output", output_tokens)?,
            judge_spent_input: reader.count_or("judge_spent_input", 0)?,
            judge_spent_output: reader.count_or("judge_spent_output", 0)?,
            spent_estimated: reader.count_or("spent_estimated", 0)?,
            judge_spent_estimated: reader.count_or("judge_spent_estimated", 0)?,
            user_spent_input: reader.count_or("user_spent_input", 0)?,
            user_spent_output: reader.count_or("user_spent_output", 0)?,
            user_spent_estimated: reader.count_or("user_spent_estimated", 0)?,
        })
    }
}

impl State {
    /// Returns the counters of all shards of a benchmark, in the order of the shards.
    pub async fn shard_counts(
        &self,
        run: RunId,
        benchmark: &BenchmarkName,
        plan: u32,
        shards: u32,
    ) -> Result<Vec<ShardCount>, StateError> {
        let wanted: Vec<Record> =
            (0..shards).map(|shard| key(shard_partition(run, benchmark, plan, shard), COUNT)).collect();
        let mut counts = vec![ShardCount::default(); shards as usize];
        for batch in wanted.chunks(READ_BATCH_MAX) {
            for record in self.read_batch(batch.to_vec()).await? {
                let reader = Reader::new(&record);
                let shard =
                    reader.text("pk")?.rsplit('#').next().and_then(|digits| digits.parse::<usize>().ok());
                let Some(slot) = shard.and_then(|shard| counts.get_mut(shard)) else { continue };
                *slot = ShardCount::read(&reader)?;
            }
        }
        Ok(counts)
    }
}
