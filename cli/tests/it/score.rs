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
    // The vectors say what is extracted; each is graded against a gold answer that it meets and one that it misses.
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
    assert!(done.err.contains(&format!("mmlu_pro: {} responses", cases.len())), "{}", done.err);
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
    // Rows of worked examples count, so the first item is row 1.
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
    score(&["--dataset", "items.jsonl"]).refused(1, "in.jsonl, line 1: mmlu_pro has no item `999`");
    // Without a network there is nothing to look up, and demo items are not a substitute.
    score(&[]).refused(1, "line 1");
}
