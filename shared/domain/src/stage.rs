//! Stages of a sample: the kinds of work that lead to its verdict.
//!
//! Everything that differs by stage, except for the work itself, is a method here: a new kind of work is a new variant,
//! and the compiler reports the methods that need a new arm.

use crate::Code;

/// Kind of work that a sample needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stage {
    /// The model has to answer, and the answer has to be graded.
    #[default]
    Answer,
    /// The answer is stored, and a judge has to grade it.
    Judge,
    /// The answer is stored, and has to run in a sandbox to be graded.
    Sandbox,
    /// The task is known, and an agent has to work on it in its environment and to be verified.
    Episode,
    /// The answer is stored, and has to be verified in a container of its item.
    Verification,
}

impl Stage {
    /// All stages.
    pub const ALL: [Self; 5] = [Self::Answer, Self::Judge, Self::Sandbox, Self::Episode, Self::Verification];

    /// Returns the name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Judge => "judge",
            Self::Sandbox => "sandbox",
            Self::Episode => "episode",
            Self::Verification => "verification",
        }
    }

    /// Returns the stage with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }

    /// Returns true if the stage is a turn after the answer, whose message goes to the queue `turns`.
    pub const fn is_turn(self) -> bool {
        !matches!(self, Self::Answer)
    }

    /// Returns the attribute of a sample's record that stores the stage's checkpoint as JSON; `None` for a stage that
    /// is done in one attempt. The name isn't a reserved word of DynamoDB.
    pub const fn checkpoint_attribute(self) -> Option<&'static str> {
        match self {
            Self::Answer | Self::Judge => None,
            Self::Sandbox => Some("job"),
            Self::Episode => Some("episode"),
            Self::Verification => Some("verification"),
        }
    }

    /// Returns the code of a sample whose attempts in this stage were all lost.
    pub const fn lost_attempts_code(self) -> Code {
        match self {
            Self::Judge => Code::JudgeAttemptsLost,
            Self::Answer | Self::Sandbox | Self::Episode | Self::Verification => Code::AttemptsLost,
        }
    }

    /// Returns the reason of a sample whose message was delivered `deliveries` times without a completed attempt.
    pub fn undeliverable_reason(self, deliveries: u32) -> String {
        match self {
            Self::Answer => {
                format!("the sample's message was delivered {deliveries} times and no attempt came to an end")
            }
            Self::Judge => format!(
                "the judge was to be asked {deliveries} times and no attempt came to an end; the answer is kept"
            ),
            Self::Sandbox => format!(
                "the answer was to be run {deliveries} times and no attempt came to an end; the answer is kept"
            ),
            Self::Episode => {
                format!("the episode was to be continued {deliveries} times and no attempt came to an end")
            }
            Self::Verification => format!(
                "the answer was to be verified {deliveries} times and no attempt came to an end; the answer is kept"
            ),
        }
    }

    /// Returns the text that users see for a sample whose run ended before this stage did.
    pub const fn unfinished_text(self) -> &'static str {
        match self {
            Self::Answer => "not finished",
            Self::Judge => "answered, not judged",
            Self::Sandbox => "answered, not graded",
            Self::Episode => "episode not finished",
            Self::Verification => "answered, not verified",
        }
    }

    /// Returns the name under which users see the number of attempts after the answer.
    pub const fn attempts_field(self) -> Option<&'static str> {
        match self {
            Self::Answer => None,
            Self::Judge => Some("judge_attempts"),
            Self::Sandbox => Some("sandbox_attempts"),
            Self::Episode => Some("episode_attempts"),
            Self::Verification => Some("verification_attempts"),
        }
    }

    /// Returns the requirement that is missing for grading an answer offline, for a sentence that begins with `needs`.
    pub const fn offline_requirement(self) -> &'static str {
        match self {
            Self::Answer => "a model, which this command does not ask",
            Self::Judge => "a judge, which this command does not ask",
            Self::Sandbox => "a sandbox, which this command does not have",
            Self::Episode | Self::Verification => "containers, which this command does not start",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn stages_are_known_by_their_names() {
        for stage in Stage::ALL {
            assert_eq!(Stage::from_name(stage.as_str()), Some(stage));
        }
        assert_eq!(Stage::from_name("dream"), None);
    }

    #[test]
    fn no_two_stages_share_an_attribute() {
        let attributes: Vec<_> = Stage::ALL.into_iter().filter_map(Stage::checkpoint_attribute).collect();
        assert_eq!(attributes.iter().collect::<BTreeSet<_>>().len(), attributes.len());
        assert_eq!(Stage::Sandbox.checkpoint_attribute(), Some("job"), "as in stored records");
    }
}
