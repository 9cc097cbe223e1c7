use serde_json::{Value, json};

use crate::support::{Done, Place, vector};

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn mmlu_pro_agrees_with_every_official_verdict() {
    let place = Place::new();
    let cases = lines(&vector("mmlu_pro_extract.jsonl"));
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
    let file = place.write("replies.jsonl", &input);
    let done =
        place.bench(&["score", "mmlu_pro", "--responses", file.to_str().unwrap(), "--out", "verdicts.jsonl"]);
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{}", done.err);
    let verdicts = lines(&place.path("verdicts.jsonl"));
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
        done.err.contains(&format!("mmlu_pro (mmlu-pro-api): {} responses", cases.len())),
        "{}",
        done.err
    );
}

#[test]
fn aime_2025_agrees_with_every_official_verdict() {
    let place = Place::new();
    let path = vector("aime_2025_extract.jsonl");
    let done = place.bench(&["score", "aime_2025", "--responses", path.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{}", done.err);
    let cases = lines(&path);
    let verdicts: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
    assert!(!place.path("data").exists(), "grading needs no data directory");
}

#[test]
fn gpqa_diamond_agrees_with_every_verdict_of_both_protocols() {
    let place = Place::new();
    let cases = lines(&vector("gpqa_diamond_extract.jsonl"));
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
        place.write("replies.jsonl", &input);
        let mut args = vec!["score", "gpqa_diamond", "--responses", "replies.jsonl"];
        args.extend(protocol.iter().flat_map(|protocol| ["--protocol", protocol]));
        let done = place.bench(&args);
        assert_eq!(done.code, 0, "{}", done.err);
        let verdicts: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
    let place = Place::new();
    // Sample 0 shows the correct answer of row 0 third, as drawn by Random(0). Sample 1 shows it elsewhere.
    let replies: String = ["A", "B", "C", "D"]
        .iter()
        .flat_map(|letter| (0..2).map(move |sample| (letter, sample)))
        .map(|(letter, sample)| {
            let response = format!("Answer: {letter}");
            format!("{}\n", json!({ "id": letter, "item_id": "#0", "sample": sample, "response": response }))
        })
        .collect();
    place.write("in.jsonl", &replies);
    let done = place.bench(&["score", "gpqa_diamond", "--demo", "--responses", "in.jsonl"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let verdicts: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let right = |sample: usize| {
        let of_sample = verdicts.iter().skip(sample).step_by(2);
        let right: Vec<&Value> = of_sample.filter(|verdict| verdict["correct"] == true).collect();
        assert_eq!(right.len(), 1);
        right[0]["id"].clone()
    };
    let permutations = std::fs::read_to_string(vector("gpqa_permutations.json")).unwrap();
    let permutations: Value = serde_json::from_str(&permutations).unwrap();
    for sample in 0..2 {
        let order = &permutations["simple_evals_repeats4"]["permutations"][sample * 198];
        let shown = order.as_array().unwrap().iter().position(|at| at == 0).unwrap();
        assert_eq!(right(sample), ["A", "B", "C", "D"][shown]);
    }
    place.write(
        "in.jsonl",
        "{\"id\": 1, \"item_id\": \"bench-demo-00\", \"sample\": \"first\", \"response\": \"x\"}\n",
    );
    let score = ["score", "gpqa_diamond", "--demo", "--responses", "in.jsonl"];
    place.bench(&score).refused(1, "line 1: column `sample`");
}

#[test]
fn an_unknown_protocol_is_refused_with_those_that_there_are() {
    let place = Place::new();
    place.write("in.jsonl", "");
    for (benchmark, known) in
        [("gpqa_diamond", "it has simple-evals, authors"), ("mmlu_pro", "it has mmlu-pro-api")]
    {
        let done = place.bench(&["score", benchmark, "--protocol", "official", "--responses", "in.jsonl"]);
        done.refused(2, known);
    }
}

#[test]
fn a_bad_line_is_named_and_nothing_half_done_is_left() {
    let place = Place::new();
    for (line, part) in [
        ("{\"id\": 1, \"response\": \"x\"", "line 2: it is not JSON"),
        ("[1]", "line 2: it is not a JSON object"),
        ("{\"id\": 1, \"response\": \"x\"}", "line 2: column `answer`"),
        ("{\"response\": \"x\", \"answer\": \"C\"}", "line 2: column `id`: is missing"),
        ("{\"id\": 1, \"answer\": \"C\"}", "line 2: column `response`"),
        ("{\"id\": 1, \"response\": 7, \"answer\": \"C\"}", "line 2: column `response`: is not a text"),
        ("{\"id\": 1, \"response\": \"x\", \"answer\": 7}", "line 2: column `answer`"),
    ] {
        let good = "{\"id\": 0, \"response\": \"The answer is (C).\", \"answer\": \"C\"}\n";
        place.write("in.jsonl", format!("{good}{line}\n"));
        let done = place.bench(&["score", "mmlu_pro", "--responses", "in.jsonl", "--out", "out.jsonl"]);
        done.refused(1, part);
        assert!(!place.path("out.jsonl").exists() && !place.path("out.jsonl.partial").exists());
    }
}

#[test]
fn standard_input_is_a_file_too() {
    use std::io::Write;
    let place = Place::new();
    let mut command = place.command(&["score", "mmlu_pro", "--responses", "-"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\n{\"id\": \"a\", \"response\": \"answer: C\", \"answer_index\": 2}\n").unwrap();
    drop(stdin);
    let done = Done::of(&child.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{}", done.err);
    let verdict: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&verdict["correct"], &verdict["outcome"]), (&json!(true), &json!("correct")));
}

#[test]
fn items_are_looked_up_by_their_ids() {
    let place = Place::new();
    place.write("items.jsonl", crate::support::mmlu_items(5));
    let reply =
        |item: &str, text: &str| format!("{}\n", json!({ "id": item, "item_id": item, "response": text }));
    place.write("in.jsonl", [reply("1", "The answer is (C)."), reply("3", "The answer is (A).")].concat());
    let score = |extra: &[&str]| {
        let args = [&["score", "mmlu_pro", "--responses", "in.jsonl"], extra].concat();
        place.bench(&args)
    };
    let done = score(&["--dataset", "items.jsonl"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let outcomes: Vec<Value> =
        done.out.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["outcome"].clone()).collect();
    assert_eq!(outcomes, ["correct", "incorrect"]);

    place.write("in.jsonl", reply("999", "x"));
    let done = score(&["--dataset", "items.jsonl"]);
    done.refused(1, "in.jsonl: 1 of 1 responses matches no item of mmlu_pro: `999`");
    // Without a network, items can't be looked up, and demo items aren't a substitute.
    score(&[]).refused(1, "mmlu_pro: responses are not graded against demo items");
}

#[test]
fn a_row_that_cannot_be_graded_ends_alone_and_lowers_the_coverage() {
    let place = Place::new();
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
            place.write("in.jsonl", &most);
            let done = place.bench(&["score", benchmark, "--responses", "in.jsonl"]);
            assert_eq!(done.code, 0, "{}", done.err);
            assert!(done.err.contains("graded 9 of 10, coverage 90.0 %, 9 correct"), "{}", done.err);
            let last: Value = serde_json::from_str(done.out.lines().last().unwrap()).unwrap();
            assert_eq!((&last["id"], &last["outcome"]), (&json!(99), &json!("infrastructure-error")));
            assert_eq!((done.out.lines().count(), &last["score"]), (10, &Value::Null));

            place.write("in.jsonl", good(0) + &bad);
            let done = place.bench(&["score", benchmark, "--responses", "in.jsonl", "--out", "out.jsonl"]);
            assert_eq!(done.code, 1);
            assert!(done.err.contains("graded 1 of 2, coverage 50.0 %"), "{}", done.err);
            assert!(done.err.contains("below 90.0 % the accuracy is not a score"), "{}", done.err);
            assert_eq!(lines(&place.path("out.jsonl")).len(), 2);
            let mut command = place.command(&["score", benchmark, "--responses", "in.jsonl"]);
            let done = Done::of(&command.env("BENCH_COVERAGE_MIN", "0.5").output().unwrap());
            assert_eq!(done.code, 0, "{}", done.err);
        }
    }
}

#[test]
fn without_rows_or_files_there_is_nothing_to_grade() {
    let place = Place::new();
    place.write("in.jsonl", "\n \n");
    let score = |extra: &[&str]| place.bench(&[&["score", "mmlu_pro"], extra].concat());
    score(&["--responses", "in.jsonl", "--out", "out.jsonl"]).refused(1, "in.jsonl has no rows");
    assert!(!place.path("out.jsonl").exists());
    let done = score(&["--responses", "none.jsonl"]);
    assert!(!done.err.contains("os error"), "{}", done.err);
    done.refused(2, "could not read none.jsonl, which --responses names: there is no such file");
    let done = score(&["--responses", "in.jsonl", "--dataset", "none.jsonl"]);
    done.refused(2, "could not read none.jsonl, which --dataset names: there is no such file");
    let run = ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=none.jsonl"];
    place.bench(&run).refused(2, "could not read none.jsonl, which --dataset names: there is no such file");
}

#[test]
fn what_needs_a_judge_is_refused_before_anything_is_read() {
    let place = Place::new();
    for benchmark in ["hle", "aa_lcr", "aa_omniscience"] {
        let done = place.bench(&["score", benchmark, "--responses", "none.jsonl"]);
        let command = format!("bench run --model replay:none.jsonl --benchmark {benchmark} --judge-model");
        done.refused(2, &command);
    }
    let done = place.bench(&["score", "hle", "--protocol", "text-only", "--responses", "-"]);
    done.refused(2, "replay:FILE --benchmark hle --protocol hle=text-only --judge-model");
}

#[test]
fn a_sample_that_no_run_can_have_is_refused() {
    let place = Place::new();
    for sample in [json!(1_000), json!(-1), json!(1.5), json!(u64::MAX)] {
        let row = json!({ "id": 1, "item_id": "#0", "sample": sample, "response": "Answer: A" });
        place.write("in.jsonl", row.to_string());
        let done = place.bench(&["score", "gpqa_diamond", "--demo", "--responses", "in.jsonl"]);
        done.refused(1, "line 1: column `sample`: is not the index of a sample, from 0 to 999");
    }
}
