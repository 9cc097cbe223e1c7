//! Reading what a caller sent, field by field.
//!
//! A [`FieldReader`] notes every problem instead of stopping at the first. Types, texts and the shape of a
//! problem are those that clients of the compatible system know (section 0.2 of its specification).

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::Query;
use http::Uri;
use serde_json::{Map, Value, json};

use crate::{ApiError, FieldError};

/// Characters of an input that a problem quotes.
const QUOTED_CHARS_MAX: usize = 400;
/// Characters of an unknown field's name that a problem quotes.
const NAME_CHARS_MAX: usize = 80;
/// Problems that are told of one request.
const PROBLEMS_MAX: usize = 50;

/// Which part of a request is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// The JSON body.
    Body,
    /// The query string.
    Query,
}

impl Location {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Query => "query",
        }
    }
}

/// Reads fields of a JSON object or of a query string.
#[derive(Debug)]
pub struct FieldReader {
    location: Location,
    /// Names of the objects that this one is in, from the outside.
    within: Vec<Value>,
    fields: Map<String, Value>,
    /// Names of the fields that were looked for.
    asked: BTreeSet<String>,
    problems: Vec<FieldError>,
}

impl FieldReader {
    /// A reader of a body's object.
    pub const fn of_body(fields: Map<String, Value>) -> Self {
        Self {
            location: Location::Body,
            within: Vec::new(),
            fields,
            asked: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// A reader of a query string; of a repeated name the last value counts.
    pub fn of_query(uri: &Uri) -> Self {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|pairs| pairs.0);
        let pairs = pairs.unwrap_or_default().into_iter();
        let fields = pairs.map(|(name, value)| (name, Value::String(value))).collect();
        Self {
            location: Location::Query,
            within: Vec::new(),
            fields,
            asked: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// The fields as they were sent.
    pub fn into_fields(self) -> Map<String, Value> {
        self.fields
    }

    /// Names of the fields that were sent and not looked for, cut to 80 characters.
    pub fn unread(&self) -> Vec<String> {
        let unread = self.fields.keys().filter(|name| !self.asked.contains(*name));
        unread.take(PROBLEMS_MAX).map(|name| name.chars().take(NAME_CHARS_MAX).collect()).collect()
    }

    /// Returns whether a field was sent and is not null.
    pub fn has(&mut self, name: &str) -> bool {
        self.present(name).is_some()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// 422 with all problems, if there were any.
    pub fn finish(mut self) -> Result<(), ApiError> {
        self.problems.truncate(PROBLEMS_MAX);
        if self.problems.is_empty() { Ok(()) } else { Err(ApiError::validation(self.problems)) }
    }

    /// Notes a problem that only the caller of this reader can see.
    pub fn note(&mut self, kind: &'static str, name: &str, msg: impl Into<String>) {
        let input = self.fields.get(name).cloned().unwrap_or(Value::Null);
        self.problem(kind, name, msg, input, None);
    }

    /// Notes a field that is not taken, if it was sent.
    pub fn refuse(&mut self, name: &str, msg: impl Into<String>) {
        if self.present(name).is_some() {
            self.note("extra_forbidden", name, msg);
        }
    }

    /// Notes every field that is not among the known ones: what is misspelt is not silently left out.
    pub fn refuse_unknown(&mut self, known: &[&str]) {
        let unknown = self.fields.keys().filter(|name| !known.contains(&name.as_str()));
        let unknown: Vec<String> = unknown.take(PROBLEMS_MAX).cloned().collect();
        for name in unknown {
            let input = self.fields.get(&name).cloned().unwrap_or_default();
            let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
            let msg = format!("There is no such field; known are {}", known.join(", "));
            self.problem("extra_forbidden", &shown, msg, input, None);
        }
    }

    fn problem(
        &mut self,
        kind: &'static str,
        name: &str,
        msg: impl Into<String>,
        input: Value,
        ctx: Option<Value>,
    ) {
        self.problem_at(kind, &[name.into()], msg, input, ctx);
    }

    fn problem_at(
        &mut self,
        kind: &'static str,
        place: &[Value],
        msg: impl Into<String>,
        input: Value,
        ctx: Option<Value>,
    ) {
        let mut loc = vec![Value::from(self.location.as_str())];
        loc.extend_from_slice(&self.within);
        loc.extend_from_slice(place);
        self.problems.push(FieldError { kind, loc, msg: msg.into(), input: quoted(input), ctx });
    }

    /// Notes a problem with an entry of an object, under the entry's name.
    pub fn note_entry(&mut self, kind: &'static str, name: &str, entry: &str, msg: impl Into<String>) {
        let input = self.fields.get(name).and_then(|object| object.get(entry)).cloned();
        self.problem_at(kind, &[name.into(), entry.into()], msg, input.unwrap_or_default(), None);
    }

    /// Reads the fields of an object, if it was sent. What is wrong with them is told with the object's name.
    pub fn within<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let fields = self.maybe_object(name)?;
        let mut within = self.within.clone();
        within.push(name.into());
        let mut inner =
            Self { location: self.location, within, fields, asked: BTreeSet::new(), problems: Vec::new() };
        let value = read(&mut inner);
        self.problems.append(&mut inner.problems);
        Some(value)
    }

    /// A field that was sent and is not null.
    fn present(&mut self, name: &str) -> Option<Value> {
        self.asked.insert(name.to_owned());
        self.fields.get(name).filter(|value| !value.is_null()).cloned()
    }

    /// A text that must be there; empty when there is a problem.
    pub fn text(&mut self, name: &str, chars_max: usize) -> String {
        self.asked.insert(name.to_owned());
        match self.fields.get(name).cloned() {
            None => {
                let input = Value::Object(self.fields.clone());
                self.problem("missing", name, "Field required", input, None);
                String::new()
            }
            Some(value) => self.check_text(name, value, chars_max).unwrap_or_default(),
        }
    }

    /// A text, or nothing.
    pub fn maybe_text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        let value = self.present(name)?;
        self.check_text(name, value, chars_max)
    }

    fn check_text(&mut self, name: &str, value: Value, chars_max: usize) -> Option<String> {
        let Value::String(text) = value else {
            self.problem("string_type", name, "Input should be a valid string", value, None);
            return None;
        };
        if text.chars().count() > chars_max {
            let msg = format!("String should have at most {chars_max} characters");
            let ctx = json!({ "max_length": chars_max });
            self.problem("string_too_long", name, msg, Value::String(text), Some(ctx));
            return None;
        }
        Some(text)
    }

    /// A whole number within bounds, both included; the default when it was not sent.
    pub fn integer(&mut self, name: &str, default: u64, min: u64, max: u64) -> u64 {
        self.asked.insert(name.to_owned());
        match self.fields.get(name).cloned() {
            None => default,
            Some(value) => self.check_unsigned(name, value, min, max).unwrap_or(default),
        }
    }

    /// A whole number within bounds, both included, or nothing.
    pub fn maybe_integer(&mut self, name: &str, min: u64, max: u64) -> Option<u64> {
        let value = self.present(name)?;
        self.check_unsigned(name, value, min, max)
    }

    /// A whole number that may be negative, or nothing.
    pub fn maybe_signed(&mut self, name: &str) -> Option<i64> {
        let value = self.present(name)?;
        let number = self.check_integer(name, value, i64::MIN.into(), i64::MAX.into())?;
        i64::try_from(number).ok()
    }

    fn check_unsigned(&mut self, name: &str, value: Value, min: u64, max: u64) -> Option<u64> {
        let number = self.check_integer(name, value, min.into(), max.into())?;
        u64::try_from(number).ok()
    }

    fn check_integer(&mut self, name: &str, value: Value, min: i128, max: i128) -> Option<i128> {
        let number = match lenient_integer(&value) {
            Ok(number) => number,
            Err((kind, msg)) => {
                self.problem(kind, name, msg, value, None);
                return None;
            }
        };
        let bound = |number: i128| match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) => Value::from(number),
            _ => Value::Null,
        };
        if number < min {
            let msg = format!("Input should be greater than or equal to {min}");
            self.problem("greater_than_equal", name, msg, value, Some(json!({ "ge": bound(min) })));
            return None;
        }
        if number > max {
            let msg = format!("Input should be less than or equal to {max}");
            self.problem("less_than_equal", name, msg, value, Some(json!({ "le": bound(max) })));
            return None;
        }
        Some(number)
    }

    /// A number within bounds, both included, or nothing.
    pub fn maybe_number(&mut self, name: &str, min: f64, max: f64) -> Option<f64> {
        let value = self.present(name)?;
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number.filter(|number| number.is_finite()) else {
            self.problem("float_type", name, "Input should be a valid number", value, None);
            return None;
        };
        if number < min {
            let msg = format!("Input should be greater than or equal to {min}");
            self.problem("greater_than_equal", name, msg, value, Some(json!({ "ge": min })));
            return None;
        }
        if number > max {
            let msg = format!("Input should be less than or equal to {max}");
            self.problem("less_than_equal", name, msg, value, Some(json!({ "le": max })));
            return None;
        }
        Some(number)
    }

    /// A truth value; false when it was not sent.
    pub fn flag(&mut self, name: &str) -> bool {
        self.maybe_flag(name).unwrap_or(false)
    }

    /// A truth value, or nothing.
    pub fn maybe_flag(&mut self, name: &str) -> Option<bool> {
        let value = self.present(name)?;
        let flag = match &value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.trim().to_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => None,
            },
            Value::Number(number) if number.as_u64() == Some(1) => Some(true),
            Value::Number(number) if number.as_u64() == Some(0) => Some(false),
            _ => None,
        };
        if flag.is_none() {
            self.problem("bool_type", name, "Input should be a valid boolean", value, None);
        }
        flag
    }

    /// A list of texts, or nothing.
    pub fn maybe_texts(&mut self, name: &str, entries_max: usize, chars_max: usize) -> Option<Vec<String>> {
        let value = self.present(name)?;
        let Value::Array(entries) = value else {
            self.problem("list_type", name, "Input should be a valid list", value, None);
            return None;
        };
        if entries.len() > entries_max {
            let msg = format!("List should have at most {entries_max} items");
            let ctx = json!({ "max_length": entries_max, "actual_length": entries.len() });
            self.problem("too_long", name, msg, Value::Null, Some(ctx));
            return None;
        }
        let mut texts = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let place = [name.into(), index.into()];
            match entry {
                Value::String(text) if text.chars().count() <= chars_max => texts.push(text),
                Value::String(text) => {
                    let msg = format!("String should have at most {chars_max} characters");
                    let ctx = json!({ "max_length": chars_max });
                    self.problem_at("string_too_long", &place, msg, Value::String(text), Some(ctx));
                }
                other => {
                    self.problem_at("string_type", &place, "Input should be a valid string", other, None);
                }
            }
        }
        Some(texts)
    }

    /// An object, or nothing.
    pub fn maybe_object(&mut self, name: &str) -> Option<Map<String, Value>> {
        match self.present(name)? {
            Value::Object(fields) => Some(fields),
            other => {
                self.problem("dict_type", name, "Input should be a valid dictionary", other, None);
                None
            }
        }
    }

    /// An object with a bounded number of entries, or nothing.
    fn maybe_entries(&mut self, name: &str, entries_max: usize) -> Option<Map<String, Value>> {
        let entries = self.maybe_object(name)?;
        if entries.len() <= entries_max {
            return Some(entries);
        }
        let msg = format!("Dictionary should have at most {entries_max} items");
        let ctx = json!({ "max_length": entries_max, "actual_length": entries.len() });
        self.problem("too_long", name, msg, Value::Null, Some(ctx));
        None
    }

    /// An object of texts, or nothing.
    pub fn maybe_text_map(
        &mut self,
        name: &str,
        entries_max: usize,
        chars_max: usize,
    ) -> Option<BTreeMap<String, String>> {
        let entries = self.maybe_entries(name, entries_max)?;
        self.within(name, |inner| {
            let texts = entries.into_iter().map(|(entry, value)| {
                let text = inner.check_text(&entry, value, chars_max)?;
                Some((entry, text))
            });
            texts.collect::<Vec<_>>().into_iter().flatten().collect()
        })
    }

    /// An object of settings, or nothing: texts, and numbers and truth values as they are written.
    pub fn maybe_settings(
        &mut self,
        name: &str,
        entries_max: usize,
        chars_max: usize,
    ) -> Option<BTreeMap<String, String>> {
        let entries = self.maybe_entries(name, entries_max)?;
        self.within(name, |inner| {
            let mut settings = BTreeMap::new();
            for (entry, value) in entries {
                let value = match value {
                    Value::Null => continue,
                    Value::Bool(_) | Value::Number(_) => Value::String(value.to_string()),
                    Value::String(_) => value,
                    other => {
                        let msg = "Input should be a text, a number or a truth value";
                        inner.problem("string_type", &entry, msg, other, None);
                        continue;
                    }
                };
                let text = inner.check_text(&entry, value, chars_max);
                settings.extend(text.map(|text| (entry, text)));
            }
            settings
        })
    }

    /// A text that must be one of a few, or nothing.
    pub fn maybe_choice<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.maybe_text(name, usize::MAX)?;
        let choice = read(&text);
        if choice.is_none() {
            let ctx = Some(json!({ "expected": expected }));
            self.problem("enum", name, format!("Input should be {expected}"), Value::String(text), ctx);
        }
        choice
    }
}

/// An integer, a float without fraction, a text that is one, or a truth value. Numbers beyond what can be
/// held come out as the nearest that can: every bound is narrower.
fn lenient_integer(value: &Value) -> Result<i128, (&'static str, &'static str)> {
    const FRACTION: (&str, &str) =
        ("int_from_float", "Input should be a valid integer, got a number with a fractional part");
    const PARSING: (&str, &str) =
        ("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
    #[allow(clippy::cast_possible_truncation)] // `as` saturates, which is what is wanted
    let whole = |float: f64| if float.fract() == 0.0 { Ok(float as i128) } else { Err(FRACTION) };
    match value {
        Value::Bool(flag) => Ok(i128::from(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Ok(number.into()),
            (_, Some(number), _) => Ok(number.into()),
            (_, _, Some(float)) if float.is_finite() => whole(float),
            _ => Err(FRACTION),
        },
        Value::String(text) => {
            let text = text.trim();
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, text.strip_prefix('+').unwrap_or(text)),
            };
            let (digits, zeros) = digits.split_once('.').unwrap_or((digits, ""));
            let digits = digits.replace('_', "");
            if digits.is_empty()
                || !digits.bytes().all(|b| b.is_ascii_digit())
                || !zeros.bytes().all(|b| b == b'0')
            {
                return Err(PARSING);
            }
            Ok(sign * digits.parse::<i128>().unwrap_or(i128::MAX))
        }
        _ => Err(("int_type", "Input should be a valid integer")),
    }
}

/// What was sent, cut so that an answer is never much larger than its problems.
fn quoted(input: Value) -> Value {
    let text = match &input {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => input.to_string(),
        _ => return input,
    };
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        None => input,
        Some((end, _)) => Value::String(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(body: Value) -> FieldReader {
        FieldReader::of_body(body.as_object().unwrap().clone())
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
    fn what_is_no_integer_is_told_by_its_kind() {
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
    fn every_problem_is_told_with_its_place() {
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
        let mut fields = FieldReader::of_query(&uri);
        assert_eq!(fields.integer("limit", 100, 0, 500), 20);
        assert_eq!(fields.maybe_text("search", 100).as_deref(), Some("a b"));
        assert_eq!(fields.integer("offset", 0, 0, 10), 0);
        assert!(fields.finish().is_ok());
        let mut fields = FieldReader::of_query(&"/x?limit=-1".parse().unwrap());
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
    fn unknown_fields_are_told_with_the_known_ones() {
        let mut fields = reader(json!({ "known": 1, "knwon": 2, "old": null }));
        fields.refuse_unknown(&["known", "old"]);
        fields.refuse("old", "null is as good as nothing");
        fields.refuse("known", "take the other");
        let error = fields.finish().unwrap_err();
        assert_eq!(error.status(), 422);
        assert!(error.message().contains("knwon: There is no such field; known are known, old"), "{error}");
        assert!(error.message().contains("known: take the other"), "{error}");
        let mut long = reader(json!({ "x".repeat(5_000): 1 }));
        long.refuse_unknown(&[]);
        assert!(long.finish().unwrap_err().message().len() < 200);
    }

    #[test]
    fn settings_are_texts_as_they_are_written() {
        let mut fields =
            reader(json!({ "s": { "a": " x ", "b": 5, "c": true, "d": null, "e": 0.5, "f": {} } }));
        let settings = fields.maybe_settings("s", 9, 5).unwrap();
        let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(settings, [("a", " x "), ("b", "5"), ("c", "true"), ("e", "0.5")]);
        assert_eq!(fields.maybe_settings("s", 5, 5), None);
        assert_eq!(fields.maybe_settings("t", 5, 5), None);
        let message = fields.finish().unwrap_err().message();
        assert!(
            message.contains("s.f: Input should be a text") && message.contains("at most 5"),
            "{message}"
        );
    }

    #[test]
    fn objects_in_objects_are_told_with_their_names() {
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
}
