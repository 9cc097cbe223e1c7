//! Estimates of what a requeue and a resume repeat: on the same basis as those of new runs, but with what the run has
//! measured so far.

use bench_domain::sampling::percent_of;
use bench_domain::{Price, RunLimits, RunStatus};
use bench_estimate::{
    BenchmarkEstimate, Inputs, JudgeEstimate, KnownPrice, PerSample, RunEstimate, without_list,
};
use bench_inference::ModelName;
use serde::Deserialize;

use super::confirm::{ConfirmArgs, PriceOption, confirm};
use super::estimate::Estimate;
use super::history::{self, per_sample};
use super::pace::pace;
use super::rejudge::{confirm_judging, judge_price};
use crate::client::Client;
use crate::commands::run::repeated::Repeated;
use crate::output;
use crate::run_ref::ShortIds;
use crate::views::{Benchmark, Run};

/// Number of samples from which on a run's own averages are better than those of earlier runs.
const ENOUGH_SAMPLES: u64 = 3;

/// Samples of a run that are repeated or continued.
pub(crate) struct Repeat<'a> {
    pub(crate) client: &'a Client,
    pub(crate) run: &'a Run,
    /// Samples that are repeated.
    pub(crate) repeated: &'a Repeated,
    /// New budget.
    pub(crate) budget_usd: Option<f64>,
    /// Number of samples in progress at once; `None` if a server does the work.
    pub(crate) concurrency: Option<u64>,
}

/// Measurements of a benchmark of a run so far.
#[derive(Debug, Default, Deserialize)]
struct Details {
    summary: Summary,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Summary {
    avg_latency_ms: Option<f64>,
    pricing_input_per_million_usd: Option<f64>,
    pricing_output_per_million_usd: Option<f64>,
}

impl Summary {
    fn price(self) -> Option<Price> {
        Price::new(self.pricing_input_per_million_usd?, self.pricing_output_per_million_usd?)
    }
}

/// Shows what repeating or continuing a run will take, and asks as before an order.
///
/// # Errors
/// Fails if the user refuses, or can't be asked.
pub(crate) async fn confirm_repeat(repeat: &Repeat<'_>, args: &ConfirmArgs) -> anyhow::Result<()> {
    let Repeat { client, run, repeated, .. } = *repeat;
    if run.rejudges.is_some() {
        let left = |benchmark: &Benchmark| samples_left(run, benchmark, repeated).unwrap_or_default();
        let pace = pace(client, repeat.concurrency, RunLimits::default()).await;
        return confirm_judging(
            run,
            judge_price(run, client.address().is_none()),
            pace,
            left,
            repeat.budget_left(),
            args,
        )
        .await;
    }
    let Some(estimate) = estimate(repeat).await else { return Ok(()) };
    let estimates = [estimate];
    Estimate::lines(&estimates).iter().for_each(|line| output::note(line));
    confirm(args, Estimate::total_cost(&estimates), PriceOption::Unavailable).await
}

/// Returns the estimate; `None` if nothing is asked.
async fn estimate(repeat: &Repeat<'_>) -> Option<Estimate> {
    let Repeat { client, run, repeated, concurrency, .. } = *repeat;
    let is_local = client.address().is_none();
    let judge = judge_price(run, is_local).filter(|(_, price)| *price != KnownPrice::NoModel);
    let asks_no_model = ModelName::parse(&run.model()).is_ok_and(|name| !name.source.is_remote());
    if asks_no_model && judge.as_ref().is_none_or(|(_, price)| price.is_free()) {
        return None;
    }
    let left: Vec<(&Benchmark, Option<u64>)> = run
        .benchmarks
        .iter()
        .map(|benchmark| (benchmark, samples_left(run, benchmark, repeated)))
        .filter(|(_, samples)| *samples != Some(0))
        .collect();
    if left.is_empty() {
        return None;
    }
    let names: Vec<&str> = left.iter().map(|(benchmark, _)| benchmark.benchmark_name.as_str()).collect();
    let history = history::load(client, &names).await;
    let pace = pace(client, concurrency, run.limits.unwrap_or_default()).await;
    let mut price = None;
    let mut benchmarks = Vec::with_capacity(left.len());
    for (benchmark, samples) in left {
        let summary = summary(client, run, benchmark).await;
        price = price.or(summary.price());
        let needs_judge = benchmark.known().is_some_and(|known| known.judge().is_some());
        let judge = judge.clone().map(|(name, price)| JudgeEstimate { name, price });
        let user = user_model(run, benchmark, is_local).filter(|_| !asks_no_model);
        benchmarks.push(BenchmarkEstimate::new(&Inputs {
            name: &benchmark.benchmark_name,
            has_agent: benchmark.has_agent(),
            items: None,
            samples,
            prompt: None,
            max_tokens: benchmark.max_tokens(),
            measured: measured(benchmark, summary)
                .or_else(|| history.of(&run.model(), &benchmark.benchmark_name)),
            judge: judge.as_ref().filter(|_| needs_judge),
            user: user.as_ref(),
            pace,
        }));
    }
    let price = match price {
        _ if asks_no_model => KnownPrice::NoModel,
        Some(price) => KnownPrice::Listed(price),
        None => without_list(run.endpoint_host(), is_local),
    };
    let place = if price == KnownPrice::Local { " on this machine" } else { "" };
    let title = format!(
        "the rest of run {}, {}{place}",
        ShortIds::new([run.id.as_str()]).get(&run.id),
        run.leveled_model()
    );
    let run = RunEstimate { price, budget_usd: repeat.budget_left(), benchmarks };
    Some(Estimate { title, is_rest: true, run })
}

/// Returns the user simulator of a benchmark of the run, if it has conversations.
fn user_model(run: &Run, benchmark: &Benchmark, is_local: bool) -> Option<JudgeEstimate> {
    benchmark.known()?.dialogue()?;
    let name = run.user_model.as_ref()?.model.clone();
    let tokens = (benchmark.user_input_tokens, benchmark.user_output_tokens);
    let listed = benchmark.user_cost.and_then(|cost| cost.price(tokens.0, tokens.1));
    let price = listed.map_or_else(|| without_list(None, is_local), KnownPrice::Listed);
    Some(JudgeEstimate { name, price })
}

impl Repeat<'_> {
    /// Returns what is left of the budget, in US dollars.
    fn budget_left(&self) -> Option<f64> {
        let budget = self.budget_usd.or(self.run.budget.and_then(|budget| budget.usd))?;
        let spent = self.run.spent.and_then(|spent| spent.usd).unwrap_or(0.0);
        Some((budget - spent).max(0.0))
    }
}

/// Returns the averages of the run so far, if it has enough samples for them.
fn measured(benchmark: &Benchmark, summary: Summary) -> Option<PerSample> {
    let average = per_sample(benchmark).filter(|_| benchmark.completed_samples >= ENOUGH_SAMPLES)?;
    let latency_s = summary.avg_latency_ms.map(|ms| ms / 1_000.0);
    Some(PerSample { latency_s: latency_s.or(average.latency_s), ..average })
}

/// Returns latency and price so far. Without them the estimate is less exact, so a failure is only logged.
async fn summary(client: &Client, run: &Run, benchmark: &Benchmark) -> Summary {
    let path = format!("/api/runs/{}/benchmarks/{}?limit=0", run.id, benchmark.benchmark_name);
    match client.get::<Details>(&path).await {
        Ok(details) => details.summary,
        Err(error) => {
            tracing::debug!(%error, "The measurements of a run can't be read");
            Summary::default()
        }
    }
}

/// Returns the number of samples of a benchmark that are repeated or still missing; `None` if it isn't known.
fn samples_left(run: &Run, benchmark: &Benchmark, repeated: &Repeated) -> Option<u64> {
    if let Some(only) = &repeated.only {
        let chosen = u64::from(only.outcome.is_some() && only.benchmark == benchmark.benchmark_name.as_str());
        return match run.status {
            RunStatus::Succeeded => Some(chosen),
            _ if benchmark.planned_samples == 0 => samples_unplanned(run, benchmark),
            // Samples that never ended go on, too.
            _ => Some(chosen + benchmark.planned_samples.saturating_sub(benchmark.completed_samples)),
        };
    }
    let errors = repeated.errors;
    let planned = benchmark.planned_samples;
    match run.status {
        RunStatus::Failed | RunStatus::Canceled if errors => Some(benchmark.infrastructure_errors()),
        RunStatus::Succeeded => Some(benchmark.infrastructure_errors()),
        // It ended before it was planned.
        _ if planned == 0 => samples_unplanned(run, benchmark),
        RunStatus::Queued | RunStatus::Running => Some(planned.saturating_sub(benchmark.completed_samples)),
        RunStatus::Failed | RunStatus::Canceled => Some(planned.saturating_sub(benchmark.graded_samples)),
    }
}

/// Returns the number of samples that a benchmark will have; `None` if the size of its dataset isn't known.
fn samples_unplanned(run: &Run, benchmark: &Benchmark) -> Option<u64> {
    let all = benchmark.total_items;
    let items = match (&run.items, run.subset_count) {
        (Some(items), _) => items.len() as u64,
        (None, Some(count)) if all == 0 => count,
        (None, Some(count)) => count.min(all),
        (None, None) if all == 0 => return None,
        (None, None) => percent_of(all, run.subset_pct),
    };
    let per_item = run.samples.or_else(|| Some(benchmark.known()?.metadata().samples_per_item))?;
    Some(items.saturating_mul(per_item.into()))
}

#[cfg(test)]
mod tests {
    use bench_estimate::LengthBasis;
    use serde_json::{Value, json};

    use super::*;

    fn run(status: &str, completed: u64, graded: u64, errors: u64) -> Run {
        changed_run(json!({
            "status": status, "benchmarks": [{
                "benchmark_name": "hle", "status": "failed", "planned_samples": 100,
                "completed_samples": completed, "graded_samples": graded, "input_tokens": 1_000,
                "output_tokens": 2_000, "outcomes": { "infrastructure-error": errors },
            }],
        }))
    }

    fn changed_run(fields: Value) -> Run {
        let mut run = json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "running", "model_slug": "m",
            "provider": "openrouter", "created_at": "2026-01-02T03:04:05Z", "subset_pct": 100,
            "benchmarks": [{ "benchmark_name": "mmlu_pro", "status": "pending", "total_items": 12_032 }],
        });
        run.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(run).unwrap()
    }

    fn left(run: &Run, errors: bool) -> Option<u64> {
        samples_left(run, &run.benchmarks[0], &Repeated { errors, only: None })
    }

    #[test]
    fn what_is_repeated_depends_on_the_run() {
        assert_eq!(left(&run("running", 40, 40, 0), false), Some(60));
        assert_eq!(left(&run("failed", 50, 40, 10), false), Some(60), "errors and what is missing");
        assert_eq!(left(&run("failed", 50, 40, 10), true), Some(10));
        assert_eq!(left(&run("succeeded", 100, 97, 3), true), Some(3));
    }

    #[test]
    fn a_run_without_a_plan_has_all_its_samples_left() {
        assert_eq!(left(&changed_run(json!({})), false), Some(12_032));
        assert_eq!(left(&changed_run(json!({ "subset_pct": 10, "samples": 2 })), false), Some(2_406));
        assert_eq!(left(&changed_run(json!({ "subset_count": 200 })), false), Some(200));
        assert_eq!(left(&changed_run(json!({ "items": ["70", "#3"] })), false), Some(2));
        let unknown = json!({ "benchmarks": [{ "benchmark_name": "mmlu_pro", "status": "pending" }] });
        assert_eq!(left(&changed_run(unknown), false), None);
    }

    #[test]
    fn the_rest_is_like_the_beginning() {
        let summary = Summary { avg_latency_ms: Some(2_500.0), ..Summary::default() };
        let found = run("running", 50, 50, 0);
        let average = measured(&found.benchmarks[0], summary).unwrap();
        assert_eq!((average.basis, average.input, average.output), (LengthBasis::ThisRun, 20.0, 40.0));
        assert_eq!(average.latency_s, Some(2.5));
        let two = run("running", 2, 2, 0);
        assert_eq!(measured(&two.benchmarks[0], summary), None, "two samples say little");
    }

    #[test]
    fn a_budget_is_reduced_by_what_was_spent() {
        let spent = json!({ "budget": { "usd": 2.0 }, "spent": { "tokens": 5, "usd": 1.5 } });
        let client = Client::in_process(axum::Router::new(), "data".into());
        let run = changed_run(spent);
        let repeated = Repeated::default();
        let repeat =
            Repeat { client: &client, run: &run, repeated: &repeated, budget_usd: None, concurrency: None };
        assert_eq!(repeat.budget_left(), Some(0.5));
        assert_eq!(Repeat { budget_usd: Some(1.0), ..repeat }.budget_left(), Some(0.0));
    }
}
