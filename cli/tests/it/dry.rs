//! `bench run --dry-run`: the prompts of a run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{TestDir, mmlu_pro_rows};

/// Returns the lines of a successful dry run with `--json`.
fn dry_run(dir: &TestDir, args: &[&str]) -> Vec<Value> {
    let args = [&["run", "--dry-run", "--json"], args].concat();
    let output = dir.bench(&args);
    assert_eq!(output.code, 0, "{args:?}\n{}{}", output.stdout, output.stderr);
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_dry_run_shows_what_a_run_asks_and_makes_none() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(20));
    let choice = [
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--subset-count",
        "4",
        "--seed",
        "s",
        "--samples",
        "2",
    ];
    // Needs neither a model nor a key.
    let dry = dry_run(&dir, &choice);
    assert_eq!(dir.json(&["runs", "--json"]), json!([]));
    assert_eq!(dry.len(), 4);
    for line in &dry {
        assert_eq!((&line["benchmark"], &line["samples"]), (&json!("mmlu_pro"), &json!(2)));
        assert_eq!(line["prompt_digest"].as_str().unwrap().len(), 64);
        assert_eq!((line.get("step"), line.get("sample"), line.get("problem")), (None, None, None));
    }

    // The run asks for the same items with the same prompts.
    let run = dir.json(&[&["run", "--model", "oracle", "--json"], &choice[..]].concat());
    let id = run[0]["id"].as_str().unwrap();
    let items = dir.json(&["runs", id, "--items", "--json"]);
    let mut asked: Vec<&Value> = items.as_array().unwrap().iter().map(|item| &item["item_id"]).collect();
    asked.dedup();
    let mut shown: Vec<&Value> = dry.iter().map(|line| &line["item_id"]).collect();
    shown.sort_by_key(|id| id.as_str().unwrap().parse::<u64>().unwrap());
    assert_eq!(asked, shown, "in the order of the dataset");

    let text = dir.bench(&[&["run", "--dry-run"], &choice[..]].concat());
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("mmlu_pro: 4 of 20 items, 2 samples each"), "{}", text.stdout);
    for line in &dry {
        let (item, own) = (line["item_id"].as_str().unwrap(), line["source_id"].as_str().unwrap());
        assert_eq!(own.parse::<u64>().unwrap(), item.parse::<u64>().unwrap() + 1);
        let shown = format!("--- mmlu_pro, item {item}, source id {own}\n");
        assert!(text.stdout.contains(&shown), "{shown}{}", text.stdout);
        for message in line["prompt"]["messages"].as_array().unwrap() {
            assert!(text.stdout.contains(message["content"].as_str().unwrap()));
        }
    }
    dir.bench(&[
        "run",
        "--dry-run",
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--item",
        "99",
    ])
    .assert_refused(2, "has no item 99");
}

#[test]
fn questions_with_steps_judges_and_orders_of_their_own() {
    let dir = TestDir::new();
    let steps = dry_run(&dir, &["--benchmark", "scicode", "--demo", "--subset-count", "2", "--seed", "s"]);
    assert!(steps.iter().all(|line| line["step"].is_string()), "{steps:?}");
    let later = steps.iter().filter(|line| line.get("earlier_answers").is_some()).count();
    assert_eq!(steps.len() - later, 2, "each item has one first step");
    for line in steps.iter().filter(|line| line["prompt"].is_null()) {
        assert_eq!(line["earlier_answers"], "model");
    }
    // Needs no judge.
    let judged = dry_run(&dir, &["--benchmark", "hle", "--demo", "--subset-count", "1", "--seed", "s"]);
    assert_eq!(judged.len(), 1);
    assert!(!judged[0]["prompt"]["messages"].as_array().unwrap().is_empty());
    // Where an agent works on the items, this is its first message.
    let agent = ["--benchmark", "code_lab", "--protocol", "agent", "--subset-count", "1", "--seed", "s"];
    let limited =
        dry_run(&dir, &[&agent[..], &["--option", "code_lab.agent.command_timeout_sec=7"]].concat());
    let first = limited[0]["prompt"]["messages"][0]["content"].as_str().unwrap();
    for part in
        ["running commands on a Linux machine", "starts in `{folder}`", "killed after 7 seconds", "# Task"]
    {
        assert!(first.contains(part), "{part}: {first}");
    }
    // Every benchmark can be shown.
    for benchmark in dir.json(&["benchmarks", "--json"]).as_array().unwrap() {
        let name = benchmark["name"].as_str().unwrap();
        let shown = dry_run(&dir, &["--benchmark", name, "--demo", "--subset-count", "1", "--seed", "s"]);
        assert!(!shown.is_empty() && shown.iter().all(|line| line.get("problem").is_none()), "{shown:?}");
    }
}

#[test]
fn conversations_have_roles_and_seeds() {
    let dir = TestDir::new();
    let choice = ["--benchmark", "tau_bench_telecom", "--demo", "--subset-count", "1", "--seed", "s"];
    let models = ["--model", "openrouter/a", "--user-model", "openrouter/u", "--user-temperature", "0.5"];
    let lines = dry_run(&dir, &[&choice[..], &models].concat());
    assert_eq!(lines.len(), 1);
    let conversation = &lines[0]["conversation"];
    assert_eq!(conversation["agent"], json!({ "models": ["openrouter/a"], "temperature": 0.0 }));
    assert_eq!(conversation["user"], json!({ "models": ["openrouter/u"], "temperature": 0.5 }));
    // The official seeds of the four trials.
    let seeds: Vec<u64> =
        conversation["seeds"].as_array().unwrap().iter().map(|seed| seed.as_u64().unwrap()).collect();
    assert_eq!((seeds.len(), &lines[0]["prompt"]), (4, &json!(null)));
    let text = dir.bench(&[&["run", "--dry-run"], &choice[..], &models].concat());
    for part in
        ["agent: openrouter/a", "user: openrouter/u, temperature 0.5", &format!("samples: {}, ", seeds[0])]
    {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
}

#[test]
fn a_dry_run_needs_the_datasets_here_and_may_be_cut_off() {
    let dir = TestDir::new();
    dir.bench(&["run", "--dry-run", "--demo", "--server", "http://127.0.0.1:9"])
        .assert_refused(2, "on this machine");
    assert!(!dir.path("data").exists());
    dir.write("items.jsonl", mmlu_pro_rows(2_000));
    // A warning would say that the second benchmark is shown with demo data.
    let both = ["--benchmark", "mmlu_pro,aime_2025", "--dataset", "mmlu_pro=items.jsonl"];
    let mut child = dir
        .command(&[&["run", "--dry-run"], &both[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("=== mmlu_pro: 2,000 of 2,000 items"), "{first}");
    // The reader is gone, so the rest isn't even read.
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}
