//! Official texts that are used in prompts.

use std::fmt;

/// Official text that is used in prompts. It is loaded at run time and isn't part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateSpec {
    /// Name within the benchmark.
    pub name: &'static str,
    /// File that holds the text.
    pub origin: TemplateOrigin,
    /// Part of the file to use.
    pub part: TemplatePart,
    /// SHA-256 of the text, lowercase hex; `None` if only the commit is pinned.
    pub sha256: Option<&'static str>,
    /// Purpose of the text, which decides what happens without it.
    pub role: TemplateRole,
}

impl TemplateSpec {
    /// Returns the web page of the file.
    pub fn page_url(&self) -> String {
        match self.origin {
            TemplateOrigin::GitHub { repository, commit, path } => {
                format!("https://github.com/{repository}/blob/{commit}/{path}")
            }
            TemplateOrigin::Hub { id, commit, path } => {
                format!("https://huggingface.co/datasets/{id}/blob/{commit}/{path}")
            }
            TemplateOrigin::Wheel { wheel, .. } => {
                format!("https://pypi.org/project/{}/{}/#files", wheel.package, wheel.version)
            }
        }
    }
}

/// Purpose of an official text. It decides what happens if the text can't be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateRole {
    /// Part of a prompt. Replaced by this program's own wording if missing.
    Wording,
    /// Program that grades. Replaced by this program's own if missing.
    Program,
    /// Part of some items' prompts. These items can't be asked without it.
    GivenStep,
}

/// File at a commit, or in a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateOrigin {
    /// In a repository on GitHub.
    GitHub {
        /// Repository owner and name.
        repository: &'static str,
        /// Commit hash.
        commit: &'static str,
        /// Path within the repository.
        path: &'static str,
    },
    /// In a dataset repository at the hub.
    Hub {
        /// Dataset id.
        id: &'static str,
        /// Commit hash.
        commit: &'static str,
        /// Path within the repository.
        path: &'static str,
    },
    /// In a wheel at the Python package index.
    Wheel {
        /// The wheel.
        wheel: WheelSpec,
        /// Path within the wheel.
        path: &'static str,
    },
}

/// Wheel at the Python package index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WheelSpec {
    /// Name of the package, normalized.
    pub package: &'static str,
    /// Version.
    pub version: &'static str,
    /// File name.
    pub file: &'static str,
    /// SHA-256 of the file, lowercase hex.
    pub sha256: &'static str,
}

/// Part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePart {
    /// Whole file.
    Whole,
    /// Value of a module-level string constant in a Python file or in a code block of a Markdown file. In a Python
    /// file, `Class.NAME` also works.
    PythonConstant(&'static str),
    /// Lines of the first fenced code block after this text in a Markdown file, without the line end before the closing
    /// fence.
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
