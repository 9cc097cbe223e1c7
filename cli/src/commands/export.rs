//! `bench export`.

use std::path::{Path, PathBuf};

use bench_domain::RunId;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::client::ServerArgs;
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench export RUN                     a signed archive in the current folder
  bench export RUN --format csv --out results.csv
  bench export RUN --server https://bench.example --out results/";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Run to export; `bench runs` lists them
    #[arg(value_parser = super::parse_run)]
    run: RunId,
    /// Format of the file
    #[arg(long, value_enum, default_value_t = Format::Zip)]
    format: Format,
    /// File to write, or an existing folder for it [default: the current folder]
    #[arg(long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
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
}

pub(crate) async fn run(args: ExportArgs) -> anyhow::Result<ExitStatus> {
    let out = args.out.unwrap_or_else(|| PathBuf::from("."));
    check_out(&out)?;
    let format = match args.format {
        Format::Zip => "zip",
        Format::Csv => "csv",
    };
    let api = super::Api::open(&args.server, &args.data).await?;
    let written = api.client.download(&format!("/api/runs/{}/export?format={format}", args.run), &out).await;
    api.close().await;
    let written = written?;
    let shown = written.strip_prefix(".").unwrap_or(&written);
    print_path(shown, args.json)?;
    Ok(ExitStatus::Success)
}

/// Rejects a missing folder. Otherwise a misspelled folder would become a file of that name, or a new folder.
fn check_out(out: &Path) -> anyhow::Result<()> {
    if out.is_dir() {
        return Ok(());
    }
    super::check_folder_of("--out", out)
}

fn print_path(path: &Path, json: bool) -> anyhow::Result<()> {
    if json { output::json(&json!({ "file": path })) } else { output::print(&path.display().to_string()) }
}
