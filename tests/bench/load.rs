//! Measures speed and memory of the whole embedded system, compared with a bare client that sends the same requests.
//!
//! A local model server without latency answers items in MMLU-Pro's form from a local file; `bench run` processes
//! them as a user would run it. Prints items per second, CPU time per item and peak resident memory. Uses loopback
//! only and ends by itself. `cargo run --release -p bench-tests --bin bench-load`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bench_tests::items::mmlu_pro_like;
use bench_tests::model_server::{ModelServer, always};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// Kernel clock ticks per second, the unit of CPU time in /proc on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Sampling interval of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time limit of a scenario.
const SCENARIO_MAX: Duration = Duration::from_secs(300);

struct Scenario {
    name: &'static str,
    items: usize,
    concurrency: usize,
    durability: &'static str,
    latency: Duration,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario { name: "normal", items: 2_000, concurrency: 64, durability: "normal", latency: Duration::ZERO },
    Scenario { name: "full", items: 2_000, concurrency: 64, durability: "full", latency: Duration::ZERO },
    Scenario { name: "long", items: 12_000, concurrency: 64, durability: "normal", latency: Duration::ZERO },
    Scenario {
        name: "750 at once",
        items: 3_000,
        concurrency: 750,
        durability: "normal",
        latency: Duration::from_millis(100),
    },
];

/// Resources used by a process until its end.
#[derive(Default)]
struct ResourceUsage {
    cpu_ms: f64,
    peak_mib: f64,
    wall: Duration,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [bare, url, requests, concurrency] = args.as_slice() {
        ensure!(bare == "--bare", "usage: bench-load [SCENARIO]");
        return bare_client(url, requests.parse()?, concurrency.parse()?).await;
    }
    let bench = std::env::current_exe()?.with_file_name("bench");
    ensure!(
        bench.exists(),
        "`{}` does not exist: build bench-cli with the same profile first",
        bench.display()
    );
    println!(
        "{:<12} {:>7} {:>6} {:>10} {:>9} {:>9} {:>10} {:>10} {:>8}",
        "scenario", "items", "conc", "durability", "items/s", "bare/s", "CPU ms/it", "bare CPU", "peak MiB"
    );
    for scenario in &SCENARIOS {
        if args.first().is_none_or(|only| only == scenario.name) {
            measure(scenario, &bench).await?;
        }
    }
    println!(
        "\nratio to the bare client: items/s divided by bare/s; CPU is of the whole command, export included."
    );
    Ok(())
}

async fn measure(scenario: &Scenario, bench: &Path) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let dataset = dir.path().join("items.jsonl");
    fs::write(&dataset, mmlu_pro_like(scenario.items))?;
    let server = ModelServer::start(scenario.latency, always("Let us see. The answer is (B).")).await?;

    let bare = Command::new(std::env::current_exe()?)
        .args(["--bare", &server.base_url(), &scenario.items.to_string(), &scenario.concurrency.to_string()])
        .spawn()?;
    let bare = sample_until_exit(bare).await?;

    let output = dir.path().join("result.json");
    let run = Command::new(bench)
        .args(["run", "--json", "--model", "openai-compatible/load", "--benchmark", "mmlu_pro"])
        .args(["--base-url", &server.base_url()])
        .args(["--concurrency", &scenario.concurrency.to_string(), "--durability", scenario.durability])
        .arg("--dataset")
        .arg(format!("mmlu_pro={}", dataset.display()))
        .arg("--data-dir")
        .arg(dir.path().join("data"))
        .arg("--out")
        .arg(dir.path().join("out"))
        .current_dir(dir.path())
        .stdout(fs::File::create(&output)?)
        .stderr(Stdio::null())
        .spawn()?;
    let used = sample_until_exit(run).await?;
    let seconds = run_seconds(&output)?;
    let count = scenario.items as f64;
    println!(
        "{:<12} {:>7} {:>6} {:>10} {:>9.0} {:>9.0} {:>10.3} {:>10.3} {:>8.0}   ratio {:.2}",
        scenario.name,
        scenario.items,
        scenario.concurrency,
        scenario.durability,
        count / seconds,
        count / bare.wall.as_secs_f64(),
        used.cpu_ms / count,
        bare.cpu_ms / count,
        used.peak_mib,
        (count / seconds) / (count / bare.wall.as_secs_f64()),
    );
    Ok(())
}

/// Returns the seconds from the run's start to its end, without the start of the program and the export.
fn run_seconds(output: &PathBuf) -> anyhow::Result<f64> {
    let text = fs::read_to_string(output)?;
    let result: Value = serde_json::from_str(&text).context("the run printed no JSON")?;
    let run = result.get(0).unwrap_or(&result);
    ensure!(run["status"] == "succeeded", "the run did not succeed: {}", run["error"]);
    let time = |name: &str| -> anyhow::Result<i64> {
        let text = run[name].as_str().with_context(|| format!("the run has no {name}"))?;
        Ok(text.parse::<bench_domain::Timestamp>()?.as_micros())
    };
    Ok((time("completed_at")? - time("started_at")?) as f64 / 1e6)
}

/// Samples a process until its end. The last sample counts, so a few milliseconds are missing.
async fn sample_until_exit(mut child: Child) -> anyhow::Result<ResourceUsage> {
    let started = Instant::now();
    let mut used = ResourceUsage::default();
    loop {
        if let Some(now) = sample_usage(child.id()) {
            used.cpu_ms = used.cpu_ms.max(now.cpu_ms);
            used.peak_mib = used.peak_mib.max(now.peak_mib);
        }
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the command ended with {status}");
            used.wall = started.elapsed();
            return Ok(used);
        }
        if started.elapsed() > SCENARIO_MAX {
            child.kill()?;
            bail!("the command took longer than {} s", SCENARIO_MAX.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn sample_usage(process: u32) -> Option<ResourceUsage> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak_kib: f64 = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
    let cpu_ms = ticks / TICKS_PER_SECOND * 1_000.0;
    Some(ResourceUsage { cpu_ms, peak_mib: peak_kib / 1_024.0, wall: Duration::ZERO })
}

/// Sends the same requests with a minimal client.
async fn bare_client(url: &str, requests: usize, concurrency: usize) -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().build()?;
    let url = format!("{url}/chat/completions");
    let requests = stream::iter(0..requests).map(|item| {
        let body = json!({
            "model": "load", "stream": true,
            "messages": [{ "role": "user", "content": format!("{} [item {item}]", "word ".repeat(600)) }],
        });
        let request = client.post(&url).json(&body).send();
        async move { anyhow::Ok(request.await?.bytes().await?.len()) }
    });
    let mut answers = requests.buffer_unordered(concurrency);
    while let Some(answer) = answers.next().await {
        ensure!(answer? > 0, "an answer was empty");
    }
    Ok(())
}
