use bench_domain::{Answer, Finish, Outcome};
use serde_json::json;

use super::*;

fn row(value: Value) -> Row {
    value.as_object().cloned().unwrap()
}

#[test]
fn columns_are_found_under_either_name() {
    for columns in [
        json!({"problem_idx": 1, "problem": "Find n.", "answer": 70, "problem_type": ["Algebra"]}),
        json!({"problem": "Find n.", "answer": "70", "id": "0"}),
        json!({"question": "Find n.", "answer": "70^\\circ"}),
        json!({"id": "II-5", "problem": "Find n.", "answer": "070", "solution": "", "url": ""}),
    ] {
        let item = AIME_2025.item(4, row(columns)).unwrap().unwrap();
        assert_eq!((item.id.as_str(), AIME_2025.expected(&item).as_str()), ("4", "70"));
        let prompt = AIME_2025.prompt(&item, &Material::default()).unwrap();
        assert!(prompt.as_text().ends_with("\n\nFind n."));
        assert!(prompt.as_text().contains("\\boxed{}"));
    }
}

#[test]
fn rows_without_a_problem_are_errors_or_left_out_depending_on_the_benchmark() {
    let empty = row(json!({"problem": " ", "answer": 70}));
    assert_eq!(AIME_2025.item(0, empty.clone()).unwrap_err().column.as_deref(), Some("problem"));
    assert_eq!(AIME_2022_2024.item(0, empty).unwrap(), None);
}

#[test]
fn groups_are_parts_and_years() {
    let of_part = row(json!({"id": "II-3", "problem": "?", "answer": 1}));
    assert_eq!(AIME_2025.item(0, of_part).unwrap().unwrap().group.as_deref(), Some("II"));
    let url = "https://example.org/wiki/index.php/2023_AIME_II_Problems/Problem_4";
    let of_year = row(json!({"id": 7, "problem": "?", "answer": "1", "url": url}));
    assert_eq!(AIME_2022_2024.item(7, of_year).unwrap().unwrap().group.as_deref(), Some("2023"));
}

#[test]
fn verdicts_say_what_was_extracted() {
    let item = AIME_2025.score_row(&row(json!({"gold": "70"}))).unwrap();
    let right = AIME_2025.grade(&item, &Answer::local("\\boxed{\\frac{140}{2}}")).done().unwrap();
    assert_eq!((right.outcome, right.extracted.as_deref()), (Outcome::Correct, Some("70")));
    assert_eq!(right.detail.get("source"), Some(&json!("box")));
    let text = AIME_2025.grade(&item, &Answer::local("\\boxed{\\text{70}}")).done().unwrap();
    assert_eq!((text.outcome, text.extracted.as_deref()), (Outcome::Incorrect, Some("[]")));
    let cut = AIME_2025
        .grade(&item, &Answer { finish: Finish::Length, ..Answer::local("so 16 or") })
        .done()
        .unwrap();
    assert_eq!((cut.outcome, cut.extracted.as_deref()), (Outcome::Truncated, Some("16")));
    let nothing = AIME_2025.grade(&item, &Answer::local("no integer")).done().unwrap();
    assert_eq!((nothing.outcome, nothing.extracted), (Outcome::Unparsed, None));
}

#[test]
fn contest_answers_have_a_range() {
    let item = |answer: i64| AIME_2025.item(0, row(json!({"problem": "?", "answer": answer})));
    assert!(item(0).is_ok() && item(999).is_ok());
    assert!(item(1000).is_err() && item(-1).is_err());
}
