//! Scorer for boxed integers.

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};
use serde_json::{Map, Value, json};

use super::{extract, gold};
use crate::grading::Grading;
use crate::grading::{self, ParserResult};
use crate::scorers::Scorer;

/// Maximum number of characters of an answer that a reason quotes.
const SHOWN_CHARS_MAX: usize = 60;

/// Accepts an answer if the mathematics in its last box equals the integer in the item's column `gold` or `answer`.
#[derive(Debug, Clone, Copy)]
pub struct BoxedInteger;

impl Scorer for BoxedInteger {
    fn expected(&self, item: &Item) -> String {
        gold(&item.row).map(|gold| gold.to_string()).unwrap_or_default()
    }

    fn oracle(&self, item: &Item) -> String {
        format!("The final answer is $\\boxed{{{}}}$.", self.expected(item))
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        let Ok(gold) = gold(&item.row) else { return grading::missing_gold_verdict().into() };
        let found = extract(&answer.text);
        let correct = found.equals(&gold);
        let mut detail = Map::new();
        detail.insert("parser".into(), json!("matharena"));
        detail.insert("source".into(), json!(found.source));
        detail.insert("warning".into(), json!(found.warning));
        let reason = match &found.text {
            Some(text) if text == "[]" => {
                "The box holds nothing but text, which the official parser drops.".to_owned()
            }
            Some(text) => {
                format!("The answer is {}; right is {gold}.", grading::shorten(text, SHOWN_CHARS_MAX))
            }
            None => String::new(),
        };
        grading::verdict_for(answer, ParserResult { extracted: found.text, correct, reason, detail }).into()
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        let gold = gold(row)?;
        let mut fields = Row::new();
        fields.insert("answer".into(), Value::String(gold.to_string()));
        Ok(Item::new("", None, fields))
    }
}
