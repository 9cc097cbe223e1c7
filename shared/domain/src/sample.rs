//! Samples: references, leases and states.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BenchmarkName, IllegalTransition, Outcome, RunId, Timestamp, Usage};

/// Position of a sample in its benchmark's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Index of the item in the plan, from 0.
    pub item: u32,
    /// Index among the item's samples, from 0.
    pub sample: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.item, self.sample)
    }
}

/// Reference to a sample: exactly the fields needed to find its record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SampleRef {
    /// The run.
    pub run: RunId,
    /// The benchmark.
    pub benchmark: BenchmarkName,
    /// Number of the planner's attempt that made the plan.
    pub plan: u32,
    /// Number of shards over which the plan is spread.
    pub shards: u32,
    /// Position in the plan.
    pub position: Position,
}

impl SampleRef {
    /// Returns the shard that holds the sample: its item's position modulo the number of shards.
    pub const fn shard(&self) -> u32 {
        match self.shards {
            0 | 1 => 0,
            shards => self.position.item % shards,
        }
    }
}

impl fmt::Display for SampleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.benchmark, self.position)
    }
}

/// Number of items per shard. More shards allow more commits per second.
const ITEMS_PER_SHARD: u64 = 200;
/// Maximum number of shards of a benchmark of a run.
const SHARDS_MAX: u64 = 64;

/// Returns the number of shards for `items` items: one per 200 items, at most 64.
pub fn shards_for(items: u64) -> u32 {
    u32::try_from(items.div_ceil(ITEMS_PER_SHARD).clamp(1, SHARDS_MAX)).unwrap_or(1)
}

/// Returns the number of items, out of `items`, that belong to shard `shard` of `shards`.
pub fn items_in_shard(items: u64, shard: u32, shards: u32) -> u64 {
    let (shard, shards) = (u64::from(shard), u64::from(shards.max(1)));
    items / shards + u64::from(shard < items % shards)
}

/// Temporary right of an attempt to work on a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Number of the attempt, from 1: the fencing token. A commit with an older number changes nothing.
    pub attempt: u32,
    /// Time at which the lease ends.
    pub until: Timestamp,
    /// Start count of the host that granted the lease; leases from earlier starts are void.
    pub epoch: u64,
}

impl Lease {
    /// Returns true if a worker may still be working under this lease.
    pub fn is_live(&self, now: Timestamp, epoch: u64) -> bool {
        self.epoch == epoch && self.until > now
    }
}

/// State of a sample.
///
/// Its transitions are a model of those in the table, which are condition expressions: a property test of the crate
/// that owns the table (`shared/state/tests`) runs random sequences on both.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleState {
    /// Waiting for a worker, not before `due_at`.
    Open {
        /// Time at which the sample's message should be handled.
        due_at: Timestamp,
    },
    /// A worker is working on it.
    Claimed(Lease),
    /// Over.
    Done {
        /// Number of the attempt that ended it.
        attempt: u32,
        /// Outcome of the sample.
        outcome: Outcome,
    },
}

impl SampleState {
    const fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Claimed(_) => "claimed",
            Self::Done { .. } => "finished",
        }
    }

    fn illegal(&self, verb: &'static str) -> IllegalTransition {
        IllegalTransition { what: "sample", from: self.name(), verb }
    }

    /// Open and due, or claimed under an expired lease → claimed. `attempts` is the number of attempts so far.
    pub fn claim(
        &self,
        attempts: u32,
        now: Timestamp,
        until: Timestamp,
        epoch: u64,
    ) -> Result<Self, IllegalTransition> {
        match self {
            Self::Open { due_at } if *due_at <= now => {}
            Self::Claimed(lease) if !lease.is_live(now, epoch) => {}
            other => return Err(other.illegal("be claimed")),
        }
        Ok(Self::Claimed(Lease { attempt: attempts + 1, until, epoch }))
    }

    /// Claimed by `attempt` → open again at `due_at`, for a planned wait or a returned claim.
    pub fn release(&self, attempt: u32, due_at: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Claimed(lease) if lease.attempt == attempt => Ok(Self::Open { due_at }),
            other => Err(other.illegal("be released")),
        }
    }

    /// Claimed by `attempt` → open now, for the worker of the next turn.
    pub fn hand_over(&self, attempt: u32, now: Timestamp) -> Result<Self, IllegalTransition> {
        self.release(attempt, now)
    }

    /// Claimed by `attempt` → done.
    pub fn finish(&self, attempt: u32, outcome: Outcome) -> Result<Self, IllegalTransition> {
        match self {
            Self::Claimed(lease) if lease.attempt == attempt => Ok(Self::Done { attempt, outcome }),
            other => Err(other.illegal("be finished")),
        }
    }

    /// Done without a grade → open, so that the sample is repeated.
    pub fn reopen(&self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Done { outcome, .. } if !outcome.is_graded() => Ok(Self::Open { due_at: now }),
            other => Err(other.illegal("be reopened")),
        }
    }
}

/// Attempts of a sample and time spent waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AttemptHistory {
    /// Number of claims, lost attempts included.
    pub attempts: u32,
    /// Number of attempts that failed with an error, without lost attempts and planned waits. Limited.
    pub failures: u32,
    /// Number of planned waits.
    pub waits: u32,
    /// Time at which the provider first asked to wait. The time since then is limited.
    pub waiting_since: Option<Timestamp>,
    /// Number of attempts since the last progress that neither ended the sample nor released it, because their process
    /// was killed or their lease expired. Limited.
    #[serde(default)]
    pub lost: u32,
}

/// Summary of a finished sample for lists, charts and metrics; the body is in the blob store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleSummary {
    /// Position in the plan.
    pub position: Position,
    /// Id of the item.
    pub item_id: String,
    /// Outcome of the sample.
    pub outcome: Outcome,
    /// Score; `None` exactly if the sample isn't graded.
    pub score: Option<f64>,
    /// True if the token limit cut the answer off, even if the answer is correct.
    #[serde(default)]
    pub truncated: bool,
    /// Milliseconds from the request to the end of the answer, or of setup, agent and verifier of an episode; `None` without
    /// an answer.
    pub latency_ms: Option<u64>,
    /// Tokens of all calls that returned an answer.
    pub usage: Option<Usage>,
    /// Group of the item within its benchmark, such as a category.
    #[serde(default)]
    pub group: Option<String>,
    /// Tokens of all replies of a judge.
    #[serde(default)]
    pub judge_usage: Option<Usage>,
}

/// Returns the wait before the n-th retry of a failed attempt (n from 1), before jitter: 1, 2, 4 … 60 s.
pub fn backoff(failures: u32) -> Duration {
    const BACKOFF_MAX_S: u64 = 60;
    let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(BACKOFF_MAX_S);
    Duration::from_secs(doubled.clamp(1, BACKOFF_MAX_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_live_lease_keeps_others_out_and_a_dead_one_does_not() {
        let claimed = SampleState::Open { due_at: time_at(0) }.claim(0, time_at(1), time_at(10), 1).unwrap();
        assert!(claimed.claim(1, time_at(5), time_at(20), 1).is_err());
        assert!(claimed.claim(1, time_at(10), time_at(20), 1).is_ok(), "the lease is over");
        assert!(claimed.claim(1, time_at(5), time_at(20), 2).is_ok(), "the host was started anew");
    }

    #[test]
    fn a_late_attempt_changes_nothing() {
        let first = SampleState::Open { due_at: time_at(0) }.claim(0, time_at(1), time_at(10), 1).unwrap();
        let second = first.claim(1, time_at(11), time_at(20), 1).unwrap();
        assert!(second.finish(1, Outcome::Correct).is_err());
        assert!(second.finish(2, Outcome::Correct).is_ok());
    }

    #[test]
    fn a_sample_cannot_be_claimed_before_it_is_due() {
        assert!(SampleState::Open { due_at: time_at(5) }.claim(0, time_at(4), time_at(10), 1).is_err());
    }

    #[test]
    fn only_what_was_not_graded_is_asked_again() {
        for outcome in Outcome::ALL {
            let done = SampleState::Done { attempt: 1, outcome };
            assert_eq!(done.reopen(time_at(0)).is_ok(), !outcome.is_graded(), "{outcome}");
        }
    }

    #[test]
    fn shards_hold_every_item_once() {
        for items in [0, 1, 7, 199, 200, 201, 12_032, 1_000_000] {
            let shards = shards_for(items);
            let held: u64 = (0..shards).map(|shard| items_in_shard(items, shard, shards)).sum();
            assert_eq!(held, items);
        }
        assert_eq!((shards_for(0), shards_for(12_032), shards_for(1_000_000)), (1, 61, 64));
    }

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = (1..9).map(|n| backoff(n).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff(u32::MAX).as_secs(), 60);
    }
}
