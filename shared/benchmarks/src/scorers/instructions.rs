//! Verifiable instructions of IFEval and of allenai's IFBench, checked by one engine.
//!
//! A row names instructions and their parameters. Each instruction is a [`Check`] that a response either follows or
//! doesn't. Checks give the same results as the official Python programs.

pub(crate) mod allenai;
mod engine;
mod figures;
mod fn_check;
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

/// Reason why an instruction can't be checked. The response then can't be graded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CheckError {
    /// The set has no such instruction.
    #[error("instruction `{0}` is unknown")]
    Unknown(String),
    /// A parameter is missing or invalid.
    #[error("instruction `{id}`: parameter `{name}` {problem}")]
    Parameter {
        /// Instruction id.
        id: String,
        /// Name of the parameter.
        name: &'static str,
        /// Description of the error, such as `is missing`.
        problem: String,
    },
    /// The check needs something that isn't part of this program.
    #[error("instruction `{id}` cannot be checked: {why}")]
    Unavailable {
        /// Instruction id.
        id: String,
        /// Missing part.
        why: &'static str,
    },
}

/// Reason why the instructions of a row can't be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// A column is missing or invalid.
    #[error(transparent)]
    Row(#[from] RowError),
    /// An instruction can't be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// Creates the check of an instruction from its id, parameters and the item's prompt, if known. Returns `None` if the
/// set has no such instruction.
pub(crate) type CheckFactory = fn(&str, &Kwargs, Option<&str>) -> Option<Result<Box<dyn Check>, CheckError>>;

/// Check of one instruction with its parameters.
pub(crate) trait Check: Send + Sync {
    /// Returns true if a text follows the instruction. Must not panic, and must take time linear in the text's length.
    fn follows(&self, text: &str) -> bool;

    /// Returns true if at least one of the texts follows the instruction. They are variants of a text that doesn't.
    fn follows_variant(&self, variants: &[&str], failed: &str) -> bool {
        let _ = failed;
        variants.iter().any(|variant| self.follows(variant))
    }
}
