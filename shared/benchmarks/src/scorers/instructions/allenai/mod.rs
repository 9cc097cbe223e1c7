//! The 58 instructions of allenai's IFBench.
//!
//! Protocol: allenai/IFBench at db69a6f0, `ifbench/instructions.py`. Where that program stops with an exception on a
//! response, or puts a random value in the place of a missing parameter, there is nothing to repeat: the response
//! does not follow the instruction, and the parameter is an error.

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

/// What making a check comes to.
type Made = Result<Box<dyn Check>, CheckError>;

/// Why `words:start_verb` cannot be checked.
const NO_TAGGER: &str = "the part-of-speech tagger model of NLTK is not part of this program";

/// The check of an instruction; `None` when the set has no such instruction.
///
/// None of them needs the item's prompt: those that look at a request have it as a parameter.
pub(crate) fn check(id: &str, kwargs: &Kwargs, _prompt: Option<&str>) -> Option<Made> {
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
