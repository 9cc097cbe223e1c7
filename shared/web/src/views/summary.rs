//! Sums over the samples of a benchmark.

use std::collections::HashMap;

use bench_domain::{Code, Outcome, OutcomeCounts, Price};
use bench_state::{SampleRecord, SampleResult, ShardCount};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::CodeSchema;

use super::{CostView, item_error};

/// Maximum number of distinct error texts to count; the others are counted together.
const ERRORS_MAX: usize = 100;
const OTHER_ERRORS: &str = "other errors";

/// Sums over all samples of a benchmark that are over.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SummaryView {
    /// Samples that are over.
    pub total_items: u64,
    /// Right ones.
    pub correct: u64,
    /// Graded ones that are not right.
    pub incorrect: u64,
    /// Those with an `error`, whatever their grade.
    pub errors: u64,
    /// Mean time from request to the end of the answer; null without any, and for a large benchmark until it
    /// is over.
    pub avg_latency_ms: Option<f64>,
    /// Tokens of the prompts.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// What the prompts cost; this and the next four are null when no price is known.
    pub input_cost_usd: Option<f64>,
    /// What the answers cost.
    pub output_cost_usd: Option<f64>,
    /// Both.
    pub total_cost_usd: Option<f64>,
    /// Price of a million tokens of prompt.
    pub pricing_input_per_million_usd: Option<f64>,
    /// Price of a million tokens of answer.
    pub pricing_output_per_million_usd: Option<f64>,
    /// How often each error text occurs, most frequent first; empty for a large benchmark until it is over, and
    /// where the dataset is gated and the caller does not own the run.
    pub error_breakdown: Vec<ErrorCount>,

    /// Graded samples.
    pub graded: u64,
    /// How many ended in which way; null for a large benchmark until it is over.
    #[schema(value_type = Option<std::collections::BTreeMap<String, u64>>)]
    pub outcomes: Option<OutcomeCounts>,
    /// Answers of samples that are over for which the provider counted no tokens: they are in none of the sums of tokens
    /// and costs; null for a large benchmark until it is over.
    pub without_usage: Option<u64>,
    /// Samples that are answered and neither judged nor run yet, which are in no other sum; null for a large benchmark until it is
    /// over.
    pub unjudged: Option<u64>,
}

/// How often an error occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorCount {
    /// Its text.
    pub message: String,
    /// Its code; null for what is wrong with a graded answer, and for causes that were stored without code.
    #[schema(value_type = Option<CodeSchema>)]
    pub code: Option<Code>,
    /// How many samples have it.
    pub count: u64,
}

/// Sums up samples one by one, in any order.
#[derive(Debug, Default)]
pub struct SummaryBuilder {
    counts: ShardCount,
    errors: u64,
    latencies: u64,
    latency_sum_ms: u64,
    outcomes: OutcomeCounts,
    unjudged: u64,
    without_usage: u64,
    messages: HashMap<(String, Option<Code>), u64>,
}

impl SummaryBuilder {
    /// Counts a sample if it is over or waits for its judge.
    pub fn add_sample(&mut self, sample: &SampleRecord) {
        self.unjudged += u64::from(sample.unjudged_answer().is_some());
        if let Some(finished) = &sample.finished {
            self.add(finished);
        }
    }

    fn add(&mut self, finished: &SampleResult) {
        let outcome = finished.verdict.outcome;
        self.outcomes.add(outcome);
        self.counts.done += 1;
        self.counts.graded += u64::from(outcome.is_graded());
        self.counts.correct += u64::from(outcome == Outcome::Correct);
        self.without_usage += u64::from(finished.body.is_some() && finished.usage.is_none());
        let usage = finished.usage.unwrap_or_default();
        self.counts.input_tokens = self.counts.input_tokens.saturating_add(usage.input_tokens);
        self.counts.output_tokens = self.counts.output_tokens.saturating_add(usage.output_tokens);
        if let Some(latency_ms) = finished.latency_ms {
            self.latencies += 1;
            self.latency_sum_ms = self.latency_sum_ms.saturating_add(latency_ms);
        }
        if let Some(error) = item_error(finished) {
            self.errors += 1;
            let error = (error, finished.verdict.code);
            let known = self.messages.len() < ERRORS_MAX || self.messages.contains_key(&error);
            let error = if known { error } else { (OTHER_ERRORS.to_owned(), None) };
            *self.messages.entry(error).or_default() += 1;
        }
    }

    /// Returns the sums.
    #[allow(clippy::cast_precision_loss)] // sums are far below 2^53
    pub fn finish(self, price: Option<Price>) -> SummaryView {
        let mut view = SummaryView::of_counts(&self.counts, price);
        view.errors = self.errors;
        view.avg_latency_ms =
            (self.latencies > 0).then(|| self.latency_sum_ms as f64 / self.latencies as f64);
        view.outcomes = Some(self.outcomes);
        view.unjudged = Some(self.unjudged);
        view.without_usage = Some(self.without_usage);
        view.error_breakdown = self
            .messages
            .into_iter()
            .map(|((message, code), count)| ErrorCount { message, code, count })
            .collect();
        view.error_breakdown.sort_by(|a, b| {
            b.count.cmp(&a.count).then_with(|| (&a.message, a.code).cmp(&(&b.message, b.code)))
        });
        view
    }
}

impl SummaryView {
    /// Removes error texts, which may quote an item of a gated dataset; `outcomes` still counts them.
    #[must_use]
    pub fn hide(mut self) -> Self {
        self.error_breakdown.clear();
        self
    }

    /// Creates the sums from counters alone: samples that weren't graded count as errors.
    pub fn of_counts(counts: &ShardCount, price: Option<Price>) -> Self {
        let cost = CostView::new(price, counts.input_tokens, counts.output_tokens);
        Self {
            total_items: counts.done,
            correct: counts.correct,
            incorrect: counts.graded.saturating_sub(counts.correct),
            errors: counts.done.saturating_sub(counts.graded),
            avg_latency_ms: None,
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            total_tokens: counts.input_tokens.saturating_add(counts.output_tokens),
            input_cost_usd: cost.map(|cost| cost.input_usd),
            output_cost_usd: cost.map(|cost| cost.output_usd),
            total_cost_usd: cost.map(|cost| cost.total_usd),
            pricing_input_per_million_usd: price.map(|price| price.input_per_million_usd),
            pricing_output_per_million_usd: price.map(|price| price.output_per_million_usd),
            error_breakdown: Vec::new(),
            graded: counts.graded,
            outcomes: None,
            unjudged: None,
            without_usage: None,
        }
    }
}
