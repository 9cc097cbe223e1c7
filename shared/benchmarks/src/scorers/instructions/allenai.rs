//! The 58 instructions of allenai's IFBench.
//!
//! Protocol: allenai/IFBench at db69a6f0, `ifbench/instructions.py`. Two behaviors of that program can't be reproduced.
//! If it raises an exception for a response, the response doesn't follow the instruction here. If it replaces a missing
//! parameter with a random value, the parameter is an error here.

mod count;
mod csv;
mod custom;
mod emoji;
mod format;
mod marks;
mod parameters;
mod ratio;
mod repeat;
mod sentence;
mod syllables;
mod words;

use super::{Check, CheckError, Kwargs};
use parameters::Parameters;

/// Result of creating a check.
type CheckResult = Result<Box<dyn Check>, CheckError>;

/// Reason why `words:start_verb` can't be checked.
const NO_TAGGER: &str = "the part-of-speech tagger model of NLTK is not part of this program";

/// Creates the check of an instruction; `None` if the set has no such instruction.
///
/// The item's prompt is unused, because checks that need the request have it as a parameter.
pub(crate) fn check(id: &str, kwargs: &Kwargs, _prompt: Option<&str>) -> Option<CheckResult> {
    let parameters = Parameters::new(id, kwargs);
    let (family, name) = id.split_once(':')?;
    match family {
        "count" => count::check(name, &parameters),
        "custom" => custom::check(name).map(Ok),
        "format" => format::check(name, &parameters),
        "ratio" => ratio::check(name, &parameters),
        "repeat" => repeat::check(name, &parameters),
        "sentence" => sentence::check(name, &parameters),
        "words" => words::check(name, &parameters),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
