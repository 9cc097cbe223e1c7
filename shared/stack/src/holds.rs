//! Runs that the owner of a data directory works on for commands, each as long as its command runs.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench_api::{Api, interrupt_run};
use bench_domain::RunId;
use bench_embedded::host::Capacity;
use bench_embedded::{Embedded, GroupLimit};
use bench_state::StateError;

/// Wait after a failed attempt to interrupt a run. It doubles up to [`RETRY_WAIT_MAX`].
const RETRY_WAIT: Duration = Duration::from_millis(250);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);

/// Runs that commands hold. Clones share them.
#[derive(Clone)]
pub(crate) struct Holds(Arc<Shared>);

struct Shared {
    api: Arc<Api>,
    embedded: Embedded,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Holds, oldest first.
    holds: BTreeMap<u64, HeldRuns>,
    /// Capacity of the running host; `None` before the start.
    capacity: Option<Capacity>,
    /// True if the process is ending, so that the next owner continues the runs.
    ending: bool,
}

struct HeldRuns {
    runs: Vec<RunId>,
    /// Samples of the runs to work on at once.
    concurrency: usize,
    /// True if the command is another process.
    is_other: bool,
}

impl State {
    fn is_held(&self, run: RunId) -> bool {
        self.holds.values().any(|held| held.runs.contains(&run))
    }

    /// Returns the limit of each command. A run that several commands hold counts for the first.
    fn limits(&self) -> Vec<GroupLimit> {
        let mut known = HashSet::new();
        let mut limit = |held: &HeldRuns| GroupLimit {
            groups: held.runs.iter().filter(|run| known.insert(**run)).map(ToString::to_string).collect(),
            in_flight_max: held.concurrency,
        };
        self.holds.values().map(&mut limit).collect()
    }
}

impl Holds {
    pub(crate) fn new(api: Arc<Api>, embedded: Embedded) -> Self {
        Self(Arc::new(Shared { api, embedded, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds runs until the guard is dropped. At most `concurrency` of their samples are worked on at once, in addition
    /// to those of other commands if the command is another process.
    pub(crate) fn hold(&self, runs: Vec<RunId>, concurrency: usize, is_other: bool) -> HoldGuard {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.holds.insert(id, HeldRuns { runs, concurrency, is_other });
        if let Some(capacity) = state.capacity.as_ref().filter(|_| is_other) {
            capacity.add(concurrency);
        }
        self.0.embedded.limit_groups(state.limits());
        drop(state);
        HoldGuard { holds: self.clone(), id }
    }

    /// Returns true if this process works on all of the runs that are open.
    pub(crate) async fn works_on(&self, runs: &[RunId]) -> bool {
        for run in runs {
            // A run that can't be read is left to the command, which reads it, too.
            if let Ok(Some(record)) = self.0.api.state.run(*run).await
                && record.state.status().is_open()
                && !self.0.api.state.works_on(&record)
            {
                return false;
            }
        }
        true
    }

    /// Delivers the messages of a run again if this process works on it, or if it is over. A run that can't be read stays
    /// paused, since its messages could cost money that no command asked for.
    ///
    /// # Errors
    /// Returns an error if the run can't be read.
    pub(crate) async fn resume(&self, run: RunId) -> Result<(), StateError> {
        let state = &self.0.api.state;
        let found = state.run(run).await?;
        if found.is_none_or(|found| !found.state.status().is_open() || state.works_on(&found)) {
            self.0.embedded.resume_group(run.to_string());
        }
        Ok(())
    }

    /// Sets the capacity of the host that has started.
    pub(crate) fn set_capacity(&self, capacity: Capacity) {
        let mut state = self.state();
        let others = state.holds.values().filter(|held| held.is_other);
        capacity.add(others.map(|held| held.concurrency).sum());
        state.capacity = Some(capacity);
    }

    /// Returns the number of runs that other processes hold.
    pub(crate) fn runs_of_others(&self) -> usize {
        let state = self.state();
        state.holds.values().filter(|held| held.is_other).map(|held| held.runs.len()).sum()
    }

    /// Leaves all runs to the next owner.
    pub(crate) fn end(&self) {
        self.state().ending = true;
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.state().ending
    }

    fn release(&self, id: u64) {
        let mut state = self.state();
        let Some(held) = state.holds.remove(&id) else { return };
        if let Some(capacity) = state.capacity.as_ref().filter(|_| held.is_other) {
            capacity.remove(held.concurrency);
        }
        self.0.embedded.limit_groups(state.limits());
        let released: Vec<RunId> = held.runs.into_iter().filter(|run| !state.is_held(*run)).collect();
        if state.ending || released.is_empty() {
            return;
        }
        drop(state);
        let holds = self.clone();
        tokio::spawn(async move {
            for run in released {
                holds.interrupt(run).await;
            }
        });
    }

    /// Interrupts a run that no command holds any more. Its answers in progress are still stored.
    async fn interrupt(&self, run: RunId) {
        // No further answers are asked for, even if the state can't be written.
        if self.0.embedded.pause_groups(vec![run.to_string()]).await.is_err() {
            return;
        }
        let mut wait = RETRY_WAIT;
        while !self.state().is_held(run) && !self.state().ending {
            match interrupt_run(&self.0.api, run).await {
                Ok(_) => break,
                Err(error) => {
                    tracing::debug!(run.id = %run, %error, "Run {run} can't be marked as interrupted");
                    tokio::time::sleep(wait).await;
                    wait = (2 * wait).min(RETRY_WAIT_MAX);
                }
            }
        }
        // It may be over, or another command may have resumed it.
        if let Err(error) = self.resume(run).await {
            tracing::debug!(run.id = %run, %error, "Run {run} stays paused, since it can't be read");
        }
    }
}

/// Runs that a command holds. When it is dropped, the owner stops to work on them.
pub struct HoldGuard {
    holds: Holds,
    id: u64,
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.holds.release(self.id);
    }
}
