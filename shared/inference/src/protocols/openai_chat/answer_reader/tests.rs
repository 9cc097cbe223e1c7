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

fn calls(answer: &Answer) -> Vec<(&str, &str, &str)> {
    let calls = answer.tool_calls.iter();
    calls.map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
}

#[test]
fn calls_of_tools_are_joined_by_their_numbers() {
    let joined = answer(&[
        r#"{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"go","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]);
    assert_eq!(calls(&joined), [("a", "look", r#"{"x":1}"#), ("b", "go", "{}")]);
    assert_eq!((joined.text.as_str(), joined.finish), ("", Finish::Other("tool_calls".into())));
}

#[test]
fn calls_without_numbers_are_told_apart_by_their_ids() {
    let joined = answer(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"look","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"go"}}, null]},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    assert_eq!(calls(&joined), [("a", "look", "{}"), ("b", "go", "")]);
}

#[test]
fn calls_of_whole_answers_may_have_arguments_that_are_no_text() {
    let body = br#"{"choices":[{"message":{"content":"","tool_calls":[{"id":"a","function":{"name":"look","arguments":{"x":[1]}}},{"function":{"name":"go","arguments":null}}]},"finish_reason":"tool_calls"}]}"#;
    let read = whole(body).unwrap().into_answer(None);
    assert_eq!(calls(&read), [("a", "look", r#"{"x":[1]}"#), ("", "go", "")]);
    for odd in ["null", "0", "\"x\"", "{}", "[null]", "true", "1.5"] {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"hi","tool_calls":{odd}}}}}]}}"#);
        let read = whole(body.as_bytes()).unwrap().into_answer(None);
        assert_eq!((read.text.as_str(), read.tool_calls.len()), ("hi", 0), "{odd}");
    }
}

#[test]
fn a_character_that_is_split_between_two_arguments_is_joined() {
    let joined = answer(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"say","arguments":"\"\ud83d"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\""}}]},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    assert_eq!((calls(&joined), joined.repairs.joined), (vec![("a", "say", "\"😀\"")], 1));
}

#[test]
fn very_many_calls_are_too_large() {
    let call = r#"{"id":"","function":{}},"#;
    let body = format!(r#"{{"choices":[{{"message":{{"tool_calls":[{}null]}}}}]}}"#, call.repeat(70_000));
    assert!(matches!(whole(body.as_bytes()), Err(Stop::TooLarge(_))));
}
