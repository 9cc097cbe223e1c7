//! Verifiable instructions: those of IFEval and of allenai's IFBench, in one engine.
//!
//! A row names instructions and their parameters; each instruction is a [`Check`] that a response follows or does
//! not. Checks say what the official Python programs say.

pub(crate) mod allenai;
mod by;
mod engine;
mod figures;
mod grade;
pub(crate) mod ifeval;
pub(crate) mod request;
mod scorer;
pub(crate) mod text;
mod variants;

use bench_items::RowError;
#[cfg(test)]
pub(crate) use engine::Instructions;
pub(crate) use figures::Figures;
pub use scorer::{IF_BENCH_CHECKS, IF_EVAL_CHECKS, InstructionChecks};
use serde_json::{Map, Value};

/// Parameters of an instruction, without those that are `null`.
pub(crate) type Kwargs = Map<String, Value>;

/// Why an instruction cannot be checked: nothing can be said about the response then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CheckError {
    /// No such instruction in the set.
    #[error("instruction `{0}` is unknown")]
    Unknown(String),
    /// A parameter is missing or not as the instruction needs it.
    #[error("instruction `{id}`: parameter `{name}` {problem}")]
    Parameter {
        /// The instruction.
        id: String,
        /// The parameter.
        name: &'static str,
        /// What is wrong with it, such as `is missing`.
        problem: String,
    },
    /// What the check needs is not part of this program.
    #[error("instruction `{id}` cannot be checked: {why}")]
    Unavailable {
        /// The instruction.
        id: String,
        /// What is missing.
        why: &'static str,
    },
}

/// Why the instructions of a row cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// A column is missing or not as the dataset promises.
    #[error(transparent)]
    Row(#[from] RowError),
    /// An instruction cannot be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// The check of an instruction by its id, for a set of instructions; `None` when the set has no such instruction.
/// The prompt is the item's, where it is known.
pub(crate) type Lookup = fn(&str, &Kwargs, Option<&str>) -> Option<Result<Box<dyn Check>, CheckError>>;

/// One instruction with its parameters.
pub(crate) trait Check: Send + Sync {
    /// Whether a text follows it. Never panics, and takes time linear in the text's length.
    fn follows(&self, text: &str) -> bool;

    /// Whether one of some texts follows it, which are variants of one that does not.
    fn follows_variant(&self, variants: &[&str], failed: &str) -> bool {
        let _ = failed;
        variants.iter().any(|variant| self.follows(variant))
    }
}
