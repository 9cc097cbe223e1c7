//! Token counts reported by a provider.

use bench_domain::{TOKENS_PER_CALL_MAX, Usage};

/// Token counts that a provider reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedUsage {
    /// No count of either prompt or answer.
    Nothing,
    /// Plausible counts.
    Counted(Usage),
    /// An impossible count: negative, a fraction, not a number, or beyond [`TOKENS_PER_CALL_MAX`]. The other counts
    /// of such a report are not trusted either.
    Impossible,
}

/// One count of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenCount {
    /// The report doesn't have this count.
    Missing,
    /// A plausible count.
    Tokens(u64),
    /// An impossible count.
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

    /// Returns the counts if they are plausible.
    pub const fn counted(self) -> Option<Usage> {
        match self {
            Self::Counted(usage) => Some(usage),
            Self::Nothing | Self::Impossible => None,
        }
    }
}

impl TokenCount {
    /// Parses a count from its JSON: an integer, possibly written as a float.
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
