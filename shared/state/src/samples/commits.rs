//! Grouped commits: samples that end at about the same time share one transaction.
//!
//! Each transaction has a fixed cost: a request, its signature, and at the table a commit of its own. While one transaction is
//! under way, further samples wait for it and then share the next. A sample that ends alone waits for nothing. The group
//! adds once to each shard's counters, so it writes less than its samples would write alone.
//!
//! A group is all or nothing, and has one condition per sample and shard. It is sent once. If it fails for any reason
//! (another attempt ended one of the samples, a shard closes, a conflict, a lost response, a disk that is full), each of its
//! samples is committed alone, and the response to that says what happened to it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use bench_domain::{SampleRef, Spending};
use tokio::sync::oneshot;

use super::commit::{Commit, Remaining};
use super::counts::ShardCount;
use super::finished::SampleResult;
use crate::{State, StateError, keys};

/// Maximum number of samples in one transaction. With as many counters, they stay below DynamoDB's limit of 100 actions. A
/// group above its limit of 4 MB is refused, and its samples are committed alone.
const GROUP_MAX: usize = 32;

/// A sample that ends.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedSample {
    /// The sample.
    pub sample: SampleRef,
    /// Sort key of the run's benchmark, whose closed shards are counted.
    pub benchmark_sort: String,
    /// Attempt that holds the sample.
    pub attempt: u32,
    /// Its result.
    pub result: SampleResult,
    /// Tokens that count toward a budget.
    pub spent: Spending,
    /// Number of samples planned for its shard. If it is wrong, the sample is committed alone.
    pub planned: u64,
}

struct Waiting {
    ended: Arc<EndedSample>,
    /// Receives true if the group was committed.
    is_committed: oneshot::Sender<bool>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// True while a task commits groups.
    is_served: bool,
}

struct Inner {
    state: State,
    group_max: usize,
    queue: Mutex<Queue>,
}

/// Commits of one pipeline.
#[derive(Clone)]
pub struct Commits(Arc<Inner>);

/// The task that commits groups while samples wait.
struct Service {
    inner: Arc<Inner>,
    has_ended: bool,
}

impl Drop for Service {
    fn drop(&mut self) {
        // Aborted, or after a panic: dropped senders tell their samples to commit alone.
        if !self.has_ended {
            *lock(&self.inner.queue) = Queue::default();
        }
    }
}

impl Commits {
    /// Creates the commits of a pipeline. If `groups` is false, each sample is committed alone.
    pub fn new(state: State, groups: bool) -> Self {
        let group_max = if groups { GROUP_MAX } else { 1 };
        Self(Arc::new(Inner { state, group_max, queue: Mutex::default() }))
    }

    /// Ends a sample and counts it, like [`State::commit`], possibly together with others.
    pub async fn commit(&self, ended: EndedSample) -> Result<Commit, StateError> {
        if self.0.group_max == 1 {
            return self.0.commit_alone(&ended).await;
        }
        let ended = Arc::new(ended);
        let (is_committed, received) = oneshot::channel();
        let serves = {
            let mut queue = lock(&self.0.queue);
            queue.waiting.push(Waiting { ended: Arc::clone(&ended), is_committed });
            !std::mem::replace(&mut queue.is_served, true)
        };
        if serves {
            // A task of its own: a caller that is dropped must not take the samples of others with it.
            tokio::spawn(Service { inner: Arc::clone(&self.0), has_ended: false }.serve());
        }
        match received.await {
            Ok(true) => Ok(Commit::Done { closed: false }),
            Ok(false) | Err(_) => self.0.commit_alone(&ended).await,
        }
    }
}

impl Service {
    async fn serve(mut self) {
        loop {
            let group: Vec<Waiting> = {
                let mut queue = lock(&self.inner.queue);
                let length = queue.waiting.len().min(self.inner.group_max);
                if length == 0 {
                    // Under the same lock as the check, so that no sample is left behind.
                    queue.is_served = false;
                    self.has_ended = true;
                    return;
                }
                queue.waiting.drain(..length).collect()
            };
            self.inner.commit_group(group).await;
        }
    }
}

impl Inner {
    async fn commit_alone(&self, ended: &EndedSample) -> Result<Commit, StateError> {
        let EndedSample { sample, benchmark_sort, attempt, result, spent, planned: _ } = ended;
        self.state.commit(sample, benchmark_sort, *attempt, result, *spent).await
    }

    async fn commit_group(&self, group: Vec<Waiting>) {
        let samples: Vec<&EndedSample> = group.iter().map(|waiting| &*waiting.ended).collect();
        let committed = self.state.commit_together(&samples).await;
        for Waiting { is_committed, .. } in group {
            // The caller may be gone; the effect stays.
            let _ = is_committed.send(committed);
        }
    }
}

impl State {
    /// Ends samples in one transaction that closes no shard. Returns false if it failed or its outcome is unknown.
    async fn commit_together(&self, samples: &[&EndedSample]) -> bool {
        let mut counts: BTreeMap<String, (ShardCount, u64)> = BTreeMap::new();
        for ended in samples {
            let count = ShardCount::of(&ended.result, ended.spent);
            match counts.entry(keys::sample_partition(&ended.sample)) {
                Entry::Vacant(entry) => {
                    entry.insert((count, ended.planned));
                }
                Entry::Occupied(mut entry) => entry.get_mut().0 = entry.get().0.plus(count),
            }
        }
        let finishes =
            samples.iter().map(|ended| self.finish_update(&ended.sample, ended.attempt, &ended.result));
        let additions = counts.into_iter().map(|(partition, (count, planned))| {
            let remaining = Remaining::MoreThan { committed: count.done, planned };
            self.count_update(partition, &count, remaining)
        });
        let Ok(items) = finishes.chain(additions).collect::<Result<Vec<_>, _>>() else { return false };
        // Sent once: a sample that is committed alone finds out what happened, and repeats what has to be repeated.
        let input = TransactWriteItemsInput::builder().set_transact_items(Some(items));
        self.transact_once(input).await
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
