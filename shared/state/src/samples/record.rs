//! Records of samples.

use bench_domain::sample::{AttemptHistory, Lease, SampleState, SampleSummary};
use bench_domain::{EpisodeStart, EpisodeState, Position, Stage, Timestamp, Verdict};
use serde::de::DeserializeOwned;

use super::finished::SampleResult;
use super::turn::{AnswerRecord, Turn};
use crate::attributes::{Reader, Record};
use crate::{BodyRef, StateError};

/// Attribute that counts the attempts which neither ended the sample nor released it: the attempt that holds it now,
/// and lost attempts.
pub(crate) const UNENDED: &str = "unended";

/// Stored sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRecord {
    /// Position in the plan.
    pub position: Position,
    /// Id of the item.
    pub item_id: String,
    /// The dataset's own id of the item; `None` if it has none, and in plans of older versions.
    pub source_id: Option<String>,
    /// Group of the item within its benchmark.
    pub group: Option<String>,
    /// Start of the item's frame in the dataset's object, in bytes.
    pub offset: u64,
    /// Length of the frame in bytes.
    pub length: u64,
    /// State of the sample.
    pub state: SampleState,
    /// Attempts made and time spent waiting.
    pub history: AttemptHistory,
    /// Attempts up to this number left no answer that a later attempt has to look for.
    pub cleared: u32,
    /// Number of times that reconciliation sent its message again.
    pub resends: u32,
    /// Time at which its message should be handled, or its lease ends.
    pub due_at: Timestamp,
    /// Number of the attempt whose answer was last counted as spent: grading it again after a requeue costs nothing.
    pub counted: Option<u32>,
    /// Answer and stage of the next turn; `None` before the first handover.
    pub turn: Option<Turn>,
    /// Result of the sample, once it's over.
    pub finished: Option<SampleResult>,
}

/// Returns the position that the key of a record names.
pub(super) fn position(reader: &Reader<'_>) -> Result<Position, StateError> {
    let sort = reader.text("sk")?;
    let position = sort
        .strip_prefix("S#")
        .and_then(|digits| digits.split_once('.'))
        .and_then(|(item, sample)| Some(Position { item: item.parse().ok()?, sample: sample.parse().ok()? }));
    position.ok_or_else(|| StateError::damaged(reader.key(), "its key names no position"))
}

impl SampleRecord {
    /// Returns the start of the sample's episode; `None` if it is none, or without a checkpoint that can be read.
    pub fn episode_start(&self) -> Option<EpisodeStart> {
        self.episode_checkpoint()
    }

    /// Returns why an operation of the sample's episode is repeated later, in one sentence; `None` if none is.
    pub fn delay_reason(&self) -> Option<String> {
        let state: EpisodeState = self.episode_checkpoint()?;
        state.delay_reason().map(str::to_owned)
    }

    fn episode_checkpoint<T: DeserializeOwned>(&self) -> Option<T> {
        let is_episode = |turn: &&Turn| matches!(turn.stage, Stage::Episode | Stage::Verification);
        self.turn.as_ref().filter(is_episode)?.checkpoint().ok().flatten()
    }

    pub(crate) fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let position = position(&reader)?;
        let due_at = reader.time("due_at")?;
        let attempt = reader.number_or("attempt", 0)?;
        let finished = SampleResult::read(&reader)?;
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
        // The attempt that holds the sample isn't lost.
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
            history: AttemptHistory {
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

    /// Returns the fields that metrics need, once the sample is over.
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

    /// Returns the stage of the current or last turn.
    pub const fn stage(&self) -> Stage {
        match &self.turn {
            Some(turn) => turn.stage,
            None => Stage::Answer,
        }
    }

    /// Returns the reference to the stored prompt and answer: those of the result or, without a verdict, those that
    /// were handed over.
    pub fn stored_body(&self) -> Option<&BodyRef> {
        match (&self.finished, &self.turn) {
            (Some(finished), _) => finished.body.as_ref(),
            (None, Some(turn)) => Some(&turn.answer.body),
            (None, None) => None,
        }
    }

    /// Returns the complete answer that is waiting for its judge or sandbox, or has no verdict because the run ended
    /// first.
    pub fn unjudged_answer(&self) -> Option<&AnswerRecord> {
        let turn = self.turn.as_ref().filter(|turn| self.finished.is_none() && turn.stage.is_turn());
        turn.map(|turn| &turn.answer)
    }

    /// Returns the model id that the provider reported with the answer; `None` without a complete answer.
    pub fn reported_model(&self) -> Option<&str> {
        match (&self.finished, self.unjudged_answer()) {
            (Some(finished), _) => finished.model.as_deref(),
            (None, answer) => answer?.model.as_deref(),
        }
    }

    /// Returns the number of attempts that asked the model, and of attempts of later turns.
    pub fn attempts(&self) -> (u32, u32) {
        let all = self.history.attempts;
        let model = self.turn.as_ref().and_then(|turn| turn.answered_by).unwrap_or(all).min(all);
        (model, all - model)
    }

    /// Returns the result of the sample with this verdict, with the answer that was handed over, if any, and without a
    /// reply of the judge.
    pub fn to_finished(&self, verdict: Verdict, at: Timestamp) -> SampleResult {
        let (answer, judge_usage) = match &self.turn {
            Some(turn) => (Some(turn.answer.clone()), turn.usage),
            None => (None, None),
        };
        let Some(AnswerRecord { body, item_hash, truncated, latency_ms, usage, model }) = answer else {
            return SampleResult {
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
        SampleResult {
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
