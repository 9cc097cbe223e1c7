//! Outcomes of samples, and how they count.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Code, code};

/// Outcome of a sample.
///
/// The first seven are graded: they count in the denominator of the score. The last three say nothing about the model's
/// answer and lower the coverage instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The answer is right.
    Correct,
    /// The answer is wrong.
    Incorrect,
    /// The answer earns a score between 0 and 1.
    Partial,
    /// The model gave no answer.
    NoAnswer,
    /// The model answered, but the parser can't extract the answer.
    Unparsed,
    /// The token limit cut the answer off before it was complete.
    Truncated,
    /// The model or its provider refused to answer.
    Refused,
    /// The prompt doesn't fit the model's context, or the answer exceeded the time limit.
    TooLong,
    /// The model doesn't support a part of the prompt, such as an image.
    Unsupported,
    /// The provider, the network or this program failed.
    InfrastructureError,
}

impl Outcome {
    /// All outcomes, in display order.
    pub const ALL: [Self; 10] = [
        Self::Correct,
        Self::Incorrect,
        Self::Partial,
        Self::NoAnswer,
        Self::Unparsed,
        Self::Truncated,
        Self::Refused,
        Self::TooLong,
        Self::Unsupported,
        Self::InfrastructureError,
    ];

    /// Returns true if the sample counts in the score's denominator.
    pub const fn is_graded(self) -> bool {
        !matches!(self, Self::TooLong | Self::Unsupported | Self::InfrastructureError)
    }

    /// Returns the name in JSON, tables and exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Correct => "correct",
            Self::Incorrect => "incorrect",
            Self::Partial => "partial",
            Self::NoAnswer => "no-answer",
            Self::Unparsed => "unparsed",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::TooLong => "too-long",
            Self::Unsupported => "unsupported",
            Self::InfrastructureError => "infrastructure-error",
        }
    }

    /// Returns the outcome with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Result of one sample: outcome, score, reason, and extracted answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Outcome of the sample.
    pub outcome: Outcome,
    /// Score from 0 to 1 (a benchmark may define a lower bound below 0); `None` exactly if the sample isn't graded.
    pub score: Option<f64>,
    /// Reason in one sentence for people. Empty for a right answer.
    pub reason: String,
    /// Code of the cause; `None` for graded outcomes, and in verdicts of older versions.
    #[serde(default, deserialize_with = "code::deserialize_known", skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Answer that the parser extracted; `None` if it found none.
    pub extracted: Option<String>,
    /// Further details from the grader: an object, empty if there are none.
    #[serde(default)]
    pub detail: serde_json::Map<String, serde_json::Value>,
}

impl Verdict {
    fn new(outcome: Outcome, score: Option<f64>, extracted: Option<String>, reason: String) -> Self {
        Self { outcome, score, reason, code: None, extracted, detail: serde_json::Map::new() }
    }

    /// Creates the verdict of a right answer.
    pub fn correct(extracted: impl Into<String>) -> Self {
        Self::new(Outcome::Correct, Some(1.0), Some(extracted.into()), String::new())
    }

    /// Creates the verdict of a wrong answer.
    pub fn incorrect(extracted: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Outcome::Incorrect, Some(0.0), Some(extracted.into()), reason.into())
    }

    /// Creates the verdict of an answer that earns part of the score. The ends of the range become correct and
    /// incorrect.
    pub fn partial(score: f64, extracted: Option<String>, reason: impl Into<String>) -> Self {
        let outcome = match score {
            s if s >= 1.0 => Outcome::Correct,
            s if s > 0.0 => Outcome::Partial,
            _ => Outcome::Incorrect,
        };
        Self::new(outcome, Some(score), extracted, reason.into())
    }

    /// Creates a graded verdict without a usable answer: no-answer, unparsed, truncated or refused. The score is 0.
    pub fn wrong(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self::new(outcome, outcome.is_graded().then_some(0.0), None, reason.into())
    }

    /// Creates a verdict that says nothing about the answer: too-long, unsupported or infrastructure-error, depending
    /// on `code`. It has no score.
    pub fn ungraded(code: Code, reason: impl Into<String>) -> Self {
        let outcome = match code {
            Code::ContextTooLong | Code::AnswerTimeout => Outcome::TooLong,
            Code::ImagesUnsupported => Outcome::Unsupported,
            _ => Outcome::InfrastructureError,
        };
        Self { code: Some(code), ..Self::wrong(outcome, reason) }
    }

    /// Returns true if the answer is right; `None` if it wasn't graded.
    pub fn is_correct(&self) -> Option<bool> {
        self.outcome.is_graded().then_some(self.outcome == Outcome::Correct)
    }
}

/// Number of samples by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutcomeCounts([u64; Outcome::ALL.len()]);

impl OutcomeCounts {
    /// Counts one more sample.
    pub fn add(&mut self, outcome: Outcome) {
        if let Some(count) = self.0.get_mut(outcome as usize) {
            *count += 1;
        }
    }

    /// Returns the number of samples with this outcome.
    pub fn get(&self, outcome: Outcome) -> u64 {
        self.0.get(outcome as usize).copied().unwrap_or(0)
    }

    /// Returns the total number of samples.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of graded samples.
    pub fn graded(&self) -> u64 {
        Outcome::ALL.into_iter().filter(|outcome| outcome.is_graded()).map(|outcome| self.get(outcome)).sum()
    }

    /// Iterates over all outcomes and their counts, zero counts included.
    pub fn iter(&self) -> impl Iterator<Item = (Outcome, u64)> + '_ {
        Outcome::ALL.into_iter().map(|outcome| (outcome, self.get(outcome)))
    }
}

impl Serialize for OutcomeCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(outcome, count)| (outcome.as_str(), count)))
    }
}

impl<'de> Deserialize<'de> for OutcomeCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = std::collections::BTreeMap::<Outcome, u64>::deserialize(deserializer)?;
        let mut all = Self::default();
        for (outcome, count) in counts {
            if let Some(slot) = all.0.get_mut(outcome as usize) {
                *slot = count;
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_serialized_ones() {
        for outcome in Outcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
            assert_eq!(Outcome::from_name(outcome.as_str()), Some(outcome));
            assert_eq!(Outcome::ALL[outcome as usize], outcome);
        }
    }

    #[test]
    fn a_score_exists_exactly_when_graded() {
        for outcome in Outcome::ALL {
            assert_eq!(Verdict::wrong(outcome, "because").score.is_some(), outcome.is_graded());
        }
        for (code, outcome) in [
            (Code::ContextTooLong, Outcome::TooLong),
            (Code::ImagesUnsupported, Outcome::Unsupported),
            (Code::RateLimited, Outcome::InfrastructureError),
            (Code::ContextTooLong.for_judge(), Outcome::InfrastructureError),
        ] {
            let verdict = Verdict::ungraded(code, "because");
            assert_eq!((verdict.outcome, verdict.code, verdict.score), (outcome, Some(code), None));
        }
        assert_eq!(Verdict::partial(0.5, None, "half").outcome, Outcome::Partial);
        assert_eq!(Verdict::partial(1.0, None, "").outcome, Outcome::Correct);
    }

    #[test]
    fn verdicts_of_other_versions_are_read() {
        let old = r#"{"outcome":"infrastructure-error","score":null,"reason":"no","extracted":null}"#;
        let read: Verdict = serde_json::from_str(old).unwrap();
        assert_eq!((read.outcome, read.code), (Outcome::InfrastructureError, None));
        let text = serde_json::to_string(&Verdict::ungraded(Code::RateLimited, "no")).unwrap();
        assert!(text.contains(r#""code":"rate_limited""#), "{text}");
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap().code, Some(Code::RateLimited));
        let newer = text.replace("rate_limited", "not_invented_yet");
        assert_eq!(serde_json::from_str::<Verdict>(&newer).unwrap().code, None);
        assert!(!serde_json::to_string(&Verdict::correct("A")).unwrap().contains("code"));
    }

    #[test]
    fn counts_survive_json() {
        let mut counts = OutcomeCounts::default();
        counts.add(Outcome::Correct);
        counts.add(Outcome::TooLong);
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<OutcomeCounts>(&text).unwrap(), counts);
        assert_eq!((counts.total(), counts.graded()), (2, 1));
    }
}
