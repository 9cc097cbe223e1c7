//! Estimate for a whole run.

use crate::{Basis, BenchmarkEstimate, KnownPrice, TotalCost};

/// Estimate for a run.
#[derive(Debug, Clone)]
pub struct RunEstimate {
    /// Price of the model.
    pub price: KnownPrice,
    /// Limit of the cost, or what is left of it, in US dollars.
    pub budget_usd: Option<f64>,
    /// Benchmarks of the run.
    pub benchmarks: Vec<BenchmarkEstimate>,
}

impl RunEstimate {
    /// Returns the cost without regard to the budget.
    pub fn full_cost(&self) -> TotalCost {
        let cost = self.benchmarks.iter().map(|benchmark| benchmark.cost(self.price));
        cost.fold(TotalCost::default(), TotalCost::plus)
    }

    /// Returns the cost up to the budget.
    pub fn cost(&self) -> TotalCost {
        self.full_cost().within(self.budget_usd)
    }

    /// Returns the seconds of the run, whose samples share the concurrency; `None` if they aren't known.
    pub fn seconds(&self) -> Option<f64> {
        self.benchmarks.iter().map(|benchmark| benchmark.seconds).sum()
    }

    /// Returns the number of items; `None` if that of a benchmark isn't known.
    pub fn items(&self) -> Option<u64> {
        self.benchmarks.iter().map(|benchmark| benchmark.items).sum()
    }

    /// Returns the number of samples; `None` if that of a benchmark isn't known.
    pub fn samples(&self) -> Option<u64> {
        self.benchmarks.iter().map(|benchmark| benchmark.samples).sum()
    }

    /// Returns the tokens of prompts and of answers; `None` if those of a benchmark aren't known.
    pub fn tokens(&self) -> Option<(f64, f64)> {
        self.benchmarks.iter().try_fold((0.0, 0.0), |sum, benchmark| Some(add(sum, benchmark.tokens?)))
    }

    /// Returns the tokens of the judge's prompts and replies; `None` if those of a judged benchmark aren't known.
    pub fn judge_tokens(&self) -> Option<(f64, f64)> {
        let judged = self.benchmarks.iter().filter_map(|benchmark| benchmark.judge.as_ref());
        judged.map(|judge| judge.tokens).try_fold((0.0, 0.0), |sum, tokens| Some(add(sum, tokens?)))
    }

    /// Returns the tokens of the user simulator's prompts and messages; `None` if those of a benchmark with one aren't known.
    pub fn user_tokens(&self) -> Option<(f64, f64)> {
        let users = self.benchmarks.iter().filter_map(|benchmark| benchmark.user.as_ref());
        users.map(|user| user.tokens).try_fold((0.0, 0.0), |sum, tokens| Some(add(sum, tokens?)))
    }

    /// Returns what all parts of the estimate are based on; `None` without a benchmark.
    pub fn basis(&self) -> Option<Basis> {
        self.benchmarks.iter().map(|benchmark| benchmark.basis).reduce(Basis::with)
    }
}

fn add((input, output): (f64, f64), (more_input, more_output): (f64, f64)) -> (f64, f64) {
    (input + more_input, output + more_output)
}
