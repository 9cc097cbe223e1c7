//! What benchmarks with a judge have in common: templates with slots, replies, and a judge without a model.

mod columns;
mod fill;
mod likeness;
mod reply;

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};
use serde_json::{Map, Value};

use crate::benchmark::Grading;
pub(crate) use crate::grading::shortened;
use crate::grading::{self, Finding};

pub(crate) use columns::{number, text, text_or_number};
pub(crate) use fill::{fill, has_slots};
pub(crate) use likeness::contains_gold;
pub(crate) use reply::{is_blank, json_object, note_truncation, unfenced, without_thoughts};

/// What an answer is worth before anybody is asked: nothing when it is empty, nothing known without a gold answer.
/// The detail is that of the verdict on an empty one.
pub(crate) fn before_judging(item: &Item, answer: &Answer, detail: Map<String, Value>) -> Grading {
    if text_or_number(&item.row, "answer").is_err() {
        return grading::without_gold().into();
    }
    if is_blank(answer) {
        let nothing = Finding { extracted: None, correct: false, reason: String::new(), detail };
        return grading::settle(answer, nothing).into();
    }
    Grading::NeedsJudge
}

/// An item of a stored response: the gold answer, with the question and the column that groups items where they are
/// given.
pub(crate) fn score_row(row: &Row, group: &str) -> Result<Item, RowError> {
    let mut fields = Row::new();
    fields.insert("answer".into(), Value::String(text_or_number(row, "answer")?));
    fields.extend(row.get("question").map(|question| ("question".to_owned(), question.clone())));
    let group = row.get(group).and_then(Value::as_str).map(str::to_owned);
    Ok(Item::new("", group, fields))
}
