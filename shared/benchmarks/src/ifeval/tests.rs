use std::collections::BTreeSet;

use bench_domain::{Answer, Finish, Outcome, Prompt, Verdict};
use bench_items::{Item, Layout, Row};
use serde_json::{Value, json};

use super::*;
use crate::benchmark::Benchmark;
use crate::material::Material;
use crate::metrics::FinishedSample;
use crate::scorers::instructions::request::NO_REFERENCE;

fn demo() -> Vec<Item> {
    let rows = SPEC.demo.items.lines().map(|line| serde_json::from_str::<Row>(line).unwrap());
    (0..).zip(rows).map(|(at, row)| IF_EVAL.item(at, row).unwrap().unwrap()).collect()
}

fn item(row: Value) -> Item {
    let Value::Object(row) = row else { panic!("no object") };
    IF_EVAL.item(0, row).unwrap().unwrap()
}

fn grade_answer(item: &Item, text: &str) -> Verdict {
    IF_EVAL.grade(item, &Answer::local(text)).done().unwrap()
}

#[test]
fn the_demo_has_each_type_in_the_columns_of_the_dataset() {
    let columns = "capital_frequency capital_relation end_phrase first_word forbidden_words frequency keyword keywords \
        language let_frequency let_relation letter nth_paragraph num_bullets num_highlights num_paragraphs \
        num_placeholders num_sections num_sentences num_words postscript_marker prompt_to_repeat relation \
        section_spliter";
    let columns: Vec<&str> = columns.split_whitespace().collect();
    let mut types = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for item in demo() {
        let ids = item.row["instruction_id_list"].as_array().unwrap();
        types.extend(ids.iter().map(|id| id.as_str().unwrap().to_owned()));
        keys.insert(item.row["key"].as_u64().unwrap());
        for kwargs in item.row["kwargs"].as_array().unwrap() {
            let mut names: Vec<&str> = kwargs.as_object().unwrap().keys().map(String::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, columns);
        }
        let verdict = grade_answer(&item, &IF_EVAL.oracle(&item));
        assert_eq!(verdict.outcome, Outcome::Correct, "{}: {}", item.id, verdict.reason);
        assert_eq!(verdict.detail["strict"].as_array().unwrap().len(), ids.len());
        // A demo item whose instructions every text follows would show nothing.
        let others = ["Quick, dig the ocean with a shovel. So said Queen Qa. Then? Quit!", "Qa qa."];
        let is_missed = |text: &&str| grade_answer(&item, text).outcome == Outcome::Incorrect;
        assert!(others.iter().any(is_missed), "{}", item.id);
    }
    assert_eq!((types.len(), keys.len()), (25, demo().len()));
}

#[test]
fn all_instructions_must_be_followed_strictly() {
    let item = item(json!({
        "prompt": "?",
        "instruction_id_list": ["punctuation:no_comma", "startend:end_checker"],
        "kwargs": [null, {"end_phrase": "done.", "keyword": null}],
    }));
    let verdict = grade_answer(&item, "It is done.");
    assert_eq!((verdict.outcome, verdict.score, &verdict.extracted), (Outcome::Correct, Some(1.0), &None));
    assert_eq!(
        Value::Object(verdict.detail),
        json!({
            "instruction_id_list": ["punctuation:no_comma", "startend:end_checker"],
            "strict": [true, true],
            "loose": [true, true],
        })
    );
    let verdict = grade_answer(&item, "Well, \nit is done.\nBye");
    assert_eq!((verdict.outcome, verdict.score), (Outcome::Incorrect, Some(0.0)));
    assert_eq!(verdict.reason, "Not followed: punctuation:no_comma, startend:end_checker.");
    assert_eq!(
        (&verdict.detail["strict"], &verdict.detail["loose"]),
        (&json!([false, false]), &json!([true, true]))
    );

    for text in ["", " \n\u{1c}"] {
        let verdict = grade_answer(&item, text);
        assert_eq!((verdict.outcome, verdict.score), (Outcome::NoAnswer, Some(0.0)));
        assert_eq!(verdict.detail["loose"], json!([false, false]));
    }
    let cut = Answer { finish: Finish::Length, ..Answer::local("It is, I think") };
    let verdict = IF_EVAL.grade(&item, &cut).done().unwrap();
    assert_eq!((verdict.outcome, verdict.score), (Outcome::Truncated, Some(0.0)));
}

#[test]
fn an_item_that_cannot_be_checked_is_not_a_wrong_answer() {
    for (row, cause) in [
        (
            json!({"prompt": "?", "instruction_id_list": ["no:such"], "kwargs": [{}]}),
            "instruction `no:such` is unknown",
        ),
        (
            json!({"prompt": "?", "instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": 3}]}),
            "instruction `keywords:existence`: parameter `keywords` is not a list",
        ),
        (json!({"prompt": "?", "kwargs": []}), "column `instruction_id_list`: is missing"),
        (
            json!({"prompt": "?", "instruction_id_list": ["punctuation:no_comma"]}),
            "column `kwargs`: is missing",
        ),
    ] {
        let item = item(row);
        let verdict = grade_answer(&item, "text");
        assert_eq!((verdict.outcome, verdict.score), (Outcome::InfrastructureError, None));
        assert_eq!(verdict.reason, format!("The item cannot be graded: {cause}."));
    }
    for (row, cause) in [
        (json!({}), "is missing"),
        (json!({"prompt": 3}), "is not a string"),
        (json!({"prompt": ""}), "is empty"),
    ] {
        let problem = IF_EVAL.prompt(&item(row), &Material::default()).unwrap_err();
        assert_eq!(problem.to_string(), format!("column `prompt`: {cause}"));
    }
}

#[test]
fn the_request_is_the_only_message_and_has_no_known_answer() {
    let item =
        item(json!({"prompt": " Say hi. ", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}));
    assert_eq!(IF_EVAL.prompt(&item, &Material::default()).unwrap(), Prompt::user(" Say hi. "));
    assert_eq!((IF_EVAL.expected(&item).as_str(), IF_EVAL.oracle(&item).as_str()), ("", NO_REFERENCE));
}

#[test]
fn stored_responses_need_instructions_and_parameters() {
    let score = |row: Value| IF_EVAL.score_row(row.as_object().unwrap()).map_err(|error| error.to_string());
    let ids = json!(["punctuation:no_comma"]);
    let row =
        score(json!({"id": 1, "instruction_id_list": ids, "kwargs": [{}], "response": "x", "prompt": "?"}));
    assert_eq!(
        Value::Object(row.unwrap().row),
        json!({"instruction_id_list": ids, "kwargs": [{}], "prompt": "?"})
    );
    // A row with an item id gets missing columns from that item.
    let named = |mut row: Value| {
        row["item_id"] = json!("0");
        score(row).unwrap_err()
    };
    assert_eq!(named(json!({"kwargs": []})), "column `instruction_id_list`: is missing");
    assert_eq!(named(json!({"instruction_id_list": ids})), "column `kwargs`: is missing");
}

#[test]
fn stored_responses_with_wrong_columns_fail_individually() {
    for (row, cause) in [
        (json!({"kwargs": [{}]}), "column `instruction_id_list`: is missing"),
        (json!({"instruction_id_list": "x", "kwargs": [{}]}), "column `instruction_id_list`: is not a list"),
        (json!({"instruction_id_list": 7, "kwargs": [{}]}), "column `instruction_id_list`: is not a list"),
        (
            json!({"instruction_id_list": [1], "kwargs": [{}]}),
            "column `instruction_id_list`: has an entry that is not a string",
        ),
        (json!({"instruction_id_list": ["punctuation:no_comma"]}), "column `kwargs`: is missing"),
        (
            json!({"instruction_id_list": ["punctuation:no_comma"], "kwargs": 3}),
            "column `kwargs`: is not a list",
        ),
    ] {
        let mut row = row.as_object().unwrap().clone();
        row.extend([("id".to_owned(), json!(1)), ("response".to_owned(), json!("text"))]);
        for name in ["ifbench", "ifbench_allenai"] {
            let line = crate::score::score_line(crate::find(name).unwrap(), &row, None).unwrap();
            assert_eq!((line.outcome, line.score, line.correct), (Outcome::InfrastructureError, None, false));
            assert_eq!(line.detail["reason"], format!("The item cannot be graded: {cause}."), "{name}");
        }
    }
}

#[test]
fn figures_are_computed_from_verdicts() {
    let mut figures = IF_EVAL.metrics().unwrap();
    for item in demo() {
        let verdict = grade_answer(&item, &IF_EVAL.oracle(&item));
        figures.add(&FinishedSample { item: 0, group: None, verdict: &verdict });
    }
    let figures = figures.finish(29);
    for name in
        ["prompt_level_strict", "instruction_level_strict", "prompt_level_loose", "instruction_level_loose"]
    {
        assert_eq!(figures[name], json!(1.0));
        assert!(METADATA.metrics.contains(&name));
    }
    assert_eq!(figures["instruction_types"].as_object().unwrap().len(), 25);
}
