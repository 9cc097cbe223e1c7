//! Programming tasks of the code lab: a model changes a workspace of files, and the task's tests grade the change. No I/O, no
//! clock.
//!
//! [`CodeTask::read`] reads a task from its files. [`Answer::read`] finds the change in a model's reply, in one of three forms, and
//! [`Answer::apply`] makes it. A change is made as a whole and exactly as it is written, or not at all: context that isn't in
//! the file is never guessed.

mod answer;
mod change;
mod cheats;
mod dependencies;
mod files;
mod guard;
mod json;
mod patch;
mod prompt;
mod proof;
mod task;
mod workspace;

pub use answer::{Answer, Applied, ApplyError, Form, ReadError};
pub use change::Change;
pub use cheats::{Cheat, OUTSIDE, cheats};
pub use dependencies::{Dependencies, PackageManager, Unfixed};
pub use files::{PackedFile, TASK_BYTES_MAX, TaskFiles};
pub use guard::{Guarded, guard};
pub use patch::unified_diff;
pub use prompt::{OPENING, OfferedForms, form_texts, prompt};
pub use proof::Proof;
pub use task::{CodeTask, Language, METADATA_FILE, Mistake, PROOF_FILE, TestCommand, WrongSolution};
pub use workspace::{Workspace, WorkspaceFile};
