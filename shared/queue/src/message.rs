//! The messages in the queues.

use bench_domain::{RunId, SampleRef, Stage};
use serde::{Deserialize, Serialize};

use crate::QueueName;

/// Version of the format. Messages of other versions are put back, since versions overlap during a deployment.
pub const MESSAGE_VERSION: u32 = 1;

/// A reference to a run or a sample that has to be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Plan a run: write its samples.
    Plan {
        /// Id of the run.
        run: RunId,
        /// Generation of the run; messages of an older generation are dropped.
        generation: u32,
    },
    /// Answer and score a sample.
    Sample {
        /// The sample.
        sample: SampleRef,
        /// Generation of the run when the message was written. A receiver with cached data of an older generation
        /// reloads it.
        generation: u32,
    },
    /// Judge a sample's answer, or run it in a sandbox.
    Turn {
        /// The sample.
        sample: SampleRef,
        /// Generation of the run when the message was written. A receiver with cached data of an older generation
        /// reloads it.
        generation: u32,
    },
    /// Finish a run whose samples are all done.
    Finish {
        /// Id of the run.
        run: RunId,
        /// Generation of the run.
        generation: u32,
    },
}

/// Reasons for which a message can't be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The body is invalid. A retry doesn't help.
    #[error("the message cannot be read: {0}")]
    Malformed(String),
    /// Another version of the program wrote the message, and may be able to read it.
    #[error("the message has version {found}; this program reads version {MESSAGE_VERSION}")]
    OtherVersion {
        /// Version of the message.
        found: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u32,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
enum Content {
    Plan { run: RunId, generation: u32 },
    Sample(SampleContent),
    Turn(SampleContent),
    Finish { run: RunId, generation: u32 },
}

#[derive(Serialize, Deserialize)]
struct SampleContent {
    /// 0 if missing, as in messages of older programs; it matches any generation.
    #[serde(default)]
    generation: u32,
    #[serde(flatten)]
    sample: SampleRef,
}

impl Message {
    /// Returns the message for a sample in this stage, in this generation of its run.
    pub const fn for_stage(stage: Stage, sample: SampleRef, generation: u32) -> Self {
        if stage.is_turn() { Self::Turn { sample, generation } } else { Self::Sample { sample, generation } }
    }

    /// Returns the id of the run, which is also the message group.
    pub const fn run(&self) -> RunId {
        match self {
            Self::Plan { run, .. } | Self::Finish { run, .. } => *run,
            Self::Sample { sample, .. } | Self::Turn { sample, .. } => sample.run,
        }
    }

    /// Returns the queue of this message.
    pub const fn queue(&self) -> QueueName {
        match self {
            Self::Plan { .. } => QueueName::Plans,
            Self::Sample { .. } => QueueName::Items,
            Self::Turn { .. } => QueueName::Turns,
            Self::Finish { .. } => QueueName::Finishes,
        }
    }

    /// Returns the text to send.
    pub fn to_body(&self) -> String {
        let content = match self.clone() {
            Self::Plan { run, generation } => Content::Plan { run, generation },
            Self::Sample { sample, generation } => Content::Sample(SampleContent { generation, sample }),
            Self::Turn { sample, generation } => Content::Turn(SampleContent { generation, sample }),
            Self::Finish { run, generation } => Content::Finish { run, generation },
        };
        // This can't fail: the content consists of ids, names and numbers.
        serde_json::to_string(&Envelope { v: MESSAGE_VERSION, content }).unwrap_or_default()
    }

    /// Parses a body written by [`Message::to_body`].
    pub fn from_body(body: &str) -> Result<Self, MessageError> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let malformed = |error: serde_json::Error| MessageError::Malformed(error.to_string());
        let version: Version = serde_json::from_str(body).map_err(malformed)?;
        if version.v != MESSAGE_VERSION {
            return Err(MessageError::OtherVersion { found: version.v });
        }
        let envelope: Envelope<Content> = serde_json::from_str(body).map_err(malformed)?;
        Ok(match envelope.content {
            Content::Plan { run, generation } => Self::Plan { run, generation },
            Content::Sample(SampleContent { generation, sample }) => Self::Sample { sample, generation },
            Content::Turn(SampleContent { generation, sample }) => Self::Turn { sample, generation },
            Content::Finish { run, generation } => Self::Finish { run, generation },
        })
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::Position;

    use super::*;

    #[test]
    fn messages_of_an_older_program_are_for_any_generation() {
        let run = RunId::random();
        let body = format!(
            r#"{{"v":1,"kind":"turn","run":"{run}","benchmark":"hle","plan":1,"shards":4,"position":{{"item":2,"sample":0}}}}"#
        );
        let Ok(Message::Turn { sample, generation: 0 }) = Message::from_body(&body) else {
            panic!("{:?}", Message::from_body(&body))
        };
        assert_eq!((sample.run, sample.shards), (run, 4));
    }

    #[test]
    fn messages_survive_the_queue() {
        let run = RunId::random();
        let sample = SampleRef {
            run,
            benchmark: "mmlu_pro".parse().unwrap(),
            plan: 2,
            shards: 61,
            position: Position { item: 12_031, sample: 3 },
        };
        for message in [
            Message::Plan { run, generation: 1 },
            Message::Sample { sample: sample.clone(), generation: 3 },
            Message::Turn { sample, generation: 1 },
            Message::Finish { run, generation: 2 },
        ] {
            assert_eq!(Message::from_body(&message.to_body()), Ok(message));
        }
    }

    #[test]
    fn newer_messages_and_broken_ones_are_different_errors() {
        assert_eq!(
            Message::from_body(r#"{"v":2,"kind":"dream"}"#),
            Err(MessageError::OtherVersion { found: 2 })
        );
        for broken in ["", "{}", "[]", r#"{"v":1}"#, r#"{"v":1,"kind":"plan","run":"x","generation":1}"#] {
            assert!(matches!(Message::from_body(broken), Err(MessageError::Malformed(_))), "{broken}");
        }
    }
}
