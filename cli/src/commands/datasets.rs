//! `bench datasets`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench_benchmarks::Benchmark;
use bench_datasets::{CachedDataset, OfficialTexts, PreparedDataset, TemplateLookup};
use bench_domain::run::DatasetChoice;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::commands::options::{configured, parse_options};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::progress::DatasetProgress;
use crate::table::{Column, Table};
use crate::{format, output, show};
use bench_stack::Stack;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench datasets                       list what is stored
  bench datasets pull mmlu_pro         download now, for runs without a network
  bench datasets pull mmlu_pro --file my-items.jsonl
      checks a file of your own; `bench run --dataset mmlu_pro=my-items.jsonl`
      runs it
  bench datasets pull livecodebench --option release=v6
      downloads what a run with this option needs
  bench datasets rm mmlu_pro --revision 0123abcd";

const LIST_EXAMPLE: &str = "\
Example:
  bench datasets list --json";
const PULL_EXAMPLES: &str = "\
Examples:
  bench datasets pull mmlu_pro
  bench datasets pull mmlu_pro --file my-items.jsonl
  bench datasets pull livecodebench --option release=v6";
const RM_EXAMPLES: &str = "\
Examples:
  bench datasets rm mmlu_pro
  bench datasets rm mmlu_pro --revision 0123abcd";

#[derive(Debug, Args)]
pub(crate) struct DatasetsArgs {
    #[command(subcommand)]
    command: Option<DatasetsCommand>,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, global = true, help_heading = None)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum DatasetsCommand {
    /// List the stored datasets; the default
    #[command(after_help = LIST_EXAMPLE)]
    List,
    /// Download the dataset of a benchmark, or check a file and store it
    #[command(after_help = PULL_EXAMPLES)]
    Pull {
        /// Name of the benchmark
        #[arg(value_name = "BENCHMARK")]
        name: String,
        /// Check and store this Parquet, JSONL or CSV file, or folder of such files, instead of a download. The columns are
        /// those of the dataset. Runs use the file only if `bench run --dataset NAME=FILE` names it
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Dataset of this protocol instead of the default one
        #[arg(long, value_name = "PROTOCOL")]
        protocol: Option<String>,
        /// Dataset for this setting of the benchmark, such as a release; repeat for several
        #[arg(long, value_name = "NAME=VALUE")]
        option: Vec<String>,
    },
    /// Remove the stored datasets of a benchmark; open runs that use them can't continue
    #[command(after_help = RM_EXAMPLES)]
    Rm {
        /// Name of the benchmark
        #[arg(value_name = "BENCHMARK")]
        name: String,
        /// Remove only the revision that starts with this text
        #[arg(long, value_name = "REVISION")]
        revision: Option<String>,
    },
}

pub(crate) async fn run(args: DatasetsArgs) -> anyhow::Result<ExitStatus> {
    let command = args.command.unwrap_or(DatasetsCommand::List);
    if matches!(command, DatasetsCommand::List) && !args.data.path()?.exists() {
        list(&[], args.json)?;
        return Ok(ExitStatus::Success);
    }
    let progress = Arc::new(DatasetProgress::default());
    // Checks names before opening anything.
    match &command {
        DatasetsCommand::Pull { name, protocol, option, .. } => {
            configured_as(name, protocol.as_deref(), option)?;
        }
        DatasetsCommand::Rm { name, .. } => drop(super::find_benchmark(name)?),
        DatasetsCommand::List => {}
    }
    let stack = args.data.open_with_progress(Arc::clone(&progress) as _).await?;
    let result = work(&stack, command, &progress, args.json).await;
    progress.clear();
    stack.stop(Duration::ZERO).await;
    result
}

/// Resolves the benchmark under the protocol and options that a run would use.
fn configured_as(
    name: &str,
    protocol: Option<&str>,
    option: &[String],
) -> anyhow::Result<&'static dyn Benchmark> {
    let name = super::find_benchmark(name)?.name().to_owned();
    let protocols = protocol.map(|protocol| (name.clone(), protocol.to_owned())).into_iter().collect();
    let options = parse_options(option, std::slice::from_ref(&name), &protocols, false)?;
    configured(&name, &protocols, &options)
}

async fn work(
    stack: &Stack,
    command: DatasetsCommand,
    progress: &DatasetProgress,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    match command {
        DatasetsCommand::List => list(&stack.library.list_cached().await?, json)?,
        DatasetsCommand::Pull { name, file, protocol, option } => {
            let benchmark = configured_as(&name, protocol.as_deref(), &option)?;
            if let Some(file) = &file {
                super::check_exists("--file", file)?;
            }
            let prepared = match file {
                Some(file) => stack.library.import_local(benchmark, &file, progress).await?,
                None => stack.library.prepare(benchmark, &DatasetChoice::Hub, progress).await?,
            };
            // A run without a network also needs the official texts for its prompts.
            let texts = stack.library.templates(benchmark, TemplateLookup::StoreThenOrigin, progress).await?;
            progress.clear();
            return pulled(benchmark.name(), &prepared, &texts, json);
        }
        DatasetsCommand::Rm { name, revision } => {
            let benchmark = super::find_benchmark(&name)?;
            let name = benchmark.name();
            let removed = stack.library.remove(name, revision.as_deref()).await?;
            if removed == 0 {
                return Err(Problem::failure(format!("no dataset of `{name}` with that revision is stored"))
                    .hint("`bench datasets` lists the stored datasets")
                    .into());
            }
            match json {
                true => output::json(&json!({ "removed": removed }))?,
                false => output::print(&format!("Removed {} of {name}", format::plural(removed, "dataset")))?,
            }
        }
    }
    Ok(ExitStatus::Success)
}

fn pulled(
    name: &str,
    prepared: &PreparedDataset,
    texts: &OfficialTexts,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    let used = &prepared.used;
    if let Some(reason) = &prepared.demo_reason {
        // Runs fall back to demo data, but here the user asked for the dataset itself.
        return Err(Problem::failure(format!("{name}: {reason}")).into());
    }
    if json {
        output::json(&json!({
            "benchmark": name, "id": used.id, "source": used.source, "revision": used.revision,
            "digest": used.digest, "items": prepared.index.items.len(), "note": used.note,
            "attachments": used.attachments, "official_texts": texts.digests(), "missing_texts": texts.notes,
        }))?;
    } else {
        let items = format::plural(prepared.index.items.len() as u64, "item");
        output::print(&format!("{name}: {items} of {} at revision {}", used.id, used.revision))?;
        for (attachment, file) in &used.attachments {
            let size = format::bytes(file.bytes);
            output::print(&format!("{name}: attachment {attachment}, {size}, sha256 {}", file.sha256))?;
        }
        for (text, sha256) in texts.digests() {
            output::print(&format!("{name}: official text {text}, sha256 {sha256}"))?;
        }
    }
    for note in used.note.iter().chain(&texts.notes) {
        output::warn(note);
    }
    Ok(ExitStatus::Success)
}

fn list(datasets: &[CachedDataset], json: bool) -> anyhow::Result<()> {
    if json {
        let all: Vec<Value> = datasets
            .iter()
            .map(|d| {
                json!({
                    "benchmark": d.benchmark, "variant": d.variant, "id": d.id, "source": d.source,
                    "revision": d.revision,
                    "digest": d.digest, "items": d.items, "bytes": d.bytes,
                    "attachments": d.attachments, "note": d.note,
                })
            })
            .collect();
        return output::json(&all);
    }
    if datasets.is_empty() {
        output::note(
            "No dataset is stored. Runs download what they need; `bench datasets pull NAME` does it now",
        );
        return Ok(());
    }
    output::print_table(&table(datasets))
}

fn table(datasets: &[CachedDataset]) -> Table {
    let mut table = Table::new([
        Column::words("benchmark"),
        Column::path("dataset"),
        Column::text("source").drop_as(2),
        Column::text("revision").drop_as(1),
        Column::number("items"),
        Column::words("size").aligned_right(),
        Column::text("digest").drop_as(3),
    ]);
    for dataset in datasets {
        table.row([
            match dataset.variant.as_str() {
                "" => show::benchmark_name(&dataset.benchmark),
                variant => format!("{} ({variant})", show::benchmark_name(&dataset.benchmark)),
            },
            dataset.id.clone(),
            dataset.source.clone(),
            format::short(&dataset.revision),
            format::count(dataset.items),
            match dataset.attachments.values().sum::<u64>() {
                0 => format::bytes(dataset.bytes),
                files => format!("{} (files {})", format::bytes(dataset.bytes), format::bytes(files)),
            },
            format::short(&dataset.digest),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_of_datasets() {
        let dataset =
            |benchmark: &str, id: &str, variant: &str, source: &str, items: u64, files: u64| CachedDataset {
                benchmark: benchmark.into(),
                id: id.into(),
                variant: variant.into(),
                source: source.into(),
                revision: "0123456789abcdef0123456789abcdef01234567".into(),
                digest: "fedcba9876543210fedcba9876543210".into(),
                items,
                bytes: 4_200_000,
                attachments: (files > 0).then(|| ("test_data.h5".to_owned(), files)).into_iter().collect(),
                note: None,
            };
        let all = [
            dataset("mmlu_pro", "TIGER-Lab/MMLU-Pro", "", "hub", 12_032, 0),
            dataset("livecodebench", "livecodebench/code_generation_lite", "release=v6", "hub", 1_055, 0),
            dataset("scicode", "problems.jsonl", "", "local", 80, 1_050_000_000),
        ];
        crate::screen_tests::check("datasets", |layout| table(&all).render(layout));
    }
}
