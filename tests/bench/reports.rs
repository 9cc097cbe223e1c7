//! Measures time and memory of the exports of a large run: `bench-reports [SAMPLES]`, default 12,000.
//!
//! A local model server answers items from a local file. `bench run` makes a run of ten samples and a large one, and then
//! `bench export` writes each format of both, each in a process of its own. Prints time and peak resident memory of each
//! command, those of the report as PDF with a ratio to their aims. Uses loopback only and ends by itself.
//! `cargo run --release -p bench-tests --bin bench-reports`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use bench_tests::items::{run_of_items, ten_option_items};
use bench_tests::model_server::{ModelServer, always};
use bench_tests::process::{ResourceUsage, run_to_end};
use serde_json::Value;

const SAMPLES_DEFAULT: usize = 12_000;
/// Samples of the small run, whose exports cost little more than the start of the command.
const FEW_SAMPLES: usize = 10;
const FORMATS: [&str; 5] = ["pdf", "md", "csv", "jsonl", "zip"];
/// Maximum time and memory of the report of 12,000 samples, with the start of the command.
const AIM_SECONDS: f64 = 2.0;
const AIM_MIB: f64 = 100.0;
const ANSWER: &str = "Let us see. The number after it is at the second place of the list. The answer is (B).";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let samples = std::env::args().nth(1).map_or(Ok(SAMPLES_DEFAULT), |text| text.parse())?;
    let bench = std::env::current_exe()?.with_file_name("bench");
    ensure!(
        bench.exists(),
        "`{}` does not exist: build bench-cli with the same profile first",
        bench.display()
    );
    let dir = tempfile::tempdir()?;
    let server = ModelServer::start(Duration::ZERO, always(ANSWER)).await?;
    println!("{:>8} {:<6} {:>8} {:>10} {:>10}", "samples", "format", "seconds", "peak MiB", "KiB");
    for samples in [FEW_SAMPLES, samples] {
        let run = make_run(&bench, dir.path(), &server.base_url(), samples)?;
        for format in FORMATS {
            let file = dir.path().join(format!("{samples}.{format}"));
            let used = export(&bench, dir.path(), &run, format, &file).await?;
            let kib = fs::metadata(&file)?.len().div_ceil(1_024);
            let ratio = match format {
                "pdf" => format!(
                    "   {:.2} of the {AIM_SECONDS} s and {:.2} of the {AIM_MIB} MiB aimed at",
                    used.seconds / AIM_SECONDS,
                    used.peak_mib / AIM_MIB
                ),
                _ => String::new(),
            };
            println!(
                "{samples:>8} {format:<6} {:>8.2} {:>10.0} {kib:>10}{ratio}",
                used.seconds, used.peak_mib
            );
        }
    }
    println!("\neach row is a whole command, with its start and the embedded services.");
    Ok(())
}

/// Makes a run of this number of samples and returns its id.
fn make_run(bench: &Path, dir: &Path, base_url: &str, samples: usize) -> anyhow::Result<String> {
    let dataset = dir.join(format!("items-{samples}.jsonl"));
    fs::write(&dataset, ten_option_items(samples, 4))?;
    let output = run_of_items(bench, base_url, &dataset, dir)
        .args(["--concurrency", "64", "--durability", "normal"])
        .output()?;
    let result: Value = serde_json::from_slice(&output.stdout).context("the run printed no JSON")?;
    let run = result.get(0).unwrap_or(&result);
    ensure!(run["status"] == "succeeded", "the run did not succeed: {run}");
    Ok(run["id"].as_str().context("the run has no id")?.to_owned())
}

async fn export(
    bench: &Path,
    dir: &Path,
    run: &str,
    format: &str,
    file: &Path,
) -> anyhow::Result<ResourceUsage> {
    let mut command = Command::new(bench);
    command
        .args(["export", run, "--format", format, "--out"])
        .arg(file)
        .arg("--data-dir")
        .arg(dir.join("data"))
        .current_dir(dir)
        .stdout(Stdio::null());
    run_to_end(&mut command, || ()).await.with_context(|| format!("exporting {format}"))
}
