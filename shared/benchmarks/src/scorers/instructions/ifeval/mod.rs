//! The 25 instructions of IFEval.
//!
//! Protocol: google-research `instruction_following_eval`. Where a parameter is missing that program makes one up at
//! random, which cannot be repeated: here the item cannot be graded then. The one case in the published data, letters
//! that are none, is counted as it evidently is meant.

mod format;
mod json;
mod keywords;
mod language;
mod length;
mod parameters;
mod shape;

use super::by::by;
use super::{Check, CheckError, Kwargs};
use parameters::Parameters;

/// The check of an instruction; `None` when the set has no such instruction. None needs the item's prompt.
pub(crate) fn check(
    id: &str,
    kwargs: &Kwargs,
    _prompt: Option<&str>,
) -> Option<Result<Box<dyn Check>, CheckError>> {
    let parameters = Parameters::new(id, kwargs);
    let (family, name) = id.split_once(':')?;
    match family {
        "keywords" => keywords::check(name, &parameters),
        "language" | "change_case" => language::check(name, &parameters),
        "length_constraints" => length::check(name, &parameters),
        "detectable_content" | "detectable_format" => format::check(family, name, &parameters),
        "combination" | "startend" | "punctuation" => shape::check(family, name, &parameters),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
