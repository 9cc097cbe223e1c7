//! Whose turn a sample is that was handed over, as its record keeps it.

use bench_domain::sample::Stage;
use bench_domain::{Job, Usage};

use crate::attributes::Reader;
use crate::usage::{JUDGE_USAGE, USAGE, read_usage};
use crate::{BodyRef, StateError};

/// The attribute that a sample has from its hand-over on.
pub(crate) const STAGE: &str = "stage";
/// The attribute that says where its job in a sandbox stands, as JSON.
pub(crate) const JOB: &str = "job";

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

/// A sample that was handed over: what is there of its answer, and whose turn it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Whose turn it is: [`Stage::Answer`] where the item takes several questions and the next one is to be asked.
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
    /// Where the job in a sandbox stands; `None` before there is one.
    pub job: Option<Job>,
}

impl Turn {
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
            job: reader.maybe_json(JOB)?,
        }))
    }
}
