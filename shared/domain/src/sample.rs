//! A sample: one answer to one item, and the states it goes through.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BenchmarkName, IllegalTransition, Outcome, RunId, Timestamp, Usage};

/// Where a sample stands in its benchmark's plan.
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

/// The address of one sample: enough to find its record, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SampleRef {
    /// The run.
    pub run: RunId,
    /// The benchmark.
    pub benchmark: BenchmarkName,
    /// The planner's attempt that made the plan.
    pub plan: u32,
    /// Over how many partitions the plan is spread.
    pub shards: u32,
    /// The place in the plan.
    pub position: Position,
}

impl SampleRef {
    /// The partition that holds the sample: its item's position modulo the number of partitions.
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

/// How many items a partition is made for; more partitions carry more commits a second.
const ITEMS_PER_SHARD: u64 = 200;
/// Partitions of one benchmark of a run at most.
const SHARDS_MAX: u64 = 64;

/// Over how many partitions so many items are spread: one for each 200, 64 at most.
pub fn shards_for(items: u64) -> u32 {
    u32::try_from(items.div_ceil(ITEMS_PER_SHARD).clamp(1, SHARDS_MAX)).unwrap_or(1)
}

/// How many of `items` items fall on partition `shard` of `shards`.
pub fn items_in_shard(items: u64, shard: u32, shards: u32) -> u64 {
    let (shard, shards) = (u64::from(shard), u64::from(shards.max(1)));
    items / shards + u64::from(shard < items % shards)
}

/// The right to work on a sample for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Number of the attempt, from 1: the fencing token. A commit with an older one changes nothing.
    pub attempt: u32,
    /// When the right ends.
    pub until: Timestamp,
    /// Start count of the host that gave it; leases of an earlier start are void.
    pub epoch: u64,
}

impl Lease {
    /// Whether somebody may still be working under this lease.
    pub fn is_live(&self, now: Timestamp, epoch: u64) -> bool {
        self.epoch == epoch && self.until > now
    }
}

/// Where a sample stands.
///
/// Its transitions are the model of those in the table, which are condition expressions: a property test of the crate
/// that holds the table (`shared/state/tests`) carries out random sequences in both.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleState {
    /// To be worked on, not before `due_at`.
    Open {
        /// When its message should be handled.
        due_at: Timestamp,
    },
    /// Somebody works on it.
    Claimed(Lease),
    /// Over.
    Done {
        /// The attempt that ended it.
        attempt: u32,
        /// How.
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

    /// Open and due, or claimed under a lease that is over → claimed. `attempts` is how many there were.
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

    /// Claimed by `attempt` → open again at `due_at`: a planned wait, or a claim given back.
    pub fn release(&self, attempt: u32, due_at: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Claimed(lease) if lease.attempt == attempt => Ok(Self::Open { due_at }),
            other => Err(other.illegal("be released")),
        }
    }

    /// Claimed by `attempt` → open now, for who has the next turn.
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

    /// Done without a grade → open, so that it is asked again.
    pub fn reopen(&self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Done { outcome, .. } if !outcome.is_graded() => Ok(Self::Open { due_at: now }),
            other => Err(other.illegal("be reopened")),
        }
    }
}

/// How often and how long a sample was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Effort {
    /// Times that it was claimed, lost attempts included.
    pub attempts: u32,
    /// Attempts that failed for a reason of their own: bounded by count.
    pub failures: u32,
    /// Planned waits.
    pub waits: u32,
    /// When the provider first asked to wait; a wait is bounded by the time since.
    pub waiting_since: Option<Timestamp>,
    /// Attempts that neither ended the sample nor gave it back, since it last got further: their process was killed or
    /// their lease ran out. Bounded by number.
    #[serde(default)]
    pub lost: u32,
}

/// What lists, charts and metrics need of a finished sample; the body is in the blob store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleSummary {
    /// Place in the plan.
    pub position: Position,
    /// The item.
    pub item_id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// `None` exactly when it was not graded.
    pub score: Option<f64>,
    /// Whether the token limit cut the answer off, also when it was right.
    #[serde(default)]
    pub truncated: bool,
    /// From request to the end of the answer; `None` when there was none.
    pub latency_ms: Option<u64>,
    /// Tokens of all calls that were answered.
    pub usage: Option<Usage>,
    /// Group of the item within its benchmark, such as a category.
    #[serde(default)]
    pub group: Option<String>,
    /// Tokens of all replies of a judge.
    #[serde(default)]
    pub judge_usage: Option<Usage>,
}

/// The wait before the n-th repeat of a failed attempt (n from 1), before jitter: 1, 2, 4 … 60 s.
pub fn backoff(failures: u32) -> Duration {
    const BACKOFF_MAX_S: u64 = 60;
    let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(BACKOFF_MAX_S);
    Duration::from_secs(doubled.clamp(1, BACKOFF_MAX_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_live_lease_keeps_others_out_and_a_dead_one_does_not() {
        let claimed = SampleState::Open { due_at: at(0) }.claim(0, at(1), at(10), 1).unwrap();
        assert!(claimed.claim(1, at(5), at(20), 1).is_err());
        assert!(claimed.claim(1, at(10), at(20), 1).is_ok(), "the lease is over");
        assert!(claimed.claim(1, at(5), at(20), 2).is_ok(), "the host was started anew");
    }

    #[test]
    fn a_late_attempt_changes_nothing() {
        let first = SampleState::Open { due_at: at(0) }.claim(0, at(1), at(10), 1).unwrap();
        let second = first.claim(1, at(11), at(20), 1).unwrap();
        assert!(second.finish(1, Outcome::Correct).is_err());
        assert!(second.finish(2, Outcome::Correct).is_ok());
    }

    #[test]
    fn waking_early_is_no_claim() {
        assert!(SampleState::Open { due_at: at(5) }.claim(0, at(4), at(10), 1).is_err());
    }

    #[test]
    fn only_what_was_not_graded_is_asked_again() {
        for outcome in Outcome::ALL {
            let done = SampleState::Done { attempt: 1, outcome };
            assert_eq!(done.reopen(at(0)).is_ok(), !outcome.is_graded(), "{outcome}");
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
