use std::collections::BTreeSet;

use bench_domain::{Answer, Finish, Outcome, Role, Stage};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;
use crate::grading::Grading;

fn row(value: Value) -> Row {
    value.as_object().cloned().unwrap()
}

fn problem() -> Row {
    row(json!({
        "question_title": "t", "question_content": "Double it.", "platform": "atcoder", "question_id": "abc_a",
        "contest_id": "abc", "contest_date": "2024-05-06T00:00:00", "starter_code": "", "difficulty": "easy",
        "public_test_cases": "[{\"input\": \"1\", \"output\": \"2\", \"testtype\": \"stdin\"}]",
        "private_test_cases": "[]", "metadata": "{}", "other": "column",
    }))
}

fn item(row: Row) -> Result<Option<Item>, RowError> {
    LiveCodeBench::LATEST.item(3, row)
}

fn problem_with(column: &str, value: Value) -> Row {
    let mut row = problem();
    row.insert(column.into(), value);
    row
}

#[test]
fn a_row_becomes_an_item() {
    let item = item(problem()).unwrap().unwrap();
    assert_eq!((item.id.as_str(), item.group.as_deref()), ("3", Some("easy")));
    assert_eq!(item.tags[row::DATE_TAG], "2024-05-06");
    assert!(!item.row.contains_key("other"));
    assert_eq!(bench_items::source_id(&LiveCodeBench::LATEST, &item.row).as_deref(), Some("abc_a"));
    assert_eq!(LiveCodeBench::LATEST.expected(&item), "passes its one test");
    assert!(LiveCodeBench::LATEST.numbers_items());
    for nothing in [json!(""), Value::Null] {
        assert_eq!(super::tests::item(problem_with("question_content", nothing)).unwrap(), None);
    }
    let listed =
        super::tests::item(problem_with("private_test_cases", json!([{"input": "1"}]))).unwrap().unwrap();
    assert_eq!(LiveCodeBench::LATEST.expected(&listed), "passes all 2 tests");
    let encoded = super::tests::item(problem_with("private_test_cases", json!("eJxx"))).unwrap().unwrap();
    assert_eq!(LiveCodeBench::LATEST.expected(&encoded), "passes all tests, 1 public and the private ones");
}

#[test]
fn broken_rows_name_their_column() {
    for (column, value) in [
        ("question_content", json!(7)),
        ("public_test_cases", Value::Null),
        ("public_test_cases", json!("")),
        ("private_test_cases", json!(7)),
        ("metadata", json!("[]")),
        ("metadata", json!("{")),
        ("metadata", json!({"func_name": 7})),
        ("contest_date", json!("yesterday")),
        ("contest_date", json!("2024-02-30T00:00:00")),
        ("contest_date", json!("2024-02-03 or so")),
        ("starter_code", json!([])),
        ("difficulty", json!(1)),
    ] {
        assert_eq!(item(problem_with(column, value)).unwrap_err().column.as_deref(), Some(column));
    }
    let mut without = problem();
    without.remove("question_content");
    assert_eq!(item(without).unwrap_err().column.as_deref(), Some("question_content"));
}

#[test]
fn methods_and_dates_are_read() {
    let method = |metadata: Value| row::method(&problem_with("metadata", metadata)).unwrap();
    assert_eq!(method(json!("{\"func_name\": \"twice\"}")).as_deref(), Some("twice"));
    assert_eq!(method(json!({"func_name": "twice"})).as_deref(), Some("twice"));
    for none in [json!("{}"), json!(""), Value::Null, json!("{\"func_name\": null}")] {
        assert_eq!(method(none), None);
    }
    let date = |text: &str| row::date(&problem_with("contest_date", json!(text))).unwrap();
    assert_eq!(date("2024-02-29").as_deref(), Some("2024-02-29"));
    assert_eq!(date("2024-02-29 00:00:00").as_deref(), Some("2024-02-29"));
    assert_eq!(date("2024-02-29T18:30:00").as_deref(), Some("2024-02-29T18:30:00"));
    assert_eq!(date(""), None);
}

fn options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn with_options(pairs: &[(&str, &str)]) -> Result<&'static dyn Benchmark, OptionError> {
    LiveCodeBench::LATEST
        .with_options(&options(pairs))
        .map(|found| found.unwrap_or(&LiveCodeBench::LATEST as &dyn Benchmark))
}

#[test]
fn releases_name_their_files() {
    let splits = |name: &str| -> Vec<&str> {
        let benchmark = with_options(&[("release", name)]).unwrap();
        let parts = benchmark.spec().sources[0].items;
        let path = |part| benchmark.files().iter().find(|file| file.part == part).unwrap().path;
        parts.iter().map(|part| path(*part)).collect()
    };
    assert_eq!(splits("release_v1"), ["test.jsonl"]);
    assert_eq!(splits("release_v2"), ["test.jsonl", "test2.jsonl"]);
    assert_eq!(splits("v6"), ["test6.jsonl"]);
    assert_eq!(splits("v4_v5"), ["test4.jsonl", "test5.jsonl"]);
    assert_eq!(splits("v1_v6"), splits("release_latest"));
    assert_eq!(splits(""), splits("release_v6"));
    let items = |name: &str| with_options(&[("release", name)]).unwrap().spec().items;
    let cumulative =
        ["release_v1", "release_v2", "release_v3", "release_v4", "release_v5", "release_v6"].map(items);
    assert_eq!(cumulative, [400, 511, 612, 713, 880, 1055]);
    assert_eq!(["v1", "v2", "v3", "v4", "v5", "v6"].map(items), [400, 111, 101, 101, 167, 175]);
    assert_eq!(items("v4_v5"), 268);

    let mut variants = BTreeSet::new();
    for first in 1..=6 {
        for last in first..=6 {
            let name = if first == last { format!("v{first}") } else { format!("v{first}_v{last}") };
            let benchmark = with_options(&[("release", &name)]).unwrap();
            assert_eq!(
                (benchmark.name(), benchmark.spec().sources[0].items.len()),
                ("livecodebench", last - first + 1)
            );
            assert!(variants.insert(benchmark.variant()), "{name}");
        }
    }
    assert_eq!(with_options(&[]).unwrap().variant(), "");
    for wrong in
        ["v0", "v7", "v10", "release_v7", "release_", "v5_v4", "v4_v4", "v4_", "V4", "latest", "v4-v5", "é"]
    {
        let error = with_options(&[("release", wrong)]).err().unwrap();
        assert!(error.to_string().contains("release_latest"), "{wrong}: {error}");
    }
}

#[test]
fn options_are_checked() {
    let error = |pairs: &[(&str, &str)]| with_options(pairs).err().unwrap().to_string();
    assert!(error(&[("relese", "v1")]).contains("has release, start_date, end_date"));
    for wrong in
        ["2024", "2024-13-01", "2023-02-29", "2024-1-1", "01-01-2024", "2024-01-01T00:00:00", "+024-01-01"]
    {
        assert!(error(&[("start_date", wrong)]).contains("start_date"), "{wrong}");
        assert!(error(&[("end_date", wrong)]).contains("end_date"), "{wrong}");
    }
    assert!(error(&[("start_date", "2024-02-01"), ("end_date", "2024-01-31")]).contains("after"));
    with_options(&[("start_date", "2024-02-29"), ("end_date", "2024-02-29")]).unwrap();
    with_options(&[("start_date", ""), ("end_date", "")]).unwrap();
    assert!(error(&[("grading", "none")]).contains("isolated or official"));
}

#[test]
fn the_grading_mode_is_an_option() {
    let grader = |pairs: &[(&str, &str)]| with_options(pairs).unwrap().sandbox().unwrap().metadata().grader;
    for isolated in [&[][..], &[("grading", "isolated")], &[("release", "v6")]] {
        assert!(grader(isolated).contains("cannot reach"), "{isolated:?}");
    }
    for official in [&[("grading", "official")][..], &[("grading", "official"), ("release", "v6")]] {
        assert!(grader(official).starts_with("lcb_runner/evaluation/testing_util.py"), "{official:?}");
    }
    let slice = with_options(&[("grading", "official"), ("release", "v4_v5")]).unwrap();
    assert_eq!((slice.variant(), slice.spec().items), ("v4-v5", 268));
}

#[test]
fn the_time_window_matches_the_official_one() {
    let selects = |date: Option<&str>, pairs: &[(&str, &str)]| {
        let tags = date.map(|date| ("date".to_owned(), date.to_owned())).into_iter().collect();
        let entry = IndexEntry { id: "0".into(), source_id: None, group: None, tags, offset: 0, length: 0 };
        LiveCodeBench::LATEST.selects(&options(pairs), &entry)
    };
    let window = [("start_date", "2024-05-06"), ("end_date", "2024-05-08")];
    for (date, expected) in [
        ("2024-05-05", false),
        ("2024-05-05T23:59:59", false),
        ("2024-05-06", true),
        ("2024-05-06T10:00:00", true),
        ("2024-05-08", true),
        ("2024-05-08T00:00:01", false),
        ("2024-05-09", false),
        ("2023-05-07", false),
    ] {
        assert_eq!(selects(Some(date), &window), expected, "{date}");
    }
    assert!(!selects(None, &window) && selects(None, &[]) && selects(None, &[("release", "v1")]));
    assert!(selects(Some("2030-01-01"), &window[..1]) && selects(Some("2000-01-01"), &window[1..]));
}

/// The official texts aren't bundled, so texts of the same lengths replace them.
fn official() -> Templates {
    let text = |length: usize| "x".repeat(length);
    [("system", 185), ("format-with-starter-code", 117), ("format-without-starter-code", 279)]
        .map(|(name, length)| (name.to_owned(), text(length)))
        .into()
}

#[test]
fn messages_have_the_lengths_of_the_official_ones() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/livecodebench.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let material = Material { templates: official(), ..Material::default() };
    for line in text.lines() {
        let known: Value = serde_json::from_str(line).unwrap();
        let item = item(known["row"].as_object().unwrap().clone()).unwrap().unwrap();
        let prompt = LiveCodeBench::LATEST.prompt(&item, &material).unwrap();
        let [system, user] = prompt.messages.as_slice() else { panic!("{prompt:?}") };
        assert_eq!((system.role, user.role), (Role::System, Role::User));
        assert_eq!(system.content.len(), 185);
        let length = known["official_prompt"]["user_chars"].as_u64().unwrap();
        assert_eq!(user.content.chars().count() as u64, length, "{}", known["row"]["question_id"]);
    }
    for (name, length) in
        [("system", 185), ("format-with-starter-code", 117), ("format-without-starter-code", 279)]
    {
        let spec = prompt::TEMPLATES.iter().find(|spec| spec.name == name).unwrap();
        assert!(spec.sha256.unwrap() != hex::encode(Sha256::digest("x".repeat(length))));
    }
}

#[test]
fn own_wording_is_used_if_a_text_is_missing() {
    let own = LiveCodeBench::LATEST.template(&Templates::new());
    let all = LiveCodeBench::LATEST.template(&official());
    assert_eq!((own.source.as_str(), all.source.as_str()), ("own", "official"));
    let mut some = official();
    some.remove("system");
    assert_eq!(LiveCodeBench::LATEST.template(&some), own);
    let item = item(problem_with("starter_code", json!("class Solution:"))).unwrap().unwrap();
    let prompt = LiveCodeBench::LATEST.prompt(&item, &Material::default()).unwrap();
    let user = &prompt.messages[1].content;
    assert!(user.starts_with("### Question:\nDouble it.\n\n### Format: Complete the starter code"), "{user}");
    assert!(
        user.ends_with(
            ".\n```python\nclass Solution:\n```\n\n### Answer: (use the provided format with backticks)\n\n"
        ),
        "{user}"
    );
}

#[test]
fn answers_without_code_are_not_run() {
    let item = item(problem()).unwrap().unwrap();
    let grade = |text: &str, finish: Finish| {
        LiveCodeBench::LATEST.grade(&item, &Answer { finish, ..Answer::local(text) })
    };
    for (text, finish, outcome) in [
        ("", Finish::Stop, Outcome::NoAnswer),
        ("print(1)", Finish::Stop, Outcome::Unparsed),
        ("```python\nprint(1)", Finish::Stop, Outcome::Unparsed),
        ("```\n \n\t\n```", Finish::Stop, Outcome::Unparsed),
        ("```\n```", Finish::Length, Outcome::Truncated),
        ("No.", Finish::Refused, Outcome::Refused),
        ("~~~\nprint(1)\n~~~", Finish::Unknown, Outcome::Unparsed),
        ("```a``` ```b```", Finish::Stop, Outcome::Unparsed),
    ] {
        let verdict = grade(text, finish).done().unwrap();
        assert_eq!((verdict.outcome, verdict.score), (outcome, Some(0.0)), "{text:?}");
    }
    for text in ["```\nprint(1)\n```", "```\n\0\n```", &format!("```\n{}```", "x\n".repeat(1_000_000))] {
        assert_eq!(grade(text, Finish::Stop), Grading::NeedsTurn(Stage::Sandbox));
    }
}

#[test]
fn stored_responses_need_grading_columns_only() {
    let mut fields = problem();
    fields.remove("question_content");
    fields.insert("reference_solution".into(), json!("print(2)"));
    let item = LiveCodeBench::LATEST.score_row(&fields).unwrap();
    assert_eq!(item.group.as_deref(), Some("easy"));
    assert_eq!(bench_items::source_id(&LiveCodeBench::LATEST, &item.row).as_deref(), Some("abc_a"));
    assert!(grader::code(&Answer::local(LiveCodeBench::LATEST.oracle(&item))).is_none());
    fields.remove("private_test_cases");
    assert_eq!(
        LiveCodeBench::LATEST.score_row(&fields).unwrap_err().column.as_deref(),
        Some("private_test_cases")
    );
}

#[test]
fn the_demo_has_problems_of_every_kind() {
    let rows: Vec<Row> = LiveCodeBench::LATEST
        .spec()
        .demo
        .items
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let items: Vec<Item> = rows.into_iter().map(|row| item(row).unwrap().unwrap()).collect();
    assert!(items.len() >= 20);
    let methods = items.iter().filter(|item| row::method(&item.row).unwrap().is_some()).count();
    assert!(methods >= 6 && items.len() - methods >= 6);
    let levels: BTreeSet<_> = items.iter().filter_map(|item| item.group.as_deref()).collect();
    assert_eq!(levels, BTreeSet::from(["easy", "medium", "hard"]));
    for item in &items {
        let code = grader::code(&Answer::local(LiveCodeBench::LATEST.oracle(item))).map(str::to_owned);
        let reference = item.row[row::REFERENCE].as_str().unwrap();
        assert_eq!(code.as_deref(), Some(reference.trim_end_matches('\n')));
        assert_eq!(
            row::optional_text(&item.row, "starter_code").unwrap().is_some(),
            row::method(&item.row).unwrap().is_some()
        );
    }
}

proptest! {
    #[test]
    fn rows_never_panic(column in 0_usize..11, value in "\\PC{0,30}", number in any::<i64>()) {
        let column = row::COLUMNS[column];
        for value in [json!(value), json!(number), json!([value]), json!({"func_name": value})] {
            if let Ok(Some(item)) = item(problem_with(column, value)) {
                LiveCodeBench::LATEST.expected(&item);
                LiveCodeBench::LATEST.prompt(&item, &Material::default()).unwrap();
            }
        }
    }

    #[test]
    fn options_never_panic(name in "(release|start_date|end_date|\\PC{0,8})", value in "(v|_|release|[0-9-]|\\PC){0,12}") {
        let _ = with_options(&[(&name, &value)]);
    }
}
