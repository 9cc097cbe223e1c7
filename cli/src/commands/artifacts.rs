//! `bench artifacts`.

mod code;
mod summary;

use std::path::PathBuf;

use bench_domain::RunId;
use clap::Args;
use serde_json::{Value, json};

use crate::client::{Client, ServerArgs};
use crate::data_dir::DataArgs;
use crate::episodes::{Episode, KeptFile, Selection, for_each, with_artifacts};
use crate::exit::{ExitStatus, Problem};
use crate::format;
use crate::output;
use crate::run_ref::RunRef;
use crate::table::{Column, Table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench artifacts RUN                  list what is kept of each episode
  bench artifacts RUN --out artifacts/
      write all files, as TASK/SAMPLE/agent/trajectory.json and so on
  bench artifacts latest --task fix-csv --sample 1 --file agent/trajectory.json
      print one file

An episode leaves the agent's trajectory (ATIF), the terminal and its recording,
the output of tests, and the artifacts that its task names. `bench export RUN
--format harbor` writes them as Harbor's viewer reads them. An attempt at a
programming task of code_lab leaves prompt, response, patch and all output, in
a folder TASK__MODEL__sampleNN__lvl_LEVEL.";

/// Maximum number of files that an error names.
const NAMED_MAX: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct ArtifactsArgs {
    /// Run with terminal tasks or programming tasks: its id, the first digits of its id, or `latest`
    run: RunRef,
    #[command(flatten)]
    selection: Selection,
    /// Print this file of the one episode that is meant
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "json"])]
    file: Option<String>,
    /// Write the files into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into folders of episodes that exist already, and replace files of the same names
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

pub(crate) async fn run(args: ArtifactsArgs) -> anyhow::Result<ExitStatus> {
    let api = super::Api::open(&args.server, &args.data).await?;
    let done = show(&api.client, &args).await;
    api.close().await;
    done.map(|()| ExitStatus::Success)
}

async fn show(client: &Client, args: &ArtifactsArgs) -> anyhow::Result<()> {
    let run = args.run.resolve(client).await?;
    let found = args.selection.among(run, with_artifacts(client, run).await?)?;
    let attempts = code::Attempts::of(client, run, &found).await?;
    match (&args.file, &args.out) {
        (Some(name), _) => print_file(client, run, &found, name).await,
        (None, Some(out)) => {
            let folders = found.iter().map(|episode| out.join(folder_of(&found, episode, &attempts)));
            let list = attempts.list().map(|name| out.join(name));
            if let Some(path) = folders.chain(list).find(|path| path.exists() && !args.force) {
                return Err(Problem::usage(format!("--out: `{}` exists already", path.display()))
                    .hint("give another folder, or --force to write into it")
                    .into());
            }
            let counts = for_each(&found, "Writing", |at| {
                let folder = out.join(folder_of(&found, &found[at], &attempts));
                let episode = &found[at];
                async move { episode.write(client, run, &folder).await }
            })
            .await?;
            let files: u64 = counts.iter().sum::<u64>() + attempts.write(out, &found)?;
            let done = format!(
                "Wrote {} of {} to {}",
                format::plural(files, "file"),
                format::plural(found.len() as u64, "episode"),
                out.display()
            );
            match args.json {
                true => output::json(&json!({ "folder": out, "episodes": found.len(), "files": files })),
                false => output::print(&done),
            }
        }
        (None, None) => {
            let kept = for_each(&found, "Reading", |at| found[at].files(client, run)).await?;
            if args.json {
                let all: Vec<Value> = found.iter().zip(&kept).map(value).collect();
                return output::json(&all);
            }
            if kept.iter().all(Vec::is_empty) {
                output::note(
                    "No files are kept of these episodes; `bench runs RUN --items` says why they ended",
                );
                return Ok(());
            }
            output::print_table(&table(&found, &kept))
        }
    }
}

/// Returns the folder of an episode or an attempt. That of its benchmark comes first if the run has several.
fn folder_of(all: &[Episode], episode: &Episode, attempts: &code::Attempts) -> PathBuf {
    if episode.is_of_code_lab() {
        return attempts.folder(episode);
    }
    match all.iter().any(|other| other.benchmark != episode.benchmark) {
        true => PathBuf::from(&episode.benchmark).join(episode.folder()),
        false => episode.folder(),
    }
}

async fn print_file(client: &Client, run: RunId, found: &[Episode], name: &str) -> anyhow::Result<()> {
    let [episode] = found else {
        return Err(Problem::usage(format!("--file needs one episode, and {} are meant", found.len()))
            .hint("name one with --task and --sample")
            .into());
    };
    let files = episode.files(client, run).await?;
    if !files.iter().any(|file| file.name == name) {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).take(NAMED_MAX).collect();
        return Err(Problem::usage(format!("--file: the episode has no file `{name}`"))
            .hint(format!("it has {}; `bench artifacts RUN` lists all files", names.join(", ")))
            .into());
    }
    let text = episode.text(client, run, name).await?;
    output::print_data(text.trim_end_matches('\n'))
}

fn value((episode, files): (&Episode, &Vec<KeptFile>)) -> Value {
    let files: Vec<Value> = files
        .iter()
        .map(|file| json!({ "name": file.name, "bytes": file.bytes, "omitted": file.omitted }))
        .collect();
    json!({
        "benchmark": episode.benchmark, "task": episode.task(), "sample": episode.sample,
        "outcome": episode.outcome, "files": files,
    })
}

fn table(found: &[Episode], kept: &[Vec<KeptFile>]) -> Table {
    let mut table = Table::new([
        Column::path("task"),
        Column::number("sample"),
        Column::words("outcome"),
        Column::path("file"),
        Column::number("size"),
    ]);
    for (episode, files) in found.iter().zip(kept) {
        for file in files {
            let cut = if file.omitted > 0 { " (cut)" } else { "" };
            table.row([
                episode.task().to_owned(),
                episode.number().to_string(),
                episode.outcome.clone().unwrap_or_default(),
                file.name.clone(),
                format!("{}{cut}", format::bytes(file.bytes)),
            ]);
        }
    }
    table
}
