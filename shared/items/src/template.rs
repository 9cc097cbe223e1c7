//! Official texts that go into prompts.

use std::fmt;

/// An official text that goes into prompts. It is loaded at run time and not part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateSpec {
    /// What the benchmark calls it.
    pub name: &'static str,
    /// The file that has it.
    pub origin: TemplateOrigin,
    /// Which part of the file it is.
    pub part: TemplatePart,
    /// SHA-256 of the text, lowercase hex; `None` where the origin's commit is the only pin.
    pub sha256: Option<&'static str>,
    /// What becomes of the benchmark without it.
    pub role: TemplateRole,
}

impl TemplateSpec {
    /// The page, for people, of the file that has it.
    pub fn page_url(&self) -> String {
        match self.origin {
            TemplateOrigin::GitHub { repository, commit, path } => {
                format!("https://github.com/{repository}/blob/{commit}/{path}")
            }
            TemplateOrigin::Hub { id, commit, path } => {
                format!("https://huggingface.co/datasets/{id}/blob/{commit}/{path}")
            }
        }
    }
}

/// What an official text is for, hence what there is without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateRole {
    /// Part of a prompt: our own wording stands in.
    Wording,
    /// A program that grades: our own stands in.
    Program,
    /// Part of some items' answers: those items cannot be asked.
    Given,
}

/// A file under a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateOrigin {
    /// In a repository on GitHub.
    GitHub {
        /// Owner and name.
        repository: &'static str,
        /// The commit.
        commit: &'static str,
        /// Path within it.
        path: &'static str,
    },
    /// In a dataset's repository at the hub.
    Hub {
        /// The dataset's id.
        id: &'static str,
        /// The commit.
        commit: &'static str,
        /// Path within it.
        path: &'static str,
    },
}

/// Part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePart {
    /// All of it.
    Whole,
    /// The value of a module-level text constant of a Python file, or of a code block of a Markdown file; of a Python
    /// file also `Class.NAME`.
    PythonConstant(&'static str),
    /// The lines of the first fenced code block of a Markdown file after this text, without the line end before
    /// the closing fence.
    FenceAfter(&'static str),
}

impl fmt::Display for TemplatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => write!(f, "the whole file"),
            Self::PythonConstant(name) => write!(f, "constant {name}"),
            Self::FenceAfter(marker) => write!(f, "block after `{marker}`"),
        }
    }
}
