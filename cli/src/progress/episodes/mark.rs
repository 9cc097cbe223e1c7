//! Marks of episodes. Symbols differ without colors.

use bench_domain::Outcome;
use console::style;

/// State of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Full reward.
    Passed,
    /// A part of the reward.
    Partial,
    /// Graded without a reward.
    Failed,
    /// Over without a grade.
    Error,
    Running,
    Waiting,
}

impl Mark {
    /// All marks, in the order of the legend.
    pub(super) const ALL: [Self; 6] =
        [Self::Passed, Self::Partial, Self::Failed, Self::Error, Self::Running, Self::Waiting];

    /// Returns the mark of an outcome. An unknown one, of a newer server, has no known grade.
    pub(super) fn of(outcome: &str) -> Self {
        match Outcome::from_name(outcome) {
            Some(Outcome::Correct) => Self::Passed,
            Some(Outcome::Partial) => Self::Partial,
            Some(outcome) if outcome.is_graded() => Self::Failed,
            _ => Self::Error,
        }
    }

    /// Returns true if the episode won't change any more.
    pub(super) const fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }

    /// Returns true if the episode counts for the pass rate.
    pub(super) const fn is_graded(self) -> bool {
        matches!(self, Self::Passed | Self::Partial | Self::Failed)
    }

    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Passed => "✓",
            Self::Partial => "◐",
            Self::Failed => "✗",
            Self::Error => "!",
            Self::Running => "▸",
            Self::Waiting => "·",
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Error => "error",
            Self::Running => "running",
            Self::Waiting => "waiting",
        }
    }

    /// Colors a text like the mark, if standard error has colors.
    pub(super) fn paint(self, text: String) -> String {
        let text = style(text).for_stderr();
        let painted = match self {
            Self::Passed => text.green(),
            Self::Partial => text.yellow(),
            Self::Failed => text.red(),
            Self::Error => text.red().bold(),
            Self::Running => text.cyan(),
            Self::Waiting => text.dim(),
        };
        painted.to_string()
    }
}
