use bench_domain::Answer;

use super::*;

fn row(value: Value) -> Row {
    value.as_object().cloned().unwrap()
}

fn question(category: &str) -> Row {
    row(json!({
        "question_id": 7, "question": "How many?", "options": ["one", "N/A", "two"], "answer": "B",
        "answer_index": 1, "cot_content": "", "category": category, "src": "ours",
    }))
}

fn support() -> BTreeMap<String, Value> {
    let rows = vec![
        row(json!({"question": "First?", "options": ["x", "y"], "category": "math",
            "cot_content": "A: Let's think step by step. It is x. The answer is (A)."})),
        row(
            json!({"question": "Second?", "options": ["x"], "category": "math", "cot_content": "Plain. The answer is (A)."}),
        ),
    ];
    MmluPro.support("validation", rows).unwrap()
}

fn material() -> Material {
    let support = support().into_iter().map(|(category, examples)| (category, examples.into()));
    Material { support: support.collect(), ..Material::default() }
}

#[test]
fn the_message_is_the_official_one() {
    let item = MmluPro.item(3, question("math")).unwrap().unwrap();
    assert_eq!((item.id.as_str(), item.group.as_deref()), ("3", Some("math")));
    assert_eq!(MmluPro.support_names(&item), ["math"]);
    let prompt = MmluPro.prompt(&item, &material()).unwrap();
    assert_eq!(
        prompt.as_text(),
        "The following are multiple choice questions (with answers) about math. Think step by step and then output \
         the answer in the format of \"The answer is (X)\" at the end.\n\n\
         Question: First?\nOptions: A. x\nB. y\nAnswer: Let's think step by step. It is x. The answer is (A).\n\n\
         Question: Second?\nOptions: A. x\nAnswer: Plain. The answer is (A).\n\n\
         Question: How many?\nOptions: A. one\nB. two\nAnswer: Let's think step by step.\n\n"
    );
}

#[test]
fn without_few_shot_examples_nothing_is_asked() {
    let item = MmluPro.item(0, question("law")).unwrap().unwrap();
    let problem = MmluPro.prompt(&item, &material()).unwrap_err();
    assert!(matches!(&problem, ItemProblem::SupportMissing { name, .. } if name == "law"), "{problem}");
}

#[test]
fn broken_rows_name_their_column() {
    for (column, value) in [
        ("question", Value::Null),
        ("question", json!(7)),
        ("options", json!("x")),
        ("options", json!(["x", 7])),
        ("options", json!([])),
        ("options", Value::Array(vec![json!("x"); 11])),
        ("answer", json!("K")),
        ("answer", json!("")),
        ("category", Value::Null),
    ] {
        let mut broken = question("math");
        broken.insert(column.into(), value);
        assert_eq!(MmluPro.item(0, broken).unwrap_err().column.as_deref(), Some(column));
    }
}

#[test]
fn a_list_as_text_gets_a_hint_about_formats() {
    let mut from_csv = question("math");
    from_csv.insert("options".into(), json!("[\"one\", \"two\"]"));
    let problem = MmluPro.item(0, from_csv).unwrap_err();
    assert!(problem.to_string().contains("CSV files can't hold lists"), "{problem}");
}

#[test]
fn verdicts_record_stage_and_chance() {
    let item = MmluPro.item(0, question("math")).unwrap().unwrap();
    let right = MmluPro.grade(&item, &Answer::local("Answer: B")).done().unwrap();
    assert_eq!((right.score, right.detail.get("stage")), (Some(1.0), Some(&json!(2))));
    let wrong = MmluPro.grade(&item, &Answer::local("The answer is (A).")).done().unwrap();
    assert_eq!(wrong.reason, "The answer is A; right is B.");
    assert!(!wrong.detail.contains_key("chance"));
    let missing = MmluPro.grade(&item, &Answer::local("no idea")).done().unwrap();
    assert_eq!(missing.outcome, bench_domain::Outcome::Unparsed);
    assert_eq!(missing.detail.get("chance"), Some(&json!(0.5)));
}

#[test]
fn rows_with_worked_answers_are_support() {
    assert!(!MmluPro.is_support(&question("math")));
    let mut worked = question("math");
    worked.insert("cot_content".into(), json!("A: So."));
    assert!(MmluPro.is_support(&worked));
}

#[test]
fn an_item_without_gold_is_not_graded() {
    let item = Item::new("0", None, Row::new());
    assert_eq!(MmluPro.grade(&item, &Answer::local("A")).done().unwrap().score, None);
}
