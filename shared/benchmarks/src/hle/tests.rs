use bench_domain::{Answer, Finish, Outcome, Stage, Verdict};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Judge as _;
use crate::NoVerdict;
use crate::grading::Grading;

fn row(value: Value) -> Row {
    value.as_object().cloned().unwrap()
}

fn item(image: &str) -> Item {
    let row = row(json!({
        "id": "abc", "question": "How {many}?", "image": image, "image_preview": {"bytes": "AAAA"}, "answer": "7",
        "answer_type": "exactMatch", "author_name": "x", "rationale": "y", "category": "Math", "raw_subject": "z",
        "canary": "c",
    }));
    Hle::OFFICIAL.item(3, row).unwrap().unwrap()
}

fn read(reply: &str) -> Result<Verdict, NoVerdict> {
    HleJudge.read(&item(""), &Answer::local("Answer: 7"), &Answer::local(reply))
}

#[test]
fn items_keep_the_needed_columns_and_the_datasets_own_id() {
    let item = item("");
    assert_eq!((item.id.as_str(), item.group.as_deref()), ("3", Some("Math")));
    let columns: Vec<_> = item.row.keys().map(String::as_str).collect();
    assert_eq!(columns.len(), COLUMNS.len(), "{columns:?}");
    assert_eq!(item.row["id"], "abc");
}

#[test]
fn text_only_leaves_out_questions_with_an_image_and_keeps_their_numbers() {
    let with_image = item("data:image/png;base64,AAAA").row;
    assert!(Hle::TEXT_ONLY.item(0, with_image.clone()).unwrap().is_none());
    assert_eq!(Hle::TEXT_ONLY.item(8, item("").row).unwrap().unwrap().id, "8");
    assert_eq!(Hle::OFFICIAL.item(0, with_image).unwrap().unwrap().id, "0");
    assert_ne!(Hle::TEXT_ONLY.variant(), Hle::OFFICIAL.variant());
}

#[test]
fn the_image_follows_the_question_and_a_broken_one_is_named() {
    let gif = "data:image/gif;base64,R0lGODlhBQAGAAAAAA==";
    let prompt = Hle::OFFICIAL.prompt(&item(gif), &Material::default()).unwrap();
    let [system, question] = prompt.messages.as_slice() else { panic!("{prompt:?}") };
    assert_eq!((system.role, question.role), (Role::System, Role::User));
    assert_eq!(question.content, "How {many}?");
    assert_eq!(question.images.len(), 1);
    let wrong_type = Hle::OFFICIAL.prompt(&item(&gif.replace("gif", "jpeg")), &Material::default()).unwrap();
    assert_eq!(wrong_type.messages[1].images[0].data_url, gif);
    for broken in ["data:image/png;base64,***", "data:image/png;base64,R0lGODlhBQ==", "cat.png"] {
        let problem = Hle::OFFICIAL.prompt(&item(broken), &Material::default()).unwrap_err();
        assert!(matches!(&problem, ItemProblem::Content(text) if text.contains("image")), "{problem}");
    }
}

#[test]
fn official_texts_are_used_if_loaded() {
    let official = Templates::from([
        ("system".to_owned(), "Official {format}".to_owned()),
        ("judge".to_owned(), "{question}|{response}|{correct_answer}|{question}".to_owned()),
    ]);
    let material = Material { templates: official.clone(), ..Material::default() };
    let prompt = Hle::OFFICIAL.prompt(&item(""), &material).unwrap();
    assert_eq!(prompt.messages[0].content, "Official {format}");
    assert_eq!(Hle::OFFICIAL.template(&official).source.as_str(), "official");
    let answer = Answer::local("{correct_answer} {question}");
    let asked = HleJudge.prompt(&item(""), &answer, &official).unwrap();
    assert_eq!(asked.as_text(), "How {many}?|{correct_answer} {question}|7|How {many}?");
    assert_eq!(HleJudge.template(&official).source.as_str(), "official");

    let none = Templates::new();
    assert_eq!(Hle::OFFICIAL.template(&none).source.as_str(), "own");
    assert_eq!(HleJudge.template(&none).source.as_str(), "own");
    let own = HleJudge.prompt(&item(""), &answer, &none).unwrap().as_text();
    for part in ["How {many}?", "{correct_answer} {question}", "extracted_final_answer", "strict"] {
        assert!(own.contains(part), "{part}");
    }
    let slotless = Templates::from([("judge".to_owned(), "{question}".to_owned())]);
    assert_eq!(HleJudge.template(&slotless).source.as_str(), "own");
}

#[test]
fn replies_are_read_according_to_the_schema() {
    let full =
        r#"{"extracted_final_answer":"5","reasoning":"r","correct":"yes","confidence":80,"strict":true}"#;
    let with = |from: &str, to: &str| full.replace(from, to);
    for (reply, expected) in [
        (full.to_owned(), Some((true, 80))),
        (with(",\"strict\":true", ""), Some((true, 80))),
        (with("\"yes\"", "\"no\""), Some((false, 80))),
        (format!("```json\n{full}\n```"), Some((true, 80))),
        (with("80", "\"85\""), Some((true, 85))),
        (with("80", "85.0"), Some((true, 85))),
        (with("80", "-3"), Some((true, 0))),
        (with("80", "1e300"), Some((true, 100))),
        (with("80", "250"), Some((true, 100))),
        (with("\"yes\"", "\"Yes\""), None),
        (with("\"yes\"", "true"), None),
        (with("\"yes\"", "\"yes, it is\""), None),
        (with("80", "80.5"), None),
        (with("80", "\"80%\""), None),
        (with("80", "null"), None),
        (with("80", "true"), None),
        (with("\"strict\":true", "\"strict\":false"), None),
        (with("\"reasoning\":\"r\",", ""), None),
        (with("\"5\"", "5"), None),
        (with("\"correct\":\"yes\"", "\"correct\":\"yes\",\"correct\":\"no\""), None),
        ("correct: no\nconfidence: 90%".to_owned(), None),
        ("incorrect: yes".to_owned(), None),
        (format!("{full}{full}"), None),
        (format!("Here it is: {full}"), None),
        (format!("[{full}]"), None),
        (String::new(), None),
        ("\u{0}\u{fffd}\u{202e}".to_owned(), None),
    ] {
        let verdict = read(&reply);
        let found = verdict.as_ref().ok().map(|verdict| {
            let confidence = verdict.detail["confidence"].as_u64().unwrap();
            (verdict.outcome == Outcome::Correct, confidence)
        });
        assert_eq!(found, expected, "{reply} {verdict:?}");
    }
}

#[test]
fn a_verdict_records_the_judges_reply_within_limits() {
    let long = "ä".repeat(1 << 20);
    let reply = json!({
        "extracted_final_answer": long, "reasoning": long, "correct": "no", "confidence": 12, "strict": true,
    });
    let answer = Answer { finish: Finish::Length, ..Answer::local("Answer: 8") };
    let verdict = HleJudge.read(&item(""), &answer, &Answer::local(reply.to_string())).unwrap();
    assert_eq!((verdict.outcome, verdict.score), (Outcome::Incorrect, Some(0.0)));
    assert_eq!(verdict.detail["truncated"], true);
    assert!(serde_json::to_vec(&verdict).unwrap().len() < 6_000);
    // Users other than the owner may see the reason, so it must not contain the right answer.
    assert!(!verdict.reason.contains('7'));
}

#[test]
fn an_empty_answer_needs_no_judge() {
    let grade = |answer| Hle::OFFICIAL.grade(&item(""), &answer);
    assert_eq!(grade(Answer::local("x")), Grading::NeedsTurn(Stage::Judge));
    let empty = grade(Answer::local(" \n")).done().unwrap();
    assert_eq!((empty.outcome, empty.score), (Outcome::NoAnswer, Some(0.0)));
    let cut = grade(Answer { finish: Finish::Length, ..Answer::local("") }).done().unwrap();
    assert_eq!(cut.outcome, Outcome::Truncated);
    let without_gold = Item::new("", None, Row::new());
    assert_eq!(Hle::OFFICIAL.grade(&without_gold, &Answer::local("x")).done().unwrap().score, None);
}

#[test]
fn the_judges_oracle_compares_answers_and_reads_the_confidence() {
    for (answer, expected) in [
        ("Explanation: so\nAnswer: 7\nConfidence: 65%", (true, 65)),
        ("Answer: 17\nConfidence: 5%", (false, 5)),
        ("seven", (false, 100)),
        ("7 Confidence: 999999", (true, 100)),
    ] {
        let answer = Answer::local(answer);
        let reply = HleJudge.oracle(&item(""), &answer);
        let verdict = HleJudge.read(&item(""), &answer, &Answer::local(reply)).unwrap();
        let found = (verdict.score == Some(1.0), verdict.detail["confidence"].as_u64().unwrap());
        assert_eq!(found, expected, "{answer:?}");
    }
}

#[test]
fn broken_rows_name_their_column() {
    for (column, value) in [
        ("question", Value::Null),
        ("question", json!(1)),
        ("answer", json!("")),
        ("answer", json!([1])),
        ("image", json!({"bytes": ""})),
        ("category", json!(3)),
    ] {
        let mut broken = item("").row;
        broken.insert(column.into(), value);
        assert_eq!(Hle::OFFICIAL.item(0, broken).unwrap_err().column.as_deref(), Some(column));
    }
}

proptest! {
    #[test]
    fn arbitrary_replies_are_read(reply in any::<String>()) {
        prop_assert!(read(&reply).is_err() || reply.contains("extracted_final_answer"));
    }

    #[test]
    fn prose_has_no_verdict(words in "(correct|yes|no|incorrect|confidence|[:=\"{}\n 0-9%])*") {
        prop_assert!(read(&words).is_err());
    }

    #[test]
    fn a_complete_reply_is_read_with_arbitrary_texts(extracted in any::<String>(), reasoning in any::<String>(), yes in any::<bool>(), confidence in any::<i64>()) {
        let correct = if yes { "yes" } else { "no" };
        let reply = json!({
            "extracted_final_answer": extracted, "reasoning": reasoning, "correct": correct, "confidence": confidence,
        });
        let verdict = read(&reply.to_string()).unwrap();
        prop_assert_eq!(verdict.score, Some(if yes { 1.0 } else { 0.0 }));
        prop_assert_eq!(&verdict.detail["confidence"], &json!(confidence.clamp(0, 100)));
    }
}

#[test]
fn replies_of_a_mebibyte_are_read_in_linear_time() {
    let mebibyte = 1 << 20;
    for reply in [
        "{".repeat(mebibyte),
        "x".repeat(mebibyte),
        "```".repeat(mebibyte / 3),
        "{\"a\":".repeat(mebibyte / 5),
        format!("{{\"correct\":\"yes\",\"reasoning\":\"{}\"}}", "{".repeat(mebibyte)),
        "{\"correct\":\"yes\"}".repeat(mebibyte / 17),
    ] {
        let problem = read(&reply).unwrap_err();
        assert!(problem.to_string().len() < 400, "{problem}");
    }
}
