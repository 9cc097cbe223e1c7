//! Benchmark-specific settings, and files that jobs need, on the command line.

use serde_json::{Value, json};

use crate::support::{Place, vector};

/// Writes twenty problems, every other one from the summer of 2024. None of the answers contains code, so no sandbox is
/// needed.
fn problems(place: &Place) {
    let text = std::fs::read_to_string(vector("livecodebench.jsonl")).unwrap();
    let (mut items, mut replies) = (String::new(), String::new());
    for (number, line) in text.lines().enumerate() {
        let mut row = serde_json::from_str::<Value>(line).unwrap()["row"].take();
        let day = if number % 2 == 0 { "2024-01-01T00:00:00" } else { "2024-08-15T00:00:00" };
        row["contest_date"] = day.into();
        items.push_str(&format!("{row}\n"));
        // Responses use the authors' name of the problem, not the item's index.
        let reply = json!({ "item_id": row["question_id"], "response": "I do not know." });
        replies.push_str(&format!("{reply}\n"));
    }
    place.write("items.jsonl", items);
    place.write("replies.jsonl", replies);
}

fn run(option: &[&str]) -> Vec<String> {
    let mut args: Vec<String> = [
        "run",
        "--model",
        "replay:replies.jsonl",
        "--benchmark",
        "livecodebench",
        "--dataset",
        "livecodebench=items.jsonl",
        "--samples",
        "1",
        "--durability",
        "normal",
        "--json",
    ]
    .map(str::to_owned)
    .into();
    for option in option {
        args.extend(["--option".to_owned(), (*option).to_owned()]);
    }
    args
}

fn refs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn options_choose_items_and_are_told_wherever_results_are() {
    let place = Place::new();
    problems(&place);
    let all = place.json(&refs(&run(&[])));
    let some = place.json(&refs(&run(&["livecodebench.start_date=2024-08-01"])));
    let (all, some) = (&all[0]["results"][0], &some[0]["results"][0]);
    assert_eq!((&all["items"], &some["items"]), (&json!(20), &json!(10)));
    assert_eq!(all["options"], json!({ "grading": "isolated", "release": "release_latest" }));
    assert_eq!(some["options"]["start_date"], "2024-08-01");
    assert_eq!(
        some["outcomes"]["infrastructure-error"].as_u64().unwrap_or(0),
        0,
        "every reply was found: {some}"
    );

    let runs = place.json(&["runs", "--json"]);
    let ids: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    let shown = place.bench(&["runs", ids[0]]).out;
    assert!(shown.contains("start_date=2024-08-01"), "{shown}");
    let compared = place.bench(&["compare", ids[0], ids[1]]);
    assert!(compared.err.contains("different options"), "{}", compared.err);

    let empty = place.bench(&refs(&run(&["start_date=2030-01-01"])));
    assert_ne!(empty.code, 0);
    assert!(
        empty.err.contains("none of the 20 items of livecodebench is left by its options"),
        "{}",
        empty.err
    );
}

#[test]
fn options_are_checked_before_anything_is_made() {
    let place = Place::new();
    problems(&place);
    for (option, part) in [
        ("livecodebench.relase=v6", "unknown option `relase`; this benchmark has release"),
        ("release=v9", "livecodebench: option `release` must be"),
        ("start_date=soon", "start_date"),
        ("mmlu_pro.x=1", "mmlu_pro is not among the benchmarks"),
        ("release", "is not BENCHMARK.NAME=VALUE"),
    ] {
        place.bench(&refs(&run(&[option]))).refused(2, part);
    }
    place
        .bench(&["run", "--resume", "0b9e6cf4-0000-4000-8000-000000000000", "--option", "x=1"])
        .refused(2, "--option cannot be given");
    place
        .bench(&["datasets", "pull", "livecodebench", "--option", "release=v9"])
        .refused(2, "option `release` must be");
    assert!(!place.path("data").exists());
    let text = place.bench(&["benchmarks", "livecodebench"]).out;
    for part in [
        "Options",
        "release",
        "default release_latest",
        "start_date",
        "not set by default",
        "Sandbox",
        "grader",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = place.bench(&["benchmarks", "scicode"]).out;
    for part in ["jobs need", "test_data.h5", "several per item"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_file_that_jobs_need_comes_along() {
    let place = Place::new();
    let rows = std::fs::read_to_string(vector("scicode.jsonl")).unwrap();
    let rows = rows.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let mut problem = row["problem"].clone();
        problem["h5_file"] = row["h5_file"].clone();
        format!("{problem}\n")
    });
    place.write("problems.jsonl", rows.collect::<String>());
    place
        .bench(&["datasets", "pull", "scicode", "--file", "problems.jsonl"])
        .refused(1, "scicode_targets.h5: No such file");
    let targets = std::fs::read(vector("scicode_targets.h5")).unwrap();
    place.write("scicode_targets.h5", &targets);
    let pulled = place.json(&["datasets", "pull", "scicode", "--file", "problems.jsonl", "--json"]);
    assert_eq!(pulled["items"], 3);
    assert_eq!(pulled["attachments"]["targets"]["bytes"], targets.len());
    let listed = place.json(&["datasets", "--json"]);
    assert_eq!(listed[0]["attachments"], json!({ "targets": targets.len() }));
    assert!(listed[0]["bytes"].as_u64().unwrap() > targets.len() as u64);
    assert!(place.bench(&["datasets"]).out.contains("(files "));
    assert_eq!(place.bench(&["datasets", "rm", "scicode"]).code, 0);
    assert_eq!(place.json(&["datasets", "--json"]), json!([]));
}
