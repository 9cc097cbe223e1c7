use super::*;
use crate::Keys;
use bench_domain::{Answer, Usage};

fn draft() -> AnswerDraft {
    AnswerDraft::new(Keys::default())
}

fn collect(events: &[&str]) -> Result<AnswerDraft, Stop> {
    let mut draft = draft();
    for data in events {
        read_event(&Event { data: data.as_bytes(), is_error: false }, &mut draft)?;
    }
    Ok(draft)
}

fn answer(events: &[&str]) -> Answer {
    let draft = collect(events).unwrap();
    assert!(draft.is_complete());
    draft.into_answer(None)
}

fn whole(body: &[u8]) -> Result<AnswerDraft, Stop> {
    let mut draft = draft();
    Reader::default().read_whole(body, &mut draft)?;
    Ok(draft)
}

#[test]
fn deltas_become_an_answer() {
    let answer = answer(&[
        r#"{"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"id":"c1","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"hm ","content":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning":"so"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"4"},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"2"},"finish_reason":""}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        "[DONE]",
    ]);
    assert_eq!((answer.text.as_str(), answer.reasoning.as_deref()), ("42", Some("hm so")));
    assert_eq!((answer.finish, answer.model.as_deref()), (Finish::Stop, Some("m")));
    assert_eq!(answer.usage, Some(Usage::counted(3, 2, 0)));
    assert_eq!(answer.usage_raw.as_deref(), Some(r#"{"prompt_tokens":3,"completion_tokens":2}"#));
    assert_eq!(answer.request_id.as_deref(), Some("c1"));
}

#[test]
fn the_same_reasoning_under_two_names_counts_once() {
    let answer = answer(&[
        r#"{"choices":[{"delta":{"reasoning_content":"a","reasoning":"a"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"","reasoning":"b","content":"x"},"finish_reason":"length"}]}"#,
    ]);
    assert_eq!((answer.reasoning.as_deref(), answer.finish), (Some("ab"), Finish::Length));
}

#[test]
fn a_refusal_is_an_answer_that_says_so() {
    let refused = answer(&[
        r#"{"choices":[{"delta":{"refusal":"I can"}}]}"#,
        r#"{"choices":[{"delta":{"refusal":"not."},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!((refused.text.as_str(), refused.finish), ("I cannot.", Finish::Refused));
    let filtered =
        answer(&[r#"{"choices":[{"delta":{"content":"Well,"},"finish_reason":"content_filter"}]}"#]);
    assert_eq!((filtered.text.as_str(), filtered.finish), ("Well,", Finish::Refused));
}

#[test]
fn one_object_can_be_the_whole_answer() {
    let body =
        br#" {"model":"m","choices":[{"message":{"content":[{"type":"text","text":"a"}],"reasoning":"r"},
        "finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}} "#;
    let answer = whole(body).unwrap().into_answer(Some("r1".into()));
    assert_eq!((answer.text.as_str(), answer.reasoning.as_deref()), ("a", Some("r")));
    assert_eq!(answer.request_id.as_deref(), Some("r1"));
    let older = whole(br#"{"choices":[{"text":"b"}]}"#).unwrap();
    assert_eq!(older.into_answer(None).finish, Finish::Unknown);
}

#[test]
fn objects_without_an_empty_line_between_them_are_separated() {
    let two = "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n{\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n[DONE]";
    assert_eq!(answer(&[two]).text, "ab");
    let pretty = "{\n \"choices\": [\n {\"delta\": {\"content\": \"a\"}, \"finish_reason\": \"stop\"} ]\n}";
    assert_eq!(answer(&[pretty]).text, "a");
}

#[test]
fn errors_are_found_wherever_they_stand() {
    for event in [
        r#"{"error":{"message":"boom","code":502}}"#,
        r#"{"object":"error","message":"boom","code":502}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"boom","code":502}}]}"#,
        r#"{"error":{"message":"boom","code":502},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
    ] {
        match collect(&[event]) {
            Err(Stop::Error(body)) => {
                let error = ErrorBody::parse(&body);
                assert_eq!((error.status, error.message.as_str()), (Some(502), "boom"));
            }
            other => panic!("{other:?}"),
        }
    }
    let finished = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    assert_eq!(answer(&[finished, r#"{"error":{"message":"late"}}"#]).text, "a");
}

#[test]
fn garbage_is_quoted() {
    for (event, part) in [
        ("{\"choices\":[", "Invalid JSON"),
        ("hello", "hello"),
        (r#"{"choices":[{"finish_reason":"abort"}]}"#, "abort"),
    ] {
        match collect(&[event]) {
            Err(Stop::Garbage(problem, quoted)) => {
                let text = problem + &String::from_utf8_lossy(&quoted);
                assert!(text.contains(part), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(whole(b"<html>"), Err(Stop::Garbage(..))));
    assert!(matches!(whole(b"{}"), Err(Stop::Garbage(..))));
    assert!(matches!(whole(br#"{"detail":"no"}"#), Err(Stop::Error(..))));
    assert!(matches!(whole(br#"[{"error":{"message":"no"}}]"#), Err(Stop::Error(..))));
}

#[test]
fn an_answer_has_a_largest_size() {
    let mebibyte = format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "x".repeat(1024 * 1024));
    let events: Vec<&str> = std::iter::repeat_n(mebibyte.as_str(), 17).collect();
    assert!(collect(&events[..16]).is_ok());
    assert!(matches!(collect(&events), Err(Stop::TooLarge(_))));
}
