//! Parts of sample records for sums over a run.

use bench_domain::{Code, Outcome, Position, Stage};

use super::turn::STAGE;
use crate::attributes::{Reader, Record};
use crate::samples::read::Projection;
use crate::{StateError, samples};

/// Attributes that an excerpt is read from. Some are reserved words of DynamoDB, so expressions name them by placeholders.
pub(super) const EXCERPT: Projection = Projection(&[
    ("#sort", "sk"),
    ("#state", "state"),
    ("#outcome", "outcome"),
    ("#reason", "reason"),
    ("#code", "error_code"),
    ("#model", "model"),
    ("#stage", STAGE),
]);

/// The fields of a sample that sums over a run need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleExcerpt {
    /// Position in the plan.
    pub position: Position,
    /// Outcome, once the sample is over.
    pub outcome: Option<Outcome>,
    /// Code of the error, if any.
    pub code: Option<Code>,
    /// Reason for the verdict; empty without one.
    pub reason: String,
    /// Model id that the provider reported with a complete answer.
    pub model: Option<String>,
    /// True if the sample has a complete answer and no verdict.
    pub is_unjudged: bool,
}

impl SampleExcerpt {
    pub(super) fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let position = samples::record::position(&reader)?;
        let is_done = reader.text("state")? == "done";
        let outcome = match is_done {
            true => Some(samples::finished::outcome(&reader)?),
            false => None,
        };
        let stage = reader.maybe_text(STAGE).and_then(Stage::from_name);
        let is_unjudged = !is_done && stage.is_some_and(Stage::is_turn);
        let model = reader.maybe_text("model").filter(|_| is_done || is_unjudged);
        Ok(Self {
            position,
            outcome,
            code: reader.maybe_text("error_code").and_then(Code::from_name).filter(|_| is_done),
            reason: reader.maybe_text("reason").filter(|_| is_done).unwrap_or_default().to_owned(),
            model: model.map(str::to_owned),
            is_unjudged,
        })
    }
}
