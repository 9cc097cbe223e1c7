//! Judged answers, and what benchmarks with a judge have in common: replies, and a judge without a model.

mod likeness;
mod reply;

use bench_domain::{Answer, Stage, Verdict};
use bench_items::{Item, Row, RowError};
use serde_json::{Map, Value};

use super::Scorer;
use super::judge::Judge;
use crate::columns::text_or_number;
use crate::grading::Grading;
use crate::grading::{self, Finding};

pub(crate) use likeness::contains_gold;
pub(crate) use reply::{is_blank, json_object, note_truncation, unfenced, without_thoughts};

/// Column of the gold answer.
const ANSWER: &str = "answer";

/// Leaves answers to a judge. An empty one is settled without it. The gold answer is in the column `answer`.
pub struct Judged {
    /// Who judges.
    pub judge: &'static dyn Judge,
    /// The verdict on an empty answer, such as [`empty`].
    pub empty: fn(&Item, &Answer) -> Verdict,
    /// Says the right answer in the form that is asked for.
    pub say: fn(&str) -> String,
    /// Column that groups items.
    pub group: &'static str,
}

impl Scorer for Judged {
    fn expected(&self, item: &Item) -> String {
        text_or_number(&item.row, ANSWER).unwrap_or_default()
    }

    fn oracle(&self, item: &Item) -> String {
        (self.say)(&self.expected(item))
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        if text_or_number(&item.row, ANSWER).is_err() {
            return grading::without_gold().into();
        }
        if is_blank(answer) {
            return (self.empty)(item, answer).into();
        }
        Grading::NeedsTurn(Stage::Judge)
    }

    /// The gold answer, with the question and the column that groups items where they are given.
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

/// The verdict on an empty answer: it is wrong.
pub fn empty(answer: &Answer, detail: Map<String, Value>) -> Verdict {
    let nothing = Finding { extracted: None, correct: false, reason: String::new(), detail };
    grading::settle(answer, nothing)
}
