//! Budget and spending of a run.

use bench_domain::{Budget, Prices, Spending};
use bench_state::ShardCount;
use serde::Serialize;
use utoipa::ToSchema;

/// Budget of a run. The run is stopped when it reaches one of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct BudgetView {
    /// Limit in US dollars; null for none.
    pub usd: Option<f64>,
    /// Limit in tokens of prompts and answers together; null for none.
    pub tokens: Option<u64>,
}

impl BudgetView {
    /// Creates the view of a budget; `None` if it has no limits.
    pub fn from_budget(budget: Budget) -> Option<Self> {
        budget.is_set().then_some(Self { usd: budget.usd, tokens: budget.tokens })
    }
}

/// Spending that counts against the budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct SpentView {
    /// Tokens of prompts and answers, including the judge's: counted by the provider, or estimated if it doesn't
    /// count them. For a run with a budget, this includes attempts without an answer.
    pub tokens: u64,
    /// Cost of these tokens in US dollars; null if the price isn't known.
    pub usd: Option<f64>,
    /// Estimated part of `tokens`, for which the provider sent no counts. If it isn't 0, `tokens` and `usd` are
    /// estimates.
    pub estimated_tokens: u64,
}

impl SpentView {
    /// Sums up the counters of a run's benchmarks.
    pub fn from_counts(counts: &[ShardCount], prices: impl Into<Prices>) -> Self {
        let prices = prices.into();
        let spent = counts.iter().fold(Spending::default(), |sum, count| sum.plus(count.spending()));
        let known = prices.answers.or(prices.judge);
        Self {
            tokens: spent.total(),
            usd: known.map(|_| prices.total_usd(spent)),
            estimated_tokens: spent.estimated_tokens(),
        }
    }
}
