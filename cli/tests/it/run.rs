//! `bench run`: results, failures, kills, and Ctrl-C.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir, mmlu_pro_rows};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn files(run: &Value) -> (String, String) {
    let path = |name: &str| run["files"][name].as_str().unwrap().to_owned();
    (path("zip"), path("csv"))
}

#[test]
fn oracle_on_items_from_a_file_end_to_end() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(20));
    let args = [
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--out",
        "out",
    ];
    let output = dir.bench(&args);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    for part in ["oracle", "mmlu_pro", "100.0%", "20 correct", "items.jsonl (local file)", "(verified)"] {
        assert!(output.stdout.contains(part), "{part}\n{}", output.stdout);
    }
    let runs = dir.json(&["runs", "--json"]);
    let run = &runs[0];
    assert_eq!((run["status"].as_str(), run["model"].as_str()), (Some("succeeded"), Some("oracle")));
    assert_eq!(run["benchmarks"], json!(["mmlu_pro"]));
    assert_eq!((&run["score"], &run["coverage"], &run["demo"]), (&json!(1.0), &json!(1.0), &json!(false)));
    let id = run["id"].as_str().unwrap();
    let zips: Vec<_> = std::fs::read_dir(dir.path("out")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(zips.len(), 2, "{zips:?}");
    let zip = zips.iter().find(|path| path.extension().is_some_and(|e| e == "zip")).unwrap();
    let verdict = dir.json(&["verify", zip.to_str().unwrap(), "--json"]);
    assert_eq!((&verdict["valid"], &verdict["run_id"]), (&json!(true), &json!(id)));

    // Every command that shows a run shows the same one.
    let items = dir.json(&["runs", id, "--items", "--json"]);
    assert_eq!(items.as_array().unwrap().len(), 20);
    assert!(items.as_array().unwrap().iter().all(|item| item["outcome"] == "correct"));
    let events = dir.json(&["runs", id, "--events", "--json"]);
    assert_eq!(events[0]["event_type"], "run_created");
    assert_eq!(events.as_array().unwrap().last().unwrap()["event_type"], "run_completed");
    let detail = dir.bench(&["runs", id]);
    assert!(detail.code == 0 && detail.stdout.contains("100.0%"), "{}", detail.stdout);
    let comparison = dir.json(&["compare", id, id, "--json"]);
    assert_eq!(comparison["benchmarks"][0]["both_right"], 20);
    let shown = dir.bench(&["compare", id, id]);
    assert!(shown.code == 0 && shown.stdout.contains("+0.0 pp  1.000"), "{}", shown.stdout);
    let export = dir.bench(&["export", id, "--format", "csv", "--out", "table.csv"]);
    assert_eq!((export.code, export.stdout.as_str()), (0, "table.csv\n"), "{}", export.stderr);
    assert!(std::fs::read_to_string(dir.path("table.csv")).unwrap().lines().count() > 20);
    dir.bench(&["cancel", id]).assert_refused(1, "is over already: it succeeded");
    dir.bench(&["requeue", id, "--detach"]).assert_refused(1, "cannot be requeued");
    let models = dir.json(&["models", "--json"]);
    assert!(models.as_array().unwrap().iter().any(|model| model["slug"] == "oracle"), "{models}");
    let datasets = dir.json(&["datasets", "--json"]);
    assert_eq!((&datasets[0]["source"], &datasets[0]["items"]), (&json!("local"), &json!(20)));
}

#[test]
fn demo_data_is_marked_everywhere() {
    let dir = TestDir::new();
    let output = dir.bench(&["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(
        output.stdout.contains("DEMO DATA in mmlu_pro") && output.stdout.contains("mmlu_pro (DEMO)"),
        "{}",
        output.stdout
    );
    assert!(!output.stderr.contains("warning:"), "it was asked for: {}", output.stderr);
    let runs = dir.json(&["runs", "--json"]);
    assert_eq!((&runs[0]["demo"], &runs[0]["score"]), (&json!(true), &json!(1.0)));
    // Demo data that the user didn't ask for causes a warning with the reason.
    let output = dir.bench(&["run", "--model", "oracle", "--benchmark", "aime_2025", "--json"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("warning: aime_2025: demo data was used"), "{}", output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value[0]["demo"], true);
    let (zip, _) = files(&value[0]);
    assert_eq!(dir.bench(&["verify", &zip]).code, 0);
}

#[test]
fn a_subset_is_the_same_for_every_model_and_several_run_side_by_side() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(40));
    let replies: String = (1..=40)
        .map(|n| format!("{}\n", json!({ "item_id": n.to_string(), "response": if n % 2 == 0 { "The answer is (C)." } else { "Unsure." } })))
        .collect();
    dir.write("replies.jsonl", replies);
    let value = dir.json(&[
        "run",
        "--model",
        "oracle",
        "--model",
        "replay:replies.jsonl",
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--subset-count",
        "10",
        "--seed",
        "s",
        "--json",
        "--durability",
        "normal",
    ]);
    let runs = value.as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!((&runs[0]["model"], &runs[1]["model"]), (&json!("oracle"), &json!("replay:replies.jsonl")));
    let items = |run: &Value| {
        let items = dir.json(&["runs", run["id"].as_str().unwrap(), "--items", "--json"]);
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["source_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let chosen = items(&runs[0]);
    assert_eq!((chosen.len(), &chosen), (10, &items(&runs[1])));
    let right = chosen.iter().filter(|id| id.parse::<u32>().unwrap() % 2 == 0).count();
    let result = &runs[1]["results"][0];
    assert_eq!(result["outcomes"]["correct"], right);
    assert_eq!(result["outcomes"]["unparsed"], 10 - right);
    assert_eq!(runs[1]["score"], right as f64 / 10.0);
    // No result contains the path of the stored responses on this machine.
    let (zip, csv) = files(&runs[1]);
    assert!(!std::fs::read_to_string(dir.path(&csv)).unwrap().contains(dir.path("").to_str().unwrap()));
    assert_eq!(dir.bench(&["verify", &zip]).code, 0);
}

#[test]
fn a_run_that_fails_is_exit_code_1_and_is_requeued() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(10));
    // Half of the responses are missing, so the coverage is too low for a score.
    let replies: String = (1..=5)
        .map(|n| format!("{}\n", json!({ "item_id": n.to_string(), "response": "The answer is (C)." })))
        .collect();
    dir.write("replies.jsonl", replies);
    let output = dir.bench(&[
        "run",
        "--model",
        "replay:replies.jsonl",
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--json",
    ]);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&value[0]["status"], &value[0]["score"]), (&json!("failed"), &Value::Null));
    assert_eq!(value[0]["results"][0]["outcomes"]["infrastructure-error"], 5);
    let id = value[0]["id"].as_str().unwrap();
    assert!(
        output.stderr.contains("mmlu_pro: 5 × no stored response for item …, sample 0"),
        "{}",
        output.stderr
    );
    let message = output.stderr.lines().filter(|line| line.contains("no stored response for item `")).count();
    assert_eq!(message, 3, "logs do not tell of each sample: {}", output.stderr);
    // Stored responses don't change, so another attempt can't help.
    assert!(
        !output.stderr.contains("--resume") && output.stderr.contains("would change nothing"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("order a new run with a file that has all of them"), "{}", output.stderr);
    // A failed run has an export, too, and it verifies.
    let (zip, _) = files(&value[0]);
    assert_eq!(dir.bench(&["verify", &zip]).code, 0);
    // A requeued run fails again, because nothing has changed, and keeps its correct samples.
    let again = dir.bench(&["requeue", id, "--json"]);
    assert_eq!(again.code, 1, "{}", again.stderr);
    let value: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&value[0]["id"], &value[0]["results"][0]["correct"]), (&json!(id), &json!(5)));
}

#[test]
fn a_run_continues_after_a_kill() {
    let dir = TestDir::new();
    // Slow enough to be killed before its end: one sample at a time, with every write synced to disk.
    dir.write("items.jsonl", mmlu_pro_rows(300));
    let mut child = dir
        .command(&[
            "run",
            "--model",
            "oracle",
            "--benchmark",
            "mmlu_pro",
            "--dataset",
            "mmlu_pro=items.jsonl",
            "--concurrency",
            "1",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("Run ")).unwrap();
    let id = first.split([' ', ':']).nth(1).unwrap().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    let output = dir.bench(&["run", "--resume", &id, "--json", "--durability", "normal"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&value[0]["id"], &value[0]["status"]), (&json!(id), &json!("succeeded")));
    assert_eq!(value[0]["results"][0]["outcomes"]["correct"], 300);
}

#[test]
fn ctrl_c_keeps_finished_samples_and_prints_how_to_continue() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(1_000));
    let child = dir
        .command(&[
            "run",
            "--model",
            "oracle",
            "--benchmark",
            "mmlu_pro",
            "--dataset",
            "mmlu_pro=items.jsonl",
            "--concurrency",
            "1",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Progress lines appear once samples are in progress.
    let mut child = child;
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut seen = String::new();
    let started = Instant::now();
    while !seen.contains("mmlu_pro ") || !seen.contains("/1000") {
        assert!(started.elapsed() < TIMEOUT && err.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut err, &mut rest).unwrap();
        rest
    });
    let output = CommandOutput::new(&child.wait_with_output().unwrap());
    let rest = rest.join().unwrap();
    assert_eq!(output.code, 130, "{seen}{rest}");
    let resume =
        rest.lines().find_map(|line| line.strip_prefix("Continue with: bench run --resume ")).unwrap();
    let resume = resume.split(' ').next().unwrap();
    let run = dir.json(&["runs", resume, "--json"]);
    assert_eq!(run["status"], "running");
    let before = run["results"][0]["done"].as_u64().unwrap();
    assert!(before < 1_000);
    let output =
        dir.bench(&["run", "--resume", resume, "--json", "--durability", "normal", "--concurrency", "64"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}
