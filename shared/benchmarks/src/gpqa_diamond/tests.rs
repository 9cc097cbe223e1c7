use bench_domain::{Answer, Outcome, Role};
use serde_json::{Value, json};

use super::*;

fn row(value: Value) -> Row {
    value.as_object().cloned().unwrap()
}

/// Returns a row whose answers name their columns.
fn question() -> Row {
    row(json!({
        "Record ID": "rec1", "High-level domain": "Physics", "Subdomain": "Optics", "Explanation": "Because.",
        "Question": "Which {A}?\n", "Correct Answer": " right\n", "Incorrect Answer 1": "wrong 1",
        "Incorrect Answer 2": "wrong {B}", "Incorrect Answer 3": 3,
        "Canary String": "none",
    }))
}

fn item(index: u64) -> Item {
    GpqaDiamond.item(index, question()).unwrap().unwrap()
}

fn gold(benchmark: &dyn Benchmark, index: u64, sample: u32) -> String {
    benchmark.expected(&benchmark.item_for_sample(&item(index), sample))
}

#[test]
fn an_item_keeps_only_the_columns_that_are_needed() {
    let item = item(7);
    assert_eq!((item.id.as_str(), item.group.as_deref()), ("7", Some("Physics")));
    assert_eq!(item.row.len(), 8);
    assert!(!item.row.contains_key("Explanation") && !item.row.contains_key("Canary String"));
    assert_eq!(GpqaDiamondAuthors.item(7, question()).unwrap().unwrap(), item);
}

#[test]
fn broken_rows_name_their_column() {
    for (column, value) in [
        ("Question", Value::Null),
        ("Question", json!(" ")),
        ("Correct Answer", json!(["x"])),
        ("Incorrect Answer 1", json!("")),
        ("Incorrect Answer 2", json!(true)),
        ("Incorrect Answer 3", Value::Null),
    ] {
        let mut broken = question();
        broken.insert(column.into(), value);
        assert_eq!(GpqaDiamond.item(0, broken).unwrap_err().column.as_deref(), Some(column));
    }
    let mut without = question();
    without.remove("High-level domain");
    assert_eq!(GpqaDiamond.item(0, without).unwrap().unwrap().group, None);
}

#[test]
fn the_message_is_the_template_filled_once() {
    let official = "Pick.\n\n{Question}\n\nA) {A}\nB) {B}\nC) {C}\nD) {D}";
    let templates = Templates::from([("multiple-choice".to_owned(), official.to_owned())]);
    let material = Material { templates, ..Material::default() };
    // The first draw is 3, 1, 0, 2.
    let prompt = GpqaDiamond.prompt(&item(0), &material).unwrap();
    assert_eq!(prompt.as_text(), "Pick.\n\nWhich {A}?\n\n\nA) 3\nB) wrong 1\nC)  right\n\nD) wrong {B}");
    assert_eq!((prompt.messages.len(), prompt.messages[0].role), (1, Role::User));
    assert_eq!(GpqaDiamond.expected(&item(0)), "C");
    let own = GpqaDiamond.prompt(&item(0), &Material::default()).unwrap().as_text();
    assert!(own.ends_with("\n\nWhich {A}?\n\n\nA) 3\nB) wrong 1\nC)  right\n\nD) wrong {B}"), "{own}");
    assert!(own.contains("'Answer: $LETTER'"));
    assert_eq!(GpqaDiamond.template(&material.templates).source.as_str(), "official");
    assert_eq!(GpqaDiamond.template(&Templates::new()).source.as_str(), "own");
}

#[test]
fn the_authors_have_a_system_message_and_letters_in_parentheses() {
    // First shuffle of the wrong answers and the right one.
    let prompt = GpqaDiamondAuthors.prompt(&item(0), &Material::default()).unwrap();
    let texts: Vec<_> = prompt.messages.iter().map(|m| (m.role, m.content.as_str())).collect();
    let (system, user) = (texts[0], texts[1]);
    assert_eq!(
        system,
        (Role::System, "You are a very intelligent assistant, who follows instructions directly.")
    );
    let start = "What is the correct answer to this question: Which {A}?\n\n\nChoices:\n(A) 3\n(B) wrong 1\n(C) wrong {B}\n(D)  right\n\n\n";
    let options = order::authors(0);
    assert_eq!(options, [2, 0, 1, 3]);
    assert_eq!(user.0, Role::User);
    assert!(user.1.starts_with(start), "{}", user.1);
    assert!(user.1.ends_with("\"The correct answer is (insert answer here)\""));
    assert_eq!(GpqaDiamondAuthors.expected(&item(0)), "D");
}

#[test]
fn each_sample_has_an_order_of_its_own_only_in_simple_evals() {
    let letters: Vec<String> = (0..4).map(|sample| gold(&GpqaDiamond, 0, sample)).collect();
    let expected: Vec<String> = (0..4)
        .map(|sample| {
            let at = order::simple_evals(0, sample).iter().position(|at| *at == 0).unwrap();
            LETTERS[at..=at].to_owned()
        })
        .collect();
    assert_eq!(letters, expected);
    let prompts: std::collections::BTreeSet<_> = (0..4)
        .map(|sample| {
            let (benchmark, item) = (&GpqaDiamond, item(0));
            benchmark
                .prompt(&benchmark.item_for_sample(&item, sample), &Material::default())
                .unwrap()
                .as_text()
        })
        .collect();
    assert!(prompts.len() > 1);
    assert_eq!(gold(&GpqaDiamond, 5, 0), GpqaDiamond.expected(&item(5)));
    for sample in 1..4 {
        assert_eq!(gold(&GpqaDiamondAuthors, 0, sample), gold(&GpqaDiamondAuthors, 0, 0));
    }
}

#[test]
fn every_gold_letter_is_where_its_option_is_shown() {
    for (benchmark, before) in [(&GpqaDiamond as &dyn Benchmark, ") "), (&GpqaDiamondAuthors, ") ")] {
        for index in 0..198 {
            for sample in 0..4 {
                let item = item(index);
                let item = benchmark.item_for_sample(&item, sample);
                let text = benchmark.prompt(&item, &Material::default()).unwrap().as_text();
                let gold = benchmark.expected(&item);
                assert!(
                    text.contains(&format!("{gold}{before} right\n")),
                    "{index} {sample}: {gold} in {text}"
                );
                let verdict = benchmark.grade(&item, &Answer::local(benchmark.oracle(&item))).done().unwrap();
                assert_eq!((verdict.score, verdict.extracted), (Some(1.0), Some(gold)));
            }
        }
    }
}

#[test]
fn the_first_of_equal_options_is_right() {
    let mut twins = question();
    for column in ["Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"] {
        twins.insert(column.into(), json!(" right\n"));
    }
    let item = GpqaDiamond.item(0, twins).unwrap().unwrap();
    assert_eq!((GpqaDiamond.expected(&item), GpqaDiamondAuthors.expected(&item)), ("A".into(), "A".into()));
}

#[test]
fn prompt_and_parser_belong_to_one_protocol() {
    let lettered = |benchmark: &dyn Benchmark, reply: &str| {
        let item = benchmark.score_row(&row(json!({ "answer": "C" }))).unwrap();
        benchmark.grade(&item, &Answer::local(reply)).done().unwrap()
    };
    for (reply, simple_evals, authors) in [
        ("Answer: C", Outcome::Correct, Outcome::Unparsed),
        ("The correct answer is (C).", Outcome::Unparsed, Outcome::Correct),
        ("Answer: (D)", Outcome::Unparsed, Outcome::Incorrect),
        ("Answer: c", Outcome::Incorrect, Outcome::Unparsed),
        ("", Outcome::NoAnswer, Outcome::NoAnswer),
    ] {
        let verdict = lettered(&GpqaDiamond, reply);
        assert_eq!((verdict.outcome, &verdict.detail["parser"]), (simple_evals, &json!("simple_evals")));
        assert!(verdict.score.is_some(), "{reply:?}");
        let verdict = lettered(&GpqaDiamondAuthors, reply);
        assert_eq!((verdict.outcome, &verdict.detail["parser"]), (authors, &json!("gpqa_authors")));
        assert!(verdict.score.is_some(), "{reply:?}");
    }
    let verdict = lettered(&GpqaDiamond, "ANSWER: c");
    assert_eq!(verdict.extracted.as_deref(), Some("c"));
    assert!(verdict.reason.contains("lower-case"), "{}", verdict.reason);
    assert_eq!(lettered(&GpqaDiamondAuthors, "Answer: (C)").detail["pattern"], 2);
}

#[test]
fn an_item_without_gold_is_not_graded() {
    let item = Item::new("0", None, Row::new());
    for benchmark in [&GpqaDiamond as &dyn Benchmark, &GpqaDiamondAuthors] {
        assert_eq!(benchmark.grade(&item, &Answer::local("Answer: (A)")).done().unwrap().score, None);
    }
}

#[test]
fn stored_responses_have_a_letter_or_the_columns_of_the_dataset() {
    let with_id = |id: Value| {
        let mut line = question();
        line.insert("item_id".into(), id);
        Value::Object(line)
    };
    for (line, column) in [
        (json!({}), "answer"),
        (json!({ "answer": "c" }), "answer"),
        (json!({ "gold": "E" }), "gold"),
        (json!({ "answer": 2 }), "answer"),
        (Value::Object(question()), "item_id"),
        (with_id(json!(9)), "item_id"),
        (with_id(json!("9")), "item_id"),
        (with_id(json!("#x")), "item_id"),
    ] {
        let error = GpqaDiamond.score_row(&row(line)).unwrap_err();
        assert_eq!(error.column.as_deref(), Some(column), "{error}");
    }
    for line in [json!({ "answer": " C " }), json!({ "answer": null, "gold": "C" })] {
        assert_eq!(GpqaDiamond.expected(&GpqaDiamond.score_row(&row(line)).unwrap()), "C");
    }
    let line = row(with_id(json!("#9")));
    for benchmark in [&GpqaDiamond as &dyn Benchmark, &GpqaDiamondAuthors] {
        let item = benchmark.score_row(&line).unwrap();
        let expected = |sample: u32| benchmark.expected(&benchmark.item_for_sample(&item, sample));
        assert_eq!(expected(3), gold(benchmark, 9, 3));
        assert_eq!(expected(0), gold(benchmark, 9, 0));
    }
}
