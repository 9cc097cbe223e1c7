//! What wakes the scheduler in the cloud, in this process.

use bench_scheduler::{Scheduler, Task};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often reconciliation looks.
const RECONCILE_EVERY: Duration = Duration::from_secs(300);
/// How often planned times are looked at.
const TICK_EVERY: Duration = Duration::from_secs(60);
/// How often the list of models is asked for, and keys are looked for that should be gone.
const HOURLY: Duration = Duration::from_secs(3_600);

/// Tasks that end with their owner.
#[derive(Default)]
pub(super) struct Wakes(Vec<JoinHandle<()>>);

impl Wakes {
    /// Sends again what was lost, every five minutes.
    pub(super) fn reconciling(scheduler: &Arc<Scheduler>) -> Self {
        let mut wakes = Self::default();
        wakes.add(scheduler, Task::Reconcile, RECONCILE_EVERY, RECONCILE_EVERY);
        wakes
    }

    /// Serves schedules too, and the hourly tasks. Times that were missed while nobody was at work are looked at
    /// right away.
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
                    tracing::warn!(task = name, %error, "The task {name} stopped and goes on later: {error}");
                }
            }
        }));
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
