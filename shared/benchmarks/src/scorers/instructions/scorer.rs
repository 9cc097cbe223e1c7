//! Scorer for verifiable instructions.

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};
use serde_json::Value;

use super::grade::{Headline, grade};
use super::{Check, CheckError, CheckFactory, Kwargs, allenai, engine, ifeval, request};
use crate::grading::Grading;
use crate::scorers::Scorer;

/// Scorer for the 25 instructions of IFEval. A response is right if, unchanged, it follows all of them.
pub static IF_EVAL_CHECKS: InstructionChecks =
    InstructionChecks { lookup: ifeval::check, headline: Headline::Strict };

/// Scorer for the 58 instructions of allenai's IFBench. For each instruction, the response or one of its variants must
/// follow it.
pub static IF_BENCH_CHECKS: InstructionChecks =
    InstructionChecks { lookup: if_bench_check, headline: Headline::Loose };

/// Accepts a response if it follows the instructions in the item's columns `instruction_id_list` and `kwargs`.
pub struct InstructionChecks {
    /// Creates the checks.
    lookup: CheckFactory,
    /// Kind of check that decides whether a response is right.
    headline: Headline,
}

/// Creates the check of an instruction. The official package also includes the 25 instructions of IFEval.
fn if_bench_check(
    id: &str,
    kwargs: &Kwargs,
    prompt: Option<&str>,
) -> Option<Result<Box<dyn Check>, CheckError>> {
    allenai::check(id, kwargs, prompt).or_else(|| ifeval::check(id, kwargs, prompt))
}

impl Scorer for InstructionChecks {
    fn expected(&self, item: &Item) -> String {
        request::reference(&item.row).to_owned()
    }

    fn oracle(&self, item: &Item) -> String {
        request::oracle(&item.row)
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        grade(&item.row, answer, self.lookup, self.headline).into()
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        score_row(row)
    }
}

/// Returns the grading fields of a row with a stored response. Instructions that can't be checked, and missing or
/// invalid columns, lead to an ungraded verdict of that row. Only rows with an item id may lack columns, which are then
/// looked up.
fn score_row(row: &Row) -> Result<Item, RowError> {
    let is_present = |name: &str| row.get(name).is_some_and(|value| !value.is_null());
    if is_present("item_id")
        && let Some(missing) = ["instruction_id_list", "kwargs"].into_iter().find(|name| !is_present(name))
    {
        return Err(RowError::column(missing, "is missing"));
    }
    let mut fields = Row::new();
    for name in ["instruction_id_list", "kwargs", "prompt"] {
        let Some(value) = row.get(name) else { continue };
        let value = match value {
            Value::Array(entries) if name == "kwargs" => {
                entries.iter().map(without_null_parameters).collect()
            }
            value => value.clone(),
        };
        fields.insert(name.to_owned(), value);
    }
    Ok(Item::new("", None, fields))
}

/// Returns the parameters of one instruction without `null` values, which most of them are.
fn without_null_parameters(entry: &Value) -> Value {
    match entry {
        Value::Object(entry) => Value::Object(engine::without_nulls(entry)),
        entry => entry.clone(),
    }
}
