//! A sample that was handed over to a later stage or question, as its record keeps it.

use bench_domain::{Stage, Usage};
use serde::de::DeserializeOwned;

use crate::attributes::Reader;
use crate::usage::{JUDGE_USAGE, USAGE, read_usage};
use crate::{BodyRef, StateError};

/// The attribute that a sample has from its hand-over on.
pub(crate) const STAGE: &str = "stage";

/// A stored answer, as the record of its sample keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Where it is; after a reply without a verdict, where it is with that reply.
    pub body: BodyRef,
    /// First 16 hex digits of the digest of the item's identifying text.
    pub item_hash: Option<String>,
    /// Whether the token limit cut it off.
    pub truncated: bool,
    /// From request to the end of the answer, in milliseconds.
    pub latency_ms: Option<u64>,
    /// Tokens, as the provider counted them.
    pub usage: Option<Usage>,
    /// The model's id as the provider reported it.
    pub model: Option<String>,
}

/// A sample that was handed over: what there is of its answer, and the stage that comes next.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The stage that comes next: [`Stage::Answer`] where the item takes several questions and the next one is to be asked.
    pub stage: Stage,
    /// The answer, as far as it was given.
    pub answer: Answered,
    /// The attempt that asked the model for the last of it; later ones are the judge's or the sandbox's. `None` before
    /// the answer is whole, and where an older program handed it over.
    pub answered_by: Option<u32>,
    /// Replies without a verdict since it was handed over or requeued.
    pub replies: u32,
    /// Tokens of all replies so far.
    pub usage: Option<Usage>,
    /// What the stage saved of how far it has come, as JSON; `None` before that.
    checkpoint: Option<String>,
}

impl Turn {
    /// Reads what the stage saved with [`State::save_checkpoint`]; `None` before that.
    ///
    /// # Errors
    /// When it is not the JSON of a `T`.
    ///
    /// [`State::save_checkpoint`]: crate::State::save_checkpoint
    pub fn checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, StateError> {
        let read = |json: &String| {
            let what = format!("checkpoint of stage `{}`", self.stage.as_str());
            serde_json::from_str(json).map_err(|error| StateError::damaged(what, error))
        };
        self.checkpoint.as_ref().map(read).transpose()
    }

    /// From the sample's record; `None` before it was handed over.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Option<Self>, StateError> {
        let Some(stage) = reader.maybe_text(STAGE) else { return Ok(None) };
        let stage = Stage::from_name(stage)
            .ok_or_else(|| StateError::damaged(reader.key(), format!("stage `{stage}` is unknown")))?;
        let body = BodyRef::read(reader)?;
        let body = body.ok_or_else(|| StateError::damaged(reader.key(), "no answer was handed over"))?;
        Ok(Some(Self {
            stage,
            answer: Answered {
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
