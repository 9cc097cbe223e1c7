//! Replies of `terminus-2`, compared with the official parsers.

use std::collections::BTreeSet;

use bench_agents::terminus2::{ParsedReply, ReplyFormat, parse_reply};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{is_same, number, text, vectors};

fn parse(case: &Value) -> ParsedReply {
    let format = match case["format"].as_str().unwrap() {
        "json" => ReplyFormat::Json,
        "xml" => ReplyFormat::Xml,
        other => panic!("unknown format {other}"),
    };
    parse_reply(format, &text(&case["reply"]))
}

/// Returns the truth value of a JSON value in Python.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Returns how a field is shown that should be a text.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string().replace(',', ", "),
    }
}

/// Splits warnings where their order changes from process to process: at lines and at names of fields.
fn unordered(warning: &str) -> BTreeSet<Vec<String>> {
    let parts = |line: &str| {
        let mut parts: Vec<_> = line.split(&[':', ','][..]).map(|part| part.trim().to_owned()).collect();
        parts.sort();
        parts
    };
    warning.lines().map(parts).collect()
}

#[test]
fn every_official_parse_is_reproduced() {
    let cases = vectors("terminus2_replies.jsonl");
    let cases: Vec<Value> = cases.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cases.len(), 243);
    for case in cases.iter().filter(|case| case["raises"].is_null()) {
        let id = case["id"].as_str().unwrap();
        let parsed = parse(case);
        let commands: Vec<_> = parsed.commands.iter().map(|command| command.keystrokes.clone()).collect();
        let expected = case["commands"].as_array().unwrap();
        let keystrokes: Vec<_> = expected.iter().map(|command| text(&command["keystrokes"])).collect();
        assert_eq!(commands, keystrokes, "{id}");
        for (command, expected) in parsed.commands.iter().zip(expected) {
            assert!(is_same(command.duration_s, number(&expected["duration"])), "{id}: {command:?}");
        }
        assert_eq!(parsed.is_complete, is_truthy(&case["is_task_complete"]), "{id}");
        assert_eq!(parsed.error, case["error"].as_str().unwrap(), "{id}");
        let warning = case["warning"].as_str().unwrap();
        match case["warning_unordered"] == true {
            true => assert_eq!(unordered(&parsed.warning), unordered(warning), "{id}"),
            false => assert_eq!(parsed.warning, warning, "{id}"),
        }
        assert_eq!(parsed.analysis, shown(&case["analysis"]), "{id}");
        assert_eq!(parsed.plan, shown(&case["plan"]), "{id}");
    }
    let crashes: Vec<_> = cases.iter().filter(|case| !case["raises"].is_null()).collect();
    let [crash] = crashes[..] else { panic!("{} cases raise an exception", crashes.len()) };
    assert_eq!(crash["raises"], "OverflowError");
    let parsed = parse(crash);
    assert_eq!((parsed.error.as_str(), parsed.commands.len()), ("", 1));
    assert_eq!(parsed.warning, "- Command 1: Invalid duration value, using default 1.0");
}

#[test]
fn replies_of_the_older_harness_are_parsed_alike() {
    let vectors: Value = serde_json::from_str(&vectors("terminal_bench_text.json")).unwrap();
    let cases = vectors["terminus2_json"].as_array().unwrap();
    assert_eq!(cases.len(), 23);
    for case in cases {
        let (label, official) = (&case["label"], &case["official"]);
        let parsed = parse_reply(ReplyFormat::Json, case["response"].as_str().unwrap());
        let commands: Vec<_> = parsed.commands.iter().map(|command| command.keystrokes.as_str()).collect();
        let expected = official["commands"].as_array().unwrap();
        let expected: Vec<_> =
            expected.iter().map(|command| command["keystrokes"].as_str().unwrap()).collect();
        assert_eq!(commands, expected, "{label}");
        assert_eq!(parsed.is_complete, official["task_complete"].as_bool().unwrap(), "{label}");
        assert_eq!(!parsed.error.is_empty(), official["has_error"].as_bool().unwrap(), "{label}");
        let warnings = parsed.warning.lines().count() as u64;
        assert_eq!(warnings, official["n_warnings"].as_u64().unwrap(), "{label}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let nested = |depth: usize| {
        let list = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"analysis":"","plan":"","commands":[],"x":{list}}}"#)
    };
    assert_eq!(parse_reply(ReplyFormat::Json, &nested(800)).error, "");
    for depth in [1_000, 100_000] {
        let error = parse_reply(ReplyFormat::Json, &nested(depth)).error;
        assert!(error.starts_with("Invalid JSON: Nested too deeply: line 1 column"), "{error}");
    }
}

#[test]
fn huge_replies_are_parsed() {
    // Quadratic time would be hours.
    let mib = 1 << 18;
    let unclosed = "{\"a\":[".repeat(2 * mib);
    let keystrokes = "x".repeat(100 * 1024);
    let long =
        format!(r#"{{"analysis":"","plan":"","commands":[{{"keystrokes":"{keystrokes}","duration":1}}]}}"#);
    assert_eq!(parse_reply(ReplyFormat::Json, &long).commands[0].keystrokes, keystrokes);
    let many =
        format!(r#"{{"analysis":"","plan":"","commands":[{}0]}}"#, r#"{"keystrokes":"a"},"#.repeat(mib / 8));
    let tags = format!("<response>{}", "<a".repeat(mib));
    let names = format!("<response>{}", (0..mib / 2).map(|n| format!("<{n}/>")).collect::<String>());
    for reply in [
        unclosed,
        "{".repeat(mib),
        "{}".repeat(mib),
        "{{}".repeat(mib),
        "\"".repeat(mib),
        "<response>".repeat(mib),
        "<response><commands><keystrokes".repeat(mib / 3),
        "<task_complete>".repeat(mib / 2),
        "x".repeat(10 << 20),
        many,
        tags,
        names,
    ] {
        for format in [ReplyFormat::Json, ReplyFormat::Xml] {
            parse_reply(format, &reply);
        }
    }
}

#[test]
fn each_format_refuses_the_other() {
    let json = r#"{"analysis":"a","plan":"p","commands":[{"keystrokes":"ls\n","duration":1}]}"#;
    let xml = "<response><analysis>a</analysis><plan>p</plan><commands><keystrokes duration=\"1\">pwd\n</keystrokes>\
               </commands></response>";
    assert_eq!(parse_reply(ReplyFormat::Xml, json).error, "No <response> tag found");
    assert_eq!(parse_reply(ReplyFormat::Json, xml).error, "No valid JSON found in response");
    for both in [format!("{json}\n{xml}"), format!("{xml}\n{json}")] {
        let [as_json, as_xml] =
            [ReplyFormat::Json, ReplyFormat::Xml].map(|format| parse_reply(format, &both));
        assert_eq!(as_json.commands[0].keystrokes, "ls\n");
        assert_eq!(as_xml.commands[0].keystrokes, "pwd\n");
        assert!(as_json.warning.contains("Extra text") && as_xml.warning.contains("Extra text"));
    }
}

proptest! {
    #[test]
    fn no_reply_causes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let reply = String::from_utf8_lossy(&bytes);
        parse_reply(ReplyFormat::Json, &reply);
        parse_reply(ReplyFormat::Xml, &reply);
    }

    #[test]
    fn no_reply_of_likely_pieces_causes_a_panic(pieces in proptest::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", "\"", "\\", ",", ":", "analysis", "\"plan\":", "\"commands\":[", "\"keystrokes\":", "\\ud83d",
        "\\u", "1e", "-", "NaN", "<response>", "</response>", "<commands>", "</commands>", "<keystrokes ", "duration=\"",
        "'", ">", "/>", "<", "é", "\n", "\u{1c}", " ", "true", "<task_complete>", "</task_complete>",
    ]), 0..60)) {
        let reply = pieces.concat();
        parse_reply(ReplyFormat::Json, &reply);
        parse_reply(ReplyFormat::Xml, &reply);
    }
}
