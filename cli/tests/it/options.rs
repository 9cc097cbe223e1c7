//! Benchmark-specific settings, and files that jobs need, on the command line.

use serde_json::{Value, json};

use crate::support::{TestDir, vector_path};

/// Writes twenty problems, every other one from the summer of 2024. None of the answers contains code, so no sandbox is
/// needed.
fn write_problems_and_replies(dir: &TestDir) {
    let text = std::fs::read_to_string(vector_path("livecodebench.jsonl")).unwrap();
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
    dir.write("items.jsonl", items);
    dir.write("replies.jsonl", replies);
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
fn options_choose_items_and_are_shown_with_results() {
    let dir = TestDir::new();
    write_problems_and_replies(&dir);
    let all = dir.json(&refs(&run(&[])));
    let some = dir.json(&refs(&run(&["livecodebench.start_date=2024-08-01"])));
    let (all, some) = (&all[0]["results"][0], &some[0]["results"][0]);
    assert_eq!((&all["items"], &some["items"]), (&json!(20), &json!(10)));
    assert_eq!(all["options"], json!({ "grading": "isolated", "release": "release_latest" }));
    assert_eq!(some["options"]["start_date"], "2024-08-01");
    assert_eq!(
        some["outcomes"]["infrastructure-error"].as_u64().unwrap_or(0),
        0,
        "every reply was found: {some}"
    );

    let runs = dir.json(&["runs", "--json"]);
    let ids: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    let shown = dir.bench(&["runs", ids[0]]).stdout;
    assert!(shown.contains("start_date=2024-08-01"), "{shown}");
    let compared = dir.bench(&["compare", ids[0], ids[1]]);
    assert!(compared.stderr.contains("different options"), "{}", compared.stderr);

    let empty = dir.bench(&refs(&run(&["start_date=2030-01-01"])));
    assert_ne!(empty.code, 0);
    assert!(
        empty.stderr.contains("none of the 20 items of livecodebench is left by its options"),
        "{}",
        empty.stderr
    );
}

#[test]
fn options_are_checked_before_anything_is_made() {
    let dir = TestDir::new();
    write_problems_and_replies(&dir);
    for (option, part) in [
        ("livecodebench.relase=v6", "unknown option `relase`; this benchmark has release"),
        ("release=v9", "livecodebench: option `release` must be"),
        ("start_date=soon", "start_date"),
        ("mmlu_pro.x=1", "`mmlu_pro` is not among the benchmarks"),
        ("release", "is not BENCHMARK.NAME=VALUE"),
    ] {
        dir.bench(&refs(&run(&[option]))).assert_refused(2, part);
    }
    for option in ["agent=bash", "terminal_bench_hard.agent.max_turns=3"] {
        let order = ["run", "--benchmark", "terminal_bench_hard", "--demo", "--model", "openai-compatible/m"];
        dir.bench(&[&order[..], &["--agent", "bash", "--option", option]].concat())
            .assert_refused(2, "can't be given here");
    }
    dir.bench(&["run", "--resume", "0b9e6cf4-0000-4000-8000-000000000000", "--option", "x=1"])
        .assert_refused(2, "--option can't be given");
    dir.bench(&["datasets", "pull", "livecodebench", "--option", "release=v9"])
        .assert_refused(2, "option `release` must be");
    assert!(!dir.path("data").exists());
    let text = dir.bench(&["benchmarks", "livecodebench"]).stdout;
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
    let text = dir.bench(&["benchmarks", "scicode"]).stdout;
    for part in ["jobs need", "test_data.h5", "several per item"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_file_that_jobs_need_comes_along() {
    let dir = TestDir::new();
    let rows = std::fs::read_to_string(vector_path("scicode.jsonl")).unwrap();
    let rows = rows.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let mut problem = row["problem"].clone();
        problem["h5_file"] = row["h5_file"].clone();
        format!("{problem}\n")
    });
    dir.write("problems.jsonl", rows.collect::<String>());
    dir.bench(&["datasets", "pull", "scicode", "--file", "problems.jsonl"])
        .assert_refused(1, "scicode_targets.h5: No such file");
    let targets = std::fs::read(vector_path("scicode_targets.h5")).unwrap();
    dir.write("scicode_targets.h5", &targets);
    let pulled = dir.json(&["datasets", "pull", "scicode", "--file", "problems.jsonl", "--json"]);
    assert_eq!(pulled["items"], 3);
    assert_eq!(pulled["attachments"]["targets"]["bytes"], targets.len());
    let listed = dir.json(&["datasets", "--json"]);
    assert_eq!(listed[0]["attachments"], json!({ "targets": targets.len() }));
    assert!(listed[0]["bytes"].as_u64().unwrap() > targets.len() as u64);
    assert!(dir.bench(&["datasets"]).stdout.contains("(files "));
    assert_eq!(dir.bench(&["datasets", "rm", "scicode"]).code, 0);
    assert_eq!(dir.json(&["datasets", "--json"]), json!([]));
}
