use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Done, Place, mmlu_items};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn files(run: &Value) -> (String, String) {
    let path = |name: &str| run["files"][name].as_str().unwrap().to_owned();
    (path("zip"), path("csv"))
}

#[test]
fn oracle_on_items_from_a_file_end_to_end() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(20));
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
    let done = place.bench(&args);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    for part in ["oracle", "mmlu_pro", "100.0 %", "20 correct", "items.jsonl (local file)", "(verified)"] {
        assert!(done.out.contains(part), "{part}\n{}", done.out);
    }
    let runs = place.json(&["runs", "--json"]);
    let run = &runs[0];
    assert_eq!((run["status"].as_str(), run["model"].as_str()), (Some("succeeded"), Some("oracle")));
    assert_eq!(run["benchmarks"], json!(["mmlu_pro"]));
    assert_eq!((&run["score"], &run["coverage"], &run["demo"]), (&json!(1.0), &json!(1.0), &json!(false)));
    let id = run["id"].as_str().unwrap();
    let zips: Vec<_> = std::fs::read_dir(place.path("out")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(zips.len(), 2, "{zips:?}");
    let zip = zips.iter().find(|path| path.extension().is_some_and(|e| e == "zip")).unwrap();
    let verdict = place.json(&["verify", zip.to_str().unwrap(), "--json"]);
    assert_eq!((&verdict["valid"], &verdict["run_id"]), (&json!(true), &json!(id)));

    // Every command that shows a run shows the same one.
    let items = place.json(&["runs", id, "--items", "--json"]);
    assert_eq!(items.as_array().unwrap().len(), 20);
    assert!(items.as_array().unwrap().iter().all(|item| item["outcome"] == "correct"));
    let events = place.json(&["runs", id, "--events", "--json"]);
    assert_eq!(events[0]["event_type"], "run_created");
    assert_eq!(events.as_array().unwrap().last().unwrap()["event_type"], "run_completed");
    let detail = place.bench(&["runs", id]);
    assert!(detail.code == 0 && detail.out.contains("100.0 %"), "{}", detail.out);
    let comparison = place.json(&["compare", id, id, "--json"]);
    assert_eq!(comparison["benchmarks"][0]["both_right"], 20);
    let shown = place.bench(&["compare", id, id]);
    assert!(shown.code == 0 && shown.out.contains("+0.0 (+0.0 to +0.0)"), "{}", shown.out);
    let export = place.bench(&["export", id, "--format", "csv", "--out", "table.csv"]);
    assert_eq!((export.code, export.out.as_str()), (0, "table.csv\n"), "{}", export.err);
    assert!(std::fs::read_to_string(place.path("table.csv")).unwrap().lines().count() > 20);
    place.bench(&["cancel", id]).refused(1, "cannot be canceled");
    place.bench(&["requeue", id, "--detach"]).refused(1, "cannot be requeued");
    let models = place.json(&["models", "--json"]);
    assert!(models.as_array().unwrap().iter().any(|model| model["slug"] == "oracle"), "{models}");
    let datasets = place.json(&["datasets", "--json"]);
    assert_eq!((&datasets[0]["source"], &datasets[0]["items"]), (&json!("local"), &json!(20)));
}

#[test]
fn demo_data_is_said_loudly_everywhere() {
    let place = Place::new();
    let done = place.bench(&["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(
        done.out.contains("DEMO DATA in mmlu_pro") && done.out.contains("mmlu_pro (DEMO)"),
        "{}",
        done.out
    );
    assert!(!done.err.contains("warning:"), "it was asked for: {}", done.err);
    let runs = place.json(&["runs", "--json"]);
    assert_eq!((&runs[0]["demo"], &runs[0]["score"]), (&json!(true), &json!(1.0)));
    // Demo data that the user didn't ask for causes a warning with the reason.
    let done = place.bench(&["run", "--model", "oracle", "--benchmark", "aime_2025", "--json"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.err.contains("warning: aime_2025: demo data was used"), "{}", done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(value[0]["demo"], true);
    let (zip, _) = files(&value[0]);
    assert_eq!(place.bench(&["verify", &zip]).code, 0);
}

#[test]
fn a_subset_is_the_same_for_every_model_and_several_run_side_by_side() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(40));
    let replies: String = (1..=40)
        .map(|n| format!("{}\n", json!({ "item_id": n.to_string(), "response": if n % 2 == 0 { "The answer is (C)." } else { "Unsure." } })))
        .collect();
    place.write("replies.jsonl", replies);
    let value = place.json(&[
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
        let items = place.json(&["runs", run["id"].as_str().unwrap(), "--items", "--json"]);
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
    assert!(!std::fs::read_to_string(place.path(&csv)).unwrap().contains(place.path("").to_str().unwrap()));
    assert_eq!(place.bench(&["verify", &zip]).code, 0);
}

#[test]
fn a_run_that_fails_is_exit_code_1_and_is_requeued() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(10));
    // Half of the responses are missing, so the coverage is too low for a score.
    let replies: String = (1..=5)
        .map(|n| format!("{}\n", json!({ "item_id": n.to_string(), "response": "The answer is (C)." })))
        .collect();
    place.write("replies.jsonl", replies);
    let done = place.bench(&[
        "run",
        "--model",
        "replay:replies.jsonl",
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--json",
    ]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&value[0]["status"], &value[0]["score"]), (&json!("failed"), &Value::Null));
    assert_eq!(value[0]["results"][0]["outcomes"]["infrastructure-error"], 5);
    let id = value[0]["id"].as_str().unwrap();
    assert!(done.err.contains("mmlu_pro: 5 × no stored response for item …, sample 0"), "{}", done.err);
    let told = done.err.lines().filter(|line| line.contains("no stored response for item `")).count();
    assert_eq!(told, 3, "logs do not tell of each sample: {}", done.err);
    // Stored responses don't change, so another attempt can't help.
    assert!(!done.err.contains("--resume") && done.err.contains("would change nothing"), "{}", done.err);
    assert!(done.err.contains("order a new one with a file that has them all"), "{}", done.err);
    // A failed run has an export, too, and it verifies.
    let (zip, _) = files(&value[0]);
    assert_eq!(place.bench(&["verify", &zip]).code, 0);
    // A requeued run fails again, because nothing has changed, and keeps its correct samples.
    let again = place.bench(&["requeue", id, "--json"]);
    assert_eq!(again.code, 1, "{}", again.err);
    let value: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!((&value[0]["id"], &value[0]["results"][0]["correct"]), (&json!(id), &json!(5)));
}

#[test]
fn a_run_goes_on_after_a_kill_and_a_locked_directory_is_told() {
    let place = Place::new();
    // Slow enough to be killed before its end: one sample at a time, with every write synced to disk.
    place.write("items.jsonl", mmlu_items(300));
    let mut child = place
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
    let locked = place.bench(&["runs"]);
    if child.try_wait().unwrap().is_none() {
        locked.refused(1, &format!("pid {}", child.id()));
        assert!(locked.err.contains("hint: ") && locked.err.contains("--server"), "{}", locked.err);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let done = place.bench(&["run", "--resume", &id, "--json", "--durability", "normal"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&value[0]["id"], &value[0]["status"]), (&json!(id), &json!("succeeded")));
    assert_eq!(value[0]["results"][0]["outcomes"]["correct"], 300);
}

#[test]
fn ctrl_c_keeps_what_is_done_and_says_how_to_go_on() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(1_000));
    let child = place
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
        assert!(started.elapsed() < PATIENCE && err.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut err, &mut rest).unwrap();
        rest
    });
    let done = Done::of(&child.wait_with_output().unwrap());
    let rest = rest.join().unwrap();
    assert_eq!(done.code, 130, "{seen}{rest}");
    let resume = rest.lines().find_map(|line| line.strip_prefix("Go on with: bench run --resume ")).unwrap();
    let run = place.json(&["runs", resume, "--json"]);
    assert_eq!(run["status"], "running");
    let before = run["results"][0]["done"].as_u64().unwrap();
    assert!(before < 1_000);
    let done =
        place.bench(&["run", "--resume", resume, "--json", "--durability", "normal", "--concurrency", "64"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
}
