//! Items of stored responses and orders, by the dataset's own ids or by row index.

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir};

const LETTERS: [&str; 3] = ["A", "B", "C"];

/// MMLU-Pro rows whose `question_id` begins at 70. The correct answer of a row differs from that of the row 70
/// positions later.
fn rows(count: usize) -> String {
    let shot = json!({
        "question": "Shot?", "options": ["a", "b", "c"], "answer": "A", "answer_index": 0, "category": "math",
        "cot_content": "A: Let's think step by step. The answer is (A).", "question_id": 0, "src": "own",
    });
    let items = (0..count).map(|row| {
        json!({
            "question": format!("Question {row}?"), "options": ["x", "y", "z"], "answer": LETTERS[row % 3],
            "answer_index": row % 3, "category": "math", "cot_content": "", "question_id": 70 + row, "src": "own",
        })
    });
    std::iter::once(shot).chain(items).map(|row| format!("{row}\n")).collect()
}

/// Correct responses to the rows, with names from `name`. `bench score` needs `id`.
fn reply_lines(count: usize, name: impl Fn(usize) -> Value) -> String {
    let reply = |row: usize| {
        let response = format!("The answer is ({}).", LETTERS[row % 3]);
        format!("{}\n", json!({ "id": row, "item_id": name(row), "response": response }))
    };
    (0..count).map(reply).collect()
}

fn run(dir: &TestDir, more: &[&str]) -> CommandOutput {
    let args = [
        "run",
        "--model",
        "replay:replies.jsonl",
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=rows.jsonl",
    ];
    dir.bench(&[&args[..], &["--durability", "normal", "--json"], more].concat())
}

fn score(dir: &TestDir, more: &[&str]) -> CommandOutput {
    let args = ["score", "mmlu_pro", "--responses", "replies.jsonl", "--dataset", "rows.jsonl"];
    dir.bench(&[&args[..], more].concat())
}

fn result(output: &CommandOutput) -> Value {
    assert!(output.code < 2, "{}{}", output.stdout, output.stderr);
    serde_json::from_str::<Value>(&output.stdout).unwrap()[0].take()
}

/// Checks that nothing was graded or signed.
fn assert_no_runs(dir: &TestDir) {
    assert_eq!(dir.json(&["runs", "--json"]), json!([]));
    assert!(!dir.path("bench-results").exists());
}

#[test]
fn a_thousand_right_responses_by_their_own_ids_score_a_hundred_percent() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(1_000));
    for name in [(|row| json!(70 + row)) as fn(usize) -> Value, |row| json!(format!("#{row}"))] {
        dir.write("replies.jsonl", reply_lines(1_000, name));
        let output = run(&dir, &[]);
        let run = result(&output);
        assert_eq!(
            (output.code, &run["score"], &run["coverage"]),
            (0, &json!(1.0), &json!(1.0)),
            "{}",
            output.stderr
        );
        assert_eq!(run["results"][0]["outcomes"]["correct"], 1_000);

        let output = score(&dir, &[]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(
            output.stderr.contains("coverage 100.0%, 1,000 correct, accuracy 100.0%"),
            "{}",
            output.stderr
        );
        assert!(output.stdout.lines().all(|line| line.contains("\"correct\":true")), "{}", output.stdout);
    }
}

#[test]
fn the_datasets_own_id_is_shown_beside_the_items() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(3));
    dir.write("replies.jsonl", reply_lines(3, |row| json!(70 + row)));
    let run = result(&run(&dir, &[]));
    let id = run["id"].as_str().unwrap();
    let items = dir.json(&["runs", id, "--items", "--json"]);
    let ids = |items: &Value| -> Vec<(Value, Value)> {
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["item_id"].clone(), item["source_id"].clone()))
            .collect()
    };
    let expected: Vec<(Value, Value)> =
        (0..3).map(|row| (json!(row.to_string()), json!((70 + row).to_string()))).collect();
    assert_eq!(ids(&items), expected);
    let shown = dir.bench(&["runs", id, "--items"]).stdout;
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
    };
    let header = shown.lines().map(cells).find(|cells| cells.iter().any(|cell| cell == "source id")).unwrap();
    let (item, own) =
        ["item", "source id"].map(|name| header.iter().position(|cell| cell == name).unwrap()).into();
    let row = shown.lines().map(cells).find(|cells| cells.get(own).is_some_and(|cell| cell == "71")).unwrap();
    assert_eq!(row[item], "1", "{shown}");

    let table = std::fs::read_to_string(dir.path(run["files"]["csv"].as_str().unwrap())).unwrap();
    assert!(table.lines().next().unwrap().split(',').any(|name| name == "source_id"), "{table}");
}

#[test]
fn responses_that_match_no_item_are_refused_before_anything_is_graded() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(1_000));
    let strange = |row: usize| match row {
        3 => json!("99999"),
        500 => json!(1_070),
        998 => json!("#1000"),
        row => json!(70 + row),
    };
    dir.write("replies.jsonl", reply_lines(1_000, strange));
    let message = "3 of 1,000 responses match no item of mmlu_pro: `99999`, `1070`, `#1000`";
    run(&dir, &[]).assert_refused(1, &format!("replies.jsonl: {message}"));
    assert_no_runs(&dir);
    let output = score(&dir, &["--out", "verdicts.jsonl"]);
    output.assert_refused(1, &format!("replies.jsonl: {message}"));
    assert!(!dir.path("verdicts.jsonl").exists() && !dir.path("verdicts.jsonl.partial").exists());
    let output = score(&dir, &[]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "no verdict comes before the error");

    // Older versions named items by row index alone.
    dir.write("replies.jsonl", reply_lines(1_000, |row| json!(row.to_string())));
    for output in [run(&dir, &[]), score(&dir, &[])] {
        output
            .assert_refused(1, "70 of 1,000 responses match no item of mmlu_pro: `0`, `1`, `2`, `3`, `4`, …");
        assert!(
            output
                .stderr
                .contains("hint: items of mmlu_pro are named by the dataset's own id (`question_id`)"),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains("write a row's index, from 0, as `#0`"), "{}", output.stderr);
    }
    assert_no_runs(&dir);
}

#[test]
fn an_id_of_several_items_is_refused_and_their_rows_are_not() {
    let dir = TestDir::new();
    let twice = rows(5).replace("\"question_id\":74", "\"question_id\":71");
    dir.write("rows.jsonl", &twice);
    dir.write("replies.jsonl", reply_lines(5, |row| if row == 4 { json!(71) } else { json!(70 + row) }));
    // Both lines have the same id, so the file alone shows the error.
    run(&dir, &[]).assert_refused(1, "line 5: the same item and sample as in line 2");
    dir.write("replies.jsonl", reply_lines(4, |row| json!(70 + row)));
    for output in [run(&dir, &[]), score(&dir, &[])] {
        output.assert_refused(
            1,
            "1 of 4 responses matches more than one item of mmlu_pro: `71` (items #1, #4)",
        );
        assert!(
            output.stderr.contains("hint: name such an item by the index of its row"),
            "{}",
            output.stderr
        );
    }
    assert_no_runs(&dir);
    let order = ["--model", "oracle", "--item", "71"];
    let args = ["run", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=rows.jsonl"];
    dir.bench(&[&args[..], &order].concat())
        .assert_refused(2, "mmlu_pro has more than one item 71 (items #1, #4)");
    assert_no_runs(&dir);

    dir.write("replies.jsonl", reply_lines(5, |row| json!(format!("#{row}"))));
    assert_eq!(result(&run(&dir, &[]))["score"], 1.0);
    assert!(score(&dir, &[]).stderr.contains("accuracy 100.0%"));
}

#[test]
fn two_answers_to_one_question_are_refused() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(2));
    let file =
        [reply_lines(2, |row| json!(70 + row)), reply_lines(1, |row| json!(format!("#{row}")))].concat();
    dir.write("replies.jsonl", &file);
    run(&dir, &[]).assert_refused(
        1,
        "replies.jsonl: lines 1 and 3 answer the same question: `70` and `#0` are one item of mmlu_pro",
    );
    assert_no_runs(&dir);
    dir.write("replies.jsonl", file.replace("\"#0\"", "\"#0\",\"benchmark\":\"mmlu-pro\""));
    run(&dir, &[]).assert_refused(1, "1 of 3 responses is for an unknown benchmark: `mmlu-pro`");
    // The file may also contain another benchmark's responses.
    dir.write("replies.jsonl", file.replace("\"#0\"", "\"99999\",\"benchmark\":\"hle\""));
    assert_eq!(result(&run(&dir, &[]))["score"], 1.0);
}

#[test]
fn a_line_for_any_benchmark_belongs_to_those_that_have_its_item() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(2));
    dir.write("problems.jsonl", "{\"id\": 5, \"problem\": \"1+1?\", \"answer\": \"2\", \"url\": \"\"}\n");
    let two =
        ["--benchmark", "aime_2022_2024", "--dataset", "aime_2022_2024=problems.jsonl", "--samples", "1"];
    let of_aime = "{\"item_id\": 5, \"response\": \"\\\\boxed{2}\"}\n";
    let good = reply_lines(2, |row| json!(70 + row)) + of_aime;
    dir.write("replies.jsonl", &good);
    let output = run(&dir, &two);
    assert_eq!((output.code, &result(&output)["score"]), (0, &json!(1.0)), "{}", output.stderr);
    dir.write("replies.jsonl", good + "{\"item_id\": 6, \"response\": \"x\"}\n");
    run(&dir, &two).assert_refused(1, "1 of 4 responses matches no item of mmlu_pro, aime_2022_2024: `6`");
}

#[test]
fn demo_items_do_not_stand_in_for_those_that_were_answered() {
    let dir = TestDir::new();
    // The demo data has these ids, too. The hub can't be reached.
    dir.write("replies.jsonl", "{\"id\": 1, \"item_id\": 101, \"response\": \"The answer is (A).\"}\n");
    let args = ["run", "--model", "replay:replies.jsonl", "--benchmark", "mmlu_pro", "--item", "101"];
    dir.bench(&args).assert_refused(1, "mmlu_pro: stored responses are not graded against demo items");
    assert_no_runs(&dir);
    let output = dir.bench(&[&args[..], &["--demo", "--json"]].concat());
    assert_eq!(result(&output)["results"][0]["outcomes"]["incorrect"], 1);
    // The error isn't caused by a line of the file.
    let output = dir.bench(&["score", "mmlu_pro", "--responses", "replies.jsonl"]);
    assert!(output.stderr.contains("\nhint: give --dataset FILE"), "{}", output.stderr);
    output.assert_refused(1, "error: mmlu_pro: responses are not graded against demo items: the hub at");
}

#[test]
fn items_are_chosen_by_their_own_ids_and_by_row() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(100));
    let args =
        ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=rows.jsonl", "--json"];
    // 72 is the id of row 2, and the index of another row.
    for (names, chosen) in [(["72", "#99"], ["2", "99"]), (["#72", "169"], ["72", "99"])] {
        let [one, other] = names;
        let run = dir.json(&[&args[..], &["--item", one, "--item", other]].concat());
        assert_eq!(run[0]["score"], 1.0);
        let items = dir.json(&["runs", run[0]["id"].as_str().unwrap(), "--items", "--json"]);
        let ids: Vec<&str> =
            items.as_array().unwrap().iter().map(|item| item["item_id"].as_str().unwrap()).collect();
        assert_eq!(ids, chosen);
    }
    let missing = dir.bench(&[&args[..], &["--item", "5", "--item", "72", "--item", "#100"]].concat());
    missing.assert_refused(2, "--item: mmlu_pro has no item 5, #100 (2 of 3 named)");
    assert!(missing.stderr.contains("write a row's index, from 0, as `#5`"), "{}", missing.stderr);
}

#[test]
fn a_null_response_counts_as_no_answer() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(10));
    let all = reply_lines(10, |row| json!(70 + row));
    dir.write("replies.jsonl", all.replacen("\"The answer is (B).\"", "null", 1));
    let run = result(&run(&dir, &[]));
    let outcomes = &run["results"][0]["outcomes"];
    assert_eq!((&outcomes["correct"], &outcomes["no-answer"]), (&json!(9), &json!(1)));
    assert_eq!((&run["score"], &run["coverage"]), (&json!(0.9), &json!(1.0)));
    let output = score(&dir, &[]);
    assert!(
        output.stderr.contains("coverage 100.0%, 9 correct, accuracy 90.0%; 1 no-answer"),
        "{}",
        output.stderr
    );
}

#[test]
fn items_are_found_for_responses_that_can_be_read_only_once() {
    use std::io::Write;
    let dir = TestDir::new();
    dir.write("rows.jsonl", rows(50));
    let args = ["score", "mmlu_pro", "--responses", "-", "--dataset", "rows.jsonl"];
    let graded = |replies: &str| {
        let mut command = dir.command(&args);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(replies.as_bytes()).unwrap();
        CommandOutput::new(&child.wait_with_output().unwrap())
    };
    let output = graded(&reply_lines(50, |row| json!(70 + row)));
    assert!(output.code == 0 && output.stderr.contains("50 correct, accuracy 100.0%"), "{}", output.stderr);
    let output = graded(&reply_lines(50, |row| json!(71 + row)));
    output.assert_refused(1, "standard input: 1 of 50 responses matches no item of mmlu_pro: `120`");
    assert_eq!(output.stdout, "");
}
