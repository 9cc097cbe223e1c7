//! Scorers, which grade answers. Each benchmark has one; several benchmarks can share a scorer.
//!
//! | scorer | an answer is right if |
//! | --- | --- |
//! | [`ChoiceLetter`] | a [`LetterParser`] finds the gold letter in it |
//! | [`BoxedInteger`] | the mathematics in its last box equals the gold integer |
//! | [`InstructionChecks`] | it follows all instructions of its item |
//! | [`JudgeScorer`] | a [`Judge`](judge::Judge) decides that it is |
//! | [`EpisodeScorer`](episode::EpisodeScorer) | an agent's work earns the full reward |
//! | scorers of single benchmarks | a [`SandboxGrader`](sandbox::SandboxGrader) runs it with the expected results |

pub mod boxed;
pub mod choice;
pub mod dialogue;
pub(crate) mod episode;
pub mod instance;
pub mod instructions;
pub mod judge;
pub mod judged;
pub mod sandbox;
pub mod workspace;

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};

use crate::grading::Grading;
use judge::Judge;
use sandbox::SandboxGrader;

pub use boxed::BoxedInteger;
pub use choice::{ChoiceLetter, LetterParser};
pub use instructions::InstructionChecks;
pub use judged::JudgeScorer;

/// Grades answers. All functions are pure functions of the item and the answer.
pub trait Scorer: Send + Sync {
    /// Returns the right answer for display; empty if the item has none.
    fn expected(&self, item: &Item) -> String;

    /// Returns a right answer in the form that the prompt requests.
    fn oracle(&self, item: &Item) -> String;

    /// Returns the reason why [`Self::oracle`] has no right answer to an item; `None` if it has one.
    fn missing_oracle(&self, item: &Item) -> Option<String> {
        let _ = item;
        None
    }

    /// Grades an answer as far as possible without a judge or a sandbox. An item without a gold answer is an
    /// infrastructure error.
    fn grade(&self, item: &Item, answer: &Answer) -> Grading;

    /// Makes an item for stored responses from grading fields only. It can be graded but not asked.
    ///
    /// # Errors
    /// Returns an error that names the missing or invalid field.
    fn score_row(&self, row: &Row) -> Result<Item, RowError>;

    /// Returns the judge that grades if [`Self::grade`] asks for [`bench_domain::Stage::Judge`].
    fn judge(&self) -> Option<&'static dyn Judge> {
        None
    }

    /// Returns the grader that runs answers if [`Self::grade`] asks for [`bench_domain::Stage::Sandbox`].
    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        None
    }
}
