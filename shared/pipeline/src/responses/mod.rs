//! Stored responses that stand in for a model.
//!
//! One JSON object a line: `response` and `item_id` (or `id`), and if wanted `benchmark`, `sample` (from 0),
//! `reasoning`, `finish_reason` and `usage`. Other fields are ignored. A line without `benchmark` serves every
//! benchmark, one without `sample` every sample; the more special line wins. A `response` that is null stands for a model
//! that did not answer.
//!
//! `item_id` is the dataset's own id of the item, or the index of its row after a `#`. Which item that is only the
//! dataset can tell: [`RecordedResponses::named`] lists the ids, so that they are checked before anything is graded.
//!
//! An item that takes several questions has either a line for each, with the step's name, a text, in `step`, or one line with
//! `responses`: their texts in the order of the steps, null where the dataset gives a step and nobody is asked.
//! What is said of the answer (`reasoning` and so on) goes with `response` only. The line of a step wins over
//! `responses`.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bench_domain::{Answer, Finish};
use bench_inference::{ReportedUsage, parse_usage};

/// Stored responses by item. Holds the responses and their keys, nothing else of the file.
#[derive(Debug, Default)]
pub struct RecordedResponses {
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
pub struct ResponsesError {
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

impl RecordedResponses {
    /// Reads a file's text. Empty lines are skipped.
    ///
    /// # Errors
    /// [`ResponsesError`] names the first line that is no object, lacks its item or its response, or repeats one.
    pub fn parse(jsonl: &str) -> Result<Self, ResponsesError> {
        let mut responses = Self::default();
        for (index, text) in jsonl.trim_start_matches('\u{feff}').lines().enumerate() {
            if text.trim().is_empty() {
                continue;
            }
            responses.add(index + 1, text).map_err(|problem| ResponsesError { line: index + 1, problem })?;
        }
        Ok(responses)
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
            let said = extra.usage_raw.as_deref().map_or(ReportedUsage::Nothing, parse_usage);
            (answer.usage, answer.usage_rejected) = (said.counted(), said == ReportedUsage::Impossible);
            answer.usage_raw = extra.usage_raw.as_deref().map(str::to_owned);
        }
        Some(answer)
    }

    fn benchmark(&self, stored: &Stored) -> Option<&str> {
        let index = usize::try_from(stored.benchmark?).ok()?;
        self.benchmarks.get(index).map(|name| &**name)
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
