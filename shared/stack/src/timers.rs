//! Timers that start the scheduler's tasks, as schedules do in the cloud.

use bench_scheduler::{Scheduler, Task};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Interval of reconciliation.
const RECONCILE_EVERY: Duration = Duration::from_secs(300);
/// Interval of checking planned times.
const TICK_EVERY: Duration = Duration::from_secs(60);
/// Interval of updating the list of models, and of looking for keys that should have been deleted.
const HOURLY: Duration = Duration::from_secs(3_600);

/// Tasks that end when this is dropped.
#[derive(Default)]
pub(super) struct TaskTimers(Vec<JoinHandle<()>>);

impl TaskTimers {
    /// Sends lost messages again, every five minutes.
    pub(super) fn start_reconciliation(scheduler: &Arc<Scheduler>) -> Self {
        let mut timers = Self::default();
        timers.add(scheduler, Task::Reconcile, RECONCILE_EVERY, RECONCILE_EVERY);
        timers
    }

    /// Starts to serve schedules and to run the hourly tasks. The first check, for times that were missed while no
    /// process was running, happens immediately.
    pub(super) fn serve(&mut self, scheduler: &Arc<Scheduler>, sync_models: bool) {
        self.add(scheduler, Task::Tick, Duration::ZERO, TICK_EVERY);
        self.add(scheduler, Task::Reap, HOURLY, HOURLY);
        if sync_models {
            self.add(scheduler, Task::SyncModels, HOURLY, HOURLY);
        }
    }

    fn add(&mut self, scheduler: &Arc<Scheduler>, task: Task, first: Duration, every: Duration) {
        let scheduler = Arc::clone(scheduler);
        self.0.push(tokio::spawn(async move {
            let mut wait = first;
            loop {
                tokio::time::sleep(wait).await;
                wait = every;
                if let Err(error) = scheduler.run(task, bench_clock::now()).await {
                    let name = task.as_str();
                    tracing::warn!(task = name, %error, "The task {name} stopped and continues later: {error}");
                }
            }
        }));
    }
}

impl Drop for TaskTimers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
