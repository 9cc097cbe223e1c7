//! Programming tasks of the code lab: a model changes a workspace of files, and the task's tests grade the change. No I/O, no
//! clock.
//!
//! [`Answer::read`] finds the change in a model's reply, in one of three forms, and [`Answer::apply`] makes it. A change is
//! made as a whole and exactly as it is written, or not at all: context that isn't in the file is never guessed.

mod answer;
mod workspace;

pub use answer::{Answer, Applied, ApplyError, Form, ReadError};
pub use workspace::{Workspace, WorkspaceFile};
