//! `bench export`.

mod harbor;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use bench_domain::BenchmarkName;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::client::ServerArgs;
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::output;
use crate::run_ref::RunRef;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench export RUN                     a signed archive in the current folder
  bench export RUN --format csv --out results.csv
  bench export latest --format jsonl --out - | jq 'select(.is_correct == false)'
  bench export RUN --format md --benchmark mmlu_pro
                                       settings and every sample, for people
  bench export RUN --format pdf        a report without prompts and answers
  bench export RUN --format harbor --out jobs/
                                       episodes, for `harbor view jobs`
  bench export RUN --server https://bench.example --out results/";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Run to export: its id, the first digits of its id, or `latest`; `bench runs` lists them
    run: RunRef,
    /// Format of the file
    #[arg(long, value_enum, default_value_t = Format::Zip)]
    format: Format,
    /// Benchmark of the run, for `--format md` [default: all of the run]
    #[arg(long, value_name = "NAME")]
    benchmark: Option<BenchmarkName>,
    /// File to write, an existing folder for it, or `-` for standard output [default: the current folder]
    #[arg(long, value_name = "FILE|DIR|-")]
    out: Option<PathBuf>,
    /// Replace the file that --out names, or the job's folder in it, if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Signed archive that others can verify
    Zip,
    /// Table with one row per sample
    Csv,
    /// One JSON object per line and sample, with its whole texts
    Jsonl,
    /// Protocol in Markdown: settings, results, and every sample with its texts
    Md,
    /// Report with a chart of the scores, settings and costs, without prompts and answers
    Pdf,
    /// Folder of a Harbor job with the episodes of terminal tasks, for Harbor's viewer
    Harbor,
}

impl Format {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Md => "md",
            Self::Pdf => "pdf",
            Self::Harbor => "harbor",
        }
    }
}

pub(crate) async fn run(args: ExportArgs) -> anyhow::Result<ExitStatus> {
    let to_stdout = args.out.as_deref() == Some(Path::new("-"));
    let out = args.out.unwrap_or_else(|| PathBuf::from("."));
    if args.benchmark.is_some() && !matches!(args.format, Format::Md) {
        return Err(Problem::usage(
            "--benchmark is for --format md: other files have all benchmarks of the run",
        )
        .hint("leave --benchmark out, or give --format md")
        .into());
    }
    if let Format::Harbor = args.format {
        check_folder(&out)?;
    } else if to_stdout {
        check_stdout(args.format, args.json)?;
    } else {
        check_out(&out)?;
        super::check_not_there("--out", &out, args.force)?;
    }
    let api = super::Api::open(&args.server, &args.data).await?;
    let written = async {
        let run = args.run.resolve(&api.client).await?;
        if let Format::Harbor = args.format {
            return harbor::write(&api.client, run, &out, args.force).await.map(Some);
        }
        let mut path = format!("/api/runs/{run}/export?format={}", args.format.as_str());
        if let Some(benchmark) = &args.benchmark {
            path.push_str("&benchmark=");
            path.push_str(benchmark.as_str());
        }
        match to_stdout {
            true => api.client.print_file(&path).await.map(|()| None),
            false => api.client.download(&path, &out).await.map(Some),
        }
    };
    let written = written.await;
    api.close().await;
    if let Some(written) = written? {
        print_path(written.strip_prefix(".").unwrap_or(&written), args.json)?;
    }
    Ok(ExitStatus::Success)
}

/// Rejects what can't be combined with the file on standard output.
fn check_stdout(format: Format, json: bool) -> anyhow::Result<()> {
    if json {
        return Err(Problem::usage("--json can't be given with --out -: standard output has the file alone")
            .hint("leave --json out")
            .into());
    }
    if let (Format::Zip | Format::Pdf, true) = (format, std::io::stdout().is_terminal()) {
        let (what, file) = match format {
            Format::Pdf => ("a PDF", "report.pdf"),
            _ => ("an archive", "results.zip"),
        };
        let option = if let Format::Pdf = format { " --format pdf" } else { "" };
        return Err(Problem::usage(format!("{what} is not text, so it is not written to a terminal"))
            .hint(format!("`bench export RUN{option} --out - > {file}`, or give --format csv, jsonl or md"))
            .into());
    }
    Ok(())
}

/// Rejects a path that neither is a folder nor can become one. The job's folder is made in it, and the last part of the path
/// if it is missing.
fn check_folder(out: &Path) -> anyhow::Result<()> {
    if out == Path::new("-") || out.exists() && !out.is_dir() {
        return Err(Problem::usage(format!("--out: `{}` is not a folder", out.display()))
            .hint("`--format harbor` makes the folder of a job in it")
            .into());
    }
    super::check_folder_of("--out", &out.components().collect::<PathBuf>())
}

/// Rejects a missing folder. Otherwise a misspelled folder would become a file of that name, or a new folder.
pub(super) fn check_out(out: &Path) -> anyhow::Result<()> {
    if out.is_dir() {
        return Ok(());
    }
    super::check_folder_of("--out", out)
}

/// Prints the path of a file that was written.
pub(super) fn print_path(path: &Path, json: bool) -> anyhow::Result<()> {
    if json { output::json(&json!({ "file": path })) } else { output::print(&path.display().to_string()) }
}
