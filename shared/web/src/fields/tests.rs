use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn reader(body: Value) -> FieldReader {
    FieldReader::from_body(body.as_object().unwrap().clone())
}

fn kinds(reader: FieldReader) -> Vec<&'static str> {
    reader.problems.iter().map(|problem| problem.kind).collect()
}

#[test]
fn integers_are_read_leniently() {
    for (sent, number) in [
        (json!(5), 5),
        (json!(5.0), 5),
        (json!("5"), 5),
        (json!(" +5 "), 5),
        (json!("5.0"), 5),
        (json!(true), 1),
    ] {
        let mut fields = reader(json!({ "n": sent }));
        assert_eq!(fields.integer("n", 9, 1, 100), number, "{sent}");
        assert!(fields.finish().is_ok());
    }
    assert_eq!(reader(json!({})).integer("n", 9, 1, 100), 9);
}

#[test]
fn values_other_than_integers_are_reported_with_their_type() {
    for (sent, kind) in [
        (json!(5.5), "int_from_float"),
        (json!("five"), "int_parsing"),
        (json!(""), "int_parsing"),
        (json!("5.5"), "int_parsing"),
        (json!("-"), "int_parsing"),
        (json!(null), "int_type"),
        (json!([5]), "int_type"),
        (json!({}), "int_type"),
        (json!(0), "greater_than_equal"),
        (json!(-3), "greater_than_equal"),
        (json!(-1e300), "greater_than_equal"),
        (json!(101), "less_than_equal"),
        (json!(u64::MAX), "less_than_equal"),
        (json!(1e300), "less_than_equal"),
        (json!("99999999999999999999999999999999999999999999"), "less_than_equal"),
    ] {
        let mut fields = reader(json!({ "n": sent }));
        fields.integer("n", 9, 1, 100);
        assert_eq!(kinds(fields), [kind], "{sent}");
    }
}

#[test]
fn every_problem_names_its_field() {
    let mut fields = reader(json!({ "seed": "x".repeat(129), "names": ["a", 1], "config": [] }));
    fields.text("model_id", 10);
    fields.maybe_text("seed", 128);
    fields.maybe_texts("names", 5, 10);
    fields.maybe_object("config");
    let error = serde_json::to_value(&fields.problems).unwrap();
    assert_eq!(error[0]["type"], "missing");
    assert_eq!(error[0]["loc"], json!(["body", "model_id"]));
    assert_eq!(error[1]["ctx"], json!({ "max_length": 128 }));
    assert_eq!(error[2]["loc"], json!(["body", "names", 1]));
    assert_eq!(error[3]["type"], "dict_type");
    assert_eq!(error.as_array().unwrap().len(), 4);
    assert!(error[3].get("ctx").is_none());
}

#[test]
fn a_long_input_is_quoted_in_part() {
    let mut fields = reader(json!({ "seed": "x".repeat(100_000), "other": "y".repeat(100_000) }));
    fields.maybe_text("seed", 128);
    fields.text("model_id", 10);
    assert!(serde_json::to_string(&fields.problems).unwrap().len() < 2_500);
}

#[test]
fn a_query_is_read_like_a_body() {
    let uri: Uri = "/x?limit=10&search=a%20b&limit=20&odd".parse().unwrap();
    let mut fields = FieldReader::from_query(&uri);
    assert_eq!(fields.integer("limit", 100, 0, 500), 20);
    assert_eq!(fields.maybe_text("search", 100).as_deref(), Some("a b"));
    assert_eq!(fields.integer("offset", 0, 0, 10), 0);
    assert!(fields.finish().is_ok());
    let mut fields = FieldReader::from_query(&"/x?limit=-1".parse().unwrap());
    fields.integer("limit", 100, 0, 500);
    assert_eq!(fields.problems[0].loc, [json!("query"), json!("limit")]);
}

#[test]
fn flags_and_numbers() {
    let mut fields = reader(json!({ "a": true, "b": "no", "c": 7, "t": 0.5, "u": 3, "v": "hot" }));
    assert!(fields.flag("a") && !fields.flag("b") && !fields.flag("z"));
    assert!(!fields.flag("c"));
    assert_eq!(fields.maybe_number("t", 0.0, 2.0), Some(0.5));
    assert_eq!(fields.maybe_number("u", 0.0, 2.0), None);
    assert_eq!(fields.maybe_number("v", 0.0, 2.0), None);
    assert_eq!(kinds(fields), ["bool_type", "less_than_equal", "float_type"]);
}

#[test]
fn errors_of_unknown_fields_list_the_known_ones() {
    let mut fields = reader(json!({ "known": 1, "knwon": 2, "old": null }));
    fields.refuse_unknown(&["known", "old"]);
    fields.refuse("old", "null is as good as nothing");
    fields.refuse("known", "take the other");
    let error = fields.finish().unwrap_err();
    assert_eq!(error.status(), 422);
    assert!(error.message().contains("knwon: Unknown field; known fields are known, old"), "{error}");
    assert!(error.message().contains("known: take the other"), "{error}");
    let mut long = reader(json!({ "x".repeat(5_000): 1 }));
    long.refuse_unknown(&[]);
    assert!(long.finish().unwrap_err().message().len() < 200);
}

#[test]
fn a_field_has_one_problem() {
    let mut fields = reader(json!({ "empty": "", "number": 7 }));
    let is_empty = |text: String| if text.is_empty() { Err("a text is required") } else { Ok(text) };
    for name in ["missing", "number", "empty"] {
        let read = fields.required_text(name, 10).and_then(|text| fields.checked(name, is_empty(text)));
        assert_eq!(read, None, "{name}");
    }
    assert_eq!(kinds(fields), ["missing", "string_type", "value_error"]);
}

#[test]
fn settings_are_texts_as_they_are_written() {
    let mut fields = reader(json!({ "s": { "a": " x ", "b": 5, "c": true, "d": null, "e": 0.5, "f": {} } }));
    let settings = fields.maybe_settings("s", 9, 5).unwrap();
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(settings, [("a", " x "), ("b", "5"), ("c", "true"), ("e", "0.5")]);
    assert_eq!(fields.maybe_settings("s", 5, 5), None);
    assert_eq!(fields.maybe_settings("t", 5, 5), None);
    let message = fields.finish().unwrap_err().message();
    assert!(message.contains("s.f: Input should be a string") && message.contains("at most 5"), "{message}");
}

#[test]
fn problems_in_nested_objects_name_the_full_path() {
    let mut fields = reader(
        json!({ "judge": { "seed": -3, "temperature": 9, "max_tokens": "x" }, "maps": { "a": "b", "c": 1 } }),
    );
    let seed = fields.within("judge", |judge| {
        assert_eq!(judge.maybe_number("temperature", 0.0, 2.0), None);
        assert_eq!(judge.maybe_integer("max_tokens", 1, 10), None);
        judge.maybe_signed("seed")
    });
    assert_eq!(seed, Some(Some(-3)));
    assert_eq!(fields.within("nothing", |_| ()), None);
    assert_eq!(fields.maybe_text_map("maps", 5, 10).unwrap(), BTreeMap::from([("a".into(), "b".into())]));
    fields.note_entry("value_error", "maps", "a", "is not known");
    let message = fields.finish().unwrap_err().message();
    for part in
        ["judge.temperature: Input", "judge.max_tokens: Input", "maps.c: Input", "maps.a: is not known"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
}
