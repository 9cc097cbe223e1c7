//! Parses lines of stored responses.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use bench_domain::BenchmarkName;

use super::{ExtraFields, RecordedResponses, ResponseText, StoredResponse};

/// Maximum size of a line in bytes.
const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum number of responses.
const RESPONSES_MAX: usize = 5_000_000;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    item_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    benchmark: Option<Cow<'a, str>>,
    #[serde(default)]
    sample: Option<u32>,
    #[serde(borrow, default)]
    step: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    responses: Option<&'a RawValue>,
    #[serde(default)]
    reasoning: Option<Box<str>>,
    #[serde(default)]
    finish_reason: Option<Box<str>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    instance_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    model_patch: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    patch: Option<&'a RawValue>,
}

/// Benchmark whose predictions name items by `instance_id`.
const PREDICTIONS: &str = "swe_bench_pro";

impl<'a> Line<'a> {
    /// Turns a prediction into a response, as the official program reads it: a patch is in `model_patch` or `patch`.
    fn into_response(self) -> Self {
        let is_prediction = self.instance_id.is_some()
            && self.item_id.or(self.id).is_none()
            && self.response.or(self.responses).is_none();
        if !is_prediction {
            return self;
        }
        let response = self.model_patch.or(self.patch);
        let benchmark = self.benchmark.or(Some(Cow::Borrowed(PREDICTIONS)));
        Line { item_id: self.instance_id, response, benchmark, ..self }
    }
}

impl RecordedResponses {
    /// Adds a list of predictions. A problem is returned with the number of its prediction, from 1.
    pub(super) fn add_list(&mut self, text: &str) -> Result<(), (usize, String)> {
        let list: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| {
            (error.line(), format!("the list of predictions can't be read: {}", reason(&error)))
        })?;
        for (index, prediction) in list.into_iter().enumerate() {
            let number = index + 1;
            self.add(number, prediction.get()).map_err(|problem| (number, problem))?;
        }
        Ok(())
    }

    /// Adds the response of one line, or returns the problem with it.
    pub(super) fn add(&mut self, number: usize, text: &str) -> Result<(), String> {
        if text.len() > LINE_BYTES_MAX || self.responses >= RESPONSES_MAX {
            return Err("the file is too large for stored responses".to_owned());
        }
        // serde would accept an array with the fields in order.
        if !text.trim_start().starts_with('{') {
            return Err("not an object with a response".to_owned());
        }
        let line: Line<'_> = serde_json::from_str(text).map_err(|error| {
            // serde counts lines within this text; only its column is useful.
            format!("not an object with a response (column {}): {}", error.column(), reason(&error))
        })?;
        let line = line.into_response();
        let item_id = line.item_id.or(line.id).ok_or("there is no `item_id`")?;
        let item_id = item_key(item_id.get()).ok_or("`item_id` is neither a text nor a whole number")?;
        let step = match line.step {
            None => None,
            Some(step) => Some(step_name(step.get())?),
        };
        // Next to `responses`, a null `response` is an unused column.
        let response = line.response.filter(|response| !is_null(response) || line.responses.is_none());
        let (text, count) = match (response, line.responses) {
            (Some(_), Some(_)) => return Err("there are both `response` and `responses`".to_owned()),
            (None, Some(_)) if step.is_some() => {
                return Err("`step` goes with `response`, not with `responses`".to_owned());
            }
            (None, None) => return Err("there is no `response`".to_owned()),
            (Some(response), None) if is_null(response) => (ResponseText::Nothing, 1),
            (Some(response), None) => {
                let text = serde_json::from_str(response.get()).map_err(|_| {
                    half_character("`response`", response.get())
                        .unwrap_or_else(|| "`response` is not a string".to_owned())
                })?;
                (ResponseText::One(text), 1)
            }
            (None, Some(responses)) => {
                let texts: Vec<Option<Box<str>>> = serde_json::from_str(responses.get()).map_err(|_| {
                    half_character("`responses`", responses.get())
                        .unwrap_or_else(|| "`responses` is no list of texts and nulls".to_owned())
                })?;
                let texts: Box<[Box<str>]> = texts.into_iter().flatten().collect();
                let count = texts.len();
                (ResponseText::Several(texts), count)
            }
        };
        let benchmark = line.benchmark.map(|name| self.intern(own_name(&name)));
        let slot = self.by_item.entry(item_id).or_default();
        let same = |stored: &&StoredResponse| {
            stored.benchmark == benchmark && stored.sample == line.sample && stored.step() == step.as_deref()
        };
        if let Some(first) = slot.iter().find(same) {
            return Err(format!(
                "the same item and sample as in line {}; `sample` tells several apart, `step` several questions",
                first.line
            ));
        }
        let is_single = matches!(text, ResponseText::One(_) | ResponseText::Nothing);
        let extra = ExtraFields {
            step,
            reasoning: line.reasoning.filter(|_| is_single),
            finish_reason: line.finish_reason.filter(|_| is_single),
            usage_raw: line.usage.filter(|_| is_single).map(|usage| usage.get().into()),
        };
        let has_extra = extra.step.is_some()
            || extra.reasoning.is_some()
            || extra.finish_reason.is_some()
            || extra.usage_raw.is_some();
        slot.push(StoredResponse {
            benchmark,
            sample: line.sample,
            line: u32::try_from(number).unwrap_or(u32::MAX),
            text,
            extra: has_extra.then(|| Box::new(extra)),
        });
        self.responses += count;
        Ok(())
    }

    fn intern(&mut self, name: &str) -> u32 {
        let known = self.benchmarks.iter().position(|known| **known == *name);
        let index = known.unwrap_or_else(|| {
            self.benchmarks.push(name.into());
            self.benchmarks.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}
/// Deserializes a field that is present, even if it is null.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(field: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(field).map(Some)
}

fn is_null(json: &RawValue) -> bool {
    json.get() == "null"
}

/// Parses the name of a step, which must be a string. Users who write a number mean the step's position,
/// which matches no name, or lose trailing zeros.
fn step_name(json: &str) -> Result<Box<str>, String> {
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map_err(|_| {
            half_character("`step`", json).unwrap_or_else(|| "`step` is not a string".to_owned())
        }),
        Some(b'-' | b'0'..=b'9') => {
            Err("`step` is a number: give the step's name as a text, such as \"76.1\"".to_owned())
        }
        _ => Err("`step` is not a string".to_owned()),
    }
}

/// Returns the error message for the first escape of half a character in JSON that could not be parsed, if
/// any. JSON writes characters beyond U+FFFF as two escapes; a text that was cut between them is invalid.
fn half_character(field: &str, json: &str) -> Option<String> {
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let escape = rest.get(at..)?;
        let Some(unit) = utf16_unit(escape) else {
            // The escaped character may be a backslash, which doesn't begin another escape.
            rest = escape.get(1..)?.char_indices().nth(1).and_then(|(next, _)| escape.get(1 + next..))?;
            continue;
        };
        let after = escape.get(6..)?;
        rest = match unit {
            0xD800..=0xDBFF if matches!(utf16_unit(after), Some(0xDC00..=0xDFFF)) => after.get(6..)?,
            0xD800..=0xDFFF => {
                let written = escape.get(..6)?;
                return Some(format!(
                    "{field} has the escape `{written}` without its other half: a character was cut in two"
                ));
            }
            _ => after,
        };
    }
    None
}

/// Returns the code unit of a `\u` escape, with its four digits, at the start of a text.
fn utf16_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Returns a string as it is, and an integer as its digits.
fn item_key(json: &str) -> Option<Box<str>> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok(),
        _ => json.parse::<i64>().is_ok().then(|| json.into()),
    }
}

fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().chars().take(200).collect()
}

/// Returns the name of the benchmark that a line means by its name or an alias. Unknown names stay.
fn own_name(name: &str) -> &str {
    let named = name.parse::<BenchmarkName>().ok().and_then(|name| bench_benchmarks::find_named(&name));
    named.map_or(name, |benchmark| benchmark.name())
}
