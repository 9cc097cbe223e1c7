//! Token counts as a provider reports them.

use bench_domain::{TOKENS_PER_CALL_MAX, Usage};

/// Token counts that a provider reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedUsage {
    /// It counts neither prompt nor answer.
    Nothing,
    /// Counts that can be right.
    Counted(Usage),
    /// A count that no call can have: negative, a fraction, not a number, or beyond [`TOKENS_PER_CALL_MAX`]. The other
    /// counts of such a report are not trusted either.
    Impossible,
}

/// One count of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenCount {
    /// The report does not have it.
    Missing,
    /// A count that can be right.
    Tokens(u64),
    /// A count that no call can have.
    Impossible,
}

impl ReportedUsage {
    /// Combines the counts of prompt, answer and the reasoning within the answer.
    pub(crate) fn new(input: TokenCount, output: TokenCount, reasoning: TokenCount) -> Self {
        if let (TokenCount::Missing, TokenCount::Missing) = (input, output) {
            return Self::Nothing;
        }
        match (input.tokens(), output.tokens(), reasoning.tokens()) {
            (Some(input), Some(output), Some(reasoning)) => {
                Self::Counted(Usage::counted(input, output, reasoning))
            }
            _ => Self::Impossible,
        }
    }

    /// The counts, where they can be right.
    pub const fn counted(self) -> Option<Usage> {
        match self {
            Self::Counted(usage) => Some(usage),
            Self::Nothing | Self::Impossible => None,
        }
    }
}

impl TokenCount {
    /// Reads a count from its JSON: a whole number, also one that is written as a float.
    pub(crate) fn read(json: Option<&str>) -> Self {
        let Some(text) = json.filter(|text| *text != "null") else { return Self::Missing };
        let tokens = text.parse::<u64>().ok().or_else(|| {
            let number =
                text.parse::<f64>().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit()))?;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // saturates, and the sign is checked
            (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
        });
        match tokens {
            Some(tokens) if tokens <= TOKENS_PER_CALL_MAX => Self::Tokens(tokens),
            _ => Self::Impossible,
        }
    }

    const fn tokens(self) -> Option<u64> {
        match self {
            Self::Missing => Some(0),
            Self::Tokens(tokens) => Some(tokens),
            Self::Impossible => None,
        }
    }
}
