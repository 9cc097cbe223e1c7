use bench_domain::{Answer, Finish, Outcome, Stage};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Judge as _;
use crate::grading::Grading;

fn item() -> Item {
    let row = json!({
        "question_id": 7, "domain": "Law", "topic": "Contracts {domain}", "question": "Which {target}?", "answer": 443,
    });
    AaOmniscience.item(6, row.as_object().cloned().unwrap()).unwrap().unwrap()
}

fn official(answer: &str, grader: &str) -> Templates {
    Templates::from([("answer".to_owned(), answer.to_owned()), ("grader".to_owned(), grader.to_owned())])
}

#[test]
fn domain_and_topic_are_filled_in_once() {
    let item = item();
    assert_eq!((item.id.as_str(), item.group.as_deref()), ("6", Some("Law")));
    let grader = "{question}|{target}|{predicted_answer}";
    for (text, expected) in [
        ("\nOn {domain}, {topic}.\n", "On Law, Contracts {domain}."),
        ("{topic} of {domain}", "Contracts {domain} of Law"),
    ] {
        let templates = official(text, grader);
        assert_eq!(AaOmniscience.template(&templates).source.as_str(), "official");
        let prompt = AaOmniscience.prompt(&item, &Material { templates, ..Material::default() }).unwrap();
        assert_eq!(prompt.messages[0].content, expected);
        assert_eq!(
            (prompt.messages[1].role, prompt.messages[1].content.as_str()),
            (Role::User, "Which {target}?")
        );
    }
    let broken = official("On {domain}.", "{question}");
    assert_eq!(AaOmniscience.template(&broken).source.as_str(), "own");
    assert_eq!(OmniscienceJudge.template(&broken).source.as_str(), "own");
    let own = AaOmniscience.prompt(&item, &Material::default()).unwrap();
    assert!(own.messages[0].content.contains("about Law, in particular about Contracts {domain}."));
}

#[test]
fn the_grader_sees_question_target_and_answer() {
    let answer = Answer::local("{question} 443");
    let templates = official("", "\n{question}|{target}|{predicted_answer}\n");
    let prompt = OmniscienceJudge.prompt(&item(), &answer, &templates).unwrap();
    assert_eq!(prompt.as_text(), "Which {target}?|443|{question} 443");
    assert_eq!(OmniscienceJudge.template(&templates).source.as_str(), "official");
    let own = OmniscienceJudge.prompt(&item(), &answer, &Templates::new()).unwrap().as_text();
    assert!(own.contains("Question: Which {target}?\nRight answer: 443\nPredicted answer: {question} 443\n"));
}

#[test]
fn empty_answers_need_no_judge() {
    let empty = AaOmniscience.grade(&item(), &Answer::local(" ")).done().unwrap();
    assert_eq!((empty.outcome, &empty.detail["grade"]), (Outcome::NoAnswer, &json!("D")));
    let cut = AaOmniscience.grade(&item(), &Answer { finish: Finish::Length, ..Answer::local("") });
    assert_eq!(cut.done().unwrap().outcome, Outcome::Truncated);
    assert_eq!(AaOmniscience.grade(&item(), &Answer::local("x")), Grading::NeedsTurn(Stage::Judge));
    let without_gold = Item::new("", None, Row::new());
    assert_eq!(AaOmniscience.grade(&without_gold, &Answer::local("x")).done().unwrap().score, None);
}

#[test]
fn the_judges_oracle_answers_with_a_letter() {
    for (answer, letter) in [("Port 443.", "A"), ("Port 4430", "B")] {
        let answer = Answer::local(answer);
        let reply = OmniscienceJudge.oracle(&item(), &answer);
        assert_eq!(reply, letter);
        let verdict = OmniscienceJudge.read(&item(), &answer, &Answer::local(reply)).unwrap();
        assert_eq!(verdict.detail["grade"], letter);
    }
}

#[test]
fn broken_rows_name_their_column() {
    for column in ["domain", "topic", "question", "answer"] {
        let mut broken = item().row;
        broken.remove(column);
        assert_eq!(AaOmniscience.item(0, broken).unwrap_err().column.as_deref(), Some(column));
    }
}

proptest! {
    #[test]
    fn arbitrary_replies_are_read(reply in any::<String>()) {
        let read = OmniscienceJudge.read(&item(), &Answer::local("x"), &Answer::local(reply.as_str()));
        match read {
            Ok(verdict) => prop_assert!(verdict.detail.contains_key("grade") && verdict.score.is_some()),
            Err(problem) => prop_assert!(problem.to_string().len() < 1_000),
        }
    }
}

#[test]
fn replies_of_a_mebibyte_are_read_in_linear_time() {
    let mebibyte = 1 << 20;
    for reply in [
        "A ".repeat(mebibyte / 2),
        "<think>".repeat(mebibyte / 7),
        "<think></think>A".repeat(mebibyte / 16),
        "*".repeat(mebibyte),
        ".".repeat(mebibyte),
        "{\"grade\":\"A\"}".repeat(mebibyte / 13),
    ] {
        let read = OmniscienceJudge.read(&item(), &Answer::local("x"), &Answer::local(reply));
        assert!(read.unwrap_err().to_string().len() < 400);
    }
}
