//! Budgets on the command line.

use bench_domain::budget::{BUDGET_USD_MAX, dollars, grouped};
use bench_domain::{Budget, LimitReached, Price};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::views::Run;

/// Budget of a run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct BudgetArgs {
    /// Stop the run when its answers have cost this many US dollars; finished samples are kept [default: no limit]
    #[arg(long, help_heading = "Budget", value_name = "USD", value_parser = parse_usd)]
    pub(crate) budget_usd: Option<f64>,
    /// Stop the run when its prompts and answers have this many tokens together; finished samples are kept [default: no
    /// limit]
    #[arg(long, help_heading = "Budget", value_name = "N", value_parser = parse_tokens)]
    pub(crate) budget_tokens: Option<u64>,
}

impl BudgetArgs {
    /// Returns the budget.
    pub(crate) const fn budget(self) -> Budget {
        Budget { usd: self.budget_usd, tokens: self.budget_tokens }
    }

    /// Returns the body of a request with this budget, or `None` without a budget.
    pub(crate) fn body(self) -> Option<Value> {
        let mut body = Map::new();
        body.extend(self.budget_usd.map(|usd| ("budget_usd".to_owned(), json!(usd))));
        body.extend(self.budget_tokens.map(|tokens| ("budget_tokens".to_owned(), json!(tokens))));
        (!body.is_empty()).then_some(Value::Object(body))
    }
}

fn parse_usd(text: &str) -> Result<f64, String> {
    let usd = text.trim().parse::<f64>().ok().filter(|usd| *usd > 0.0 && *usd <= BUDGET_USD_MAX);
    usd.ok_or_else(|| format!("it must be a number above 0 and at most {BUDGET_USD_MAX}"))
}

fn parse_tokens(text: &str) -> Result<u64, String> {
    let tokens = text.trim().parse::<u64>().ok().filter(|tokens| *tokens > 0);
    tokens.ok_or_else(|| "it must be a whole number above 0".to_owned())
}

/// Parses `IN,OUT`, in US dollars per million tokens.
pub(super) fn parse_price(text: &str) -> Result<Price, String> {
    let price = text
        .split_once(',')
        .and_then(|(input, output)| Price::new(input.trim().parse().ok()?, output.trim().parse().ok()?));
    price.ok_or_else(|| {
        "it must be IN,OUT: US dollars per million tokens of prompts and of answers, such as 0.25,1.20"
            .to_owned()
    })
}

/// Explains that a run stopped at its budget, with the answers that arrived afterwards; `None` for other runs.
pub(super) fn stopped(run: &Run) -> Option<String> {
    if run.failure_reason.as_deref() != Some("budget") {
        return None;
    }
    let sum = |part: fn(&crate::views::Benchmark) -> u64| run.benchmarks.iter().map(part).sum::<u64>();
    let (done, planned) = (sum(|b| b.completed_samples), sum(|b| b.planned_samples));
    let (budget, spent) = (run.budget?, run.spent?);
    let estimated_tokens = spent.estimated_tokens;
    let reached = match (budget.usd, spent.usd, budget.tokens) {
        (Some(limit), Some(usd), _) if usd >= limit => {
            LimitReached::Usd { limit, spent: usd, estimated_tokens }.to_string()
        }
        (_, _, Some(limit)) => {
            LimitReached::Tokens { limit, spent: spent.tokens, estimated_tokens }.to_string()
        }
        (Some(limit), ..) => format!("budget of {} USD reached", dollars(limit)),
        _ => return None,
    };
    Some(format!("stopped: {reached}, {} of {} samples done", grouped(done), grouped(planned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_and_prices_are_checked() {
        assert_eq!(parse_usd(" 0.5 "), Ok(0.5));
        for bad in ["", "0", "-1", "NaN", "inf", "1000001", "much"] {
            assert!(parse_usd(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_tokens(" 5000 "), Ok(5_000));
        for bad in ["", "0", "-1", "1.5", "18446744073709551616"] {
            assert!(parse_tokens(bad).is_err(), "{bad}");
        }
        let price = Price { input_per_million_usd: 0.25, output_per_million_usd: 1.2 };
        assert_eq!(parse_price("0.25, 1.20"), Ok(price));
        for bad in ["", "1", "1,", ",1", "-1,1", "1,NaN", "1,2,3", "2000000,1"] {
            assert!(parse_price(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_stopped_run_is_described_in_one_line() {
        let run = |budget: Value| -> Run {
            serde_json::from_value(json!({
                "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "failed", "model_slug": "m",
                "provider": "chutes", "created_at": "2026-01-02T03:04:05Z", "failure_reason": "budget",
                "budget": budget, "spent": { "tokens": 1_020_000, "usd": 1.0204 },
                "benchmarks": [
                    { "benchmark_name": "a", "status": "failed", "planned_samples": 600, "completed_samples": 312 },
                    { "benchmark_name": "b", "status": "skipped", "planned_samples": 400, "completed_samples": 0 }
                ]
            }))
            .unwrap()
        };
        assert_eq!(
            stopped(&run(json!({ "usd": 1.0, "tokens": null }))).unwrap(),
            "stopped: budget of 1.00 USD reached (1.02 USD spent), 312 of 1,000 samples done"
        );
        assert_eq!(
            stopped(&run(json!({ "usd": 2.0, "tokens": 1_000_000 }))).unwrap(),
            "stopped: budget of 1,000,000 tokens reached (1,020,000 tokens spent), 312 of 1,000 samples done"
        );
        let mut estimated = run(json!({ "usd": 1.0, "tokens": null }));
        estimated.spent.as_mut().unwrap().estimated_tokens = 5_000;
        assert_eq!(
            stopped(&estimated).unwrap(),
            "stopped: budget of 1.00 USD reached (~1.02 USD spent, 5,000 tokens of it estimated), 312 of 1,000 \
             samples done"
        );
        let mut other = run(json!({ "usd": 1.0, "tokens": null }));
        other.failure_reason = None;
        assert_eq!(stopped(&other), None);
    }
}
