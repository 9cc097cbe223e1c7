//! Scorers: what an answer is worth. A benchmark names one; several may name the same.
//!
//! | scorer | an answer is right when |
//! | --- | --- |
//! | [`ChoiceLetter`] | the letter that a [`LetterParser`] finds in it is the right one |
//! | [`BoxedInteger`] | the mathematics in its last box is the right integer |
//! | [`InstructionChecks`] | it follows all instructions of its item |
//! | [`Judged`] | a [`Judge`](judge::Judge) says so |
//! | of a benchmark's own | a [`SandboxGrader`](sandbox::SandboxGrader) runs it, and it does what it should |

pub mod boxed;
pub mod choice;
pub mod instructions;
pub mod judge;
pub mod judged;
pub mod sandbox;

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};

use crate::grading::Grading;
use judge::Judge;
use sandbox::SandboxGrader;

pub use boxed::BoxedInteger;
pub use choice::{ChoiceLetter, LetterParser};
pub use instructions::InstructionChecks;
pub use judged::Judged;

/// Says what answers are worth. Pure functions of the item and the answer.
pub trait Scorer: Send + Sync {
    /// The right answer, for people; empty when the item has none.
    fn expected(&self, item: &Item) -> String;

    /// A right answer in the form that is asked for.
    fn oracle(&self, item: &Item) -> String;

    /// What an answer is worth, as far as that can be said without a judge or a sandbox. An item without a gold answer
    /// is an infrastructure error.
    fn grade(&self, item: &Item, answer: &Answer) -> Grading;

    /// An item made of grading fields only, for stored responses: it can be graded but not asked.
    ///
    /// # Errors
    /// Names the field that is missing or not as it should be.
    fn score_row(&self, row: &Row) -> Result<Item, RowError>;

    /// Who says what an answer is worth where [`bench_domain::Stage::Judge`] comes out.
    fn judge(&self) -> Option<&'static dyn Judge> {
        None
    }

    /// How answers are run where [`bench_domain::Stage::Sandbox`] comes out.
    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        None
    }
}
