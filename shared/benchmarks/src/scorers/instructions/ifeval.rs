//! The 25 instructions of IFEval.
//!
//! Protocol: google-research `instruction_following_eval`. That program replaces a missing parameter by a random value,
//! which can't be reproduced, so such an item can't be graded here. The one case in the published data, a `letter` that
//! isn't a letter, is counted literally, which is evidently what is meant.

mod format;
mod json;
mod keywords;
mod language;
mod length;
mod parameters;
mod shape;

use super::fn_check::fn_check;
use super::{Check, CheckError, Kwargs};
use parameters::Parameters;

/// Creates the check of an instruction; `None` if the set has no such instruction. The item's prompt is unused.
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
