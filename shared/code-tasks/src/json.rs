//! JSON files of a task, with refusals that name the field.

use bench_terminal_tasks::{FormatProblem, Refusal};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Types as the parser names them, and as refusals do.
const TYPES: [(&str, &str); 9] = [
    ("a string", "a text"),
    ("string", "a text"),
    ("a sequence", "a list"),
    ("sequence", "a list"),
    ("a map", "an object"),
    ("map", "an object"),
    ("a boolean", "true or false"),
    ("u64", "a whole number from 0"),
    ("u32", "a whole number from 0"),
];
/// Maximum number of characters of a value in a refusal.
const SHOWN_MAX: usize = 80;

/// Reads a JSON file.
///
/// # Errors
/// Names the line, and the field that is missing or has a value of another type.
pub(crate) fn read_json<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, Refusal> {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut parser);
    let read = read.map_err(|error| (error.path().to_string(), error.into_inner()));
    let read = read.and_then(|value| parser.end().map(|()| value).map_err(|error| (String::new(), error)));
    read.map_err(|(field, error)| {
        let line = u32::try_from(error.line()).ok().filter(|line| *line > 0);
        Refusal::at(path, line, describe(path, &field, &error))
    })
}

/// Returns the problem that the parser describes as an error of a field.
fn describe(path: &str, field: &str, error: &serde_json::Error) -> FormatProblem {
    let whole = error.to_string();
    // The refusal has the line.
    let cause = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(cause, _)| cause);
    let is_root = field.is_empty() || field == ".";
    let data = if error.classify() == Category::Data { cause } else { "" };
    if let Some(missing) = data.strip_prefix("missing field ") {
        let name = missing.trim_matches('`');
        return FormatProblem::MissingField {
            key: if is_root { name.to_owned() } else { format!("{field}.{name}") },
        };
    }
    if let Some(twice) = data.strip_prefix("duplicate field ") {
        return FormatProblem::DuplicateKey { key: twice.trim_matches('`').to_owned() };
    }
    let key = if is_root { path } else { field }.to_owned();
    if let Some((found, expected)) =
        data.strip_prefix("unknown variant ").and_then(|text| text.split_once(", expected "))
    {
        let (expected, found) = (expected.to_owned().into(), shown(found).into());
        return FormatProblem::WrongType { key, expected, found };
    }
    let of_type = ["invalid type: ", "invalid value: "].iter().find_map(|start| data.strip_prefix(start));
    if let Some((found, expected)) = of_type.and_then(|text| text.rsplit_once(", expected ")) {
        let (expected, found) = (own_type(expected).into(), shown(found).into());
        return FormatProblem::WrongType { key, expected, found };
    }
    if data.starts_with("invalid length ") {
        return FormatProblem::WrongType { key, expected: "an object".into(), found: "a list".into() };
    }
    FormatProblem::Syntax { language: "JSON", cause: cause.to_owned() }
}

fn own_type(name: &str) -> String {
    let known = TYPES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    known.unwrap_or(if name.starts_with("struct ") { "an object" } else { name }).to_owned()
}

/// Returns a value as the parser shows it, or its type.
fn shown(found: &str) -> String {
    let found = TYPES.iter().find(|(theirs, _)| *theirs == found).map_or(found, |(_, ours)| ours);
    let found =
        found.strip_prefix("string ").map_or_else(|| found.to_owned(), |text| format!("the text {text}"));
    match found.chars().count() > SHOWN_MAX {
        true => found.chars().take(SHOWN_MAX).chain(['…']).collect(),
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[expect(dead_code, reason = "only read")]
        name: String,
        #[serde(default)]
        #[expect(dead_code, reason = "only read")]
        inner: BTreeMap<String, Inner>,
        #[serde(default)]
        #[expect(dead_code, reason = "only read")]
        tags: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only read")]
        seconds: u64,
    }

    #[test]
    fn refusals_name_the_field_and_its_type() {
        for (text, expected) in [
            (r#"{"name": 3}"#, "`a.json` line 1: `name` must be a text, not integer `3`"),
            ("{\n \"name\": null}", "`a.json` line 2: `name` must be a text, not null"),
            (r#"{"name": "x", "tags": "y"}"#, "`a.json` line 1: `tags` must be a list, not the text \"y\""),
            (
                r#"{"name": "x", "tags": ["y", {}]}"#,
                "`a.json` line 1: `tags[1]` must be a text, not an object",
            ),
            (
                r#"{"name": "x", "inner": {"one": {"seconds": -1}}}"#,
                "`a.json` line 1: `inner.one.seconds` must be a whole number from 0, not integer `-1`",
            ),
            (
                r#"{"name": "x", "inner": {"one": {}}}"#,
                "`a.json` line 1: the field `inner.one.seconds` is missing; add it",
            ),
            (
                r#"{"name": "x", "inner": {"one": 1}}"#,
                "`a.json` line 1: `inner.one` must be an object, not integer `1`",
            ),
            (
                r#"{"name": "x", "name": "y"}"#,
                "`a.json` line 1: the key `name` occurs twice; keep one of them",
            ),
            ("[]", "`a.json` line 1: `a.json` must be an object, not a list"),
            ("7", "`a.json` line 1: `a.json` must be an object, not integer `7`"),
            (r#"{"name": "x"} x"#, "`a.json` line 1: the file is not valid JSON: trailing characters"),
            ("{", "`a.json` line 1: the file is not valid JSON: EOF while parsing an object"),
            ("", "`a.json` line 1: the file is not valid JSON: EOF while parsing a value"),
        ] {
            assert_eq!(
                read_json::<Outer>("a.json", text.as_bytes()).unwrap_err().to_string(),
                expected,
                "{text}"
            );
        }
    }
}
