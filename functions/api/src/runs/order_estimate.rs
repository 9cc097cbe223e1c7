//! Estimate of what a run will take, before it is ordered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Request, State};
use bench_domain::run::{DatasetChoice, Owner};
use bench_domain::{Price, RunStatus};
use bench_estimate::{
    Basis, BenchmarkEstimate, EarlierBenchmark, History, Inputs, ItemSource, JudgeEstimate, KnownPrice,
    LengthBasis, Pace, RunEstimate, Sums, TotalCost, UnknownPart, known_items, without_list,
};
use bench_inference::ModelSource;
use bench_runs::{FoundModel, OrderOutline, Orderer, OutlinedBenchmark, Standing};
use bench_state::{RunFilter, RunWithBenchmarks};
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Identity};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::context::lock;
use crate::refusal::refusal;
use crate::runs::admission;
use crate::runs::order::{OrderBody, read_task_order};
use crate::runs::tasks::outline_tasks;

/// Number of finished runs whose averages are used.
const PAST_RUNS: u64 = 100;
/// Time for which these averages are cached.
const CACHED_FOR: Duration = Duration::from_secs(60);
const CONCURRENT_READS: usize = 16;

/// Estimate of what the run of an order will take.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EstimateView {
    /// Name of the model with its provider.
    model: String,
    /// Price of the model; null if it isn't known or no model is asked.
    price: Option<PriceView>,
    /// Sums over the benchmarks.
    #[serde(flatten)]
    total: EstimatedView,
    /// Budget of the order in US dollars.
    budget_usd: Option<f64>,
    /// Budget of the order in tokens.
    budget_tokens: Option<u64>,
    /// True if the run is expected to reach its budget; null without a budget, or if the estimate doesn't tell.
    reaches_budget: Option<bool>,
    /// Benchmarks of the run, in its order.
    benchmarks: Vec<EstimatedBenchmarkView>,
    /// Ordered names that aren't benchmarks.
    ignored_benchmarks: Vec<String>,
    /// Fields of the order that were ignored, one sentence each.
    warnings: Vec<String>,
}

/// Price of a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PriceView {
    /// Price of a million prompt tokens in US dollars.
    input_per_million_usd: f64,
    /// Price of a million answer tokens in US dollars.
    output_per_million_usd: f64,
}

/// Estimate for one benchmark of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EstimatedBenchmarkView {
    /// Name of the benchmark.
    benchmark_name: String,
    /// Judge of the benchmark, with its provider; null without one, or if none is known.
    judge: Option<String>,
    /// User simulator of the benchmark, with its provider; null without one.
    user_model: Option<String>,
    #[serde(flatten)]
    estimate: EstimatedView,
}

/// Estimated size, tokens, cost and time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EstimatedView {
    /// Number of items; null if the size of a dataset isn't known.
    items: Option<u64>,
    /// Number of samples; null if the size of a dataset isn't known.
    samples: Option<u64>,
    /// Tokens of the prompts.
    input_tokens: Option<u64>,
    /// Tokens of the answers.
    output_tokens: Option<u64>,
    /// Tokens of the judge's prompts; 0 without a judge.
    judge_input_tokens: Option<u64>,
    /// Tokens of the judge's replies; 0 without a judge.
    judge_output_tokens: Option<u64>,
    /// Tokens of the user simulator's prompts; 0 without one, and null if no earlier run tells.
    user_input_tokens: Option<u64>,
    /// Tokens of the user simulator's messages; 0 without one, and null if no earlier run tells.
    user_output_tokens: Option<u64>,
    /// Cost of model, judge and user simulator in US dollars, without regard to the budget; null if a part isn't known.
    cost_usd: Option<f64>,
    /// Cost of the parts that are known.
    known_cost_usd: f64,
    /// Reason why `cost_usd` is null: `samples` (the size of a dataset isn't known), `price` (the model's price isn't
    /// known), `own-server` (a server in a private network, which has no price list), `judge-price`, or `user-price`.
    cost_unknown: Option<&'static str>,
    /// The same reason as a sentence.
    cost_note: Option<&'static str>,
    /// Seconds from the start of the run to its end; null if it can't be estimated.
    duration_seconds: Option<f64>,
    basis: BasisView,
}

/// Basis of an estimate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BasisView {
    /// Source of the lengths of prompts and answers: `same-model`, `other-models` (earlier runs on this server),
    /// `typical` (values that are typical of the benchmark, without reasoning), `unknown` for an agent without earlier
    /// runs, or `none` if no model is asked.
    lengths: &'static str,
    /// Source of the speed: `measured` in earlier runs, `typical`, or `none`.
    speed: &'static str,
    /// Both in one phrase.
    text: String,
}

/// Estimates what the run of an order will take, without ordering it.
///
/// The body is that of `POST /api/runs`. No key is needed, no provider is asked, and nothing is stored. The lengths of
/// answers are those of the latest 100 succeeded runs on this server, of the same model if possible, otherwise typical
/// ones.
#[utoipa::path(
    post, path = "/api/runs/estimate", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body = OrderBody,
    responses(
        (status = 200, body = EstimateView),
        (status = 400, body = ErrorBody, description = "The benchmarks or the provider are unknown"),
        (status = 404, body = ErrorBody, description = "The model doesn't exist"),
        (status = 413, body = ErrorBody, description = "The body is larger than 1 MiB"),
        (status = 422, body = ErrorBody, description = "A field is invalid"),
    ),
)]
pub(crate) async fn post_estimate(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<EstimateView>, ApiError> {
    let (parts, body) = request.into_parts();
    let (mut order, tasks) = read_task_order(read_object(&parts.headers, body).await?)?;
    if let Some(tasks) = tasks {
        outline_tasks(&api, &Identity::of(&parts), &mut order, &tasks).await?;
    }
    // Any caller may ask; the standing only decides which benchmarks an order without names would have.
    let orderer = admission::orderer(&api, &parts).await.unwrap_or_else(|_| Orderer {
        owner: Owner::Local,
        api_key: None,
        judge_key: None,
        user_key: None,
        session: None,
        standing: Standing::Key,
    });
    let outline = api.orders.outline(order, &orderer).await.map_err(refusal)?;
    let history = api.estimate_history().await?;
    Ok(Json(estimate(&api, outline, &history)))
}

fn estimate(api: &Api, outline: OrderOutline, history: &History) -> EstimateView {
    let OrderOutline { found, benchmarks, judge, user, ignored, warnings, order } = outline;
    let model = found.model.qualified();
    let price = known_price(api, &found);
    let judge_name = judge.as_ref().map(|judge| judge.model.qualified());
    let judge = JudgeEstimate {
        name: judge_name.clone().unwrap_or_default(),
        price: judge.as_ref().map_or(KnownPrice::Unknown, |judge| known_price(api, judge)),
    };
    let user_name = user.as_ref().map(|user| user.model.qualified());
    let user = user
        .as_ref()
        .map(|user| JudgeEstimate { name: user.model.qualified(), price: known_price(api, user) });
    let pace = Pace {
        concurrency: Some(api.config.item_concurrency).filter(|number| *number > 0),
        requests_per_minute: order.limits.requests_per_minute,
        timeout_seconds: order.limits.timeout_seconds,
    };
    let is_asked = price != KnownPrice::NoModel;
    let estimates = benchmarks.iter().map(|known| {
        let OutlinedBenchmark { name, benchmark, options, dataset, is_judged } = known;
        let source = match dataset {
            DatasetChoice::Hub => ItemSource::Hub,
            DatasetChoice::Demo => ItemSource::Demo,
            DatasetChoice::Local { .. } => ItemSource::Own,
        };
        let items = known_items(*benchmark, options, source, order.items.len(), &order.subset);
        let samples_per_item = order.samples.unwrap_or(benchmark.metadata().samples_per_item);
        let max_tokens = benchmark.metadata().default_generation().max_tokens;
        let has_agent = benchmark.has_agent();
        // Earlier runs under the other kind of protocol say nothing.
        let is_usual = bench_benchmarks::has_agent(name) == has_agent;
        BenchmarkEstimate::new(&Inputs {
            name: name.as_str(),
            has_agent,
            items,
            samples: items.map(|items| items.saturating_mul(samples_per_item.into())),
            prompt: None,
            max_tokens: order.generation.max_tokens.or(max_tokens),
            measured: history.of(&model, name.as_str()).filter(|_| is_usual),
            judge: is_judged.then_some(&judge),
            user: user.as_ref().filter(|_| is_asked && benchmark.dialogue().is_some()),
            pace,
        })
    });
    let run = RunEstimate { price, budget_usd: None, benchmarks: estimates.collect() };
    let benchmarks = run.benchmarks.iter().map(|benchmark| EstimatedBenchmarkView {
        benchmark_name: benchmark.name.clone(),
        judge: benchmark.judge.as_ref().and(judge_name.clone()),
        user_model: benchmark.user.as_ref().and(user_name.clone()),
        estimate: EstimatedView::new(
            &RunEstimate { price, budget_usd: None, benchmarks: vec![benchmark.clone()] },
            is_asked,
        ),
    });
    let benchmarks = benchmarks.collect();
    let total = EstimatedView::new(&run, is_asked);
    let listed = match price {
        KnownPrice::Listed(price) => Some(price),
        _ => None,
    };
    EstimateView {
        model,
        price: listed.map(|Price { input_per_million_usd, output_per_million_usd }| PriceView {
            input_per_million_usd,
            output_per_million_usd,
        }),
        budget_usd: order.budget.usd,
        budget_tokens: order.budget.tokens,
        reaches_budget: total.reaches(order.budget.usd, order.budget.tokens),
        total,
        benchmarks,
        ignored_benchmarks: ignored,
        warnings: warnings.iter().map(ToString::to_string).collect(),
    }
}

/// Returns the price of a model according to the catalog.
fn known_price(api: &Api, found: &FoundModel) -> KnownPrice {
    let ModelSource::Provider(provider) = found.source else { return KnownPrice::NoModel };
    let host = found.model.endpoint_host.as_deref();
    let without_list = match without_list(host, api.config.server.local) {
        KnownPrice::Local => return KnownPrice::Local,
        // A provider without keys has no accounts to charge.
        _ if host.is_none() && !provider.needs_key => KnownPrice::OwnServer,
        other => other,
    };
    let listed = found.price.filter(|price| price.is_believable());
    listed.map_or(without_list, KnownPrice::Listed)
}

impl EstimatedView {
    /// Creates the view of a run or of one benchmark. `is_asked` is false if no model is asked for answers.
    fn new(run: &RunEstimate, is_asked: bool) -> Self {
        let samples = run.samples();
        let tokens = match is_asked {
            true => run.tokens(),
            false => Some((0.0, 0.0)),
        };
        let judges_for_free = run
            .benchmarks
            .iter()
            .filter_map(|benchmark| benchmark.judge.as_ref())
            .all(|judged| judged.judge.price == KnownPrice::NoModel);
        let judge_tokens = if judges_for_free { Some((0.0, 0.0)) } else { run.judge_tokens() };
        let user_tokens = run.user_tokens();
        let cost = run.full_cost();
        let reason = cost.is_partial().then(|| Self::unknown(run, samples, cost));
        let is_idle = !is_asked && judges_for_free;
        Self {
            items: run.items(),
            samples,
            input_tokens: tokens.map(|(input, _)| rounded(input)),
            output_tokens: tokens.map(|(_, output)| rounded(output)),
            judge_input_tokens: judge_tokens.map(|(input, _)| rounded(input)),
            judge_output_tokens: judge_tokens.map(|(_, output)| rounded(output)),
            user_input_tokens: user_tokens.map(|(input, _)| rounded(input)),
            user_output_tokens: user_tokens.map(|(_, output)| rounded(output)),
            cost_usd: (!cost.is_partial()).then_some(cost.usd),
            known_cost_usd: cost.usd,
            cost_unknown: reason.map(|(name, _)| name),
            cost_note: reason.map(|(_, note)| note),
            duration_seconds: if is_idle { None } else { run.seconds() },
            basis: BasisView::new(run.basis().filter(|_| !is_idle)),
        }
    }

    /// Returns why the cost isn't known: the name of the reason, and a sentence.
    fn unknown(run: &RunEstimate, samples: Option<u64>, cost: TotalCost) -> (&'static str, &'static str) {
        match (run.price.cost(Some((0.0, 0.0))).unknown, samples, cost.unknown) {
            (_, None, _) => ("samples", "The size of a dataset isn't known."),
            (UnknownPart::Provider, ..) => ("price", "The provider's price of this model isn't known."),
            (UnknownPart::OwnServer, ..) => {
                ("own-server", "The model runs on a server that has no price list.")
            }
            _ if is_user_unknown(run) => {
                ("user-price", "The price or the tokens of the user model aren't known.")
            }
            (UnknownPart::Nothing, _, UnknownPart::OwnServer) => {
                ("judge-price", "The judge runs on a server that has no price list.")
            }
            (UnknownPart::Nothing, ..) => ("judge-price", "The price of the judge isn't known."),
        }
    }

    /// Returns whether a run reaches a budget; `None` without a budget, or if the estimate doesn't tell.
    fn reaches(&self, usd: Option<f64>, tokens: Option<u64>) -> Option<bool> {
        let all_tokens = || {
            let parts =
                [self.input_tokens, self.output_tokens, self.judge_input_tokens, self.judge_output_tokens];
            let of_user = [self.user_input_tokens, self.user_output_tokens];
            parts.into_iter().chain(of_user).sum::<Option<u64>>()
        };
        let by_cost = usd.map(|limit| self.cost_usd.map(|cost| cost >= limit));
        let by_tokens = tokens.map(|limit| all_tokens().map(|tokens| tokens >= limit));
        match (by_cost, by_tokens) {
            (Some(Some(true)), _) | (_, Some(Some(true))) => Some(true),
            (None, None) => None,
            (by_cost, by_tokens) => {
                let is_below = |side: Option<Option<bool>>| side.is_none_or(|side| side == Some(false));
                (is_below(by_cost) && is_below(by_tokens)).then_some(false)
            }
        }
    }
}

/// Returns true if the cost of a user simulator isn't known.
fn is_user_unknown(run: &RunEstimate) -> bool {
    let users = run.benchmarks.iter().filter_map(|benchmark| benchmark.user.as_ref());
    users.map(|user| user.judge.price.cost(user.tokens)).any(TotalCost::is_partial)
}

impl BasisView {
    fn new(basis: Option<Basis>) -> Self {
        let Some(basis) = basis else {
            return Self { lengths: "none", speed: "none", text: "no model is asked".to_owned() };
        };
        let lengths = match basis.lengths {
            LengthBasis::ThisRun | LengthBasis::SameModel => "same-model",
            LengthBasis::OtherModels => "other-models",
            LengthBasis::Typical | LengthBasis::TypicalWithPrompts => "typical",
            LengthBasis::Unknown => "unknown",
        };
        let speed = if basis.is_typical_speed { "typical" } else { "measured" };
        Self { lengths, speed, text: basis.describe() }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, and tokens aren't negative
fn rounded(tokens: f64) -> u64 {
    tokens.round() as u64
}

impl Api {
    /// Returns the averages of earlier runs, read again if they are older than a minute.
    async fn estimate_history(&self) -> Result<Arc<History>, ApiError> {
        let cached = lock(&self.history).clone();
        if let Some((at, history)) = cached
            && at.elapsed() < CACHED_FOR
        {
            return Ok(history);
        }
        let filter = RunFilter { status: Some(RunStatus::Succeeded), ..RunFilter::default() };
        let runs = self.state.list_runs(&filter, 0, PAST_RUNS).await?.runs;
        let read = runs.into_iter().map(|run| self.state.run_with_benchmarks(run));
        let found: Vec<Option<RunWithBenchmarks>> =
            stream::iter(read).buffered(CONCURRENT_READS).try_collect().await?;
        let history: Arc<History> = Arc::new(found.iter().flatten().flat_map(earlier).collect());
        *lock(&self.history) = Some((Instant::now(), Arc::clone(&history)));
        Ok(history)
    }
}

/// Returns the benchmarks of a run that tell how long answers are.
fn earlier(run: &RunWithBenchmarks) -> Vec<EarlierBenchmark> {
    let model = run.run.spec.model.qualified();
    let benchmarks = run.benchmarks.iter().filter_map(|record| {
        let report = record.state.report()?;
        if record.plan.as_ref()?.dataset.is_demo() {
            return None;
        }
        let usage = report.spent.unwrap_or(report.usage);
        let mut sums = Sums::new(report.outcomes.total(), usage.input_tokens, usage.output_tokens)?;
        if let Some(judge) = report.judge_usage {
            sums = sums.with_judge(judge.input_tokens, judge.output_tokens);
        }
        if let Some(user) = report.user_spent {
            sums = sums.with_user(user.input_tokens, user.output_tokens);
        }
        if let Some(latency) = report.latency_ms {
            #[allow(clippy::cast_precision_loss)] // far below 2^53
            let ms = |value: u64| value as f64;
            sums = sums.with_latency_ms(ms(latency.p50), ms(latency.p95));
        }
        Some(EarlierBenchmark { model: model.clone(), benchmark: record.name.to_string(), sums })
    });
    benchmarks.collect()
}
