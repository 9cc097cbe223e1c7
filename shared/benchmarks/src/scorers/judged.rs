//! Scorer for judged answers, and helpers that benchmarks with a judge share.

mod oracle;
mod reply;

use bench_domain::{Answer, Stage, Verdict};
use bench_items::{Item, Row, RowError};
use serde_json::{Map, Value};

use super::Scorer;
use super::judge::Judge;
use crate::columns::text_or_number;
use crate::grading::Grading;
use crate::grading::{self, ParserResult};

pub(crate) use oracle::contains_gold;
pub(crate) use reply::{is_blank, json_object, note_truncation, strip_fence, strip_thoughts};

/// Column of the gold answer.
const ANSWER: &str = "answer";

/// Leaves answers to a judge, except empty ones. The gold answer is in the column `answer`.
pub struct JudgeScorer {
    /// Judge of the benchmark.
    pub judge: &'static dyn Judge,
    /// Returns the verdict on an empty answer, for example with [`empty`].
    pub empty: fn(&Item, &Answer) -> Verdict,
    /// Formats the right answer in the form that the prompt requests.
    pub format_answer: fn(&str) -> String,
    /// Column with the item's group.
    pub group: &'static str,
}

impl Scorer for JudgeScorer {
    fn expected(&self, item: &Item) -> String {
        text_or_number(&item.row, ANSWER).unwrap_or_default()
    }

    fn oracle(&self, item: &Item) -> String {
        (self.format_answer)(&self.expected(item))
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        if text_or_number(&item.row, ANSWER).is_err() {
            return grading::missing_gold_verdict().into();
        }
        if is_blank(answer) {
            return (self.empty)(item, answer).into();
        }
        Grading::NeedsTurn(Stage::Judge)
    }

    /// Makes an item from the gold answer, and from the question and the group column if they are given.
    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        let mut fields = Row::new();
        fields.insert(ANSWER.into(), Value::String(text_or_number(row, ANSWER)?));
        fields.extend(row.get("question").map(|question| ("question".to_owned(), question.clone())));
        let group = row.get(self.group).and_then(Value::as_str).map(str::to_owned);
        Ok(Item::new("", group, fields))
    }

    fn judge(&self) -> Option<&'static dyn Judge> {
        Some(self.judge)
    }
}

/// Returns the verdict on an empty answer, which is wrong.
pub fn empty(answer: &Answer, detail: Map<String, Value>) -> Verdict {
    let nothing = ParserResult { extracted: None, correct: false, reason: String::new(), detail };
    grading::verdict_for(answer, nothing)
}
