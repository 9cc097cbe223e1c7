//! Stored responses that stand in for a model.
//!
//! One JSON object a line: `response` and `item_id` (or `id`), and if wanted `benchmark`, `sample` (from 0),
//! `reasoning`, `finish_reason` and `usage`. Other fields are ignored. A line without `benchmark` serves every
//! benchmark, one without `sample` every sample; the more special line wins. A `response` that is null stands for a model
//! that did not answer.
//!
//! `item_id` is the dataset's own id of the item, or the index of its row after a `#`. Which item that is only the
//! dataset can tell: [`Replay::named`] lists the ids, so that they are checked before anything is graded.
//!
//! An item that takes several questions has either a line for each, with the step's name, a text, in `step`, or one line with
//! `responses`: their texts in the order of the steps, null where the dataset gives a step and nobody is asked.
//! What is said of the answer (`reasoning` and so on) goes with `response` only. The line of a step wins over
//! `responses`.

use std::borrow::Cow;
use std::collections::HashMap;

use bench_domain::{Answer, Finish};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use bench_inference::{Said, parse_usage};

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
    text: Text,
    /// What few lines have.
    extra: Option<Box<Extra>>,
}

#[derive(Debug)]
enum Text {
    /// To the only question, or to the step that [`Extra`] names.
    One(Box<str>),
    /// To all questions that are asked, in order.
    Several(Box<[Box<str>]>),
    /// Nothing: to the only question, to the step that [`Extra`] names, or without one to every step.
    Nothing,
}

#[derive(Debug, Default)]
struct Extra {
    step: Option<Box<str>>,
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

/// An item as stored responses name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedItem<'a> {
    /// The id as it stands there.
    pub id: &'a str,
    /// The benchmark that the lines are for; `None` for any.
    pub benchmark: Option<&'a str>,
    /// The first line that names it.
    pub line: u32,
    /// How many lines name it.
    pub lines: u64,
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

    /// The items that the responses name, in the order of their first lines.
    pub fn named(&self) -> Vec<NamedItem<'_>> {
        let mut named: Vec<NamedItem<'_>> = Vec::with_capacity(self.by_item.len());
        for (id, lines) in &self.by_item {
            let first = named.len();
            for stored in lines {
                let benchmark = self.benchmark(stored);
                let known = named.iter_mut().skip(first).find(|known| known.benchmark == benchmark);
                match known {
                    Some(known) => {
                        known.lines += 1;
                        known.line = known.line.min(stored.line);
                    }
                    None => named.push(NamedItem { id, benchmark, line: stored.line, lines: 1 }),
                }
            }
        }
        named.sort_unstable_by_key(|named| named.line);
        named
    }

    /// The first two lines that answer the same question, where two ids name the same item of a benchmark.
    pub fn clash(&self, benchmark: &str, one: &str, other: &str) -> Option<(u32, u32)> {
        let of = |id: &str| self.by_item.get(id).into_iter().flatten();
        let serves = |stored: &&Stored| self.benchmark(stored).is_none_or(|name| name == benchmark);
        let key = |stored: &Stored| (stored.benchmark, stored.sample, stored.step().map(str::to_owned));
        let known: HashMap<_, u32> =
            of(one).filter(serves).map(|stored| (key(stored), stored.line)).collect();
        let twice = of(other).filter(serves);
        let twice = twice.filter_map(|stored| Some((*known.get(&key(stored))?, stored.line)));
        twice.map(|(a, b)| (a.min(b), a.max(b))).min()
    }

    /// The response stored for a sample of an item, which may be named by any of these ids: the most special one is taken.
    ///
    /// `step` is for items that take several questions: the name of the step and how many were asked before it.
    /// Steps that the dataset gives are not asked and do not count.
    pub fn lookup(
        &self,
        benchmark: &str,
        ids: &[&str],
        sample: u32,
        step: Option<(&str, usize)>,
    ) -> Option<Answer> {
        let serves = |stored: &&Stored| {
            self.benchmark(stored).is_none_or(|name| name == benchmark)
                && stored.sample.is_none_or(|number| number == sample)
        };
        let texts = ids.iter().filter_map(|id| self.by_item.get(*id)).flatten().filter(serves);
        let (stored, text) =
            texts.filter_map(|stored| Some((stored, stored.text(step)?))).max_by_key(|(stored, _)| {
                (stored.benchmark.is_some(), stored.sample.is_some(), stored.step().is_some())
            })?;
        let mut answer = Answer::local(text);
        // What a line says of the item as a whole is not said of each of its steps.
        if let Some(extra) = stored.extra.as_deref().filter(|_| step.is_none() || stored.step().is_some()) {
            answer.reasoning = extra.reasoning.as_deref().map(str::to_owned);
            answer.finish =
                extra.finish_reason.as_deref().map_or(Finish::Stop, |wire| Finish::from_wire(Some(wire)));
            let said = extra.usage_raw.as_deref().map_or(Said::Nothing, parse_usage);
            (answer.usage, answer.usage_rejected) = (said.counted(), said == Said::Impossible);
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
        let step = match line.step {
            None => None,
            Some(step) => Some(step_name(step.get())?),
        };
        // Beside `responses`, null is a column that is not filled.
        let response = line.response.filter(|response| !is_null(response) || line.responses.is_none());
        let (text, count) = match (response, line.responses) {
            (Some(_), Some(_)) => return Err("there are both `response` and `responses`".to_owned()),
            (None, Some(_)) if step.is_some() => {
                return Err("`step` goes with `response`, not with `responses`".to_owned());
            }
            (None, None) => return Err("there is no `response`".to_owned()),
            (Some(response), None) if is_null(response) => (Text::Nothing, 1),
            (Some(response), None) => {
                let text = serde_json::from_str(response.get()).map_err(|_| {
                    half_character("`response`", response.get())
                        .unwrap_or_else(|| "`response` is no text".to_owned())
                })?;
                (Text::One(text), 1)
            }
            (None, Some(responses)) => {
                let texts: Vec<Option<Box<str>>> = serde_json::from_str(responses.get()).map_err(|_| {
                    half_character("`responses`", responses.get())
                        .unwrap_or_else(|| "`responses` is no list of texts and nulls".to_owned())
                })?;
                let texts: Box<[Box<str>]> = texts.into_iter().flatten().collect();
                let count = texts.len();
                (Text::Several(texts), count)
            }
        };
        let benchmark = line.benchmark.map(|name| self.intern(&name));
        let slot = self.by_item.entry(item_id).or_default();
        let same = |stored: &&Stored| {
            stored.benchmark == benchmark && stored.sample == line.sample && stored.step() == step.as_deref()
        };
        if let Some(first) = slot.iter().find(same) {
            return Err(format!(
                "the same item and sample as in line {}; `sample` tells several apart, `step` several questions",
                first.line
            ));
        }
        let told = matches!(text, Text::One(_) | Text::Nothing);
        let extra = Extra {
            step,
            reasoning: line.reasoning.filter(|_| told),
            finish_reason: line.finish_reason.filter(|_| told),
            usage_raw: line.usage.filter(|_| told).map(|usage| usage.get().into()),
        };
        let has_extra = extra.step.is_some()
            || extra.reasoning.is_some()
            || extra.finish_reason.is_some()
            || extra.usage_raw.is_some();
        slot.push(Stored {
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

impl Stored {
    fn step(&self) -> Option<&str> {
        self.extra.as_ref()?.step.as_deref()
    }

    /// What it answers to that question.
    fn text(&self, step: Option<(&str, usize)>) -> Option<&str> {
        match (&self.text, self.step(), step) {
            (Text::One(text), None, None) => Some(text),
            (Text::One(text), Some(name), Some((asked, _))) if name == asked => Some(text),
            (Text::Several(texts), _, Some((_, before))) => texts.get(before).map(|text| &**text),
            (Text::Nothing, None, _) => Some(""),
            (Text::Nothing, Some(name), Some((asked, _))) if name == asked => Some(""),
            _ => None,
        }
    }
}

/// A field that is there, also when it is null.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(field: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(field).map(Some)
}

fn is_null(json: &RawValue) -> bool {
    json.get() == "null"
}

/// A step's name is a text: who writes a number means its place, which no name matches, or loses its last zeros.
fn step_name(json: &str) -> Result<Box<str>, String> {
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json)
            .map_err(|_| half_character("`step`", json).unwrap_or_else(|| "`step` is no text".to_owned())),
        Some(b'-' | b'0'..=b'9') => {
            Err("`step` is a number: give the step's name as a text, such as \"76.1\"".to_owned())
        }
        _ => Err("`step` is no text".to_owned()),
    }
}

/// The sentence about the first escape of half a character in JSON that could not be read, if there is one: JSON
/// writes characters beyond U+FFFF as two escapes, and a text that was cut between them is none.
fn half_character(field: &str, json: &str) -> Option<String> {
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let escape = rest.get(at..)?;
        let Some(unit) = utf16_unit(escape) else {
            // The escaped character may be a backslash; it starts no escape of its own.
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

/// The code unit of the `\u` escape, with its four digits, at the start of a text.
fn utf16_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
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
        replay.lookup(benchmark, &[item], sample, None).map(|answer| answer.text)
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
        let answer = Replay::parse(&line.replace('\n', "")).unwrap().lookup("b", &["a"], 0, None).unwrap();
        assert_eq!((answer.finish, answer.reasoning.as_deref()), (Finish::Length, Some("r")));
        assert_eq!(answer.usage, Some(Usage::counted(2, 3, 0)));
    }

    #[test]
    fn an_item_may_have_other_names() {
        let replay = Replay::parse(
            "{\"id\":\"901\",\"response\":\"by number\"}\n{\"id\":\"discs\",\"sample\":1,\"response\":\"by name\"}",
        )
        .unwrap();
        let by = |ids: &[&str], sample| replay.lookup("scicode", ids, sample, None).map(|answer| answer.text);
        assert_eq!(by(&["0", "901"], 0).as_deref(), Some("by number"));
        assert_eq!(by(&["discs", "901"], 0).as_deref(), Some("by number"));
        assert_eq!(by(&["discs", "901"], 1).as_deref(), Some("by name"));
        assert_eq!(by(&["901", "discs"], 1).as_deref(), Some("by name"), "it is for this sample");
        assert_eq!(by(&["0"], 0), None);
        assert_eq!(by(&[], 0), None);
    }

    #[test]
    fn each_step_has_its_response() {
        let replay = Replay::parse(
            "{\"id\":76,\"responses\":[\"one\",\"two\",null,\"four\"],\"usage\":{\"prompt_tokens\":2}}\n\
             {\"id\":76,\"sample\":1,\"step\":\"76.2\",\"response\":\"other two\",\"reasoning\":\"r\"}\n\
             {\"id\":77,\"step\":\"77.10\",\"response\":\"ten\"}\n{\"id\":77,\"step\":\"77.1\",\"response\":\"one\"}\n\
             {\"id\":77,\"responses\":[\"listed\"]}\n{\"id\":78,\"response\":\"whole\"}",
        )
        .unwrap();
        assert_eq!(replay.len(), 8, "each text counts, a given step does not");
        let at = |id: &str, sample, step| replay.lookup("scicode", &[id], sample, Some(step));
        let text = |id: &str, sample, step| at(id, sample, step).map(|answer| answer.text);
        assert_eq!(text("76", 0, ("76.1", 0)).as_deref(), Some("one"));
        assert_eq!(text("76", 0, ("76.4", 2)).as_deref(), Some("four"), "76.3 is given");
        assert_eq!(text("76", 0, ("76.5", 3)), None);
        assert_eq!(text("76", 1, ("76.2", 1)).as_deref(), Some("other two"));
        assert_eq!(text("76", 1, ("76.1", 0)).as_deref(), Some("one"));
        assert_eq!(at("76", 1, ("76.2", 1)).unwrap().reasoning.as_deref(), Some("r"));
        assert!(at("76", 0, ("76.1", 0)).unwrap().usage_raw.is_none(), "it is that of all steps");
        assert_eq!(text("77", 0, ("77.10", 4)).as_deref(), Some("ten"));
        assert_eq!(text("77", 0, ("77.1", 0)).as_deref(), Some("one"), "a step's line wins");
        assert_eq!(text("77", 0, ("77.2", 0)).as_deref(), Some("listed"));
        assert_eq!(text("78", 0, ("78.1", 0)), None, "no response to the whole is one to a step");
        assert_eq!(replay.lookup("scicode", &["76"], 0, None), None);
    }

    #[test]
    fn null_is_no_answer() {
        let replay = Replay::parse(
            "{\"id\":\"a\",\"response\":null,\"reasoning\":\"hm\"}\n\
             {\"id\":\"76\",\"response\": null ,\"usage\":{\"prompt_tokens\":2}}\n\
             {\"id\":\"76\",\"step\":\"76.2\",\"response\":\"two\"}\n\
             {\"id\":\"77\",\"step\":\"77.1\",\"response\":null}\n\
             {\"id\":\"78\",\"response\":null,\"responses\":[\"one\"]}",
        )
        .unwrap();
        let answer = replay.lookup("b", &["a"], 0, None).unwrap();
        assert_eq!((answer.text.as_str(), answer.reasoning.as_deref()), ("", Some("hm")));
        let step = |id: &str, name: &str| replay.lookup("b", &[id], 0, Some((name, 0)));
        let text = |id: &str, name: &str| step(id, name).map(|answer| answer.text);
        assert_eq!(text("76", "76.1").as_deref(), Some(""), "no answer to any step");
        assert!(step("76", "76.1").unwrap().usage.is_none(), "it is that of all steps");
        assert_eq!(text("76", "76.2").as_deref(), Some("two"), "a step's line wins");
        assert_eq!((text("77", "77.1").as_deref(), text("77", "77.2")), (Some(""), None));
        assert_eq!(text("78", "78.1").as_deref(), Some("one"));
    }

    #[test]
    fn items_are_listed_as_they_are_named() {
        let replay = Replay::parse(
            "{\"id\":\"b\",\"sample\":1,\"response\":\"\"}\n{\"id\":7,\"response\":\"\"}\n\
             {\"id\":\"b\",\"sample\":0,\"response\":\"\"}\n\
             {\"id\":\"b\",\"benchmark\":\"hle\",\"response\":\"\"}\n{\"id\":\"#7\",\"response\":\"\"}",
        )
        .unwrap();
        let named = |id, benchmark, line, lines| NamedItem { id, benchmark, line, lines };
        assert_eq!(
            replay.named(),
            [
                named("b", None, 1, 2),
                named("7", None, 2, 1),
                named("b", Some("hle"), 4, 1),
                named("#7", None, 5, 1)
            ]
        );
        assert_eq!(replay.clash("hle", "7", "#7"), Some((2, 5)));
        assert_eq!(replay.clash("hle", "b", "#7"), None, "another sample");
        assert_eq!(replay.clash("hle", "b", "none"), None);
    }

    #[test]
    fn half_a_character_is_named() {
        let problem = |fields: &str| {
            Replay::parse(&format!("{{\"id\":\"a\",{fields}}}")).map_err(|error| error.problem).map(|_| ())
        };
        for (fields, field, escape) in [
            (r#""response":"cut \ud83d""#, "`response`", r"`\ud83d`"),
            (r#""response":"\ud83d\ude00 \\\ude00 x""#, "`response`", r"`\ude00`"),
            (r#""response":"\uD83D\n\ude00""#, "`response`", r"`\uD83D`"),
            (r#""responses":["\u00e9","\udfff"]"#, "`responses`", r"`\udfff`"),
            (r#""response":"x","step":"\udabc""#, "`step`", r"`\udabc`"),
        ] {
            let told = problem(fields).unwrap_err();
            assert!(told.starts_with(&format!("{field} has the escape {escape} without")), "{told}");
        }
        assert_eq!(problem(r#""response":"\ud83d\ude00 \\ud83d é\\""#), Ok(()));
        assert_eq!(problem(r#""response":["\ud83d\ude00"]"#).unwrap_err(), "`response` is no text");
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
        assert!(problem("{\"id\":\"a\",\"response\":5}").contains("no text"));
        assert!(problem("{\"id\":\"ok\",\"response\":\"again\"}").contains("line 1"));
        assert!(problem("{\"id\":\"a\",\"responses\":\"x\"}").contains("list of texts"));
        assert!(problem("{\"id\":\"a\",\"responses\":[\"x\",1]}").contains("list of texts"));
        assert!(problem("{\"id\":\"a\",\"responses\":[],\"response\":\"x\"}").contains("both"));
        assert!(problem("{\"id\":\"a\",\"responses\":[],\"step\":\"1\"}").contains("`step` goes with"));
        assert!(problem("{\"id\":\"a\",\"response\":\"x\",\"step\":[1]}").contains("`step` is no text"));
        for number in ["0", "-1", "76.1"] {
            let line = format!("{{\"id\":\"a\",\"response\":\"x\",\"step\":{number}}}");
            assert!(problem(&line).starts_with("`step` is a number: give the step's name as a text"));
        }
        assert!(problem("{\"id\":\"ok\",\"responses\":[]}").contains("line 1"));
        assert!(Replay::parse("").unwrap().is_empty());
    }
}
