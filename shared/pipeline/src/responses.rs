//! Stored responses that replace a model.
//!
//! The file has one JSON object per line, with `response` and `item_id` (or `id`), and optionally
//! `benchmark`, `sample` (from 0), `reasoning`, `finish_reason` and `usage`. Other fields are ignored. A line
//! without `benchmark` applies to every benchmark, one without `sample` to every sample; the more specific
//! line wins. A null `response` stands for a model that did not answer.
//!
//! `item_id` is the dataset's own id of the item, or the index of its row after a `#`. Only the dataset can
//! resolve ids to items: [`RecordedResponses::named`] lists the ids, so that callers can check them before
//! anything is graded.
//!
//! A prediction of SWE-bench Pro is accepted as well: `instance_id`, and the patch in `model_patch` or `patch`. The official
//! list of predictions, a JSON array of such objects, can be the whole file; positions in the list count as lines then.
//!
//! An item with several questions has either one line for each, with the name of the step as a string in
//! `step`, or one line with `responses`: the texts in the order of the steps, null for steps that the dataset
//! provides, which aren't asked. The fields about an answer (`reasoning` and so on) apply to `response` only.
//! The line of a step wins over `responses`.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bench_domain::{Answer, Finish};
use bench_inference::{ReportedUsage, parse_usage};

/// Stored responses by item. Holds only the responses and their keys, not the rest of the file.
#[derive(Debug, Default)]
pub struct RecordedResponses {
    by_item: HashMap<Box<str>, Vec<StoredResponse>>,
    benchmarks: Vec<Box<str>>,
    responses: usize,
}

#[derive(Debug)]
struct StoredResponse {
    /// Index in `benchmarks`.
    benchmark: Option<u32>,
    sample: Option<u32>,
    line: u32,
    text: ResponseText,
    /// Fields that few lines have.
    extra: Option<Box<ExtraFields>>,
}

#[derive(Debug)]
enum ResponseText {
    /// Answers the only question, or the step named in [`ExtraFields`].
    One(Box<str>),
    /// Answers all questions asked, in order.
    Several(Box<[Box<str>]>),
    /// No answer to the only question, to the step named in [`ExtraFields`], or, without a name, to any step.
    Nothing,
}

#[derive(Debug, Default)]
struct ExtraFields {
    step: Option<Box<str>>,
    reasoning: Option<Box<str>>,
    finish_reason: Option<Box<str>>,
    usage_raw: Option<Box<str>>,
}

/// Error in a file of stored responses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ResponsesError {
    /// Line number, from 1.
    pub line: usize,
    /// Problem with the line, in one sentence.
    pub problem: String,
}

/// An item named by stored responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedItem<'a> {
    /// The id as written in the file.
    pub id: &'a str,
    /// The benchmark that the lines apply to. `None` for any.
    pub benchmark: Option<&'a str>,
    /// Number of the first line that names it.
    pub line: u32,
    /// Number of lines that name it.
    pub lines: u64,
}

/// Responses to samples that a run doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExcessResponses<'a> {
    /// Number of these responses.
    pub lines: u64,
    /// Number of the first one's line.
    pub line: u32,
    /// The id in that line.
    pub id: &'a str,
    /// Number of samples that a run needs to use all of them.
    pub samples: u32,
}

impl RecordedResponses {
    /// Parses the text of a file. Empty lines are skipped.
    ///
    /// # Errors
    /// Returns a [`ResponsesError`] for the first line that isn't an object, lacks its item or its response,
    /// or repeats an earlier line.
    pub fn parse(jsonl: &str) -> Result<Self, ResponsesError> {
        let mut responses = Self::default();
        let jsonl = jsonl.trim_start_matches('\u{feff}');
        if jsonl.trim_start().starts_with('[') {
            let added = responses.add_list(jsonl);
            return added.map(|()| responses).map_err(|(line, problem)| ResponsesError { line, problem });
        }
        for (index, text) in jsonl.lines().enumerate() {
            if text.trim().is_empty() {
                continue;
            }
            responses.add(index + 1, text).map_err(|problem| ResponsesError { line: index + 1, problem })?;
        }
        Ok(responses)
    }

    /// Returns the number of responses.
    pub const fn len(&self) -> usize {
        self.responses
    }

    /// Returns true if the file has no responses.
    pub const fn is_empty(&self) -> bool {
        self.responses == 0
    }

    /// Returns the items that the responses name, in the order of their first lines.
    pub fn named_items(&self) -> Vec<NamedItem<'_>> {
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

    /// Returns the responses to samples that a run doesn't have, if there are any. `samples` returns the number of samples of
    /// each item that a line applies to, by the line's benchmark; `None` for lines to leave alone.
    pub fn find_excess(&self, samples: impl Fn(Option<&str>) -> Option<u32>) -> Option<ExcessResponses<'_>> {
        let all = self.by_item.iter().flat_map(|(id, lines)| lines.iter().map(move |stored| (id, stored)));
        let mut excess: Option<ExcessResponses<'_>> = None;
        for (id, stored) in all {
            let Some(sample) = stored.sample else { continue };
            if samples(self.benchmark(stored)).is_none_or(|samples| sample < samples) {
                continue;
            }
            let found = excess.get_or_insert(ExcessResponses { lines: 0, line: u32::MAX, id, samples: 0 });
            found.lines += 1;
            found.samples = found.samples.max(sample.saturating_add(1));
            if stored.line < found.line {
                (found.line, found.id) = (stored.line, id);
            }
        }
        excess
    }

    /// Returns the first two lines that answer the same question, for two ids that name the same item of a
    /// benchmark.
    pub fn find_conflict(&self, benchmark: &str, one: &str, other: &str) -> Option<(u32, u32)> {
        let of = |id: &str| self.by_item.get(id).into_iter().flatten();
        let serves = |stored: &&StoredResponse| self.benchmark(stored).is_none_or(|name| name == benchmark);
        let key =
            |stored: &StoredResponse| (stored.benchmark, stored.sample, stored.step().map(str::to_owned));
        let known: HashMap<_, u32> =
            of(one).filter(serves).map(|stored| (key(stored), stored.line)).collect();
        let twice = of(other).filter(serves);
        let twice = twice.filter_map(|stored| Some((*known.get(&key(stored))?, stored.line)));
        twice.map(|(a, b)| (a.min(b), a.max(b))).min()
    }

    /// Returns the most specific response stored for a sample of an item, which may be named by any of `ids`.
    ///
    /// `step` is for items with several questions: the name of the step and the number of questions asked
    /// before it. Steps that the dataset provides are not asked and don't count.
    pub fn lookup(
        &self,
        benchmark: &str,
        ids: &[&str],
        sample: u32,
        step: Option<(&str, usize)>,
    ) -> Option<Answer> {
        let serves = |stored: &&StoredResponse| {
            self.benchmark(stored).is_none_or(|name| name == benchmark)
                && stored.sample.is_none_or(|number| number == sample)
        };
        let texts = ids.iter().filter_map(|id| self.by_item.get(*id)).flatten().filter(serves);
        let (stored, text) =
            texts.filter_map(|stored| Some((stored, stored.text(step)?))).max_by_key(|(stored, _)| {
                (stored.benchmark.is_some(), stored.sample.is_some(), stored.step().is_some())
            })?;
        let mut answer = Answer::local(text);
        // Fields about the item as a whole don't apply to its single steps.
        if let Some(extra) = stored.extra.as_deref().filter(|_| step.is_none() || stored.step().is_some()) {
            answer.reasoning = extra.reasoning.as_deref().map(str::to_owned);
            answer.finish =
                extra.finish_reason.as_deref().map_or(Finish::Stop, |wire| Finish::from_wire(Some(wire)));
            let reported = extra.usage_raw.as_deref().map_or(ReportedUsage::Nothing, parse_usage);
            (answer.usage, answer.usage_rejected) =
                (reported.counted(), reported == ReportedUsage::Impossible);
            answer.usage_raw = extra.usage_raw.as_deref().map(str::to_owned);
        }
        Some(answer)
    }

    fn benchmark(&self, stored: &StoredResponse) -> Option<&str> {
        let index = usize::try_from(stored.benchmark?).ok()?;
        self.benchmarks.get(index).map(|name| &**name)
    }
}

impl StoredResponse {
    fn step(&self) -> Option<&str> {
        self.extra.as_ref()?.step.as_deref()
    }

    /// Returns the text that answers this question, if any.
    fn text(&self, step: Option<(&str, usize)>) -> Option<&str> {
        match (&self.text, self.step(), step) {
            (ResponseText::One(text), None, None) => Some(text),
            (ResponseText::One(text), Some(name), Some((asked, _))) if name == asked => Some(text),
            (ResponseText::Several(texts), _, Some((_, before))) => texts.get(before).map(|text| &**text),
            (ResponseText::Nothing, None, _) => Some(""),
            (ResponseText::Nothing, Some(name), Some((asked, _))) if name == asked => Some(""),
            _ => None,
        }
    }
}
