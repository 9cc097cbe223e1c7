//! A sample's record.

use bench_domain::sample::{Effort, Lease, SampleState, SampleSummary};
use bench_domain::{Position, Stage, Timestamp, Verdict};

use super::finished::Finished;
use super::turn::{Answered, Turn};
use crate::attributes::{Reader, Record};
use crate::{BodyRef, StateError};

/// The attribute that counts the attempts which did not end the sample and did not give it back: the one that holds it
/// and those that were lost.
pub(crate) const UNENDED: &str = "unended";

/// A sample as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRecord {
    /// Its place in the plan.
    pub position: Position,
    /// The item.
    pub item_id: String,
    /// The dataset's own id of the item; `None` where it has none, and in plans of an older program.
    pub source_id: Option<String>,
    /// Group of the item within its benchmark.
    pub group: Option<String>,
    /// Where the item's frame starts in the dataset's object.
    pub offset: u64,
    /// The frame's length.
    pub length: u64,
    /// Where it stands.
    pub state: SampleState,
    /// How often and how long it was tried.
    pub effort: Effort,
    /// Up to this attempt none left an answer behind: each gave the sample back.
    pub cleared: u32,
    /// How often reconciliation sent its message again.
    pub resends: u32,
    /// When its message should be handled, or its lease ends.
    pub due_at: Timestamp,
    /// The attempt whose answer was last counted as spent: regraded after a requeue it costs nothing again.
    pub counted: Option<u32>,
    /// What was handed over to who has the next turn, and what came of it; `None` before that.
    pub turn: Option<Turn>,
    /// How it ended, once it did.
    pub finished: Option<Finished>,
}

impl SampleRecord {
    pub(crate) fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let sort = reader.text("sk")?;
        let position =
            sort.strip_prefix("S#").and_then(|digits| digits.split_once('.')).and_then(|(item, sample)| {
                Some(Position { item: item.parse().ok()?, sample: sample.parse().ok()? })
            });
        let position =
            position.ok_or_else(|| StateError::damaged(reader.key(), "its key names no position"))?;
        let due_at = reader.time("due_at")?;
        let attempt = reader.number_or("attempt", 0)?;
        let finished = Finished::read(&reader)?;
        let state = match (reader.text("state")?, &finished) {
            ("open", _) => SampleState::Open { due_at },
            ("claimed", _) => {
                SampleState::Claimed(Lease { attempt, until: due_at, epoch: reader.number_or("epoch", 0)? })
            }
            ("done", Some(finished)) => SampleState::Done { attempt, outcome: finished.verdict.outcome },
            (other, _) => {
                return Err(StateError::damaged(reader.key(), format!("state `{other}` is not complete")));
            }
        };
        // The attempt that holds the sample is not lost.
        let held = i64::from(matches!(state, SampleState::Claimed(_)));
        let lost = reader.number_or::<i64>(UNENDED, 0)? - held;
        let lost = u32::try_from(lost.max(0)).unwrap_or(u32::MAX);
        Ok(Self {
            position,
            item_id: reader.text("item_id")?.to_owned(),
            source_id: reader.maybe_text("source_id").map(str::to_owned),
            group: reader.maybe_text("group").map(str::to_owned),
            offset: reader.number("offset")?,
            length: reader.number("length")?,
            state,
            effort: Effort {
                attempts: attempt,
                failures: reader.number_or("failures", 0)?,
                waits: reader.number_or("waits", 0)?,
                waiting_since: reader.maybe_time("waiting_since")?,
                lost,
            },
            cleared: reader.number_or("cleared", 0)?,
            resends: reader.number_or("resends", 0)?,
            due_at,
            counted: reader.maybe_number("counted")?,
            turn: Turn::read(&reader)?,
            finished,
        })
    }

    /// What metrics need of it, once it is over.
    pub fn summary(&self) -> Option<SampleSummary> {
        let finished = self.finished.as_ref()?;
        Some(SampleSummary {
            position: self.position,
            item_id: self.item_id.clone(),
            outcome: finished.verdict.outcome,
            score: finished.verdict.score,
            truncated: finished.truncated,
            latency_ms: finished.latency_ms,
            usage: finished.usage,
            group: self.group.clone(),
            judge_usage: finished.judge_usage,
        })
    }

    /// Whose turn it is, or was last.
    pub const fn stage(&self) -> Stage {
        match &self.turn {
            Some(turn) => turn.stage,
            None => Stage::Answer,
        }
    }

    /// The stored prompt and answer: as the sample ended, or as they were handed over and have no verdict.
    pub fn stored(&self) -> Option<&BodyRef> {
        match (&self.finished, &self.turn) {
            (Some(finished), _) => finished.body.as_ref(),
            (None, Some(turn)) => Some(&turn.answer.body),
            (None, None) => None,
        }
    }

    /// The whole answer that waits for its judge or its sandbox, or never got a verdict since the run ended first.
    pub fn unjudged(&self) -> Option<&Answered> {
        let turn = self.turn.as_ref().filter(|turn| self.finished.is_none() && turn.stage.is_turn());
        turn.map(|turn| &turn.answer)
    }

    /// Attempts that asked the model, and those of later turns.
    pub fn attempts(&self) -> (u32, u32) {
        let all = self.effort.attempts;
        let model = self.turn.as_ref().and_then(|turn| turn.answered_by).unwrap_or(all).min(all);
        (model, all - model)
    }

    /// The end of the sample with this verdict, with the answer that was handed over if one was, and without a
    /// reply of the judge.
    pub fn ended(&self, verdict: Verdict, at: Timestamp) -> Finished {
        let (answer, judge_usage) = match &self.turn {
            Some(turn) => (Some(turn.answer.clone()), turn.usage),
            None => (None, None),
        };
        let Some(Answered { body, item_hash, truncated, latency_ms, usage, model }) = answer else {
            return Finished {
                verdict,
                body: None,
                item_hash: None,
                truncated: false,
                latency_ms: None,
                usage: None,
                model: None,
                judge_usage,
                judge_latency_ms: None,
                judge_model: None,
                at,
            };
        };
        Finished {
            verdict,
            body: Some(body),
            item_hash,
            truncated,
            latency_ms,
            usage,
            model,
            judge_usage,
            judge_latency_ms: None,
            judge_model: None,
            at,
        }
    }
}
