//! Measures time and memory of the exports of a large run: `bench-reports [SAMPLES]`, default 12,000.
//!
//! A local model server answers items from a local file. `bench run` makes a run of ten samples and a large one, and then
//! `bench export` writes each format of both, each in a process of its own. Prints time and peak resident memory of each
//! command, those of the report as PDF with a ratio to their aims. Uses loopback only and ends by itself.
//! `cargo run --release -p bench-tests --bin bench-reports`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bench_tests::items::ten_option_items;
use bench_tests::model_server::{ModelServer, always};
use serde_json::Value;

const SAMPLES_DEFAULT: usize = 12_000;
/// Samples of the small run, whose exports cost little more than the start of the command.
const FEW_SAMPLES: usize = 10;
const FORMATS: [&str; 5] = ["pdf", "md", "csv", "jsonl", "zip"];
/// Sampling interval of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time limit of a command.
const COMMAND_MAX: Duration = Duration::from_secs(900);
/// Maximum time and memory of the report of 12,000 samples, with the start of the command.
const AIM_SECONDS: f64 = 2.0;
const AIM_MIB: f64 = 100.0;
const ANSWER: &str = "Let us see. The number after it is at the second place of the list. The answer is (B).";

/// Resources used by a command.
struct ResourceUsage {
    seconds: f64,
    peak_mib: f64,
}

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
    let output = Command::new(bench)
        .args(["run", "--json", "--model", "openai-compatible/load", "--benchmark", "mmlu_pro"])
        .args(["--base-url", base_url, "--concurrency", "64", "--durability", "normal"])
        .arg("--dataset")
        .arg(format!("mmlu_pro={}", dataset.display()))
        .arg("--data-dir")
        .arg(dir.join("data"))
        .arg("--out")
        .arg(dir.join(format!("out-{samples}")))
        .current_dir(dir)
        .stderr(Stdio::null())
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
    let command = Command::new(bench)
        .args(["export", run, "--format", format, "--out"])
        .arg(file)
        .arg("--data-dir")
        .arg(dir.join("data"))
        .current_dir(dir)
        .stdout(Stdio::null())
        .spawn()?;
    sample_until_exit(command).await.with_context(|| format!("exporting {format}"))
}

/// Samples a process until its end.
async fn sample_until_exit(mut child: Child) -> anyhow::Result<ResourceUsage> {
    let started = Instant::now();
    let mut peak_mib: f64 = 0.0;
    loop {
        peak_mib = peak_mib.max(peak(child.id()).unwrap_or_default());
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the command ended with {status}");
            return Ok(ResourceUsage { seconds: started.elapsed().as_secs_f64(), peak_mib });
        }
        if started.elapsed() > COMMAND_MAX {
            child.kill()?;
            bail!("the command took longer than {} s", COMMAND_MAX.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the peak resident memory of a process in MiB.
fn peak(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib / 1_024.0)
}
