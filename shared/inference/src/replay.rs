//! Stored responses that stand in for a model.
//!
//! One JSON object a line: `response` and `item_id` (or `id`), and if wanted `benchmark`, `sample` (from 0),
//! `reasoning`, `finish_reason` and `usage`. Other fields are ignored. A line without `benchmark` serves every
//! benchmark, one without `sample` every sample; the more special line wins.

use std::borrow::Cow;
use std::collections::HashMap;

use bench_domain::{Answer, Finish};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::usage_object::parse_usage;

/// Longest line in bytes.
const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most lines with a response.
const RESPONSES_MAX: usize = 5_000_000;

/// Stored responses by item. Holds the responses and their keys, nothing else of the file.
#[derive(Debug, Default)]
pub struct Replay {
    by_item: HashMap<Box<str>, Vec<Stored>>,
    benchmarks: Vec<Box<str>>,
    responses: usize,
}

#[derive(Debug)]
struct Stored {
    /// Index in `benchmarks`.
    benchmark: Option<u32>,
    sample: Option<u32>,
    line: u32,
    response: Box<str>,
    /// What few lines have.
    extra: Option<Box<Extra>>,
}

#[derive(Debug, Default)]
struct Extra {
    reasoning: Option<Box<str>>,
    finish_reason: Option<Box<str>>,
    usage_raw: Option<Box<str>>,
}

/// A file of stored responses that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ReplayError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it, in one sentence.
    pub problem: String,
}

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
    response: Option<&'a RawValue>,
    #[serde(default)]
    reasoning: Option<Box<str>>,
    #[serde(default)]
    finish_reason: Option<Box<str>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

impl Replay {
    /// Reads a file's text. Empty lines are skipped.
    ///
    /// # Errors
    /// [`ReplayError`] names the first line that is no object, lacks its item or its response, or repeats one.
    pub fn parse(jsonl: &str) -> Result<Self, ReplayError> {
        let mut replay = Self::default();
        for (index, text) in jsonl.trim_start_matches('\u{feff}').lines().enumerate() {
            if text.trim().is_empty() {
                continue;
            }
            replay.add(index + 1, text).map_err(|problem| ReplayError { line: index + 1, problem })?;
        }
        Ok(replay)
    }

    /// How many responses there are.
    pub const fn len(&self) -> usize {
        self.responses
    }

    /// Whether there is no response at all.
    pub const fn is_empty(&self) -> bool {
        self.responses == 0
    }

    /// The response stored for a sample of an item.
    pub fn lookup(&self, benchmark: &str, item_id: &str, sample: u32) -> Option<Answer> {
        let serves = |stored: &&Stored| {
            self.benchmark(stored).is_none_or(|name| name == benchmark)
                && stored.sample.is_none_or(|number| number == sample)
        };
        let special = |stored: &&Stored| (stored.benchmark.is_some(), stored.sample.is_some());
        let stored = self.by_item.get(item_id)?.iter().filter(serves).max_by_key(special)?;
        let mut answer = Answer::local(&*stored.response);
        if let Some(extra) = &stored.extra {
            answer.reasoning = extra.reasoning.as_deref().map(str::to_owned);
            answer.finish =
                extra.finish_reason.as_deref().map_or(Finish::Stop, |wire| Finish::from_wire(Some(wire)));
            answer.usage = extra.usage_raw.as_deref().and_then(parse_usage);
            answer.usage_raw = extra.usage_raw.as_deref().map(str::to_owned);
        }
        Some(answer)
    }

    fn benchmark(&self, stored: &Stored) -> Option<&str> {
        let index = usize::try_from(stored.benchmark?).ok()?;
        self.benchmarks.get(index).map(|name| &**name)
    }

    fn add(&mut self, number: usize, text: &str) -> Result<(), String> {
        if text.len() > LINE_BYTES_MAX || self.responses >= RESPONSES_MAX {
            return Err("the file is too large for stored responses".to_owned());
        }
        // serde would take an array for an object's fields in order.
        if !text.trim_start().starts_with('{') {
            return Err("not an object with a response".to_owned());
        }
        let line: Line<'_> = serde_json::from_str(text).map_err(|error| {
            // serde counts lines within the text; the column is what helps.
            format!("not an object with a response (column {}): {}", error.column(), reason(&error))
        })?;
        let item_id = line.item_id.or(line.id).ok_or("there is no `item_id`")?;
        let item_id = item_key(item_id.get()).ok_or("`item_id` is neither a text nor a whole number")?;
        let response = line.response.ok_or("there is no `response`")?;
        let response =
            serde_json::from_str::<Box<str>>(response.get()).map_err(|_| "`response` is no text")?;
        let benchmark = line.benchmark.map(|name| self.intern(&name));
        let slot = self.by_item.entry(item_id).or_default();
        let same = |stored: &&Stored| stored.benchmark == benchmark && stored.sample == line.sample;
        if let Some(first) = slot.iter().find(same) {
            return Err(format!(
                "the same item and sample as in line {}; `sample` tells several apart",
                first.line
            ));
        }
        let extra = Extra {
            reasoning: line.reasoning,
            finish_reason: line.finish_reason,
            usage_raw: line.usage.map(|usage| usage.get().into()),
        };
        let has_extra =
            extra.reasoning.is_some() || extra.finish_reason.is_some() || extra.usage_raw.is_some();
        slot.push(Stored {
            benchmark,
            sample: line.sample,
            line: u32::try_from(number).unwrap_or(u32::MAX),
            response,
            extra: has_extra.then(|| Box::new(extra)),
        });
        self.responses += 1;
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

/// A text as it is, a whole number as its digits.
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

#[cfg(test)]
mod tests {
    use super::*;
    use bench_domain::Usage;

    fn text(replay: &Replay, benchmark: &str, item: &str, sample: u32) -> Option<String> {
        replay.lookup(benchmark, item, sample).map(|answer| answer.text)
    }

    #[test]
    fn the_more_special_line_wins() {
        let replay = Replay::parse(
            "\u{feff}{\"item_id\":\"q1\",\"response\":\"any\"}\r\n\n\
             {\"id\":\"q1\",\"sample\":1,\"response\":\"second\"}\n\
             {\"item_id\":\"q1\",\"benchmark\":\"mmlu_pro\",\"response\":\"mmlu\"}\n\
             {\"item_id\":7,\"benchmark\":\"aime_2025\",\"sample\":0,\"response\":\"\"}\n",
        )
        .unwrap();
        assert_eq!(replay.len(), 4);
        assert_eq!(text(&replay, "gpqa", "q1", 0).as_deref(), Some("any"));
        assert_eq!(text(&replay, "gpqa", "q1", 1).as_deref(), Some("second"));
        assert_eq!(text(&replay, "mmlu_pro", "q1", 1).as_deref(), Some("mmlu"));
        assert_eq!(text(&replay, "aime_2025", "7", 0).as_deref(), Some(""));
        assert_eq!(text(&replay, "aime_2025", "7", 1), None);
        assert_eq!(text(&replay, "gpqa", "7", 0), None);
        assert_eq!(text(&replay, "gpqa", "q2", 0), None);
    }

    #[test]
    fn what_the_provider_said_is_kept() {
        let line = r#"{"item_id":"a","response":"x","reasoning":"r","finish_reason":"length",
            "usage":{"prompt_tokens":2,"completion_tokens":3},"prompt":"ignored"}"#;
        let answer = Replay::parse(&line.replace('\n', "")).unwrap().lookup("b", "a", 0).unwrap();
        assert_eq!((answer.finish, answer.reasoning.as_deref()), (Finish::Length, Some("r")));
        assert_eq!(answer.usage, Some(Usage { input_tokens: 2, output_tokens: 3, reasoning_tokens: 0 }));
    }

    #[test]
    fn a_bad_line_is_named() {
        let problem = |line: &str| {
            let error = Replay::parse(&format!("{{\"id\":\"ok\",\"response\":\"\"}}\n{line}")).unwrap_err();
            assert_eq!(error.line, 2);
            error.problem
        };
        assert!(problem("{\"id\":\"a\",").contains("column"));
        assert!(problem("[1]").contains("not an object"));
        assert!(problem("{\"response\":\"x\"}").contains("no `item_id`"));
        assert!(problem("{\"id\":1.5,\"response\":\"x\"}").contains("whole number"));
        assert!(problem("{\"id\":\"a\"}").contains("no `response`"));
        assert!(problem("{\"id\":\"a\",\"response\":null}").contains("no `response`"));
        assert!(problem("{\"id\":\"a\",\"response\":5}").contains("no text"));
        assert!(problem("{\"id\":\"ok\",\"response\":\"again\"}").contains("line 1"));
        assert!(Replay::parse("").unwrap().is_empty());
    }
}
