//! Refusals of uploaded tasks and agents: a problem, and the file and line that have it.

use std::fmt;

use bench_domain::is_layout_control;

mod agent;
mod archive;
mod compose;
mod content;
mod format;

pub use agent::AgentProblem;
pub use archive::ArchiveProblem;
pub(crate) use archive::{FILE_TO_IMAGE, FILES_TO_IMAGE};
pub use compose::ComposeProblem;
pub use content::ContentProblem;
pub use format::FormatProblem;

/// Maximum number of characters of a text from the task that a refusal shows.
const QUOTED_CHARS_MAX: usize = 80;

/// Reason for which a task or an agent is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The archive or the paths in it.
    #[error(transparent)]
    Archive(#[from] ArchiveProblem),
    /// The syntax or a field of a configuration file.
    #[error(transparent)]
    Format(#[from] FormatProblem),
    /// A missing file, or a demand that is above the limits.
    #[error(transparent)]
    Content(#[from] ContentProblem),
    /// A setting of a compose file.
    #[error(transparent)]
    Compose(#[from] ComposeProblem),
    /// The folder or a setting of a custom agent.
    #[error(transparent)]
    Agent(#[from] AgentProblem),
}

impl Problem {
    /// Returns the stable code. Programs act on codes; sentences may change.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Archive(problem) => problem.code(),
            Self::Format(problem) => problem.code(),
            Self::Content(problem) => problem.code(),
            Self::Compose(problem) => problem.code(),
            Self::Agent(problem) => problem.code(),
        }
    }
}

/// File of an upload, and the line if the problem has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Path inside the task, the agent or the archive.
    pub file: String,
    /// Line, counted from 1.
    pub line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Quoted(&self.file))?;
        self.line.map_or(Ok(()), |line| write!(f, " line {line}"))
    }
}

/// Refusal of a task or an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// File with the problem; `None` if it is the archive, the task or the agent as a whole.
    pub place: Option<Place>,
    /// Reason.
    pub problem: Box<Problem>,
}

impl Refusal {
    /// Creates a refusal of the archive, the task or the agent as a whole.
    pub fn whole(problem: impl Into<Problem>) -> Self {
        Self { place: None, problem: Box::new(problem.into()) }
    }

    /// Creates a refusal of a file.
    pub fn file(file: impl Into<String>, problem: impl Into<Problem>) -> Self {
        Self::at(file, None, problem)
    }

    /// Creates a refusal of a line of a file.
    pub fn line(file: impl Into<String>, line: u32, problem: impl Into<Problem>) -> Self {
        Self::at(file, Some(line), problem)
    }

    /// Creates a refusal of a file, at a line if it is known.
    pub fn at(file: impl Into<String>, line: Option<u32>, problem: impl Into<Problem>) -> Self {
        Self { place: Some(Place { file: file.into(), line }), problem: Box::new(problem.into()) }
    }

    /// Returns the stable code of the problem.
    pub fn code(&self) -> &'static str {
        self.problem.code()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for Refusal {}

/// Text from a task in back-ticks: bounded, on one line, without characters that change the text around it.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`")?;
        let mut chars = self.0.chars();
        for shown in chars.by_ref().take(QUOTED_CHARS_MAX) {
            if is_layout_control(shown) {
                write!(f, "{}", shown.escape_unicode())?;
            } else {
                write!(f, "{shown}")?;
            }
        }
        f.write_str(if chars.next().is_some() { "…`" } else { "`" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_file_and_line() {
        let problem = || FormatProblem::MissingField { key: "task.name".to_owned() };
        let refusal = Refusal::line("task.toml", 3, problem());
        assert_eq!(refusal.to_string(), "`task.toml` line 3: the field `task.name` is missing; add it");
        assert_eq!(refusal.code(), "missing_field");
        let file = Refusal::file("a\nb", problem()).to_string();
        assert!(file.starts_with(r"`a\u{a}b`: "), "{file}");
        assert!(Refusal::whole(problem()).to_string().starts_with("the field"));
    }

    #[test]
    fn long_texts_are_cut() {
        let shown = Quoted(&"x".repeat(1000)).to_string();
        assert_eq!(shown.chars().count(), QUOTED_CHARS_MAX + 3);
        assert!(shown.ends_with("…`"));
    }
}
