//! `bench compare`.

mod several;

use bench_domain::RunId;
use bench_domain::statistics::PairedComparison;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Client, ServerArgs};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem, plain};
use crate::page::Page;
use crate::run_ref::{RunRef, ShortIds};
use crate::table::{Column, Table};
use crate::views::Rejudges;
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench compare BASELINE RUN
      the difference of the scores with its 95% interval and p value
  bench compare BASELINE RUN1 RUN2 RUN3
      each run's score, and its difference to the first run's
  bench compare BASELINE latest --json

Differences are B - A, the second run minus the first: positive if the second
run is better. `bench rejudge` and `bench schedules history` use the same
direction. With three or more runs, p values are corrected for the number of
comparisons by Holm's method. Exit code 1 if the runs have no graded item in
common.";

/// Maximum number of runs to compare: each has a letter.
const RUNS_MAX: usize = 26;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Baseline (A), and the runs to compare with it (B, C …): ids, the first digits of ids, or `latest`
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    runs: Vec<RunRef>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

/// Comparison of two runs, as returned by `/api/runs/{id}/compare/{other}`.
#[derive(Debug, Clone, Deserialize)]
struct Comparison {
    a: Side,
    b: Side,
    benchmarks: Vec<Benchmark>,
    #[serde(default)]
    only_in_a: Vec<String>,
    #[serde(default)]
    only_in_b: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Side {
    id: String,
    model: String,
    #[serde(default)]
    thinking_level: Option<String>,
    #[serde(default)]
    endpoint_host: Option<String>,
    /// Agent that asked the model, if any.
    #[serde(default)]
    agent: Option<String>,
    status: String,
    #[serde(default)]
    rejudges: Option<Rejudges>,
}

#[derive(Debug, Clone, Deserialize)]
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
    if args.runs.len() > RUNS_MAX {
        return Err(Problem::usage(format!("{} runs can't be compared at once", args.runs.len()))
            .hint(format!("give at most {RUNS_MAX} runs"))
            .into());
    }
    let api = super::Api::open(&args.server, &args.data).await?;
    let compared = compare(&api.client, &args).await;
    api.close().await;
    compared.map(|()| ExitStatus::Success)
}

async fn compare(client: &Client, args: &CompareArgs) -> anyhow::Result<()> {
    let mut runs = Vec::with_capacity(args.runs.len());
    for run in &args.runs {
        runs.push(run.resolve(client).await?);
    }
    match runs.as_slice() {
        [a, b] => two(client, *a, *b, args.json).await,
        several => several::show(client, several, args.json).await,
    }
}

async fn two(client: &Client, a: RunId, b: RunId, json: bool) -> anyhow::Result<()> {
    let answer: Value = client.get(&format!("/api/runs/{a}/compare/{b}")).await?;
    let comparison: Comparison = serde_json::from_value(answer.clone())?;
    if json {
        output::json(&answer)?;
    } else {
        output::print_page(&page(&comparison))?;
        print_warnings(&comparison);
    }
    check_common(comparison.benchmarks.iter(), &[a, b])
}

/// Reports runs without a common graded item.
fn check_common<'a>(
    benchmarks: impl IntoIterator<Item = &'a Benchmark>,
    runs: &[RunId],
) -> anyhow::Result<()> {
    let mut has_ungraded = false;
    for Benchmark { paired, coverage_a, coverage_b, .. } in benchmarks {
        if paired.items > 0 {
            return Ok(());
        }
        has_ungraded |= *coverage_a == Some(0.0) || *coverage_b == Some(0.0);
    }
    let runs: Vec<String> = runs.iter().map(RunId::to_string).collect();
    let hint = match has_ungraded {
        true => "one of them has no graded item at all; `bench runs RUN` says why",
        false => "compare runs of the same dataset with the same --seed, or with the same --item",
    };
    Err(Problem::failure(format!("runs {} have no graded item in common", runs.join(" and ")))
        .hint(hint)
        .into())
}

fn page(comparison: &Comparison) -> Page {
    let mut page = Page::new(0, 0);
    let short = ShortIds::new([comparison.a.id.as_str(), &comparison.b.id]);
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        page.text(&format!("{name}: "), described(side, short));
    }
    page.table(table(&comparison.benchmarks));
    page.text(
        "",
        "Compared on the items that both runs have graded; positive if B is better. p: exact McNemar test.",
    );
    page
}

/// Describes a run in a line.
fn described(side: &Side, short: ShortIds) -> String {
    let again = side.rejudges.as_ref().map_or_else(String::new, |of| {
        format!(", answers of run {}, judged again, version {}", of.run, of.version)
    });
    let model = bench_domain::run::name_with_host(&side.model, side.endpoint_host.as_deref());
    let agent = side.agent.as_ref().map_or_else(String::new, |agent| format!(" with {agent}"));
    let level = side.thinking_level.as_ref().map_or_else(String::new, |level| format!(" (thinking {level})"));
    format!("{model}{level}{agent} ({}, {}{again})", short.get(&side.id), side.status)
}

fn print_warnings(comparison: &Comparison) {
    for benchmark in &comparison.benchmarks {
        for warning in &benchmark.warnings {
            output::warn(&format!("{}: {}", show::benchmark_name(&benchmark.benchmark_name), plain(warning)));
        }
    }
    for (name, only) in [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)] {
        if !only.is_empty() {
            let only = show::benchmark_names(only.iter().map(String::as_str));
            output::note(&format!("Only in {name}: {only}"));
        }
    }
}

fn table(benchmarks: &[Benchmark]) -> Table {
    let mut table = Table::new([
        Column::words("benchmark"),
        Column::number("A"),
        Column::number("B"),
        Column::number("B − A (95% interval)"),
        Column::number("p"),
        Column::number("items"),
        Column::number("both right").drop_as(4),
        Column::number("only A").drop_as(1),
        Column::number("only B").drop_as(1),
        Column::number("both wrong").drop_as(3),
        Column::number("not in both").drop_as(2),
        Column::words("coverage A / B").aligned_right(),
    ]);
    for Benchmark { benchmark_name, coverage_a, coverage_b, paired, .. } in benchmarks {
        table.row([
            show::benchmark_name(benchmark_name),
            format::percent(paired.mean_a),
            format::percent(paired.mean_b),
            difference(paired),
            paired.mcnemar_p.map_or_else(|| "-".to_owned(), p_value),
            format::count(paired.items),
            format::count(paired.both_right),
            format::count(paired.only_a_right),
            format::count(paired.only_b_right),
            format::count(paired.both_wrong),
            format::count(paired.only_in_a + paired.only_in_b),
            format!("{} / {}", format::percent(*coverage_a), format::percent(*coverage_b)),
        ]);
    }
    table
}

/// Formats the difference of two scores, or `-` if there is none.
pub(super) fn difference(paired: &PairedComparison) -> String {
    let interval = paired.interval.map(|interval| (interval.low, interval.high));
    paired.difference.map_or_else(|| "-".to_owned(), |difference| format::points(difference, interval))
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
        for part in ["75.0%", "25.0%", "-50.0 pp (", "0.500", "100.0% / -"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn screen_of_a_comparison() {
        let samples = |right: u32| (0..40_u32).map(move |item| (item, item < right));
        let names: Vec<String> = (0..40).map(|item| item.to_string()).collect();
        let paired = |right: u32| {
            let of = |right: u32| {
                samples(right)
                    .map(|(item, correct)| PairedSample {
                        item: names[item as usize].as_str(),
                        correct,
                        score: f64::from(u8::from(correct)),
                    })
                    .collect::<Vec<_>>()
            };
            let mut benchmark = serde_json::to_value(compare_paired(of(20), of(right))).unwrap();
            benchmark["coverage_a"] = json!(1.0);
            benchmark["coverage_b"] = json!(0.998);
            benchmark
        };
        let side = |id: &str, model: &str| json!({ "id": id, "model": model, "status": "succeeded" });
        let mut benchmarks = [paired(29), paired(18)];
        benchmarks[0]["benchmark_name"] = json!("mmlu_pro");
        benchmarks[1]["benchmark_name"] = json!("aa_omniscience");
        let comparison: Comparison = serde_json::from_value(json!({
            "a": side("3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "chutes/deepseek-ai/DeepSeek-V3-0324"),
            "b": side("8d7e6f50-7d4a-4f60-9b1e-0a5c6d7e8f90", "openai-compatible/qwen3"),
            "benchmarks": benchmarks,
        }))
        .unwrap();
        crate::screen_tests::check("compare", |layout| page(&comparison).render(layout));
    }
}
