//! Budget and spending of a run.

use bench_domain::{Budget, Prices, Spending};
use bench_state::ShardCount;
use serde::Serialize;
use utoipa::ToSchema;

/// What a run may cost before it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct BudgetView {
    /// In US dollars; null for no such limit.
    pub usd: Option<f64>,
    /// In tokens of prompts and answers together; null for no such limit.
    pub tokens: Option<u64>,
}

impl BudgetView {
    /// Creates the view of a budget; `None` if it has no limits.
    pub fn of(budget: Budget) -> Option<Self> {
        budget.is_set().then_some(Self { usd: budget.usd, tokens: budget.tokens })
    }
}

/// What counts for the budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct SpentView {
    /// Tokens of prompts and answers together, the judge's included: as the provider counted them, else estimated; for a run with a
    /// budget with those of attempts that brought no answer.
    pub tokens: u64,
    /// What they cost, when the price is known.
    pub usd: Option<f64>,
    /// The part of `tokens` that is an estimate: no provider counted them. Where it isn't 0, both others are estimates.
    pub estimated_tokens: u64,
}

impl SpentView {
    /// Sums up the counters of a run's benchmarks.
    pub fn of(counts: &[ShardCount], prices: impl Into<Prices>) -> Self {
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
