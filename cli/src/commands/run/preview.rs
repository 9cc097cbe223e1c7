//! Estimate of what a run will take, before anything is paid, and the question whether to go on.

mod confirm;
mod cost;
mod estimate;
mod history;
mod pace;
mod price;
mod prompts;
mod rejudge;
mod repeat;
mod waits;

use bench_benchmarks::Benchmark;
use bench_estimate::{BenchmarkEstimate, History, Inputs, JudgeEstimate, KnownPrice, Pace, RunEstimate};
use bench_inference::ModelSource;
use bench_stack::Stack;

pub(crate) use self::confirm::ConfirmArgs;
use self::confirm::{PriceOption, confirm};
use self::estimate::Estimate;
use self::price::PriceList;
use self::prompts::Questions;
pub(crate) use self::rejudge::{Rejudge, confirm_rejudge};
pub(crate) use self::repeat::{Repeat, confirm_repeat};
pub(super) use self::waits::note_stored;
use super::WorkArgs;
use super::models::Model;
use super::order::Plan;
use crate::client::Client;
use crate::output;
use crate::progress::DatasetProgress;

/// Shows what the ordered runs will take, and asks whether to go on if that costs more than the user's limit. Orders
/// nothing. `has_key` is true if the order has a key of its own.
///
/// # Errors
/// Fails if the user refuses, or can't be asked.
pub(super) async fn confirm_order(
    plan: &Plan,
    client: &Client,
    stack: Option<&Stack>,
    datasets: &DatasetProgress,
    work: &WorkArgs,
    has_key: bool,
) -> anyhow::Result<()> {
    if let Some(stack) = stack {
        waits::note_ordered(plan, stack, has_key).await;
    }
    let prices = PriceList::new(client, stack.is_some());
    let judge = judge(plan, &prices).await;
    let user = user_model(plan, &prices).await;
    let mut asked = Vec::new();
    for model in &plan.models {
        let price = prices.of_model(plan, model).await;
        warn_of_uncounted_cost(plan, model, &price, stack.is_some());
        // Stored answers and the dataset's own take no time and no tokens, but a judge may cost something.
        if price == KnownPrice::NoModel && judge.as_ref().is_none_or(|judge| judge.price.is_free()) {
            output::note(&format!("{} costs nothing: no model is asked", model.shown()));
        } else {
            asked.push((model, price));
        }
    }
    if asked.is_empty() {
        return Ok(());
    }
    let questions = prompts::questions(plan, client, stack, datasets).await;
    datasets.clear();
    let names: Vec<&str> = questions.iter().map(|(name, _)| name.as_str()).collect();
    let history = history::load(client, &names).await;
    let concurrency = stack.map(|_| work.concurrency);
    let pace = pace::pace(client, concurrency, plan.settings.limits()).await;
    let context = Context { plan, history: &history, judge: judge.as_ref(), user: user.as_ref(), pace };
    let mut estimates = Vec::with_capacity(asked.len());
    for (model, price) in asked {
        let benchmarks =
            questions.iter().map(|(name, questions)| context.estimate(model, name, questions)).collect();
        let title = match price {
            KnownPrice::Local => format!("{} on this machine", model.shown()),
            _ => model.shown(),
        };
        let budget_usd = plan.budget.budget_usd;
        let run = RunEstimate { price, budget_usd, benchmarks };
        estimates.push(Estimate { title, is_rest: false, run });
    }
    Estimate::lines(&estimates).iter().for_each(|line| output::note(line));
    let option = if stack.is_some() { PriceOption::Available } else { PriceOption::Unavailable };
    confirm(&work.confirm, Estimate::total_cost(&estimates), option).await
}

/// Warns of an agent's limit in dollars if the price of its model isn't known.
fn warn_of_uncounted_cost(plan: &Plan, model: &Model, price: &KnownPrice, is_local: bool) {
    let has_limit = plan.options.values().any(|options| options.contains_key("agent.max_cost_usd"));
    if has_limit && !matches!(price, KnownPrice::Listed(_) | KnownPrice::NoModel) {
        output::warn(&format!(
            "--agent-option max_cost_usd: the price of {} isn't known, so only costs that its answers report count; max_tokens \
             limits an episode in any case{}",
            model.name,
            if is_local { ", and --price gives a price" } else { "" }
        ));
    }
}

/// Facts that the estimates of all models and benchmarks share.
struct Context<'a> {
    plan: &'a Plan,
    history: &'a History,
    judge: Option<&'a JudgeEstimate>,
    user: Option<&'a JudgeEstimate>,
    pace: Pace,
}

impl Context<'_> {
    fn estimate(&self, model: &Model, name: &str, questions: &Questions) -> BenchmarkEstimate {
        let settings = &self.plan.settings;
        let known = self.plan.configured(name).ok();
        let needs_judge = known.is_some_and(|known| known.judge().is_some());
        let plays_gold = matches!(model.source, Some(ModelSource::Oracle | ModelSource::Nop));
        let samples_per_item = settings.samples.or(known.map(|known| known.metadata().samples_per_item));
        let samples = questions.items.zip(samples_per_item);
        let has_agent = known.is_some_and(|known| known.has_agent());
        // Earlier runs under the other kind of protocol say nothing.
        let is_usual = bench_benchmarks::find(name).is_some_and(|usual| usual.has_agent() == has_agent);
        BenchmarkEstimate::new(&Inputs {
            name,
            has_agent,
            items: questions.items,
            samples: samples.map(|(items, samples)| items.saturating_mul(samples.into())),
            prompt: questions.per_item,
            max_tokens: settings.max_tokens.or(known.and_then(max_tokens)),
            measured: self.history.of(&model.name, name).filter(|_| is_usual),
            judge: self.judge.filter(|_| needs_judge),
            user: self.user.filter(|_| !plays_gold && known.is_some_and(|known| known.dialogue().is_some())),
            pace: self.pace,
        })
    }
}

fn max_tokens(benchmark: &'static dyn Benchmark) -> Option<u32> {
    benchmark.metadata().default_generation().max_tokens
}

/// Returns the user simulator of the ordered runs, if one was named.
async fn user_model(plan: &Plan, prices: &PriceList<'_>) -> Option<JudgeEstimate> {
    let named = plan.user.named.as_ref()?;
    let price = prices.of(named.source, &named.slug, plan.user_base_url.as_deref(), None).await;
    Some(JudgeEstimate { name: named.name.clone(), price })
}

/// Returns the judge of the ordered runs, if a model judges and it is known here.
async fn judge(plan: &Plan, prices: &PriceList<'_>) -> Option<JudgeEstimate> {
    plan.judged()?;
    let named = plan.judge.named.as_ref()?;
    if named.source == Some(ModelSource::Oracle) {
        return None;
    }
    let price = prices.of(named.source, &named.slug, plan.judge_base_url.as_deref(), None).await;
    Some(JudgeEstimate { name: named.name.clone(), price })
}
