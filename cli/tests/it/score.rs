//! `bench score`, against the official verdicts.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir, mmlu_pro_rows, vector_path};

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn mmlu_pro_agrees_with_every_official_verdict() {
    let dir = TestDir::new();
    let cases = lines(&vector_path("mmlu_pro_extract.jsonl"));
    // The vectors have the extracted answers. Each is graded against one gold answer that matches and one that doesn't.
    let golds = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
    let input: String = cases
        .iter()
        .enumerate()
        .map(|(n, case)| {
            let gold = match (n % 2, case["official"].as_str()) {
                (0, Some(letter)) => letter,
                _ => golds[n % golds.len()],
            };
            format!(
                "{}\n",
                json!({ "id": case["id"], "response": case["response"], "answer": gold, "more": 1 })
            )
        })
        .collect();
    let file = dir.write("replies.jsonl", &input);
    let output =
        dir.bench(&["score", "mmlu_pro", "--responses", file.to_str().unwrap(), "--out", "verdicts.jsonl"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{}", output.stderr);
    let verdicts = lines(&dir.path("verdicts.jsonl"));
    assert_eq!(verdicts.len(), cases.len());
    assert!(cases.len() > 100);
    let golds = lines(&file);
    for ((case, verdict), gold) in cases.iter().zip(&verdicts).zip(&golds) {
        assert_eq!(verdict["id"], case["id"]);
        assert_eq!(verdict["extracted"], case["official"], "{case}");
        let correct = case["official"] == gold["answer"];
        assert_eq!(verdict["correct"], correct, "{case}");
        assert_eq!(verdict["score"], if correct { 1.0 } else { 0.0 });
    }
    assert!(
        output.stderr.contains(&format!("mmlu_pro (mmlu-pro-api): {} responses", cases.len())),
        "{}",
        output.stderr
    );
}

#[test]
fn aime_2025_agrees_with_every_official_verdict() {
    let dir = TestDir::new();
    let path = vector_path("aime_2025_extract.jsonl");
    let output = dir.bench(&["score", "aime_2025", "--responses", path.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let cases = lines(&path);
    let verdicts: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), cases.len());
    assert!(cases.len() > 100);
    for (case, verdict) in cases.iter().zip(&verdicts) {
        assert_eq!(verdict["id"], case["id"]);
        assert_eq!(verdict["correct"], case["matharena_correct"], "{case}\n{verdict}");
        let keys: Vec<&str> = verdict.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["id", "extracted", "correct", "score", "outcome", "detail"];
        expected.sort_unstable();
        let mut keys = keys;
        keys.sort_unstable();
        assert_eq!(keys, expected);
    }
    assert!(!dir.path("data").exists(), "grading needs no data directory");
}

#[test]
fn gpqa_diamond_agrees_with_every_verdict_of_both_protocols() {
    let dir = TestDir::new();
    let cases = lines(&vector_path("gpqa_diamond_extract.jsonl"));
    assert!(cases.len() > 100);
    for (protocol, column, parser) in [
        (Some("simple-evals"), "simple_evals", "simple_evals"),
        (None, "simple_evals", "simple_evals"),
        (Some("authors"), "official_gpqa_repo", "gpqa_authors"),
    ] {
        let golds: Vec<String> = (0..cases.len())
            .map(|n| match (n % 2, cases[n][column].as_str()) {
                (0, Some(letter)) => letter.to_uppercase(),
                _ => ["A", "B", "C", "D"][n % 4].to_owned(),
            })
            .collect();
        let input: String = cases
            .iter()
            .zip(&golds)
            .map(|(case, gold)| {
                format!("{}\n", json!({ "id": case["id"], "response": case["response"], "answer": gold }))
            })
            .collect();
        dir.write("replies.jsonl", &input);
        let mut args = vec!["score", "gpqa_diamond", "--responses", "replies.jsonl"];
        args.extend(protocol.iter().flat_map(|protocol| ["--protocol", protocol]));
        let output = dir.bench(&args);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let verdicts: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(verdicts.len(), cases.len());
        for ((case, verdict), gold) in cases.iter().zip(&verdicts).zip(&golds) {
            assert_eq!((&verdict["id"], &verdict["extracted"]), (&case["id"], &case[column]), "{case}");
            // As specified, a lower-case letter is extracted but incorrect.
            let correct = case[column] == gold.as_str();
            assert_eq!(verdict["correct"], correct, "{case}");
            assert_eq!(verdict["score"], if correct { 1.0 } else { 0.0 });
            assert_eq!(verdict["detail"]["parser"], parser);
        }
    }
}

#[test]
fn gpqa_items_are_looked_up_with_their_sample() {
    let dir = TestDir::new();
    // Sample 0 shows the correct answer of row 0 third, as drawn by Random(0). Sample 1 shows it elsewhere.
    let replies: String = ["A", "B", "C", "D"]
        .iter()
        .flat_map(|letter| (0..2).map(move |sample| (letter, sample)))
        .map(|(letter, sample)| {
            let response = format!("Answer: {letter}");
            format!("{}\n", json!({ "id": letter, "item_id": "#0", "sample": sample, "response": response }))
        })
        .collect();
    dir.write("in.jsonl", &replies);
    let output = dir.bench(&["score", "gpqa_diamond", "--demo", "--responses", "in.jsonl"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let verdicts: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let right = |sample: usize| {
        let of_sample = verdicts.iter().skip(sample).step_by(2);
        let right: Vec<&Value> = of_sample.filter(|verdict| verdict["correct"] == true).collect();
        assert_eq!(right.len(), 1);
        right[0]["id"].clone()
    };
    let permutations = std::fs::read_to_string(vector_path("gpqa_permutations.json")).unwrap();
    let permutations: Value = serde_json::from_str(&permutations).unwrap();
    for sample in 0..2 {
        let order = &permutations["simple_evals_repeats4"]["permutations"][sample * 198];
        let shown = order.as_array().unwrap().iter().position(|at| at == 0).unwrap();
        assert_eq!(right(sample), ["A", "B", "C", "D"][shown]);
    }
    dir.write(
        "in.jsonl",
        "{\"id\": 1, \"item_id\": \"bench-demo-00\", \"sample\": \"first\", \"response\": \"x\"}\n",
    );
    let score = ["score", "gpqa_diamond", "--demo", "--responses", "in.jsonl"];
    dir.bench(&score).assert_refused(1, "line 1: column `sample`");
}

#[test]
fn an_unknown_protocol_is_refused_with_those_that_there_are() {
    let dir = TestDir::new();
    dir.write("in.jsonl", "");
    for (benchmark, known) in
        [("gpqa_diamond", "it has simple-evals, authors"), ("mmlu_pro", "it has mmlu-pro-api")]
    {
        let output = dir.bench(&["score", benchmark, "--protocol", "official", "--responses", "in.jsonl"]);
        output.assert_refused(2, known);
    }
}

#[test]
fn a_bad_line_is_named_and_nothing_half_done_is_left() {
    let dir = TestDir::new();
    for (line, part) in [
        ("{\"id\": 1, \"response\": \"x\"", "line 2: it is not JSON"),
        ("[1]", "line 2: it is not a JSON object"),
        ("{\"id\": 1, \"response\": \"x\"}", "line 2: column `answer`"),
        ("{\"response\": \"x\", \"answer\": \"C\"}", "line 2: column `id`: is missing"),
        ("{\"id\": 1, \"answer\": \"C\"}", "line 2: column `response`"),
        ("{\"id\": 1, \"response\": 7, \"answer\": \"C\"}", "line 2: column `response`: is not a string"),
        ("{\"id\": 1, \"response\": \"x\", \"answer\": 7}", "line 2: column `answer`"),
    ] {
        let good = "{\"id\": 0, \"response\": \"The answer is (C).\", \"answer\": \"C\"}\n";
        dir.write("in.jsonl", format!("{good}{line}\n"));
        let output = dir.bench(&["score", "mmlu_pro", "--responses", "in.jsonl", "--out", "out.jsonl"]);
        output.assert_refused(1, part);
        assert!(!dir.path("out.jsonl").exists() && !dir.path("out.jsonl.partial").exists());
    }
}

#[test]
fn standard_input_is_a_file_too() {
    use std::io::Write;
    let dir = TestDir::new();
    let mut command = dir.command(&["score", "mmlu_pro", "--responses", "-"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\n{\"id\": \"a\", \"response\": \"answer: C\", \"answer_index\": 2}\n").unwrap();
    drop(stdin);
    let output = CommandOutput::new(&child.wait_with_output().unwrap());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let verdict: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&verdict["correct"], &verdict["outcome"]), (&json!(true), &json!("correct")));
}

#[test]
fn items_are_looked_up_by_their_ids() {
    let dir = TestDir::new();
    dir.write("items.jsonl", crate::support::mmlu_pro_rows(5));
    let reply =
        |item: &str, text: &str| format!("{}\n", json!({ "id": item, "item_id": item, "response": text }));
    dir.write("in.jsonl", [reply("1", "The answer is (C)."), reply("3", "The answer is (A).")].concat());
    let score = |extra: &[&str]| {
        let args = [&["score", "mmlu_pro", "--responses", "in.jsonl"], extra].concat();
        dir.bench(&args)
    };
    let output = score(&["--dataset", "items.jsonl"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let outcomes: Vec<Value> =
        output.stdout.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["outcome"].clone()).collect();
    assert_eq!(outcomes, ["correct", "incorrect"]);

    dir.write("in.jsonl", reply("999", "x"));
    let output = score(&["--dataset", "items.jsonl"]);
    output.assert_refused(1, "in.jsonl: 1 of 1 responses matches no item of mmlu_pro: `999`");
    // Without a network, items can't be looked up, and demo items aren't a substitute.
    score(&[]).assert_refused(1, "mmlu_pro: responses are not graded against demo items");
}

#[test]
fn a_row_that_cannot_be_graded_ends_alone_and_lowers_the_coverage() {
    let dir = TestDir::new();
    let row = |id: usize, ids: Value, kwargs: Value| {
        let line = json!({ "id": id, "response": "no commas", "instruction_id_list": ids, "kwargs": kwargs });
        format!("{line}\n")
    };
    let good = |id: usize| row(id, json!(["punctuation:no_comma"]), json!([{}]));
    for benchmark in ["ifbench", "ifbench_allenai"] {
        for (ids, kwargs) in [
            (json!("punctuation:no_comma"), json!([{}])),
            (json!([7]), json!([{}])),
            (json!(["punctuation:no_comma"]), json!("x")),
            (Value::Null, json!([{}])),
        ] {
            let bad = row(99, ids, kwargs);
            let most: String = (0..9).map(good).chain([bad.clone()]).collect();
            dir.write("in.jsonl", &most);
            let output = dir.bench(&["score", benchmark, "--responses", "in.jsonl"]);
            assert_eq!(output.code, 0, "{}", output.stderr);
            assert!(output.stderr.contains("graded 9 of 10, coverage 90.0%, 9 correct"), "{}", output.stderr);
            let last: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
            assert_eq!((&last["id"], &last["outcome"]), (&json!(99), &json!("infrastructure-error")));
            assert_eq!((output.stdout.lines().count(), &last["score"]), (10, &Value::Null));

            dir.write("in.jsonl", good(0) + &bad);
            let output =
                dir.bench(&["score", benchmark, "--responses", "in.jsonl", "--out", "out.jsonl", "--force"]);
            assert_eq!(output.code, 1);
            assert!(output.stderr.contains("graded 1 of 2, coverage 50.0%"), "{}", output.stderr);
            assert!(output.stderr.contains("below 90.0%, the accuracy is not a score"), "{}", output.stderr);
            assert_eq!(lines(&dir.path("out.jsonl")).len(), 2);
            dir.bench(&["score", benchmark, "--responses", "in.jsonl", "--out", "out.jsonl"])
                .assert_refused(2, "--out: the file `out.jsonl` exists already");
            let mut command = dir.command(&["score", benchmark, "--responses", "in.jsonl"]);
            let output = CommandOutput::new(&command.env("BENCH_COVERAGE_MIN", "0.5").output().unwrap());
            assert_eq!(output.code, 0, "{}", output.stderr);
        }
    }
}

#[test]
fn without_rows_or_files_there_is_nothing_to_grade() {
    let dir = TestDir::new();
    dir.write("in.jsonl", "\n \n");
    let score = |extra: &[&str]| dir.bench(&[&["score", "mmlu_pro"], extra].concat());
    score(&["--responses", "in.jsonl", "--out", "out.jsonl"]).assert_refused(1, "`in.jsonl` has no rows");
    assert!(!dir.path("out.jsonl").exists());
    let output = score(&["--responses", "none.jsonl"]);
    assert!(!output.stderr.contains("os error"), "{}", output.stderr);
    output.assert_refused(2, "--responses: there is no file `none.jsonl`");
    let output = score(&["--responses", "in.jsonl", "--dataset", "none.jsonl"]);
    output.assert_refused(2, "--dataset: there is no file `none.jsonl`");
    let run = ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=none.jsonl"];
    dir.bench(&run).assert_refused(2, "--dataset: there is no file `none.jsonl`");
}

#[test]
fn what_needs_a_judge_is_refused_before_anything_is_read() {
    let dir = TestDir::new();
    for benchmark in ["hle", "aa_lcr", "aa_omniscience"] {
        let output = dir.bench(&["score", benchmark, "--responses", "none.jsonl"]);
        let command = format!("bench run --model replay:none.jsonl --benchmark {benchmark} --judge-model");
        output.assert_refused(2, "needs a judge");
        assert!(output.stderr.contains(&command), "{}", output.stderr);
    }
    let output = dir.bench(&["score", "hle", "--protocol", "text-only", "--responses", "-"]);
    output.assert_refused(2, "needs a judge");
    let command = "replay:FILE --benchmark hle --protocol hle=text-only --judge-model";
    assert!(output.stderr.contains(command), "{}", output.stderr);
}

#[test]
fn a_sample_that_no_run_can_have_is_refused() {
    let dir = TestDir::new();
    for sample in [json!(1_000), json!(-1), json!(1.5), json!(u64::MAX)] {
        let row = json!({ "id": 1, "item_id": "#0", "sample": sample, "response": "Answer: A" });
        dir.write("in.jsonl", row.to_string());
        let output = dir.bench(&["score", "gpqa_diamond", "--demo", "--responses", "in.jsonl"]);
        output.assert_refused(1, "line 1: column `sample`: is not the index of a sample, from 0 to 999");
    }
}

#[test]
fn grading_stops_when_its_reader_has_ended() {
    const ROWS: usize = 3_000;
    let dir = TestDir::new();
    dir.write("rows.jsonl", mmlu_pro_rows(ROWS));
    let reply = |n: usize| json!({ "id": n, "item_id": format!("#{n}"), "response": "The answer is (C)." });
    let replies: String = (0..ROWS).map(|n| format!("{}\n", reply(n))).collect();
    dir.write("replies.jsonl", replies);
    let args = ["score", "mmlu_pro", "--responses", "replies.jsonl", "--dataset", "rows.jsonl"];
    let whole = dir.bench(&args);
    assert_eq!((whole.code, whole.stdout.lines().count()), (0, ROWS), "{}", whole.stderr);
    let mut child = dir.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let cut = CommandOutput::new(&child.wait_with_output().unwrap());
    assert_eq!(cut.code, 0, "{}", cut.stderr);
    assert!(cut.stderr.contains("Stopped, since the reader of standard output has ended"), "{}", cut.stderr);
    assert!(!cut.stderr.contains("accuracy"), "{}", cut.stderr);
}
