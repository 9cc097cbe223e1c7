//! `kill -9` at random moments of a run, repeated until the run ends.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use bench_tests::model_server::{ModelServer, always};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir};

const ITEMS: usize = 500;
const CONCURRENCY: usize = 16;
/// Minimum number of kills that a test run has to survive.
const KILLS_MIN: usize = 20;
/// Maximum number of processes that the test starts.
const LIVES_MAX: usize = 400;
/// Extra time for the next processes after one was killed before it received an answer. A busy machine starts processes
/// slowly.
const LONGER: Duration = Duration::from_millis(100);
/// Slow enough that every kill interrupts calls in progress.
const LATENCY: Duration = Duration::from_millis(60);

/// MMLU-Pro rows with a marker that identifies items for the model server.
fn items() -> String {
    let mut rows = String::new();
    for number in 0..ITEMS + 1 {
        let cot = if number == 0 { "A: Let's think step by step. The answer is (B)." } else { "" };
        let row = json!({
            "question": format!("[item {number}] Which is the second letter?"), "options": ["A", "B", "C"],
            "answer": "B", "answer_index": 1, "category": "math", "cot_content": cot, "question_id": number,
            "src": "own",
        });
        let _ = writeln!(rows, "{row}");
    }
    rows
}

#[test]
fn a_run_survives_twenty_kills_at_any_moment() {
    let seed = std::env::var("BENCH_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("seed {seed} (repeat with BENCH_TEST_SEED={seed})");
    let mut random = StdRng::seed_from_u64(seed);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start(LATENCY, always("The answer is (B)."))).unwrap();
    let dir = TestDir::new();
    dir.write("items.jsonl", items());

    let order =
        ["--model", "openai-compatible/m", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=items.jsonl"];
    let base_url = ["--base-url", &server.base_url()].map(str::to_owned);
    let concurrency = CONCURRENCY.to_string();
    let (mut run, mut kills, mut in_flight_sum, mut finished) = (None::<String>, 0, 0, false);
    let mut phases: HashMap<&str, usize> = HashMap::new();
    let (mut answered_before, mut startup) = (0, Duration::ZERO);
    for life in 0.. {
        assert!(life < LIVES_MAX, "the run does not get through");
        let mut command =
            dir.command(&["run", "--json", "--durability", "normal", "--concurrency", &concurrency]);
        match &run {
            Some(run) => command.args(["--resume", run]),
            None => command.args(order).args(&base_url),
        };
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Processes are killed early until there were enough kills. The last one may end by itself.
        let mut left = match kills {
            kills if kills < KILLS_MIN => startup + Duration::from_millis(random.random_range(20..=420)),
            _ => Duration::from_secs(120),
        };
        let step = Duration::from_millis(5);
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if left.is_zero() {
                break None;
            }
            std::thread::sleep(step.min(left));
            left = left.saturating_sub(step);
        };
        if ended.is_some() {
            let output = CommandOutput::new(&child.wait_with_output().unwrap());
            assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
            finished = true;
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // A kill counts only if the process had ordered its run: otherwise there was nothing to survive.
        kills += usize::from(run.is_some());
        let asked: u64 = server.question_counts().values().sum();
        let answered: u64 = server.answer_counts().values().sum();
        // Calls whose answers were not received completely, or may not have reached the disk.
        in_flight_sum += CONCURRENCY as u64;
        let phase = match (asked, answered) {
            (0, _) => "planning",
            _ if answered as usize >= ITEMS => "finishing",
            _ if answered == answered_before => "starting",
            _ => "answering",
        };
        // Progress shortens the time by more than that, since work must be left for the next kill.
        startup = match answered == answered_before {
            true => startup + LONGER,
            false => startup.saturating_sub(2 * LONGER),
        };
        answered_before = answered;
        *phases.entry(phase).or_default() += 1;
        if run.is_none() {
            let runs = dir.json(&["runs", "--json"]);
            run = runs[0]["id"].as_str().map(str::to_owned);
        }
    }
    assert!(finished && kills >= KILLS_MIN);

    let asked = server.question_counts();
    let again: u64 = asked.values().map(|times| times - 1).sum();
    println!(
        "{kills} kills in phases {phases:?}; {again} of {ITEMS} answers asked again, at most {in_flight_sum} in flight"
    );
    assert_eq!(asked.len(), ITEMS, "every item was asked");
    assert!(
        again <= in_flight_sum,
        "{again} answers were asked again, but only {in_flight_sum} could be in flight"
    );

    let run = run.unwrap();
    let shown = dir.json(&["runs", &run, "--json"]);
    assert_eq!(
        (&shown["status"], &shown["score"], &shown["coverage"]),
        (&json!("succeeded"), &json!(1.0), &json!(1.0))
    );
    assert_eq!(shown["results"][0]["outcomes"]["correct"], ITEMS);
    // The archive contains every item once, with its answer, and verifies.
    assert_eq!(dir.bench(&["export", &run, "--format", "csv", "--out", "table.csv"]).code, 0);
    assert_eq!(dir.bench(&["export", &run, "--format", "zip", "--out", "results.zip"]).code, 0);
    assert_eq!(dir.bench(&["verify", "results.zip"]).code, 0);
    let table = std::fs::read_to_string(dir.path("table.csv")).unwrap();
    let mut ids: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix(&*run)).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), ITEMS, "every sample stands in the table once");
    let _: Value = shown;
}
