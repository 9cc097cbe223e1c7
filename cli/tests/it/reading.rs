//! Reading of results: names of runs, filters of samples, single samples, comparisons, exports, and the terminals and
//! pipes that the output goes to.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir, mmlu_pro_rows};

const LETTERS: [&str; 4] = ["C", "A", "B", "C"];

/// Makes a run over four items of the category `math`, two of them answered correctly, and returns its id.
fn graded_run(dir: &TestDir, letters: [&str; 4]) -> String {
    dir.write("rows.jsonl", mmlu_pro_rows(4));
    let replies: String = letters
        .iter()
        .enumerate()
        .map(|(row, letter)| {
            let response = format!("Row {row}: the answer is ({letter}).");
            format!("{}\n", json!({ "id": row, "item_id": format!("#{row}"), "response": response }))
        })
        .collect();
    dir.write("replies.jsonl", replies);
    let args = ["run", "--model", "replay:replies.jsonl", "--benchmark", "mmlu_pro", "--dataset"];
    let run = dir.json(&[&args[..], &["mmlu_pro=rows.jsonl", "--durability", "normal", "--json"]].concat());
    run[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn runs_are_named_by_prefix_and_as_the_latest() {
    let dir = TestDir::new();
    dir.bench(&["runs", "latest"]).assert_refused(1, "there are no runs yet");
    let (first, second) = (graded_run(&dir, LETTERS), graded_run(&dir, LETTERS));
    let id = |args: &[&str]| dir.json(&[args, &["--json"]].concat())["id"].as_str().unwrap().to_owned();
    assert_eq!(id(&["runs", &first[..8]]), first);
    assert_eq!(id(&["runs", &first.to_uppercase()[..13]]), first);
    assert_eq!(id(&["runs", "latest"]), second);
    let listed = dir.bench(&["runs"]).stdout;
    assert!(listed.contains(&first[..8]) && !listed.contains(&first), "{listed}");

    // Each command that takes a run takes its prefix.
    let compared = dir.json(&["compare", &first[..8], "latest", "--json"]);
    assert_eq!((&compared["a"]["id"], &compared["b"]["id"]), (&json!(first), &json!(second)));
    let file = dir.json(&["export", &first[..8], "--format", "csv", "--json"]);
    assert!(file["file"].as_str().unwrap().contains(&first), "{file}");
    let complete = dir.bench(&["run", "--resume", "latest"]);
    assert!(complete.stderr.contains(&format!("Run {second} is complete")), "{}", complete.stderr);
    dir.bench(&["cancel", &first[..8]]).assert_refused(1, "run ");

    let unknown =
        if first.starts_with('0') || second.starts_with('0') { "ffff0000ffff" } else { "0000ffff0000" };
    dir.bench(&["runs", unknown]).assert_refused(1, &format!("there is no run `{unknown}`"));
    for wrong in ["3f2", "newest", "g000"] {
        dir.bench(&["runs", wrong]).assert_refused(2, "at least the first 4 digits");
    }
}

#[test]
fn samples_are_filtered_and_limited() {
    let dir = TestDir::new();
    let run = graded_run(&dir, LETTERS);
    let ids = |more: &[&str]| -> Vec<String> {
        let items = dir.json(&[&["runs", run.as_str(), "--items", "--json"], more].concat());
        items.as_array().unwrap().iter().map(|item| item["item_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&[]), ["0", "1", "2", "3"]);
    assert_eq!(ids(&["--outcome", "incorrect,unparsed"]), ["1", "2"]);
    assert_eq!(ids(&["--outcome", "incorrect", "--group", "math", "--limit", "1"]), ["1"]);
    assert_eq!(ids(&["--outcome", "truncated"]), [""; 0]);
    let few = dir.bench(&["runs", &run, "--items", "--limit", "3"]);
    assert!(few.stderr.contains("3 of 4 samples; see --limit"), "{}", few.stderr);
    // A score is a percentage, as everywhere.
    assert!(few.stdout.contains(" 100.0%") && few.stdout.contains(" 0.0%"), "{}", few.stdout);
    dir.bench(&["runs", &run, "--items", "--group", "mth"])
        .assert_refused(2, "no item is in the group `mth`");
    let unknown = dir.bench(&["runs", &run, "--items", "--outcome", "wrong"]);
    unknown.assert_refused(2, "it must be one of correct, incorrect");
}

#[test]
fn a_sample_is_shown_with_its_texts() {
    let dir = TestDir::new();
    let run = graded_run(&dir, LETTERS);
    // The rows have question ids from 1 on.
    for name in ["2", "#1"] {
        let shown = dir.bench(&["runs", &run, "--item", name]);
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        for part in [
            "mmlu_pro: item 1 (source id 2)",
            "outcome:    incorrect, score 0.0%",
            "extracted:  A",
            "expected:   C",
            "--- prompt\n",
            "Question 1?",
            "--- response\nRow 1: the answer is (A).",
        ] {
            assert!(shown.stdout.contains(part), "{part}\n{}", shown.stdout);
        }
    }
    // No item has the id 0, so it is the index of a row.
    assert!(dir.bench(&["runs", &run, "--item", "0"]).stdout.contains("item 0 (source id 1)"));
    let sample = dir.json(&["runs", &run, "--item", "2", "--sample", "1", "--json"]);
    assert_eq!((&sample["item_id"], &sample["response"]), (&json!("1"), &json!("Row 1: the answer is (A).")));
    dir.bench(&["runs", &run, "--item", "99"]).assert_refused(2, "has no item `99`");
    dir.bench(&["runs", &run, "--item", "2", "--sample", "2"]).assert_refused(2, "item `2` has no sample 2");
}

#[test]
fn three_runs_are_compared_with_the_first() {
    let dir = TestDir::new();
    let runs = [LETTERS, ["C", "C", "C", "C"], ["A", "A", "A", "A"]].map(|letters| graded_run(&dir, letters));
    let names: Vec<&str> = runs.iter().map(|run| &run[..8]).collect();
    let shown = dir.bench(&[&["compare"], &names[..]].concat());
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for part in
        ["50.0% (", "100.0% (", "+50.0 pp (", "-50.0 pp (", "corrected for 2 comparisons by Holm's method"]
    {
        assert!(shown.stdout.contains(part), "{part}\n{}", shown.stdout);
    }
    let compared = dir.json(&[&["compare", "--json"], &names[..]].concat());
    assert_eq!(compared["baseline"], json!(runs[0]));
    let comparisons = compared["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2);
    for comparison in comparisons {
        let benchmark = &comparison["benchmarks"][0];
        let (raw, adjusted) =
            (benchmark["mcnemar_p"].as_f64().unwrap(), benchmark["mcnemar_p_holm"].as_f64().unwrap());
        assert!(adjusted >= raw && adjusted <= 1.0, "{benchmark}");
    }
    dir.bench(&["compare", names[0]]).assert_refused(2, "2 values required");
}

#[test]
fn exports_go_to_standard_output_alone() {
    let dir = TestDir::new();
    let run = graded_run(&dir, LETTERS);
    let lines = dir.bench(&["export", &run, "--format", "jsonl", "--out", "-"]);
    assert_eq!((lines.code, lines.stderr.as_str()), (0, ""));
    let samples: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(samples.len(), 4);
    assert_eq!(
        (&samples[1]["outcome"], &samples[1]["model"]),
        (&json!("incorrect"), &json!("replay:replies.jsonl"))
    );
    let table = dir.bench(&["export", &run, "--format", "csv", "--out", "-"]).stdout;
    assert!(table.starts_with("run_id,"), "{table}");
    let archive = dir.command(&["export", &run, "--out", "-"]).output().unwrap().stdout;
    let file = dir.json(&["export", &run, "--out", "mine.zip", "--json"]);
    assert_eq!(archive, std::fs::read(dir.path(file["file"].as_str().unwrap())).unwrap());
    dir.write("mine.csv", "precious");
    let again = ["export", &run, "--format", "csv", "--out", "mine.csv"];
    dir.bench(&again).assert_refused(2, "--out: the file `mine.csv` exists already");
    assert_eq!(std::fs::read_to_string(dir.path("mine.csv")).unwrap(), "precious");
    assert_eq!(dir.bench(&[&again[..], &["--force"]].concat()).code, 0);
    assert_ne!(std::fs::read_to_string(dir.path("mine.csv")).unwrap(), "precious");
    dir.bench(&["export", &run, "--out", "-", "--json"])
        .assert_refused(2, "--json can't be given with --out -");
    assert!(!dir.path("-").exists());
}

#[test]
fn a_closed_pipe_ends_commands_quietly_with_their_usual_status() {
    let dir = TestDir::new();
    let run = graded_run(&dir, LETTERS);
    let commands: &[(&[&str], i32)] = &[
        (&["runs"], 0),
        (&["runs", &run], 0),
        (&["runs", &run, "--items", "--json"], 0),
        (&["runs", &run, "--item", "2"], 0),
        (&["benchmarks"], 0),
        (&["benchmarks", "mmlu_pro"], 0),
        (&["export", &run, "--format", "jsonl", "--out", "-"], 0),
        (&["completions", "bash"], 0),
        (&["verify", "rows.jsonl"], 1),
        (&["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro", "--durability", "normal"], 0),
        (&["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro", "--dry-run"], 0),
        (&["score", "mmlu_pro", "--responses", "replies.jsonl", "--dataset", "rows.jsonl"], 0),
    ];
    for (args, code) in commands {
        let mut command = dir.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The reader is gone before anything is written.
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(*code), "{args:?}\n{stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("roken pipe"), "{args:?}\n{stderr}");
    }
    let mut child = dir.command(&["runs"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("run "), "{first}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn locales_without_utf8_and_dumb_terminals_get_ascii() {
    let dir = TestDir::new();
    let run = graded_run(&dir, LETTERS);
    for (name, value) in [("LC_ALL", "C"), ("LC_ALL", "de_DE.ISO-8859-1"), ("TERM", "dumb")] {
        let help = CommandOutput::new(&dir.command(&["score", "--help"]).env(name, value).output().unwrap());
        assert!(
            help.code == 0 && help.stdout.is_ascii() && help.stdout.contains("... the answer is"),
            "{}",
            help.stdout
        );
        for args in [&["runs"][..], &["runs", &run], &["runs", &run, "--items"], &["compare", &run, &run]] {
            let output = CommandOutput::new(&dir.command(args).env(name, value).output().unwrap());
            assert_eq!(output.code, 0, "{}", output.stderr);
            assert!(output.stdout.is_ascii() && output.stderr.is_ascii(), "{args:?}\n{}", output.stdout);
            assert!(output.stdout.contains("---"), "{}", output.stdout);
        }
    }
    assert!(dir.bench(&["runs"]).stdout.contains('─'));
    // JSON is data, and stays as it is.
    let json = |locale: &str| {
        let output =
            dir.command(&["runs", &run, "--items", "--json"]).env("LC_ALL", locale).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(json("C"), json("C.UTF-8"));
}

#[test]
fn output_that_is_no_terminal_has_the_columns_of_the_variable() {
    let dir = TestDir::new();
    graded_run(&dir, LETTERS);
    for columns in ["20", "40", "80"] {
        let output = dir.command(&["runs", "latest"]).env("COLUMNS", columns).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        for part in ["coverage", "outcomes", "incorrect", "dataset"] {
            assert!(stdout.contains(part), "{columns}: {part}\n{stdout}");
        }
        assert!(!stdout.contains("Not shown"), "{stdout}");
    }
}
