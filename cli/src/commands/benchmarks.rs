//! `bench benchmarks`.

mod show;
mod tasks;

use std::time::Duration;

use bench_api::{BenchmarkView, StoredData};
use bench_benchmarks::{AnswerTime, Benchmark};
use bench_datasets::LibraryConfig;
use bench_domain::run::DatasetChoice;
use clap::Args;
use serde_json::Value;

use crate::client::{ServerArgs, encode};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem, sentence};
use crate::show::benchmark_name;
use crate::table::{Column, Table};
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench benchmarks                     list all benchmarks
  bench benchmarks mmlu_pro            dataset, protocol, prompt, settings,
                                       metrics and deviations
  bench benchmarks gpqa_diamond --protocol authors
  bench benchmarks aime_2025 --json
  bench benchmarks code_lab --tasks --language go
      programming tasks, with the proof that each is admitted
  bench benchmarks code_lab --task go_text_merge
      instructions, files, and how wrong solutions fail
  bench benchmarks --server http://127.0.0.1:3000";

#[derive(Debug, Args)]
pub(crate) struct BenchmarksArgs {
    /// Benchmark to show in detail
    name: Option<String>,
    /// Show the benchmark under this protocol [default: its default protocol]
    #[arg(long, value_name = "PROTOCOL", requires = "name")]
    protocol: Option<String>,
    #[command(flatten)]
    tasks: tasks::TaskFilter,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

pub(crate) async fn run(args: BenchmarksArgs) -> anyhow::Result<ExitStatus> {
    match &args.name {
        None => list(&args).await?,
        Some(name) => match &args.tasks.task {
            Some(task) => tasks::one(&args.server, name, task, args.json).await?,
            None if args.tasks.tasks => tasks::list(&args.tasks, &args.server, name, args.json).await?,
            None => one(&args, name).await?,
        },
    }
    Ok(ExitStatus::Success)
}

async fn list(args: &BenchmarksArgs) -> anyhow::Result<()> {
    let all: Vec<BenchmarkView> = match args.server.client()? {
        Some(client) => {
            let answer: Value = client.get("/api/benchmarks").await?;
            let all = answer.get("benchmarks").cloned().unwrap_or_default();
            if args.json {
                return output::json(&all);
            }
            serde_json::from_value(all).map_err(|error| other_version(&error))?
        }
        None => {
            let stored = stored(&args.data).await?;
            let all = bench_benchmarks::all().iter();
            all.map(|benchmark| describe(*benchmark, &stored)).collect::<anyhow::Result<_>>()?
        }
    };
    if args.json {
        return output::json(&all);
    }
    output::print_table(&table(&all))?;
    output::note("`bench benchmarks NAME` shows a benchmark in detail. The first protocol is the default.");
    Ok(())
}

/// Builds the list. Where it has no room for the display names, those without which a name is misleading are beside it.
fn table(all: &[BenchmarkView]) -> Table {
    list_table(all, true).or_narrow(list_table(all, false))
}

fn list_table(all: &[BenchmarkView], has_display_names: bool) -> Table {
    let mut columns = vec![Column::text("name")];
    columns.extend(has_display_names.then(|| Column::words("benchmark")));
    columns.extend([
        Column::number("items"),
        Column::number("samples").drop_as(4),
        Column::text("judge").drop_as(3),
        Column::text("default").drop_as(1),
        Column::path("dataset").drop_as(5),
        Column::words("protocols"),
    ]);
    let mut table = Table::new(columns);
    for benchmark in all {
        let protocols: Vec<&str> =
            benchmark.protocols.iter().map(|protocol| protocol.name.as_str()).collect();
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let mut row = match has_display_names {
            true => vec![benchmark.name.clone(), benchmark.display_name.clone()],
            false => vec![benchmark_name(&benchmark.name)],
        };
        row.extend([
            match benchmark.total_items {
                0 => "?".to_owned(),
                items => format::count(items),
            },
            benchmark.samples_per_item.to_string(),
            yes(benchmark.judged),
            yes(benchmark.default_selected),
            match benchmark.dataset.is_bundled() {
                true => "(in this program)".to_owned(),
                false => {
                    format!(
                        "{}{}",
                        benchmark.dataset.id,
                        if benchmark.dataset.gated { " (gated)" } else { "" }
                    )
                }
            },
            protocols.join(", "),
        ]);
        table.row(row);
    }
    table
}

async fn one(args: &BenchmarksArgs, name: &str) -> anyhow::Result<()> {
    let view: BenchmarkView = match args.server.client()? {
        Some(client) => {
            let answer: Value = client.get(&format!("/api/benchmarks/{}", encode(name))).await?;
            if args.json && args.protocol.is_none() {
                return output::json(&answer);
            }
            serde_json::from_value(answer).map_err(|error| other_version(&error))?
        }
        None => {
            let benchmark = super::find_benchmark(name)?;
            describe(benchmark, &stored(&args.data).await?)?
        }
    };
    let Some(wanted) = &args.protocol else {
        return match (args.json, view.protocols.first()) {
            (true, _) => output::json(&view),
            (false, Some(protocol)) => output::print_page(&show::detail(&view, protocol)),
            (false, None) => Err(other_version(&"the benchmark has no protocol").into()),
        };
    };
    let Some(protocol) = view.protocols.iter().find(|protocol| protocol.name == *wanted) else {
        let known: Vec<&str> = view.protocols.iter().map(|protocol| protocol.name.as_str()).collect();
        let shown: String = wanted.chars().take(64).collect();
        return Err(Problem::usage(format!("`{}` has no protocol `{shown}`", view.name))
            .hint(format!("its protocols are {}", known.join(", ")))
            .into());
    };
    if args.json { output::json(protocol) } else { output::print_page(&show::detail(&view, protocol)) }
}

fn describe(benchmark: &'static dyn Benchmark, stored: &StoredData) -> anyhow::Result<BenchmarkView> {
    let is_benchmark = |name: &str| bench_benchmarks::find(name).is_some();
    let config = LibraryConfig::from_vars(".", std::env::vars(), is_benchmark).map_err(Problem::usage)?;
    let missing = bench_datasets::check(&config, benchmark, &DatasetChoice::Hub).err();
    let answer_time = AnswerTime::from_vars(|name| std::env::var(name).ok()).map_err(Problem::usage)?;
    Ok(bench_api::describe(benchmark, stored, answer_time, missing.map(|error| error.to_string())))
}

/// Returns the datasets stored on this machine, or nothing if they can't be listed, such as while a server uses the
/// directory.
async fn stored(data: &DataArgs) -> anyhow::Result<StoredData> {
    if !data.path()?.exists() {
        return Ok(StoredData::default());
    }
    let stack = match data.open().await {
        Ok(stack) => stack,
        Err(error) => {
            output::note(&format!("Stored datasets are not shown: {}", sentence(&error)));
            return Ok(StoredData::default());
        }
    };
    let stored = StoredData::load(&stack.library).await;
    stack.stop(Duration::ZERO).await;
    Ok(stored?)
}

fn other_version(error: &dyn std::fmt::Display) -> Problem {
    Problem::failure(format!("the server describes benchmarks in the form of another version: {error}"))
        .hint("--json prints what it sent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_of_benchmarks() {
        let view = |name: &str| {
            let benchmark = bench_benchmarks::find(name).unwrap();
            bench_api::describe(benchmark, &StoredData::default(), AnswerTime::default(), None)
        };
        let all =
            ["mmlu_pro", "gpqa_diamond", "hle", "livecodebench", "ifbench", "ifbench_allenai"].map(view);
        crate::screen_tests::check("benchmarks", |layout| table(&all).render(layout));
    }

    #[test]
    fn screen_of_a_benchmark() {
        let benchmark = bench_benchmarks::find("aime_2025").unwrap();
        let view = bench_api::describe(benchmark, &StoredData::default(), AnswerTime::default(), None);
        crate::screen_tests::check("benchmark", |layout| {
            show::detail(&view, &view.protocols[0]).render(layout)
        });
    }
}
