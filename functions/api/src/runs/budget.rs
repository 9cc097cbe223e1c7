//! Budgets of runs: read from orders and checked against known prices.

use bench_domain::budget::{BUDGET_USD_MAX, dollars, grouped};
use bench_domain::run::ModelRef;
use bench_domain::{Budget, Code, Prices, RunSpec, RunTemplate, Spending};
use bench_inference::Provider;
use bench_runs::RunError;
use bench_state::{RunWithBenchmarks, Shards};
use bench_web::{ApiError, FieldReader};

use crate::Api;
use crate::refusal::refusal;

/// Reads `budget_usd` and `budget_tokens`.
pub(crate) fn read_budget(fields: &mut FieldReader) -> Budget {
    let usd = fields.maybe_number("budget_usd", f64::MIN, BUDGET_USD_MAX);
    if usd.is_some_and(|usd| usd <= 0.0) {
        fields.note("greater_than", "budget_usd", "Input should be greater than 0");
    }
    Budget { usd, tokens: fields.maybe_integer("budget_tokens", 1, u64::MAX) }
}

/// Returns the total that a run has spent, including earlier generations.
pub(crate) async fn total_spending(api: &Api, found: &RunWithBenchmarks) -> Result<Spending, ApiError> {
    let shards: Vec<Shards> = found.benchmarks.iter().filter_map(Shards::from_benchmark).collect();
    Ok(api.state.run_count(found.run.spec.id, &shards).await?.spending())
}

/// Returns the run's spec with the limits of a new budget, or `None` if the new budget has no limits. `spent`
/// is the run's spending so far.
///
/// # Errors
/// 400 when the run would stop at once, or when the limit is in dollars and the run's price isn't known.
pub(crate) fn spec_with_budget(
    found: &RunWithBenchmarks,
    new: Budget,
    spent: Spending,
) -> Result<Option<RunSpec>, ApiError> {
    let old = &found.run.spec;
    let budget = Budget::or_else(new, old.budget);
    let is_remote = |model: &ModelRef| Provider::from_name(&model.provider).is_some();
    // A rejudged run makes no calls to the measured model, so it doesn't pay for answers.
    let model_costs = old.rejudges.is_none() && is_remote(&old.model);
    let judge = old.judge.as_ref().filter(|judge| is_remote(&judge.model));
    if new.usd.is_some() && model_costs && old.price.is_none() {
        return Err(refusal(RunError::PriceUnknown));
    }
    if new.usd.is_some() && judge.is_some_and(|judge| judge.price.is_none()) {
        return Err(refusal(RunError::JudgePriceUnknown));
    }
    if new.usd.is_some() && old.user.as_ref().is_some_and(|user| user.price.is_none()) {
        return Err(refusal(RunError::User(Box::new(RunError::PriceUnknown))));
    }
    if budget.is_set() {
        let prices = old.prices();
        if budget.reached_by(spent, prices).is_some() {
            return Err(ApiError::new(Code::BudgetTooSmall, too_small(spent, prices)));
        }
    }
    Ok(new.is_set().then(|| {
        let template = RunTemplate { budget, ..old.template.clone() };
        RunSpec { template, ..old.clone() }
    }))
}

fn too_small(spent: Spending, prices: Prices) -> String {
    let tokens = grouped(spent.total());
    let spent = match prices.answers.or(prices.judge) {
        Some(_) => format!("{} USD and {tokens} tokens", dollars(prices.total_usd(spent))),
        None => format!("{tokens} tokens"),
    };
    format!(
        "the run has spent {spent} and would stop at once; send a `budget_usd` or `budget_tokens` above that, since a \
         budget counts everything that the run ever spent"
    )
}
