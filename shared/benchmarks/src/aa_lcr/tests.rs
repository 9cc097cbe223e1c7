use bench_domain::{Answer, Finish, Outcome, Stage};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Judge;
use crate::grading::Grading;

fn row() -> Row {
    let row = json!({
        "": 4, "document_category": "Legal", "document_set_id": "set", "question_id": "5", "question": "Which {question}?",
        "answer": "7 days", "data_source_filenames": " b.txt; a.txt ;;", "data_source_urls": "u;v",
        "input_tokens": "99325",
    });
    row.as_object().cloned().unwrap()
}

fn item() -> Item {
    AaLcr::V1_1.item(4, row()).unwrap().unwrap()
}

fn material() -> Material {
    let support = [("Legal/set/a.txt", json!(" A {question}\n")), ("Legal/set/b.txt", json!("B"))];
    let support = support.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
    Material { support, ..Material::default() }
}

fn judge(version: AaLcr) -> &'static dyn Judge {
    version.judge().unwrap()
}

#[test]
fn documents_keep_the_rows_order_and_their_text() {
    let item = item();
    assert_eq!((item.id.as_str(), item.group.as_deref()), ("4", Some("Legal")));
    assert!(!item.row.contains_key("data_source_urls") && !item.row.contains_key(""));
    assert_eq!(AaLcr::V1_1.input_tokens(&item), Some(99_325));
    assert_eq!(AaLcr::V1_1.support_names(&item), ["Legal/set/b.txt", "Legal/set/a.txt"]);
    let prompt = AaLcr::V1_1.prompt(&item, &material()).unwrap();
    assert_eq!(prompt.messages.len(), 1);
    let text = prompt.as_text();
    assert!(text.starts_with(
        "BEGIN INPUT DOCUMENTS\n\nBEGIN DOCUMENT 1:\nB\nEND DOCUMENT 1\n\nBEGIN DOCUMENT 2:\n A {question}\n\n\
         END DOCUMENT 2\n\nEND INPUT DOCUMENTS\n\n"
    ));
    assert!(text.ends_with("\n\nSTART QUESTION\n\nWhich {question}?\n\nEND QUESTION\n"), "{text}");
    assert_eq!(AaLcr::V1_1.template(&Templates::new()).source.as_str(), "own");
}

#[test]
fn a_document_that_is_missing_or_not_a_text_is_named() {
    for value in [None, Some(Value::Null), Some(json!({"text": "x"}))] {
        let mut material = material();
        material.support.remove("Legal/set/a.txt");
        material.support.extend(value.map(|value| ("Legal/set/a.txt".to_owned(), value.into())));
        let problem = AaLcr::V1_1.prompt(&item(), &material).unwrap_err();
        assert!(
            matches!(&problem, ItemProblem::SupportMissing { name, .. } if name == "Legal/set/a.txt"),
            "{problem}"
        );
    }
}

#[test]
fn versions_have_their_own_revision_judge_and_rules() {
    let (first, second) = (AaLcr::V1_0, AaLcr::V1_1);
    assert_ne!(first.spec().sources[0].revision, second.spec().sources[0].revision);
    assert_ne!(first.templates()[0].origin, second.templates()[0].origin);
    assert!(judge(first).reply_schema().is_none() && judge(second).reply_schema().is_some());
    assert_ne!(judge(first).metadata().official_model, judge(second).metadata().official_model);
    let none = Templates::new();
    assert_ne!(judge(first).template(&none).digest, judge(second).template(&none).digest);
    let answer = Answer::local("{official_answer} 7 days");
    let asked = |version| judge(version).prompt(&item(), &answer, &none).unwrap();
    assert_eq!((asked(first).messages.len(), asked(second).messages.len()), (1, 2));
    for prompt in [asked(first), asked(second)] {
        let text = prompt.as_text();
        for part in ["Which {question}?", "7 days", "{official_answer} 7 days", "CORRECT or INCORRECT"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn verdicts_note_the_version_and_the_length_of_the_prompt() {
    let answer = Answer { finish: Finish::Length, ..Answer::local("six days") };
    let reply = Answer::local("{\"verdict\": \"INCORRECT\"}");
    let verdict = judge(AaLcr::V1_1).read(&item(), &answer, &reply).unwrap();
    assert_eq!((verdict.outcome, verdict.extracted.as_deref()), (Outcome::Incorrect, Some("six days")));
    assert_eq!(verdict.detail["version"], "1.1");
    assert_eq!(
        (&verdict.detail["input_tokens"], &verdict.detail["truncated"]),
        (&json!(99_325), &json!(true))
    );
    let empty = AaLcr::V1_0.grade(&item(), &Answer::local(" ")).done().unwrap();
    assert_eq!((empty.outcome, empty.score), (Outcome::NoAnswer, Some(0.0)));
    assert_eq!(empty.detail["version"], "1.0");
    assert_eq!(AaLcr::V1_0.grade(&item(), &Answer::local("x")), Grading::NeedsTurn(Stage::Judge));
}

#[test]
fn the_judge_without_a_model_answers_in_the_form_of_its_version() {
    for version in [AaLcr::V1_0, AaLcr::V1_1] {
        for (answer, score) in [("It took 7 days.", 1.0), ("It took 17 days.", 0.0)] {
            let answer = Answer::local(answer);
            let reply = Answer::local(judge(version).oracle(&item(), &answer));
            assert_eq!(judge(version).read(&item(), &answer, &reply).unwrap().score, Some(score));
        }
    }
}

#[test]
fn broken_rows_name_their_column() {
    for (column, value) in [
        ("question", Value::Null),
        ("answer", json!(" ")),
        ("document_category", json!(1)),
        ("document_set_id", Value::Null),
        ("data_source_filenames", json!(" ; ")),
        ("input_tokens", json!("many")),
    ] {
        let mut broken = row();
        broken.insert(column.into(), value);
        assert_eq!(AaLcr::V1_1.item(0, broken).unwrap_err().column.as_deref(), Some(column));
    }
    let mut numbers = row();
    numbers.insert("answer".into(), json!(12));
    numbers.insert("input_tokens".into(), json!(5));
    assert_eq!(AaLcr::V1_1.expected(&AaLcr::V1_1.item(0, numbers).unwrap().unwrap()), "12");
}

proptest! {
    #[test]
    fn arbitrary_replies_are_read(reply in any::<String>()) {
        for version in [AaLcr::V1_0, AaLcr::V1_1] {
            let verdict = judge(version).read(&item(), &Answer::local("x"), &Answer::local(reply.as_str()));
            prop_assert!(verdict.is_err() || reply.to_lowercase().contains("correct"));
        }
    }
}

#[test]
fn replies_of_a_mebibyte_are_read_in_linear_time() {
    let mebibyte = 1 << 20;
    for reply in [
        "{".repeat(mebibyte),
        "x ".repeat(mebibyte / 2),
        "not ".repeat(mebibyte / 4),
        "{\"verdict\":".repeat(mebibyte / 11),
        "{\"verdict\":\"CORRECT\"}".repeat(mebibyte / 21),
        "correct incorrect ".repeat(mebibyte / 18),
        "'".repeat(mebibyte),
    ] {
        for version in [AaLcr::V1_0, AaLcr::V1_1] {
            let verdict = judge(version).read(&item(), &Answer::local("x"), &Answer::local(reply.as_str()));
            assert!(verdict.unwrap_err().to_string().len() < 400);
        }
    }
}
