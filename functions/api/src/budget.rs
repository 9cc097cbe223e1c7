//! What a run may cost: read from orders, and checked against what is known of prices.

use bench_domain::budget::{BUDGET_USD_MAX, dollars, grouped};
use bench_domain::run::ModelRef;
use bench_domain::{Budget, Code, Price, Prices, RunSpec, Spending};
use bench_inference::ProviderKind;
use bench_state::{RunWithBenchmarks, Shards};
use bench_web::{ApiError, FieldReader};

use crate::lookup::{FoundModel, endpoint};
use crate::{Api, Order, Orderer};

const NO_PRICE: &str = "The price of this model is not known: use budget_tokens instead of budget_usd, or on the \
                        command line --price IN,OUT";

/// What is told where a budget in dollars could not be kept because of the judge.
pub(crate) const NO_JUDGE_PRICE: &str =
    "The price of the judge is not known: use budget_tokens instead of budget_usd";

/// Reads `budget_usd` and `budget_tokens`.
pub(crate) fn read_budget(fields: &mut FieldReader) -> Budget {
    let usd = fields.maybe_number("budget_usd", 0.0, BUDGET_USD_MAX);
    if usd == Some(0.0) {
        fields.note("greater_than", "budget_usd", "Input should be greater than 0");
    }
    Budget { usd, tokens: fields.maybe_integer("budget_tokens", 1, u64::MAX) }
}

/// The price that a run of this order is made with.
///
/// It is looked up anew only for a budget in dollars: at the provider itself, where the catalogue does not have it.
///
/// # Errors
/// 400 for a budget in dollars and no price.
pub(crate) async fn price_for(
    api: &Api,
    order: &Order,
    found: &FoundModel,
    orderer: &Orderer,
) -> Result<Option<Price>, ApiError> {
    let known = order.trusted.price.or(found.price).filter(|price| price.is_believable());
    // The oracle and stored responses cost nothing.
    if known.is_some() || order.budget.usd.is_none() || !found.kind.is_remote() {
        return Ok(known);
    }
    // What is at an address of the command line's has no list of prices that could be trusted.
    let asked = match found.model.base_url {
        Some(_) => None,
        None => listed_price(api, found.kind, &found.model.slug, orderer).await,
    };
    asked.map(Some).ok_or_else(|| ApiError::new(Code::PriceUnknown, NO_PRICE))
}

async fn listed_price(api: &Api, kind: ProviderKind, slug: &str, orderer: &Orderer) -> Option<Price> {
    let endpoint = endpoint(api, kind, Some(orderer)).ok()?;
    match api.chat.list_gateway_models(&endpoint).await {
        Ok(models) => models.into_iter().find(|model| model.slug == slug)?.price,
        Err(error) => {
            tracing::warn!(%error, "The prices of {kind} are not known: {error}");
            None
        }
    }
}

/// Returns what a run has spent so far, over all times that it was queued.
pub(crate) async fn spent_by(api: &Api, found: &RunWithBenchmarks) -> Result<Spending, ApiError> {
    let shards: Vec<Shards> = found.benchmarks.iter().filter_map(Shards::of).collect();
    Ok(api.state.run_count(found.run.spec.id, &shards).await?.spending())
}

/// What was ordered, with the limits of a new budget; `None` when there are none. `spent` is what the run has spent.
///
/// # Errors
/// 400 when the run would stop at once, or its price is not known and the new limit is in dollars.
pub(crate) fn renewed(
    found: &RunWithBenchmarks,
    new: Budget,
    spent: Spending,
) -> Result<Option<RunSpec>, ApiError> {
    let old = &found.run.spec;
    let budget = Budget::or_else(new, old.budget);
    let is_remote =
        |model: &ModelRef| ProviderKind::from_name(&model.provider).is_some_and(ProviderKind::is_remote);
    // A run that judges answers of another one again pays for none itself.
    let model_costs = old.rejudges.is_none() && is_remote(&old.model);
    let judge = old.judge.as_ref().filter(|judge| is_remote(&judge.model));
    if new.usd.is_some() && model_costs && old.price.is_none() {
        return Err(ApiError::new(Code::PriceUnknown, NO_PRICE));
    }
    if new.usd.is_some() && judge.is_some_and(|judge| judge.price.is_none()) {
        return Err(ApiError::new(Code::PriceUnknown, NO_JUDGE_PRICE));
    }
    if budget.is_set() {
        let prices = old.prices();
        if budget.reached_by(spent, prices).is_some() {
            return Err(ApiError::new(Code::BudgetTooSmall, too_small(spent, prices)));
        }
    }
    Ok(new.is_set().then(|| RunSpec { budget, ..old.clone() }))
}

fn too_small(spent: Spending, prices: Prices) -> String {
    let tokens = grouped(spent.total());
    let spent = match prices.answers.or(prices.judge) {
        Some(_) => format!("{} USD and {tokens} tokens", dollars(prices.total_usd(spent))),
        None => format!("{tokens} tokens"),
    };
    format!(
        "Run has spent {spent} and would stop at once: it needs a new budget_usd or budget_tokens above that, which \
         counts all that it ever spent"
    )
}
