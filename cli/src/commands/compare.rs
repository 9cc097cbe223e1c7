//! `bench compare`.

use bench_domain::RunId;
use bench_domain::statistics::PairedComparison;
use clap::Args;
use comfy_table::Cell;
use serde::Deserialize;
use serde_json::Value;

use crate::client::ServerArgs;
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem, plain};
use crate::show::number;
use crate::views::Rejudges;
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench compare BASELINE RUN
      the difference of the scores with its 95% interval and p value
  bench compare BASELINE RUN --json

Differences are B − A, the second run minus the first: positive if the second
run is better. `bench rejudge` and `bench schedules history` use the same
direction. Exit code 1 if the runs have no graded item in common.";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Baseline (A)
    #[arg(value_parser = super::parse_run)]
    a: RunId,
    /// Run to compare with the baseline (B)
    #[arg(value_parser = super::parse_run)]
    b: RunId,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Comparison {
    a: Side,
    b: Side,
    benchmarks: Vec<Benchmark>,
    #[serde(default)]
    only_in_a: Vec<String>,
    #[serde(default)]
    only_in_b: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Side {
    id: String,
    model: String,
    #[serde(default)]
    endpoint_host: Option<String>,
    status: String,
    #[serde(default)]
    rejudges: Option<Rejudges>,
}

#[derive(Debug, Deserialize)]
struct Benchmark {
    benchmark_name: String,
    coverage_a: Option<f64>,
    coverage_b: Option<f64>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(flatten)]
    paired: PairedComparison,
}

pub(crate) async fn run(args: CompareArgs) -> anyhow::Result<ExitStatus> {
    let api = super::Api::open(&args.server, &args.data).await?;
    let answer = api.client.get::<Value>(&format!("/api/runs/{}/compare/{}", args.a, args.b)).await;
    api.close().await;
    let answer = answer?;
    let comparison: Comparison = serde_json::from_value(answer.clone())?;
    if args.json {
        output::json(&answer)?;
    } else {
        print(&comparison)?;
    }
    if comparison.benchmarks.iter().all(|benchmark| benchmark.paired.items == 0) {
        let message = format!("runs {} and {} have no graded item in common", args.a, args.b);
        return Err(Problem::failure(message)
            .hint("compare runs of the same dataset with the same --seed, or with the same --item")
            .into());
    }
    Ok(ExitStatus::Success)
}

fn print(comparison: &Comparison) -> anyhow::Result<()> {
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let again = side.rejudges.as_ref().map_or_else(String::new, |of| {
            format!(", answers of run {}, judged again, version {}", of.run, of.version)
        });
        let model = bench_domain::run::name_with_host(&side.model, side.endpoint_host.as_deref());
        output::print(&format!("{name}: {model} ({}, {}{again})", side.id, side.status))?;
    }
    output::print(&table(&comparison.benchmarks).to_string())?;
    output::print(
        "Compared on the items that both runs have graded; positive if B is better. p: exact McNemar test.",
    )?;
    for benchmark in &comparison.benchmarks {
        for warning in &benchmark.warnings {
            output::warn(&format!("{}: {}", benchmark.benchmark_name, plain(warning)));
        }
    }
    for (name, only) in [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)] {
        if !only.is_empty() {
            output::note(&format!("Only in {name}: {}", only.join(", ")));
        }
    }
    Ok(())
}

fn table(benchmarks: &[Benchmark]) -> comfy_table::Table {
    let mut table = show::table(&[
        "benchmark",
        "A",
        "B",
        "B − A (95% interval)",
        "p",
        "items",
        "both right",
        "only A",
        "only B",
        "both wrong",
        "not in both",
        "coverage A / B",
    ]);
    for Benchmark { benchmark_name, coverage_a, coverage_b, paired, .. } in benchmarks {
        table.add_row(vec![
            Cell::new(benchmark_name),
            number(format::percent(paired.mean_a)),
            number(format::percent(paired.mean_b)),
            number(difference(paired)),
            number(paired.mcnemar_p.map_or_else(|| "-".to_owned(), p_value)),
            number(format::count(paired.items)),
            number(format::count(paired.both_right)),
            number(format::count(paired.only_a_right)),
            number(format::count(paired.only_b_right)),
            number(format::count(paired.both_wrong)),
            number(format::count(paired.only_in_a + paired.only_in_b)),
            number(format!("{} / {}", format::percent(*coverage_a), format::percent(*coverage_b))),
        ]);
    }
    table
}

/// Formats a difference in percentage points, with its sign.
pub(super) fn difference(paired: &PairedComparison) -> String {
    let Some(difference) = paired.difference else { return "-".to_owned() };
    let points = |share: f64| format!("{:+.1}", share * 100.0 + 0.0);
    match paired.interval {
        Some(interval) => {
            format!("{} ({} to {})", points(difference), points(interval.low), points(interval.high))
        }
        None => points(difference),
    }
}

pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use bench_domain::statistics::{PairedSample, compare_paired};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_apis_answer_becomes_a_table() {
        let side = |right: [bool; 4]| {
            let names = ["1", "2", "3", "4"];
            names
                .into_iter()
                .zip(right)
                .map(|(item, correct)| PairedSample { item, correct, score: f64::from(u8::from(correct)) })
                .collect::<Vec<_>>()
        };
        let paired = compare_paired(side([true, true, true, false]), side([true, false, false, false]));
        let mut benchmark = serde_json::to_value(paired).unwrap();
        benchmark["benchmark_name"] = json!("mmlu_pro");
        benchmark["coverage_a"] = json!(1.0);
        benchmark["coverage_b"] = json!(null);
        let answer = json!({ "a": {"id": "x", "model": "m", "status": "succeeded"}, "b": {"id": "y", "model": "n", "status": "failed"},
            "benchmarks": [benchmark] });
        let comparison: Comparison = serde_json::from_value(answer).unwrap();
        let text = table(&comparison.benchmarks).to_string();
        for part in ["75.0%", "25.0%", "-50.0 (", "0.500", "100.0% / -"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
