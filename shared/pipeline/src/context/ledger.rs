//! Tracks what a run with a budget has spent. Each process reads the counters at most once a second, in one
//! batch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bench_domain::run::BenchmarkState;
use bench_domain::{RunId, Spending};
use bench_state::{ShardCount, Shards, State, StateError};
use tokio::time::Instant;

/// Maximum age of what this process knows about the spending of other processes.
const READ_EVERY: Duration = Duration::from_secs(1);

/// The sum of the committed counters, plus the answers that this process has received since.
///
/// An answer is added at its receipt and removed after the first reading of the counters that begins after
/// its commit. So the estimate is never below the actual spending as far as this process can know; it may be
/// above it while a commit and a reading overlap.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    totals: Mutex<Totals>,
    /// Allows one reader at a time; the others use what it has read. Holds the shards to read.
    reading: tokio::sync::Mutex<KnownShards>,
}

/// Ledgers of the runs of this process, shared by all functions that ask models.
#[derive(Debug, Clone, Default)]
pub struct Ledgers(Arc<Mutex<HashMap<RunId, Weak<Ledger>>>>);

impl Ledgers {
    /// Returns the ledger of a run. A ledger lives as long as any context or attempt holds it.
    pub(crate) fn get_or_create(&self, run: RunId) -> Arc<Ledger> {
        let mut ledgers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ledger) = ledgers.get(&run).and_then(Weak::upgrade) {
            return ledger;
        }
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        let ledger = Arc::default();
        ledgers.insert(run, Arc::downgrade(&ledger));
        ledger
    }
}

#[derive(Debug, Default)]
struct Totals {
    /// Time at which the last reading began.
    read_at: Option<Instant>,
    /// Number of readings begun.
    readings: u64,
    committed: ShardCount,
    received: HashMap<u64, UncommittedSpending>,
    next: u64,
}

#[derive(Debug)]
struct UncommittedSpending {
    spent: Spending,
    /// Number of the last reading begun before the commit; later readings include it.
    committed_at: Option<u64>,
}

/// Shards of a run, needed to read its counters.
#[derive(Debug, Default)]
struct KnownShards {
    generation: u32,
    /// True if no more benchmarks will be planned.
    complete: bool,
    shards: Vec<Shards>,
}

/// Tokens that were received but not committed yet. If dropped before [`Receipt::committed`], they no longer
/// count: their answer is stored and counts when it is committed, or `Pipeline::count_spent` counts them.
pub(crate) struct Receipt<'a> {
    ledger: &'a Ledger,
    id: u64,
}

impl Ledger {
    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts tokens immediately.
    pub(crate) fn receive(&self, spent: Spending) -> Receipt<'_> {
        let mut totals = self.totals();
        let id = totals.next;
        totals.next += 1;
        totals.received.insert(id, UncommittedSpending { spent, committed_at: None });
        Receipt { ledger: self, id }
    }

    /// Returns the upper bound of the spending, as far as this process knows.
    pub(crate) fn estimate(&self) -> Spending {
        let totals = self.totals();
        totals.received.values().fold(totals.committed.spending(), |sum, received| sum.plus(received.spent))
    }

    /// Returns the counters as of the last reading.
    pub(crate) fn committed(&self) -> ShardCount {
        self.totals().committed
    }

    /// Reads the counters if the last reading began more than a second ago.
    pub(crate) async fn refresh(&self, state: &State, run: RunId, generation: u32) -> Result<(), StateError> {
        // `None` if the clock started less than a second ago: any reading is then recent enough.
        let oldest = Instant::now().checked_sub(READ_EVERY);
        self.read_since(state, run, generation, oldest).await
    }

    /// Reads the counters now.
    pub(crate) async fn read_now(
        &self,
        state: &State,
        run: RunId,
        generation: u32,
    ) -> Result<(), StateError> {
        self.read_since(state, run, generation, Some(Instant::now())).await
    }

    fn is_read_since(&self, oldest: Option<Instant>) -> bool {
        self.totals().read_at.is_some_and(|at| oldest.is_none_or(|oldest| at >= oldest))
    }

    async fn read_since(
        &self,
        state: &State,
        run: RunId,
        generation: u32,
        oldest: Option<Instant>,
    ) -> Result<(), StateError> {
        if self.is_read_since(oldest) {
            return Ok(());
        }
        let mut known = self.reading.lock().await;
        if self.is_read_since(oldest) {
            return Ok(());
        }
        let (began, number) = {
            let mut totals = self.totals();
            totals.readings += 1;
            (Instant::now(), totals.readings)
        };
        if !known.complete || known.generation < generation {
            known.refresh_shards(state, run).await?;
        }
        let committed = state.run_count(run, &known.shards).await?;
        self.apply_reading(committed, began, number);
        Ok(())
    }

    fn apply_reading(&self, committed: ShardCount, began: Instant, number: u64) {
        let mut totals = self.totals();
        totals.committed = committed;
        totals.read_at = Some(began);
        totals.received.retain(|_, received| received.committed_at.is_none_or(|at| at >= number));
    }
}

impl KnownShards {
    async fn refresh_shards(&mut self, state: &State, run: RunId) -> Result<(), StateError> {
        let Some(found) = state.run_with_benchmarks(run).await? else { return Ok(()) };
        self.generation = found.run.generation;
        self.shards = found.benchmarks.iter().filter_map(Shards::from_benchmark).collect();
        self.complete = found.run.planned_generation == found.run.generation
            && found
                .benchmarks
                .iter()
                .all(|benchmark| benchmark.plan.is_some() || benchmark.state != BenchmarkState::Pending);
        Ok(())
    }
}

impl Receipt<'_> {
    /// Marks the tokens as committed: readings that begin from now on include them.
    pub(crate) fn committed(self) {
        let mut totals = self.ledger.totals();
        let readings = totals.readings;
        if let Some(received) = totals.received.get_mut(&self.id) {
            received.committed_at = Some(readings);
        }
    }
}

impl Drop for Receipt<'_> {
    fn drop(&mut self) {
        let mut totals = self.ledger.totals();
        if totals.received.get(&self.id).is_some_and(|received| received.committed_at.is_none()) {
            totals.received.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::Usage;

    use super::*;

    fn usage(tokens: u64) -> Spending {
        Usage::counted(tokens, 0, 0).into()
    }

    fn read(tokens: u64) -> ShardCount {
        ShardCount { spent_input: tokens, ..ShardCount::default() }
    }

    /// Simulates a reading: begins it, calls `between`, and ends it.
    fn reading(ledger: &Ledger, tokens: u64, between: impl FnOnce()) {
        let number = {
            let mut totals = ledger.totals();
            totals.readings += 1;
            totals.readings
        };
        between();
        ledger.apply_reading(read(tokens), Instant::now(), number);
    }

    #[test]
    fn what_was_received_counts_until_a_reading_has_it() {
        let ledger = Ledger::default();
        let one = ledger.receive(usage(10));
        let two = ledger.receive(usage(5));
        assert_eq!(ledger.estimate().total(), 15);
        one.committed();
        assert_eq!(ledger.estimate().total(), 15, "no reading has it yet");
        reading(&ledger, 10, || {});
        assert_eq!((ledger.estimate().total(), ledger.committed().spent().total()), (15, 10));
        two.committed();
        reading(&ledger, 15, || {});
        assert_eq!(ledger.estimate().total(), 15);
    }

    #[test]
    fn a_commit_during_a_reading_is_never_lost() {
        let ledger = Ledger::default();
        let one = ledger.receive(usage(10));
        // It is unknown whether the reading included the commit, so the receipt still counts.
        reading(&ledger, 0, || one.committed());
        assert_eq!(ledger.estimate().total(), 10);
        reading(&ledger, 10, || {});
        assert_eq!(ledger.estimate().total(), 10);
    }

    #[test]
    fn an_answer_whose_commit_failed_counts_when_it_is_committed() {
        let ledger = Ledger::default();
        drop(ledger.receive(usage(10)));
        assert_eq!(ledger.estimate().total(), 0);
    }
}
