//! Turns of samples that were handed over to a later stage or question.

use bench_domain::{Stage, Usage};
use serde::de::DeserializeOwned;

use crate::attributes::Reader;
use crate::usage::{JUDGE_USAGE, USAGE, read_usage};
use crate::{BodyRef, StateError};

/// Name of the attribute that a sample has after its first handover.
pub(crate) const STAGE: &str = "stage";

/// Stored answer, as recorded for its sample.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRecord {
    /// Reference to the answer; after a reply without a verdict, to the answer with that reply.
    pub body: BodyRef,
    /// First 16 hex digits of the digest of the item's identifying text.
    pub item_hash: Option<String>,
    /// True if the token limit cut the answer off.
    pub truncated: bool,
    /// Milliseconds from the request to the end of the answer.
    pub latency_ms: Option<u64>,
    /// Tokens counted by the provider.
    pub usage: Option<Usage>,
    /// Model id reported by the provider.
    pub model: Option<String>,
}

/// Next turn of a sample that was handed over, with its answer so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Next stage; [`Stage::Answer`] if the item has several steps and the next question follows.
    pub stage: Stage,
    /// Answer so far.
    pub answer: AnswerRecord,
    /// Number of the attempt that received the last part of the answer; later attempts are the judge's or the
    /// sandbox's. `None` before the answer is complete, and if an older version handed it over.
    pub answered_by: Option<u32>,
    /// Number of replies without a verdict since the handover or requeue.
    pub replies: u32,
    /// Tokens of all replies so far.
    pub usage: Option<Usage>,
    /// Checkpoint of the stage as JSON; `None` if it saved none.
    checkpoint: Option<String>,
}

impl Turn {
    /// Reads the checkpoint that the stage saved with [`State::save_checkpoint`]; `None` if it saved none.
    ///
    /// # Errors
    /// If the checkpoint isn't the JSON of a `T`.
    ///
    /// [`State::save_checkpoint`]: crate::State::save_checkpoint
    pub fn checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, StateError> {
        let read = |json: &String| {
            let what = format!("checkpoint of stage `{}`", self.stage.as_str());
            serde_json::from_str(json).map_err(|error| StateError::damaged(what, error))
        };
        self.checkpoint.as_ref().map(read).transpose()
    }

    /// Reads the turn from the sample's record; `None` before the first handover.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Option<Self>, StateError> {
        let Some(stage) = reader.maybe_text(STAGE) else { return Ok(None) };
        let stage = Stage::from_name(stage)
            .ok_or_else(|| StateError::damaged(reader.key(), format!("stage `{stage}` is unknown")))?;
        let body = BodyRef::read(reader)?;
        let body = body.ok_or_else(|| StateError::damaged(reader.key(), "no answer was handed over"))?;
        Ok(Some(Self {
            stage,
            answer: AnswerRecord {
                body,
                item_hash: reader.maybe_text("item_hash").map(str::to_owned),
                truncated: reader.number_or::<u8>("truncated", 0)? == 1,
                latency_ms: reader.maybe_number("latency_ms")?,
                usage: read_usage(reader, USAGE)?,
                model: reader.maybe_text("model").map(str::to_owned),
            },
            answered_by: reader.maybe_number("answered_by")?,
            replies: reader.number_or("replies", 0)?,
            usage: read_usage(reader, JUDGE_USAGE)?,
            checkpoint: stage
                .checkpoint_attribute()
                .and_then(|name| reader.maybe_text(name))
                .map(str::to_owned),
        }))
    }
}
