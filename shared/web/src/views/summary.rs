//! Sums over the samples of a benchmark.

use std::collections::HashMap;

use bench_domain::run::ModelRef;
use bench_domain::{Code, Outcome, OutcomeCounts, Price};
use bench_state::{SampleRecord, SampleResult, ShardCount};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::CodeSchema;

use super::{CostView, item_error};

/// Maximum number of distinct error texts to count; the others are counted together.
const ERRORS_MAX: usize = 100;
const OTHER_ERRORS: &str = "other errors";

/// Sums over the samples of a benchmark that are over.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SummaryView {
    /// Samples that are over.
    pub total_items: u64,
    /// Correct samples.
    pub correct: u64,
    /// Graded samples that aren't correct.
    pub incorrect: u64,
    /// Samples with an `error`, graded or not.
    pub errors: u64,
    /// Mean time from the request to the end of the answer, in milliseconds; null without any answer, and for a large
    /// benchmark until it is over.
    pub avg_latency_ms: Option<f64>,
    /// Tokens of the prompts.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// Sum of both.
    pub total_tokens: u64,
    /// Cost of the prompts in US dollars; null if the price isn't known.
    pub input_cost_usd: Option<f64>,
    /// Cost of the answers in US dollars; null if the price isn't known.
    pub output_cost_usd: Option<f64>,
    /// Sum of both; null if the price isn't known.
    pub total_cost_usd: Option<f64>,
    /// Price of a million prompt tokens in US dollars; null if it isn't known.
    pub pricing_input_per_million_usd: Option<f64>,
    /// Price of a million answer tokens in US dollars; null if it isn't known.
    pub pricing_output_per_million_usd: Option<f64>,
    /// Number of samples by error text, most frequent first; empty for a large benchmark until it is over, and for a
    /// gated dataset unless the caller owns the run.
    pub error_breakdown: Vec<ErrorCount>,

    /// Graded samples.
    pub graded: u64,
    /// Number of samples by outcome; null for a large benchmark until it is over.
    #[schema(value_type = Option<std::collections::BTreeMap<String, u64>>)]
    pub outcomes: Option<OutcomeCounts>,
    /// Answers for which the provider sent no token counts; no sum of tokens or costs includes them. 0 for a run that asks no
    /// model. Null for a large benchmark until it is over.
    pub without_usage: Option<u64>,
    /// Samples that are answered but not yet judged or run in a sandbox; no other sum includes them. Null for a large
    /// benchmark until it is over.
    pub unjudged: Option<u64>,
}

/// Number of samples with the same error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorCount {
    /// Text of the error.
    pub message: String,
    /// Code of the error; null for problems of graded answers, and for causes that were stored without a code.
    #[schema(value_type = Option<CodeSchema>)]
    pub code: Option<Code>,
    /// Number of samples.
    pub count: u64,
}

/// Sums up samples one by one, in any order.
#[derive(Debug, Default)]
pub struct SummaryBuilder {
    /// True for a run that asks no model: no provider could have counted its tokens.
    asks_no_model: bool,
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
    /// Creates a builder for a run of this model.
    pub fn new(model: &ModelRef) -> Self {
        Self { asks_no_model: !model.is_asked(), ..Self::default() }
    }

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
        self.without_usage +=
            u64::from(finished.body.is_some() && finished.usage.is_none() && !self.asks_no_model);
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
        let mut view = SummaryView::from_counts(&self.counts, price);
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
    pub fn from_counts(counts: &ShardCount, price: Option<Price>) -> Self {
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
