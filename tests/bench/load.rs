//! Measures what a run costs on one machine, from the order to the verified archive, and compares it with a bare client
//! that sends the same requests.
//!
//! A local model server streams answers about ten-option items from a local file; `bench run` processes them as a user
//! would run it, and `bench verify` checks its archive. Prints the processor time of both commands per item, peak
//! resident memory, and requests in flight, each beside its aim. Uses loopback only and ends by itself.
//! `cargo run --release -p bench-tests --bin bench-load`; a name runs only that scenario.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_tests::items::{run_of_items, ten_option_items};
use bench_tests::model_server::{ModelServer, Reply};
use bench_tests::process::run_to_end;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// Number of passes of a scenario that takes a second or two: the one with the median processor time is printed.
const PASSES: usize = 3;
/// Events of a streamed answer.
const ANSWER_EVENTS: usize = 50;
/// Aims of a sample: processor time, growth with the size of a run or of its prompts, growth of memory with the size of a run.
const CPU_MS_AIM: f64 = 1.0;
const GROWTH_AIM: f64 = 1.1;
const MEMORY_AIM: f64 = 1.2;

struct Scenario {
    name: &'static str,
    items: usize,
    /// Repetitions of a sentence in each item and each of its five worked examples.
    sentences: usize,
    concurrency: usize,
    durability: &'static str,
    latency: Duration,
}

const NORMAL: Scenario = Scenario {
    name: "normal",
    items: 2_000,
    sentences: 4,
    concurrency: 64,
    durability: "normal",
    latency: Duration::ZERO,
};
const SCENARIOS: [Scenario; 7] = [
    NORMAL,
    Scenario { name: "full", durability: "full", ..NORMAL },
    Scenario { name: "large", items: 12_032, ..NORMAL },
    Scenario { name: "prompts", sentences: 20, ..NORMAL },
    Scenario { name: "both", items: 12_032, sentences: 20, ..NORMAL },
    Scenario { name: "750 x 0.1s", concurrency: 750, latency: Duration::from_millis(100), ..NORMAL },
    Scenario { name: "750 x 5s", concurrency: 750, latency: Duration::from_secs(5), ..NORMAL },
];

/// Resources of a pass of a scenario.
struct Measured {
    /// Of each item.
    cpu_ms: f64,
    peak_mib: f64,
    run_seconds: f64,
    /// Maximum number of requests in flight, and the time from the first request to it.
    flying: (u64, Duration),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [bare, url, requests, concurrency, bytes] = args.as_slice() {
        ensure!(bare == "--bare", "usage: bench-load [SCENARIO]");
        return bare_client(url, requests.parse()?, concurrency.parse()?, bytes.parse()?).await;
    }
    let bench = std::env::current_exe()?.with_file_name("bench");
    ensure!(
        bench.exists(),
        "`{}` does not exist: build bench-cli with the same profile first",
        bench.display()
    );
    println!(
        "CPU is that of `bench run` and `bench verify` for each item, in ms, with a ratio to the aim of {CPU_MS_AIM}; peak is the\n\
         memory of `bench run` in MiB; \"flying\" is the maximum of requests in flight, and the time from the first request to it.\n"
    );
    println!(
        "{:<11} {:>6} {:>7} {:>5} {:>10} {:>6} {:>6} {:>8} {:>5} {:>7} {:>13}",
        "scenario",
        "items",
        "prompt",
        "conc",
        "durability",
        "CPU",
        "ratio",
        "bare CPU",
        "peak",
        "run s",
        "flying"
    );
    let mut normal: Option<Measured> = None;
    for scenario in &SCENARIOS {
        if args.first().is_some_and(|only| only != scenario.name) {
            continue;
        }
        let measured = measure(scenario, &bench).await?;
        if let Some(normal) = &normal
            && scenario.concurrency == NORMAL.concurrency
            && scenario.durability == NORMAL.durability
        {
            println!(
                "{:<11} CPU {:.2} times that of `{}` (aim {GROWTH_AIM}), memory {:.2} times (aim {MEMORY_AIM})",
                "",
                measured.cpu_ms / normal.cpu_ms,
                NORMAL.name,
                measured.peak_mib / normal.peak_mib,
            );
        }
        if scenario.name == NORMAL.name {
            normal = Some(measured);
        }
    }
    Ok(())
}

async fn measure(scenario: &Scenario, bench: &Path) -> anyhow::Result<Measured> {
    let dir = tempfile::tempdir()?;
    let dataset = dir.path().join("items.jsonl");
    fs::write(&dataset, ten_option_items(scenario.items, scenario.sentences))?;
    // The item, five worked examples, and the instruction.
    let prompt_bytes = fs::metadata(&dataset)?.len() as usize / (scenario.items + 70) * 6;
    let server = ModelServer::start(scenario.latency, Arc::new(|_| streamed())).await?;
    let (items, concurrency) = (scenario.items.to_string(), scenario.concurrency.to_string());

    let mut bare = Command::new(std::env::current_exe()?);
    bare.args(["--bare", &server.base_url(), &items, &concurrency, &prompt_bytes.to_string()]);
    let bare = run_to_end(&mut bare, || ()).await?;
    drop(server);

    let count = if scenario.items == NORMAL.items && scenario.latency.is_zero() { PASSES } else { 1 };
    let mut passes = Vec::with_capacity(count);
    for _ in 0..count {
        passes.push(pass(scenario, bench, &dataset).await?);
    }
    passes.sort_by(|a, b| a.cpu_ms.total_cmp(&b.cpu_ms));
    let measured = passes.swap_remove(count / 2);
    println!(
        "{:<11} {:>6} {:>5} KB {:>5} {:>10} {:>6.2} {:>6.2} {:>8.3} {:>5.0} {:>7.2} {:>13}",
        scenario.name,
        scenario.items,
        prompt_bytes / 1_000,
        scenario.concurrency,
        scenario.durability,
        measured.cpu_ms,
        measured.cpu_ms / CPU_MS_AIM,
        bare.cpu_ms / scenario.items as f64,
        measured.peak_mib,
        measured.run_seconds,
        match scenario.latency.is_zero() {
            true => "-".to_owned(),
            false => format!("{} in {:.2} s", measured.flying.0, measured.flying.1.as_secs_f64()),
        },
    );
    Ok(measured)
}

/// Runs the scenario once, and verifies its archive.
async fn pass(scenario: &Scenario, bench: &Path, dataset: &Path) -> anyhow::Result<Measured> {
    let dir = tempfile::tempdir()?;
    let server = ModelServer::start(scenario.latency, Arc::new(|_| streamed())).await?;
    let output = dir.path().join("result.json");
    let mut run = run_of_items(bench, &server.base_url(), dataset, dir.path());
    run.args(["--concurrency", &scenario.concurrency.to_string(), "--durability", scenario.durability])
        .stdout(fs::File::create(&output)?);
    let (mut began, mut flying) = (None, (0, Duration::ZERO));
    let used = run_to_end(&mut run, || {
        let now = server.in_flight();
        if now > 0 {
            let began: Instant = *began.get_or_insert_with(Instant::now);
            if now > flying.0 {
                flying = (now, began.elapsed());
            }
        }
    })
    .await?;
    let seconds = run_seconds(&output)?;
    let mut archives = fs::read_dir(dir.path().join("out"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    archives.retain(|path| path.extension().is_some_and(|extension| extension == "zip"));
    ensure!(!archives.is_empty(), "the run wrote no archive");
    let mut verify = Command::new(bench);
    verify.args(["verify", "--data-dir"]).arg(dir.path().join("data")).args(&archives).stdout(Stdio::null());
    let verified = run_to_end(&mut verify, || ()).await?;
    Ok(Measured {
        cpu_ms: (used.cpu_ms + verified.cpu_ms) / scenario.items as f64,
        peak_mib: used.peak_mib,
        run_seconds: seconds,
        flying,
    })
}

/// Builds an answer in [`ANSWER_EVENTS`] events.
fn streamed() -> Reply {
    let mut words: Vec<&[u8]> = vec![b" and then"; ANSWER_EVENTS];
    words.push(b". The answer is (B).");
    Reply::deltas(&words, r#"{"prompt_tokens":800,"completion_tokens":60,"total_tokens":860}"#)
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

/// Sends as many requests with prompts as long, with a minimal client.
async fn bare_client(url: &str, requests: usize, concurrency: usize, bytes: usize) -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().build()?;
    let url = format!("{url}/chat/completions");
    let requests = stream::iter(0..requests).map(|item| {
        let body = json!({
            "model": "load", "stream": true,
            "messages": [{ "role": "user", "content": format!("{} [item {item}]", "word ".repeat(bytes / 5)) }],
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
