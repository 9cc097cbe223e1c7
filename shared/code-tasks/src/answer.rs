//! Answers to programming tasks: changes of files.
//!
//! A reply may have other text around the change. Its form is told by its marks, not by what was asked for:
//!
//! - **unified diff**: a fenced block tagged `diff` or `patch`, or lines from `diff --git` or `--- PATH` on;
//! - **search and replace**: a line with the path of the file, then `<<<<<<< SEARCH`, `=======` and `>>>>>>> REPLACE`;
//! - **whole files**: a line `File: PATH`, then a fenced block with the content.

mod apply;
mod blocks;
mod diff;
mod fences;
mod files;
mod path;
mod thoughts;

use std::collections::HashSet;
use std::fmt;

use bench_terminal_tasks::ArchiveProblem;

pub use self::apply::{Applied, ApplyError};
use self::blocks::Replacement;
use self::diff::FilePatch;
use self::files::WholeFile;
use crate::Workspace;

/// Maximum size of a reply, in bytes.
const REPLY_BYTES_MAX: usize = 16 << 20;
/// Maximum number of files that an answer changes.
const FILES_MAX: usize = 500;
/// Maximum number of hunks or blocks of an answer.
const PARTS_MAX: usize = 5_000;

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Unified diff.
    Diff,
    /// Blocks with a text to search and its replacement.
    Blocks,
    /// Files with their whole content.
    Files,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Diff => "unified diff",
            Self::Blocks => "search-and-replace blocks",
            Self::Files => "whole files",
        })
    }
}

/// Reason why a reply has no change that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The reply is empty, or has thoughts only.
    #[error("the reply is empty")]
    Empty,
    /// The reply is too long.
    #[error("the reply has {bytes} bytes, more than {REPLY_BYTES_MAX}")]
    TooLong {
        /// Size in bytes.
        bytes: usize,
    },
    /// Nothing in the reply has one of the forms.
    #[error(
        "the reply has no unified diff, no search-and-replace block and no file after a line `File: PATH`"
    )]
    NoChange,
    /// The reply has several forms, and which one is meant can't be told.
    #[error("the reply has both {one} and {other}; it must have one form")]
    SeveralForms {
        /// One form.
        one: Form,
        /// Another one.
        other: Form,
    },
    /// A line doesn't belong where it is.
    #[error("line {line} of the reply: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A path is not one of a file in the workspace.
    #[error("`{path}` is no path in the workspace: {problem}")]
    Path {
        /// The path, shortened.
        path: String,
        /// What is wrong with it.
        problem: ArchiveProblem,
    },
    /// The answer has too many parts.
    #[error("the answer has more than {PARTS_MAX} hunks or blocks")]
    TooManyParts,
    /// The answer changes too many files.
    #[error("the answer changes more than {FILES_MAX} files")]
    TooManyFiles,
}

impl ReadError {
    fn line(at: usize, problem: impl Into<String>) -> Self {
        Self::Line { line: at + 1, problem: problem.into() }
    }
}

/// Changes in the order in which the reply has them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Changes {
    Diff(Vec<FilePatch>),
    Blocks(Vec<Replacement>),
    Files(Vec<WholeFile>),
}

/// The change that a reply asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    changes: Changes,
}

impl Answer {
    /// Finds the change in a reply.
    ///
    /// # Errors
    /// If there is none, or it can't be read as a whole.
    pub fn read(reply: &str) -> Result<Self, ReadError> {
        if reply.len() > REPLY_BYTES_MAX {
            return Err(ReadError::TooLong { bytes: reply.len() });
        }
        let lines = thoughts::without(reply);
        if lines.iter().all(|line| line.trim().is_empty()) {
            return Err(ReadError::Empty);
        }
        let patches = diff::read(&lines)?;
        let replacements = blocks::read(&lines)?;
        let files = files::read(&lines)?;
        let found = [
            (!patches.is_empty()).then_some(Form::Diff),
            (!replacements.is_empty()).then_some(Form::Blocks),
            (!files.is_empty()).then_some(Form::Files),
        ];
        let mut forms = found.into_iter().flatten();
        let form = forms.next().ok_or(ReadError::NoChange)?;
        if let Some(other) = forms.next() {
            return Err(ReadError::SeveralForms { one: form, other });
        }
        let changes = match form {
            Form::Diff => Changes::Diff(patches),
            Form::Blocks => Changes::Blocks(replacements),
            Form::Files => Changes::Files(files),
        };
        let answer = Self { changes };
        if answer.parts() > PARTS_MAX {
            return Err(ReadError::TooManyParts);
        }
        match answer.paths().len() > FILES_MAX {
            true => Err(ReadError::TooManyFiles),
            false => Ok(answer),
        }
    }

    /// Returns the number of hunks, blocks or files.
    fn parts(&self) -> usize {
        match &self.changes {
            Changes::Diff(patches) => patches.iter().map(|patch| patch.hunks.len()).sum(),
            Changes::Blocks(replacements) => replacements.len(),
            Changes::Files(files) => files.len(),
        }
    }

    /// Returns the form of the answer.
    pub const fn form(&self) -> Form {
        match self.changes {
            Changes::Diff(_) => Form::Diff,
            Changes::Blocks(_) => Form::Blocks,
            Changes::Files(_) => Form::Files,
        }
    }

    /// Returns the paths of the files that the answer changes, each once, in the order of the answer.
    pub fn paths(&self) -> Vec<&str> {
        let all: Vec<&str> = match &self.changes {
            Changes::Diff(patches) => patches.iter().flat_map(FilePatch::paths).collect(),
            Changes::Blocks(replacements) => replacements.iter().map(|one| one.path.as_str()).collect(),
            Changes::Files(files) => files.iter().map(|one| one.path.as_str()).collect(),
        };
        let mut seen = HashSet::new();
        all.into_iter().filter(|path| seen.insert(*path)).collect()
    }

    /// Makes the change as a whole.
    ///
    /// # Errors
    /// If a part of it doesn't fit: nothing is changed then.
    pub fn apply(&self, workspace: &Workspace) -> Result<Applied, ApplyError> {
        match &self.changes {
            Changes::Diff(patches) => apply::diff(patches, workspace),
            Changes::Blocks(replacements) => apply::blocks(replacements, workspace),
            Changes::Files(files) => apply::files(files, workspace),
        }
    }
}

#[cfg(test)]
mod tests;
