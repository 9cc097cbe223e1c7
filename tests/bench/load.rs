//! Measures what a run costs on one machine, from the order to the verified archive, and compares it with a bare client
//! that sends the same requests.
//!
//! A local model server streams answers about ten-option items from a local file; `bench run` processes them as a user
//! would run it, and `bench verify` checks its archive. Prints the processor time of both commands per item, peak
//! resident memory, and samples in flight, each beside its aim. Uses loopback only and ends by itself.
//! `cargo run --release -p bench-tests --bin bench-load`; a name runs only that scenario.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bench_tests::items::ten_option_items;
use bench_tests::model_server::{ModelServer, Reply};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// Kernel clock ticks per second, the unit of processor time in /proc on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Sampling interval of a process and of the server's requests.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time limit of a command.
const COMMAND_MAX: Duration = Duration::from_secs(300);
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

/// Resources that a command and its children used until its end. Of a scenario, for each item.
struct ResourceUsage {
    cpu_ms: f64,
    peak_mib: f64,
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
    let mut normal: Option<ResourceUsage> = None;
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

async fn measure(scenario: &Scenario, bench: &Path) -> anyhow::Result<ResourceUsage> {
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

    let server = ModelServer::start(scenario.latency, Arc::new(|_| streamed())).await?;
    let (output, data) = (dir.path().join("result.json"), dir.path().join("data"));
    let out = dir.path().join("out");
    let mut run = Command::new(bench);
    run.args(["run", "--json", "--model", "openai-compatible/load", "--benchmark", "mmlu_pro"])
        .args(["--base-url", &server.base_url()])
        .args(["--concurrency", &concurrency, "--durability", scenario.durability])
        .arg("--dataset")
        .arg(format!("mmlu_pro={}", dataset.display()))
        .arg("--data-dir")
        .arg(&data)
        .arg("--out")
        .arg(&out)
        .current_dir(dir.path())
        .stdout(fs::File::create(&output)?)
        .stderr(Stdio::null());
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
    let mut archives =
        fs::read_dir(&out)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    archives.retain(|path| path.extension().is_some_and(|extension| extension == "zip"));
    ensure!(!archives.is_empty(), "the run wrote no archive");
    let mut verify = Command::new(bench);
    verify.arg("verify").arg("--data-dir").arg(&data).args(&archives).stdout(Stdio::null());
    let verified = run_to_end(&mut verify, || ()).await?;
    let count = scenario.items as f64;
    let cpu_ms = (used.cpu_ms + verified.cpu_ms) / count;
    println!(
        "{:<11} {:>6} {:>5} KB {:>5} {:>10} {:>6.2} {:>6.2} {:>8.3} {:>5.0} {:>7.2} {:>13}",
        scenario.name,
        scenario.items,
        prompt_bytes / 1_000,
        scenario.concurrency,
        scenario.durability,
        cpu_ms,
        cpu_ms / CPU_MS_AIM,
        bare.cpu_ms / count,
        used.peak_mib,
        seconds,
        match scenario.latency.is_zero() {
            true => "-".to_owned(),
            false => format!("{} in {:.2} s", flying.0, flying.1.as_secs_f64()),
        },
    );
    Ok(ResourceUsage { cpu_ms, peak_mib: used.peak_mib })
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

/// Runs a command to its end. Calls `watch` at short intervals meanwhile.
async fn run_to_end(command: &mut Command, mut watch: impl FnMut()) -> anyhow::Result<ResourceUsage> {
    let before = children_cpu_ms()?;
    let started = Instant::now();
    let mut child = command.spawn()?;
    let mut peak_mib = 0.0_f64;
    loop {
        peak_mib = peak_mib.max(peak_of(child.id()).unwrap_or_default());
        watch();
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "{:?} ended with {status}", command.get_program());
            let cpu_ms = children_cpu_ms()? - before;
            return Ok(ResourceUsage { cpu_ms, peak_mib });
        }
        if started.elapsed() > COMMAND_MAX {
            child.kill()?;
            bail!("the command took longer than {} s", COMMAND_MAX.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the processor time of all ended children of this process, and of theirs.
fn children_cpu_ms() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain anything; the children's user and system time are the 14th and 15th field after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |at: usize| -> anyhow::Result<f64> { Ok(fields.get(at).context("a field is missing")?.parse()?) };
    Ok((ticks(13)? + ticks(14)?) / TICKS_PER_SECOND * 1_000.0)
}

/// Returns the peak resident memory of a process in MiB.
fn peak_of(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak_kib: f64 = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(peak_kib / 1_024.0)
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
