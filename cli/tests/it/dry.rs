use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Place, mmlu_items};

/// Returns the lines of a successful dry run with `--json`.
fn lines(place: &Place, args: &[&str]) -> Vec<Value> {
    let args = [&["run", "--dry-run", "--json"], args].concat();
    let done = place.bench(&args);
    assert_eq!(done.code, 0, "{args:?}\n{}{}", done.out, done.err);
    done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_dry_run_shows_what_a_run_asks_and_makes_none() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(20));
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
    let dry = lines(&place, &choice);
    assert_eq!(place.json(&["runs", "--json"]), json!([]));
    assert_eq!(dry.len(), 4);
    for line in &dry {
        assert_eq!((&line["benchmark"], &line["samples"]), (&json!("mmlu_pro"), &json!(2)));
        assert_eq!(line["prompt_digest"].as_str().unwrap().len(), 64);
        assert_eq!((line.get("step"), line.get("sample"), line.get("problem")), (None, None, None));
    }

    // The run asks for the same items with the same prompts, in the same order.
    let run = place.json(&[&["run", "--model", "oracle", "--json"], &choice[..]].concat());
    let id = run[0]["id"].as_str().unwrap();
    let items = place.json(&["runs", id, "--items", "--json"]);
    let mut asked: Vec<&Value> = items.as_array().unwrap().iter().map(|item| &item["item_id"]).collect();
    asked.dedup();
    assert_eq!(asked, dry.iter().map(|line| &line["item_id"]).collect::<Vec<_>>());

    let text = place.bench(&[&["run", "--dry-run"], &choice[..]].concat());
    assert_eq!(text.code, 0, "{}", text.err);
    assert!(text.out.contains("mmlu_pro: 4 of 20 items, 2 samples each"), "{}", text.out);
    for line in &dry {
        let (item, own) = (line["item_id"].as_str().unwrap(), line["source_id"].as_str().unwrap());
        assert_eq!(own.parse::<u64>().unwrap(), item.parse::<u64>().unwrap() + 1);
        let shown = format!("--- mmlu_pro, item {item}, source id {own}\n");
        assert!(text.out.contains(&shown), "{shown}{}", text.out);
        for message in line["prompt"]["messages"].as_array().unwrap() {
            assert!(text.out.contains(message["content"].as_str().unwrap()));
        }
    }
    place
        .bench(&[
            "run",
            "--dry-run",
            "--benchmark",
            "mmlu_pro",
            "--dataset",
            "mmlu_pro=items.jsonl",
            "--item",
            "99",
        ])
        .refused(2, "has no item 99");
}

#[test]
fn questions_with_steps_judges_and_orders_of_their_own() {
    let place = Place::new();
    let steps = lines(&place, &["--benchmark", "scicode", "--demo", "--subset-count", "2", "--seed", "s"]);
    assert!(steps.iter().all(|line| line["step"].is_string()), "{steps:?}");
    let later = steps.iter().filter(|line| line.get("earlier_answers").is_some()).count();
    assert_eq!(steps.len() - later, 2, "each item has one first step");
    for line in steps.iter().filter(|line| line["prompt"].is_null()) {
        assert_eq!(line["earlier_answers"], "model");
    }
    // Needs no judge.
    let judged = lines(&place, &["--benchmark", "hle", "--demo", "--subset-count", "1", "--seed", "s"]);
    assert_eq!(judged.len(), 1);
    assert!(!judged[0]["prompt"]["messages"].as_array().unwrap().is_empty());
    // Every benchmark can be shown.
    for benchmark in place.json(&["benchmarks", "--json"]).as_array().unwrap() {
        let name = benchmark["name"].as_str().unwrap();
        let shown = lines(&place, &["--benchmark", name, "--demo", "--subset-count", "1", "--seed", "s"]);
        assert!(!shown.is_empty() && shown.iter().all(|line| line.get("problem").is_none()), "{shown:?}");
    }
}

#[test]
fn a_dry_run_needs_the_datasets_here_and_may_be_cut_off() {
    let place = Place::new();
    place
        .bench(&["run", "--dry-run", "--demo", "--server", "http://127.0.0.1:9"])
        .refused(2, "on this machine");
    assert!(!place.path("data").exists());
    place.write("items.jsonl", mmlu_items(2_000));
    let mut child = place
        .command(&["run", "--dry-run", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=items.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("=== mmlu_pro: 2,000 of 2,000 items"), "{first}");
    // The reader is gone.
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), String::from_utf8(done.stderr).unwrap().as_str()), (Some(0), ""));
}
