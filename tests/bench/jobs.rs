//! Measures the cost of a turn that polls a running job: `bench-jobs [PROGRAMS]`, default 40.
//!
//! `bench run` runs the same stored programs twice, against a sandbox host in this process: once with programs that
//! end immediately, and once with programs that take twelve seconds each, which adds several turns for each. The cost
//! of a turn is the additional CPU time of the command, divided by the additional turns. It doesn't include the
//! programs' own time, since they are children of this process. Uses loopback only and ends by itself.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use bench_sandy::testing::{KEY, Options, SandyServer};
use bench_tests::process::{CpuOf, cpu_ms};
use serde_json::{Value, json};

const PROGRAMS_DEFAULT: usize = 40;
/// Sleep of each test of a long program, in seconds. Below the grader's limit of six.
const TEST_SECONDS: u32 = 3;
/// Number of tests of each program.
const TESTS: usize = 4;
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum cost of a turn, in milliseconds of CPU time.
const AIM_MS: f64 = 5.0;

/// Resources used by a run.
struct ResourceUsage {
    cpu_ms: f64,
    turns: u64,
    jobs: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let programs = std::env::args().nth(1).map_or(Ok(PROGRAMS_DEFAULT), |text| text.parse())?;
    let bench = std::env::current_exe()?.with_file_name("bench");
    ensure!(
        bench.exists(),
        "`{}` does not exist: build bench-cli with the same profile first",
        bench.display()
    );
    let short = measure(&bench, programs, 0).await?;
    let long = measure(&bench, programs, TEST_SECONDS).await?;
    ensure!(long.turns > short.turns, "the long programs brought no turn more");
    let more = (long.turns - short.turns) as f64;
    let turn_ms = (long.cpu_ms - short.cpu_ms) / more;
    println!("{:<14} {:>6} {:>6} {:>12}", "programs", "jobs", "turns", "CPU ms/job");
    for (name, took) in [("end at once", &short), ("take 12 s", &long)] {
        println!("{name:<14} {:>6} {:>6} {:>12.1}", took.jobs, took.turns, took.cpu_ms / took.jobs as f64);
    }
    println!(
        "\na turn that looks costs {turn_ms:.2} ms of CPU time ({:.2} of the {AIM_MS} ms aimed at), over {more} turns",
        turn_ms / AIM_MS
    );
    Ok(())
}

async fn measure(bench: &Path, programs: usize, seconds: u32) -> anyhow::Result<ResourceUsage> {
    let dir = tempfile::tempdir()?;
    let server = SandyServer::start(Options::default()).await?;
    let (dataset, replay) = (dir.path().join("items.jsonl"), dir.path().join("programs.jsonl"));
    let tests: Vec<Value> = (0..TESTS)
        .map(|test| json!({ "input": format!("{test}\n"), "output": format!("{test}\n"), "testtype": "stdin" }))
        .collect();
    let (mut rows, mut answers) = (String::new(), String::new());
    for number in 0..programs {
        let row = json!({
            "question_title": "Own", "question_content": format!("Print what you read, {number}."),
            "platform": "atcoder", "question_id": format!("own_{number}"), "contest_id": "own",
            "contest_date": "2024-08-01T00:00:00", "starter_code": "", "difficulty": "easy",
            "public_test_cases": json!(tests).to_string(), "private_test_cases": "[]", "metadata": "{}",
        });
        writeln!(rows, "{row}")?;
        let code = format!("import time\ntime.sleep({seconds})\nprint(input())");
        let answer =
            json!({ "item_id": format!("own_{number}"), "response": format!("```python\n{code}\n```") });
        writeln!(answers, "{answer}")?;
    }
    fs::write(&dataset, rows)?;
    fs::write(&replay, answers)?;
    let data = dir.path().join("data");
    let output = dir.path().join("run.json");
    let mut run = Command::new(bench)
        .args(["run", "--json", "--benchmark", "livecodebench", "--samples", "1"])
        .args(["--concurrency", &programs.to_string()])
        .arg("--model")
        .arg(format!("replay:{}", replay.display()))
        .arg("--dataset")
        .arg(format!("livecodebench={}", dataset.display()))
        .args([Path::new("--data-dir"), &data, Path::new("--out"), &dir.path().join("out")])
        .env("SANDY_BASE_URL", server.base_url())
        .env("SANDY_API_KEY", KEY)
        .env("HF_HUB_OFFLINE", "1")
        .current_dir(dir.path())
        .stdout(fs::File::create(&output)?)
        .stderr(Stdio::null())
        .spawn()?;
    let mut used_ms: f64 = 0.0;
    let status = loop {
        used_ms = used_ms.max(cpu_ms(&run.id().to_string(), CpuOf::Process).unwrap_or_default());
        if let Some(status) = run.try_wait()? {
            break status;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    ensure!(status.success(), "the run did not succeed: {status}");
    let runs: Value = serde_json::from_slice(&fs::read(&output)?)?;
    let id = runs.pointer("/0/id").and_then(Value::as_str).context("the run has no id")?.to_owned();
    let items = Command::new(bench)
        .args(["runs", &id, "--items", "--json", "--data-dir"])
        .arg(&data)
        .current_dir(dir.path())
        .output()?;
    let items: Vec<Value> = serde_json::from_slice(&items.stdout).context("the items cannot be read")?;
    let turns = items.iter().filter_map(|item| item.pointer("/item_metadata/sandbox_attempts")?.as_u64());
    Ok(ResourceUsage { cpu_ms: used_ms, turns: turns.sum(), jobs: items.len() as u64 })
}
