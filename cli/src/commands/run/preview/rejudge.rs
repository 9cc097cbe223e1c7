//! Estimate of what judging the answers of a run again takes.

use bench_domain::{RunId, RunLimits};
use bench_estimate::{
    JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS, KnownPrice, Pace, answer_tokens, prompt_length,
    typical_latency_s, without_list,
};
use bench_inference::{ModelName, ModelSource};

use super::confirm::{ConfirmArgs, PriceOption, confirm};
use super::cost::describe;
use super::estimate::{duration, format_tokens};
use super::history::per_sample;
use super::pace::pace;
use super::price::PriceList;
use crate::client::Client;
use crate::judge_name::NamedJudge;
use crate::views::{Benchmark, Run};
use crate::{format, output};

/// Judging that is going to be ordered.
pub(crate) struct Rejudge<'a> {
    pub(crate) client: &'a Client,
    /// True if the judge is asked from this machine.
    pub(crate) is_local: bool,
    pub(crate) run: RunId,
    /// The judge, if it is another than the run's.
    pub(crate) judge: Option<&'a NamedJudge>,
    pub(crate) base_url: Option<&'a str>,
    pub(crate) budget_usd: Option<f64>,
    /// Number of answers in progress at once; `None` if a server does the work.
    pub(crate) concurrency: Option<u64>,
}

/// Shows what judging the answers of a run again will take, and asks as before an order.
///
/// # Errors
/// Fails if the user refuses, or can't be asked.
pub(crate) async fn confirm_rejudge(rejudge: &Rejudge<'_>, args: &ConfirmArgs) -> anyhow::Result<()> {
    let Rejudge { client, is_local, run, judge, base_url, budget_usd, concurrency } = *rejudge;
    // The order reports a run that isn't there.
    let Ok(found) = client.get::<Run>(&format!("/api/runs/{run}")).await else { return Ok(()) };
    let same = found.judge.as_ref().and_then(|judge| ModelName::parse_judge(&judge.model).ok());
    let (name, source, slug) = match (judge, &same) {
        (Some(judge), _) => (judge.name.clone(), judge.source, judge.slug.as_str()),
        (None, Some(same)) => (same.to_string(), Some(same.source), same.slug.as_str()),
        (None, None) => return Ok(()),
    };
    if source == Some(ModelSource::Oracle) {
        return Ok(());
    }
    let price = PriceList::new(client, is_local).of(source, slug, base_url, None).await;
    let pace = pace(client, concurrency, RunLimits::default()).await;
    let answers = |benchmark: &Benchmark| benchmark.completed_samples;
    confirm_judging(&found, Some((name, price)), pace, answers, budget_usd, args).await
}

/// Shows what the judge takes for `samples` of each benchmark of a run, and asks as before an order.
pub(super) async fn confirm_judging(
    run: &Run,
    judge: Option<(String, KnownPrice)>,
    pace: Pace,
    samples: impl Fn(&Benchmark) -> u64,
    budget_usd: Option<f64>,
    args: &ConfirmArgs,
) -> anyhow::Result<()> {
    let Some((name, price)) = judge.filter(|(_, price)| *price != KnownPrice::NoModel) else { return Ok(()) };
    let (answers, tokens) = judged(run, samples);
    if answers == 0 {
        return Ok(());
    }
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let seconds = pace.seconds(answers as f64, 1.0, typical_latency_s(1.0, JUDGE_REPLY_TOKENS));
    let cost = price.cost(Some(tokens)).within(budget_usd);
    output::note(&format!(
        "Estimate for judging {} again with {name}: {}, {}, {}",
        format::plural(answers, "answer"),
        format_tokens(Some(tokens)),
        describe(cost),
        duration(seconds),
    ));
    confirm(args, cost, PriceOption::Unavailable).await
}

/// Returns name and price of the judge that a run has used; `None` if no judge is ordered. `is_local` is true if the judge is
/// asked from this machine.
pub(super) fn judge_price(run: &Run, is_local: bool) -> Option<(String, KnownPrice)> {
    let ordered = run.judge.as_ref()?;
    let name = ModelName::parse_judge(&ordered.model).ok();
    if name.is_some_and(|name| name.source == ModelSource::Oracle) {
        return Some((ordered.model.clone(), KnownPrice::NoModel));
    }
    let listed = run.benchmarks.iter().find_map(|benchmark| {
        let (cost, input, output) =
            (benchmark.judge_cost?, benchmark.judge_input_tokens, benchmark.judge_output_tokens);
        cost.price(input, output)
    });
    let used = run.benchmarks.iter().find_map(|benchmark| benchmark.judge.as_ref());
    let host = used.and_then(|judge| judge.endpoint_host.as_deref());
    Some((ordered.model.clone(), listed.map_or_else(|| without_list(host, is_local), KnownPrice::Listed)))
}

/// Returns the number of answers that the judge grades, and the tokens of its prompts and replies.
fn judged(run: &Run, samples: impl Fn(&Benchmark) -> u64) -> (u64, (f64, f64)) {
    let (mut answers, mut tokens) = (0, (0.0, 0.0));
    for benchmark in &run.benchmarks {
        let needs_judge = benchmark.known().is_none_or(|known| known.judge().is_some());
        let count = samples(benchmark);
        if !needs_judge || count == 0 {
            continue;
        }
        answers += count;
        let (input, output) = per_answer(benchmark);
        #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
        let count = count as f64;
        tokens = (tokens.0 + count * input, tokens.1 + count * output);
    }
    (answers, tokens)
}

/// Returns the tokens of the judge's prompt and reply for one answer, as measured so far or as is typical.
fn per_answer(benchmark: &Benchmark) -> (f64, f64) {
    let completed = benchmark.completed_samples;
    if completed > 0 && benchmark.judge_input_tokens > 0 {
        #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
        let average = |tokens: u64| tokens as f64 / completed as f64;
        return (average(benchmark.judge_input_tokens), average(benchmark.judge_output_tokens));
    }
    let name = &benchmark.benchmark_name;
    let texts = match per_sample(benchmark) {
        Some(average) => average.input + average.output,
        None => prompt_length(name).tokens + f64::from(answer_tokens(name)),
    };
    (texts + JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS)
}

#[cfg(test)]
mod tests {
    use bench_estimate::TotalCost;
    use serde_json::{Value, json};

    use super::*;

    fn run(benchmark: Value) -> Run {
        let mut all = json!({ "benchmark_name": "hle", "status": "succeeded", "completed_samples": 10 });
        all.as_object_mut().unwrap().extend(benchmark.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "succeeded", "model_slug": "m",
            "provider": "openrouter", "created_at": "2026-01-02T03:04:05Z",
            "judge": { "model": "openrouter/j" }, "benchmarks": [all],
        }))
        .unwrap()
    }

    #[test]
    fn a_judge_needs_as_many_tokens_as_so_far() {
        let all = |run: &Run| judged(run, |benchmark| benchmark.completed_samples);
        let measured = json!({ "judge_input_tokens": 5_000, "judge_output_tokens": 500,
            "input_tokens": 1_000, "output_tokens": 2_000 });
        assert_eq!(all(&run(measured)), (10, (5_000.0, 500.0)));
        let answered = run(json!({ "input_tokens": 1_000, "output_tokens": 2_000 }));
        assert_eq!(all(&answered), (10, (10.0 * 700.0, 2_500.0)));
        assert_eq!(all(&run(json!({}))), (10, (10.0 * 1_350.0, 2_500.0)), "a typical prompt and answer");
        assert_eq!(all(&run(json!({ "benchmark_name": "mmlu_pro" }))).0, 0, "it has no judge");
        assert_eq!(judged(&answered, |_| 3).0, 3);
    }

    #[test]
    fn the_price_of_a_judge_is_what_it_cost() {
        let paid = json!({ "judge_input_tokens": 1_000_000, "judge_output_tokens": 500_000,
            "judge_cost": { "total_usd": 7.0, "input_usd": 2.0, "output_usd": 5.0 } });
        let (name, price) = judge_price(&run(paid), true).unwrap();
        assert_eq!(name, "openrouter/j");
        assert_eq!(price.cost(Some((1e6, 1e6))), TotalCost::known(12.0));
        let here = json!({ "judge": { "model": "j", "endpoint_host": "127.0.0.1:8000", "version": 1,
            "prompt_digest": "", "prompt_source": "own" } });
        assert_eq!(judge_price(&run(here), true).unwrap().1, KnownPrice::Local);
        assert_eq!(judge_price(&run(json!({})), true).unwrap().1, KnownPrice::Unknown);
    }
}
