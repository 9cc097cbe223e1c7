//! What messages say.

use bench_domain::{RunId, SampleRef, Stage};
use serde::{Deserialize, Serialize};

use crate::QueueName;

/// Version of the format. A message of another version is put back: deploys overlap.
pub const MESSAGE_VERSION: u32 = 1;

/// A reference to something that is to be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A run is to become its samples.
    Plan {
        /// The run.
        run: RunId,
        /// The run's generation; a message of an older one is dropped.
        generation: u32,
    },
    /// A sample is to be answered and scored.
    Sample {
        /// The sample.
        sample: SampleRef,
        /// The run's generation when the message was written: what is known of an older one is loaded anew.
        generation: u32,
    },
    /// A sample's answer is to be judged, or run in a sandbox.
    Turn {
        /// The sample.
        sample: SampleRef,
        /// The run's generation when the message was written: what is known of an older one is loaded anew.
        generation: u32,
    },
    /// All samples of a run are over.
    Finish {
        /// The run.
        run: RunId,
        /// The run's generation.
        generation: u32,
    },
}

/// A body that is no message of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It cannot be read. Repeating does not help.
    #[error("the message cannot be read: {0}")]
    Malformed(String),
    /// Another version of the program wrote it, and may be able to read it.
    #[error("the message has version {found}; this program reads version {MESSAGE_VERSION}")]
    OtherVersion {
        /// The version it names.
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
    Sample(OfSample),
    Turn(OfSample),
    Finish { run: RunId, generation: u32 },
}

#[derive(Serialize, Deserialize)]
struct OfSample {
    /// 0 in messages of an older program, where it is missing: any generation will do.
    #[serde(default)]
    generation: u32,
    #[serde(flatten)]
    sample: SampleRef,
}

impl Message {
    /// The message of a sample in this stage, written in this generation of its run.
    pub const fn of_stage(stage: Stage, sample: SampleRef, generation: u32) -> Self {
        if stage.is_turn() { Self::Turn { sample, generation } } else { Self::Sample { sample, generation } }
    }

    /// The run that it is about; also the message group.
    pub const fn run(&self) -> RunId {
        match self {
            Self::Plan { run, .. } | Self::Finish { run, .. } => *run,
            Self::Sample { sample, .. } | Self::Turn { sample, .. } => sample.run,
        }
    }

    /// The queue that it belongs to.
    pub const fn queue(&self) -> QueueName {
        match self {
            Self::Plan { .. } => QueueName::Plans,
            Self::Sample { .. } => QueueName::Items,
            Self::Turn { .. } => QueueName::Turns,
            Self::Finish { .. } => QueueName::Finishes,
        }
    }

    /// The text that is sent.
    pub fn to_body(&self) -> String {
        let content = match self.clone() {
            Self::Plan { run, generation } => Content::Plan { run, generation },
            Self::Sample { sample, generation } => Content::Sample(OfSample { generation, sample }),
            Self::Turn { sample, generation } => Content::Turn(OfSample { generation, sample }),
            Self::Finish { run, generation } => Content::Finish { run, generation },
        };
        // Ids, names and numbers only: this cannot fail.
        serde_json::to_string(&Envelope { v: MESSAGE_VERSION, content }).unwrap_or_default()
    }

    /// Reads what [`Message::to_body`] wrote.
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
            Content::Sample(OfSample { generation, sample }) => Self::Sample { sample, generation },
            Content::Turn(OfSample { generation, sample }) => Self::Turn { sample, generation },
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
    fn a_newer_message_is_told_from_a_broken_one() {
        assert_eq!(
            Message::from_body(r#"{"v":2,"kind":"dream"}"#),
            Err(MessageError::OtherVersion { found: 2 })
        );
        for broken in ["", "{}", "[]", r#"{"v":1}"#, r#"{"v":1,"kind":"plan","run":"x","generation":1}"#] {
            assert!(matches!(Message::from_body(broken), Err(MessageError::Malformed(_))), "{broken}");
        }
    }
}
