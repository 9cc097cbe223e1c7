//! Lines about estimates of tokens, cost and time of ordered runs.

use bench_estimate::{BenchmarkEstimate, JudgedEstimate, KnownPrice, RunEstimate, TotalCost};

use super::cost::describe;
use crate::format;

/// Estimate for a run, with its heading.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    /// Name of the model, or of what continues.
    pub(super) title: String,
    /// True for the rest of a run that has begun.
    pub(super) is_rest: bool,
    pub(super) run: RunEstimate,
}

impl Estimate {
    /// Returns the cost of several runs.
    pub(super) fn total_cost(all: &[Self]) -> TotalCost {
        all.iter().map(|one| one.run.cost()).fold(TotalCost::default(), TotalCost::plus)
    }

    /// Formats the estimates of several runs: a line for each benchmark, the total of each run, and what is assumed.
    pub(super) fn lines(all: &[Self]) -> Vec<String> {
        let mut lines = Vec::new();
        for Self { title, is_rest, run } in all {
            lines.push(format!("Estimate for {title}:"));
            lines.extend(run.benchmarks.iter().map(|benchmark| line(benchmark, run.price)));
            if run.benchmarks.len() > 1 {
                lines.push(format!("  total: {}", total(run)));
            }
            if let Some(budget) = run.budget_usd {
                let budget = format::dollars(budget);
                lines.push(match is_rest {
                    true => format!("  the budget has {budget} left"),
                    false => format!("  the budget stops the run at {budget}"),
                });
            }
            lines.extend(run.basis().map(|basis| format!("  assumes {}", basis.describe())));
        }
        if all.len() > 1 {
            let seconds = all.iter().map(|one| one.run.seconds()).sum();
            lines.push(format!(
                "Estimate for all: {}, {}",
                describe(Self::total_cost(all)),
                duration(seconds)
            ));
        }
        lines
    }
}

/// Formats the estimate for a benchmark as one line.
fn line(estimate: &BenchmarkEstimate, price: KnownPrice) -> String {
    let mut parts = Vec::new();
    parts.extend(estimate.items.map(|items| format::plural(items, "item")));
    parts.push(match estimate.samples {
        Some(samples) => format::plural(samples, "sample"),
        None => "samples unknown".to_owned(),
    });
    parts.push(format_tokens(estimate.tokens));
    if let Some(JudgedEstimate { judge, tokens }) = &estimate.judge {
        parts.push(format!("judge {}: {}", judge.name, format_tokens(*tokens)));
    }
    if let Some(JudgedEstimate { judge, tokens }) = &estimate.user {
        parts.push(format!("user model {}: {}", judge.name, format_tokens(*tokens)));
    }
    parts.push(describe(estimate.cost(price)));
    parts.push(duration(estimate.seconds));
    format!("  {}: {}", crate::show::benchmark_name(&estimate.name), parts.join(", "))
}

fn total(run: &RunEstimate) -> String {
    let mut parts = Vec::new();
    parts.extend(run.items().map(|items| format::plural(items, "item")));
    parts.extend(run.samples().map(|samples| format::plural(samples, "sample")));
    parts.push(format_tokens(run.tokens()));
    parts.push(describe(run.cost()));
    parts.push(duration(run.seconds()));
    parts.join(", ")
}

/// Formats tokens of prompts and of answers: `~182k tokens in, ~240k out`.
pub(super) fn format_tokens(tokens: Option<(f64, f64)>) -> String {
    match tokens {
        Some((input, output)) => format!("~{} tokens in, ~{} out", rounded(input), rounded(output)),
        None => "tokens unknown".to_owned(),
    }
}

/// Formats a number with two or three digits, since an estimate has no more.
fn rounded(number: f64) -> String {
    match number {
        few if few < 999.5 => format!("{few:.0}"),
        thousands if thousands < 9_950.0 => format!("{:.1}k", thousands / 1_000.0),
        thousands if thousands < 999_500.0 => format!("{:.0}k", thousands / 1_000.0),
        millions if millions < 9_950_000.0 => format!("{:.1}M", millions / 1_000_000.0),
        millions => format!("{:.0}M", millions / 1_000_000.0),
    }
}

/// Formats a time: `~6 m 10 s`, `time –`.
pub(super) fn duration(seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) => format!("~{}", format::seconds(seconds.max(1.0))),
        None => "time –".to_owned(),
    }
}

#[cfg(test)]
mod tests;
