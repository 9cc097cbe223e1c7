use bench_domain::Price;
use bench_estimate::{Inputs, JudgeEstimate, LengthBasis, Pace, PerSample, PromptLength, UnknownPart};

use super::*;

const PRICE: KnownPrice =
    KnownPrice::Listed(Price { input_per_million_usd: 1.0, output_per_million_usd: 10.0 });
const PROMPT: PromptLength = PromptLength { tokens: 100.0, questions: 1.0 };

fn measured(basis: LengthBasis) -> PerSample {
    PerSample {
        basis,
        input: 90.0,
        output: 2_000.0,
        judge: Some((2_500.0, 100.0)),
        user: None,
        latency_s: Some(8.0),
    }
}

fn inputs<'a>(items: u64, measured: Option<PerSample>) -> Inputs<'a> {
    Inputs {
        name: "mmlu_pro",
        has_agent: false,
        items: Some(items),
        samples: Some(items),
        prompt: Some(PROMPT),
        max_tokens: None,
        measured,
        judge: None,
        user: None,
        pace: Pace { concurrency: Some(16), ..Pace::default() },
    }
}

fn estimate(price: KnownPrice, benchmarks: Vec<BenchmarkEstimate>) -> Estimate {
    let run = RunEstimate { price, budget_usd: None, benchmarks };
    Estimate { title: "openrouter/m".into(), is_rest: false, run }
}

#[test]
fn tokens_come_from_the_prompts_and_from_earlier_runs() {
    let found = BenchmarkEstimate::new(&inputs(200, Some(measured(LengthBasis::SameModel))));
    assert_eq!(found.tokens, Some((20_000.0, 400_000.0)), "the prompts themselves count first");
    assert_eq!(found.seconds, Some(100.0));
    // 0.02 million at $1, and 0.4 million at $10.
    let lines = Estimate::lines(&[estimate(PRICE, vec![found])]);
    assert_eq!(
        lines,
        [
            "Estimate for openrouter/m:",
            "  mmlu_pro: 200 items, 200 samples, ~20k tokens in, ~400k out, ~$4.02, ~1 m 40 s",
            "  assumes answers as in earlier runs of this model",
        ]
    );
    let unread = Inputs { prompt: None, ..inputs(200, Some(measured(LengthBasis::OtherModels))) };
    let found = BenchmarkEstimate::new(&unread);
    assert_eq!((found.tokens, found.basis.lengths), (Some((18_000.0, 400_000.0)), LengthBasis::OtherModels));
}

#[test]
fn without_earlier_runs_lengths_and_speed_are_typical() {
    let prompt = PromptLength { questions: 3.0, ..PROMPT };
    let steps = Inputs { prompt: Some(prompt), ..inputs(10, None) };
    let found = BenchmarkEstimate::new(&steps);
    assert_eq!(found.tokens, Some((1_000.0, 18_000.0)), "600 for each of three questions");
    // Each sample takes three seconds and 1,800 / 50 more, and all are asked for at once.
    assert_eq!(found.seconds, Some(39.0));
    let short = Inputs { max_tokens: Some(50), samples: Some(40), ..steps };
    let found = BenchmarkEstimate::new(&short);
    assert_eq!(found.tokens, Some((4_000.0, 6_000.0)));
    assert_eq!(
        Estimate::lines(&[estimate(KnownPrice::Unknown, vec![found])]),
        [
            "Estimate for openrouter/m:",
            "  mmlu_pro: 10 items, 40 samples, ~4.0k tokens in, ~6.0k out, cost unknown, ~15 s",
            "  assumes typical answers without reasoning, at 50 tokens per second",
        ]
    );
    let at_server = Inputs { prompt: None, ..inputs(10, None) };
    let lines = Estimate::lines(&[estimate(PRICE, vec![BenchmarkEstimate::new(&at_server)])]);
    assert!(lines[2].starts_with("  assumes typical prompts and answers without reasoning, "), "{lines:?}");
    assert_eq!(lines[1], "  mmlu_pro: 10 items, 10 samples, ~13k tokens in, ~6.0k out, ~$0.0730, ~13 s");
}

#[test]
fn a_limited_rate_takes_longer() {
    let pace = Pace { concurrency: Some(16), requests_per_minute: Some(60), ..Pace::default() };
    let slow = Inputs { pace, ..inputs(201, Some(measured(LengthBasis::SameModel))) };
    assert_eq!(BenchmarkEstimate::new(&slow).seconds, Some(200.0));
}

#[test]
fn an_agent_s_turns_are_known_from_earlier_runs_only() {
    let agent =
        |measured| Inputs { name: "terminal_tasks", has_agent: true, prompt: None, ..inputs(2, measured) };
    let found = BenchmarkEstimate::new(&agent(None));
    assert_eq!((found.samples, found.tokens, found.seconds), (Some(2), None, None));
    assert_eq!(
        Estimate::lines(&[estimate(PRICE, vec![found])])[1..],
        [
            "  terminal_tasks: 2 items, 2 samples, tokens unknown, cost unknown, time –",
            "  assumes nothing: an agent's turns are only known from earlier runs",
        ]
    );
    let found = BenchmarkEstimate::new(&agent(Some(measured(LengthBasis::SameModel))));
    assert_eq!(found.tokens, Some((180.0, 4_000.0)));
}

#[test]
fn what_is_unknown_stays_unknown() {
    let unknown = Inputs { items: None, samples: None, prompt: None, ..inputs(0, None) };
    let found = BenchmarkEstimate::new(&unknown);
    assert_eq!((found.samples, found.tokens, found.seconds), (None, None, None));
    let estimate = estimate(PRICE, vec![found]);
    assert_eq!(
        Estimate::total_cost(std::slice::from_ref(&estimate)),
        TotalCost::unknown(UnknownPart::Provider)
    );
    assert_eq!(
        Estimate::lines(&[estimate])[1],
        "  mmlu_pro: samples unknown, tokens unknown, cost unknown, time –"
    );
}

#[test]
fn models_on_this_machine_are_free() {
    let found = BenchmarkEstimate::new(&inputs(200, Some(measured(LengthBasis::SameModel))));
    let lines = Estimate::lines(&[estimate(KnownPrice::Local, vec![found])]);
    assert_eq!(lines[1], "  mmlu_pro: 200 items, 200 samples, ~20k tokens in, ~400k out, free, ~1 m 40 s");
}

#[test]
fn a_judge_costs_too() {
    let judge = JudgeEstimate { name: "openrouter/j".into(), price: PRICE };
    let judged = |measured| Inputs { judge: Some(&judge), ..inputs(100, measured) };
    let found = BenchmarkEstimate::new(&judged(Some(measured(LengthBasis::SameModel))));
    assert_eq!(found.judge.as_ref().unwrap().tokens, Some((250_000.0, 10_000.0)));
    // A free model with a judge that costs money: a quarter of a million at $1, and 0.01 million at $10.
    assert_eq!(found.cost(KnownPrice::Local), TotalCost::known(0.35));
    let typical = BenchmarkEstimate::new(&judged(None));
    assert_eq!(typical.judge.unwrap().tokens, Some((100.0 * 1_100.0, 25_000.0)));
}

#[test]
fn a_budget_limits_the_cost() {
    let found = BenchmarkEstimate::new(&inputs(200, Some(measured(LengthBasis::SameModel))));
    let limited = |usd, price| {
        let mut limited = estimate(price, vec![found.clone()]);
        limited.run.budget_usd = Some(usd);
        limited
    };
    let cost = |estimate: Estimate| Estimate::total_cost(&[estimate]);
    assert_eq!(cost(limited(1.5, PRICE)), TotalCost::known(1.5));
    assert_eq!(cost(limited(100.0, PRICE)), TotalCost::known(4.02));
    assert_eq!(cost(limited(1.5, KnownPrice::Unknown)), TotalCost::known(1.5));
    assert_eq!(Estimate::lines(&[limited(1.5, PRICE)])[2], "  the budget stops the run at $1.50");
    let rest = Estimate { is_rest: true, ..limited(1.5, PRICE) };
    assert_eq!(Estimate::lines(&[rest])[2], "  the budget has $1.50 left");
}

#[test]
fn several_benchmarks_and_runs_have_totals() {
    let found = BenchmarkEstimate::new(&inputs(200, Some(measured(LengthBasis::SameModel))));
    let typical = BenchmarkEstimate::new(&inputs(200, None));
    let run = estimate(PRICE, vec![found.clone(), found.clone()]);
    let lines = Estimate::lines(&[run.clone(), run]);
    let total = "  total: 400 items, 400 samples, ~40k tokens in, ~800k out, ~$8.04, ~3 m 20 s";
    assert_eq!(lines[3], total);
    assert_eq!(lines.last().unwrap(), "Estimate for all: ~$16.08, ~6 m 40 s");
    let mixed = Estimate::lines(&[estimate(PRICE, vec![found, typical])]);
    assert_eq!(mixed[4], "  assumes typical answers without reasoning, at 50 tokens per second");
}

#[test]
fn numbers_are_rounded() {
    let numbers = [0.0, 999.0, 1_000.0, 9_949.0, 182_345.0, 999_600.0, 12_345_678.0];
    assert_eq!(numbers.map(rounded), ["0", "999", "1.0k", "9.9k", "182k", "1.0M", "12M"]);
}
