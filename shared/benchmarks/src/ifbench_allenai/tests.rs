use std::collections::BTreeSet;

use bench_domain::{Answer, Outcome, Prompt, Verdict};
use bench_items::{Item, Layout, Row};
use serde_json::{Map, Value, json};

use super::*;
use crate::benchmark::Benchmark;
use crate::material::Material;
use crate::metrics::FinishedSample;
use crate::score::score_line;
use crate::scorers::instructions::request::NO_REFERENCE;

/// Parameters in each entry of the dataset's `kwargs`, most of them `null`.
#[rustfmt::skip]
const COLUMNS: [&str; 42] = [
    "N", "capital_frequency", "capital_relation", "end_phrase", "first_word", "forbidden_words", "frequency",
    "keyword", "keyword1", "keyword2", "keyword3", "keyword4", "keyword5", "keywords", "language",
    "let_frequency", "let_relation", "letter", "m", "max_words", "min_words", "n", "n_end", "n_start",
    "nth_paragraph", "num_bullets", "num_highlights", "num_paragraphs", "num_placeholders", "num_sections",
    "num_sentences", "num_words", "options", "percentage", "postscript_marker", "prompt_to_repeat",
    "reference_text", "relation", "section_spliter", "sep", "small_n", "word",
];

fn vectors() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/ifbench_allenai_extract.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn demo() -> Vec<Item> {
    let rows = SPEC.demo.items.lines().map(|line| serde_json::from_str::<Row>(line).unwrap());
    (0..).zip(rows).map(|(at, row)| IF_BENCH_ALLENAI.item(at, row).unwrap().unwrap()).collect()
}

fn item(row: Value) -> Item {
    let Value::Object(row) = row else { panic!("no object") };
    IF_BENCH_ALLENAI.item(0, row).unwrap().unwrap()
}

fn grade_answer(item: &Item, text: &str) -> Verdict {
    IF_BENCH_ALLENAI.grade(item, &Answer::local(text)).done().unwrap()
}

#[test]
fn verdicts_match_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 400);
    for row in vectors {
        let line = score_line(&IF_BENCH_ALLENAI, &row, None).unwrap();
        assert_eq!(line.detail["strict"], row["strict"], "strict: {row:?}");
        assert_eq!(line.detail["loose"], row["loose"], "loose: {row:?}");
        let is_right = row["loose"].as_array().unwrap().iter().all(|follows| *follows == Value::Bool(true));
        assert_eq!(line.correct, is_right, "{row:?}");
    }
}

/// Rows at the hub list all parameters of all instructions; those that are `null` are unused.
#[test]
fn parameters_that_are_null_do_not_matter() {
    for mut row in vectors() {
        let plain = score_line(&IF_BENCH_ALLENAI, &row, None).unwrap();
        for entry in row["kwargs"].as_array_mut().unwrap() {
            let entry = entry.as_object_mut().unwrap();
            for name in COLUMNS {
                entry.entry(name).or_insert(Value::Null);
            }
        }
        assert_eq!(score_line(&IF_BENCH_ALLENAI, &row, None).unwrap(), plain, "{row:?}");
    }
}

#[test]
fn the_demo_has_each_type_in_the_columns_of_the_dataset() {
    let mut types = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for item in demo() {
        let ids = item.row["instruction_id_list"].as_array().unwrap();
        types.extend(ids.iter().map(|id| id.as_str().unwrap().to_owned()));
        keys.insert(item.row["key"].as_str().unwrap().to_owned());
        for kwargs in item.row["kwargs"].as_array().unwrap() {
            let names: BTreeSet<&str> = kwargs.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, BTreeSet::from(COLUMNS));
        }
        let verdict = grade_answer(&item, &IF_BENCH_ALLENAI.oracle(&item));
        assert_eq!(verdict.outcome, Outcome::Correct, "{}: {}", item.id, verdict.reason);
        assert_eq!(verdict.detail["strict"], json!(vec![true; ids.len()]), "{}", item.id);
        // An item whose instructions every text follows would demonstrate nothing. (In loose mode, every text follows
        // `format:sub-bullets`: without asterisks it has no bullets.)
        let wrong = [
            "q, Q q Q q. Q q Q. \"q\"",
            "* one\n* two two\nand\nmore\n ?",
            "(Nothing of that \"kind\", a pea",
        ];
        let is_missed = |text: &&str| {
            grade_answer(&item, text).detail["strict"].as_array().unwrap().contains(&Value::Bool(false))
        };
        assert!(wrong.iter().any(is_missed), "{}: {ids:?}", item.id);
    }
    assert_eq!((types.len(), keys.len()), (57, demo().len()));
}

#[test]
fn one_variant_that_follows_is_enough() {
    let item = item(json!({
        "prompt": "?",
        "instruction_id_list": ["format:no_whitespace", "count:numbers"],
        "kwargs": [null, {"N": 1.0, "word": null}],
    }));
    let verdict = grade_answer(&item, "Here it is:\n**seven-7**");
    assert_eq!((verdict.outcome, verdict.score, &verdict.extracted), (Outcome::Correct, Some(1.0), &None));
    assert_eq!(
        Value::Object(verdict.detail),
        json!({
            "instruction_id_list": ["format:no_whitespace", "count:numbers"],
            "strict": [false, true],
            "loose": [true, true],
        })
    );
    let verdict = grade_answer(&item, "7 and 8");
    assert_eq!((verdict.outcome, verdict.score), (Outcome::Incorrect, Some(0.0)));
    assert_eq!(verdict.reason, "Not followed: format:no_whitespace, count:numbers.");
    assert_eq!(grade_answer(&item, " \n").outcome, Outcome::NoAnswer);
}

#[test]
fn an_item_that_cannot_be_checked_is_not_a_wrong_answer() {
    for (id, kwargs, cause) in [
        ("no:such", json!({}), "instruction `no:such` is unknown"),
        ("count:numbers", json!({"N": "3"}), "instruction `count:numbers`: parameter `N` is not a number"),
        ("count:numbers", json!({}), "instruction `count:numbers`: parameter `N` is missing"),
        (
            "words:start_verb",
            json!({}),
            "instruction `words:start_verb` cannot be checked: the part-of-speech tagger model of NLTK is not part of \
             this program",
        ),
    ] {
        let row = json!({
            "prompt": "?",
            "instruction_id_list": ["format:no_whitespace", id],
            "kwargs": [{}, kwargs],
        });
        let verdict = grade_answer(&item(row), "text");
        assert_eq!((verdict.outcome, verdict.score), (Outcome::InfrastructureError, None));
        assert_eq!(verdict.reason, format!("The item cannot be graded: {cause}."));
    }
}

#[test]
fn the_instructions_of_ifeval_are_known_as_well() {
    let row = json!({
        "prompt": "?",
        "instruction_id_list": ["punctuation:no_comma", "format:no_whitespace"],
        "kwargs": [{}, {}],
    });
    assert_eq!(grade_answer(&item(row.clone()), "fine").outcome, Outcome::Correct);
    assert_eq!(grade_answer(&item(row), "well,fine").detail["loose"], json!([false, true]));
}

#[test]
fn the_request_is_the_only_message() {
    let ask = |row: Value| IF_BENCH_ALLENAI.prompt(&item(row), &Material::default());
    assert_eq!(ask(json!({"prompt": " Say hi. "})).unwrap(), Prompt::user(" Say hi. "));
    for (row, cause) in [
        (json!({}), "is missing"),
        (json!({"prompt": null}), "is missing"),
        (json!({"prompt": 3}), "is not a string"),
        (json!({"prompt": ""}), "is empty"),
    ] {
        assert_eq!(ask(row).unwrap_err().to_string(), format!("column `prompt`: {cause}"));
    }
    assert_eq!(IF_BENCH_ALLENAI.oracle(&item(Value::Object(Map::new()))), NO_REFERENCE);
}

#[test]
fn figures_are_computed_from_verdicts() {
    let mut figures = IF_BENCH_ALLENAI.metrics().unwrap();
    let items = demo();
    for item in &items {
        let verdict = grade_answer(item, &IF_BENCH_ALLENAI.oracle(item));
        figures.add(&FinishedSample { item: 0, group: None, verdict: &verdict });
    }
    let figures = figures.finish(items.len() as u64);
    for name in METADATA.metrics.iter().filter(|name| name.contains("_level_")) {
        assert_eq!(figures[*name], json!(1.0), "{name}");
    }
    assert_eq!(figures["instruction_types"].as_object().unwrap().len(), 57);
}
