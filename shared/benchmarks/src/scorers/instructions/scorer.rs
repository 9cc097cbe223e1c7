//! The scorer of verifiable instructions.

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};
use serde_json::Value;

use super::grade::{Headline, grade};
use super::{Check, CheckError, Kwargs, Lookup, allenai, engine, ifeval, request};
use crate::grading::Grading;
use crate::scorers::Scorer;

/// The 25 instructions of IFEval: the response as it stands follows all of them.
pub static IF_EVAL_CHECKS: InstructionChecks =
    InstructionChecks { lookup: ifeval::check, headline: Headline::Strict };

/// The 58 instructions of allenai's IFBench: the response, or one of its variants, follows all of them.
pub static IF_BENCH_CHECKS: InstructionChecks =
    InstructionChecks { lookup: if_bench_check, headline: Headline::Loose };

/// Takes a response for right when it follows the instructions in the item's columns `instruction_id_list` and
/// `kwargs`.
pub struct InstructionChecks {
    /// The instructions that are known.
    lookup: Lookup,
    /// What decides whether a response is right.
    headline: Headline,
}

/// The check of an instruction. The official package knows the 25 instructions of IFEval as well.
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

/// The grading fields of a row with a stored response. Instructions that cannot be checked become the verdict of
/// that row, and so do columns that are not there or of a wrong type. Only a row that names its item may lack them:
/// they are looked up.
fn score_row(row: &Row) -> Result<Item, RowError> {
    let is_there = |name: &str| row.get(name).is_some_and(|value| !value.is_null());
    if is_there("item_id")
        && let Some(missing) = ["instruction_id_list", "kwargs"].into_iter().find(|name| !is_there(name))
    {
        return Err(RowError::column(missing, "is missing"));
    }
    let mut fields = Row::new();
    for name in ["instruction_id_list", "kwargs", "prompt"] {
        let Some(value) = row.get(name) else { continue };
        let value = match value {
            Value::Array(entries) if name == "kwargs" => entries.iter().map(without_nulls).collect(),
            value => value.clone(),
        };
        fields.insert(name.to_owned(), value);
    }
    Ok(Item::new("", None, fields))
}

/// The parameters of one instruction without the padding, which is most of them.
fn without_nulls(entry: &Value) -> Value {
    match entry {
        Value::Object(entry) => Value::Object(engine::given(entry)),
        entry => entry.clone(),
    }
}
