//! What the scheduler is woken for.

use std::fmt;

use bench_catalog::SyncError;
use bench_domain::Timestamp;
use serde_json::Value;

use crate::counts::Ticked;
use crate::reap::Reaped;
use crate::reconcile::{ReconcileError, Resent};
use crate::scheduler::Scheduler;
use bench_state::StateError;

/// One of the scheduler's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Takes up planned times, and goes on with those that are open. Every minute.
    Tick,
    /// Sends again what was lost, and ends sandboxes that were left over. Every five minutes.
    Reconcile,
    /// Takes over the provider's list of models. Every hour.
    SyncModels,
    /// Looks for keys that should be gone. Every hour.
    Reap,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 4] = [Self::Tick, Self::Reconcile, Self::SyncModels, Self::Reap];

    /// The name in the input.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Reconcile => "reconcile",
            Self::SyncModels => "sync-models",
            Self::Reap => "reap",
        }
    }

    /// The task that an input such as `{"task": "tick"}` asks for.
    ///
    /// # Errors
    /// Names what it asks for instead.
    pub fn from_input(input: &Value) -> Result<Self, UnknownTask> {
        let name = input.get("task");
        let task =
            name.and_then(Value::as_str).and_then(|name| Self::ALL.into_iter().find(|t| t.as_str() == name));
        task.ok_or_else(|| UnknownTask(name.map(|name| name.to_string().chars().take(80).collect())))
    }
}

/// An input that asks for no task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTask(Option<String>);

impl fmt::Display for UnknownTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, "there is no task {name}")?,
            None => f.write_str("the input names no `task`")?,
        }
        let names: Vec<&str> = Task::ALL.iter().map(|task| task.as_str()).collect();
        write!(f, "; there are {}", names.join(", "))
    }
}

impl std::error::Error for UnknownTask {}

/// Why a task stopped. The next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// There is no such task.
    #[error(transparent)]
    Task(#[from] UnknownTask),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// Reconciliation stopped.
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
    /// The catalogue was left as it is.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

/// What a task did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Planned times.
    Ticked(Ticked),
    /// Messages sent again.
    Resent(Resent),
    /// Models in the provider's list; `None` when it is not asked for.
    Synced(Option<usize>),
    /// Keys that were left over.
    Reaped(Reaped),
}

impl Done {
    /// What is counted, by the name of its metric.
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        let Self::Ticked(ticked) = self else { return Vec::new() };
        let counts = [
            ("ScheduledRunsStarted", ticked.started),
            ("ScheduledRunsNotStarted", ticked.not_started),
            ("ScheduledRunsNotFinished", ticked.not_finished),
            ("ScheduledRunsRegressed", ticked.regressed),
        ];
        counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name, f64::from(count)))
            .collect()
    }
}

impl Scheduler {
    /// Does what an input such as `{"task": "tick"}` asks for, at the time `now`.
    ///
    /// # Errors
    /// When there is no such task, or it could not be done. It is safe to be done again.
    pub async fn handle(&self, input: &Value, now: Timestamp) -> Result<Done, SchedulerError> {
        self.run(Task::from_input(input)?, now).await
    }

    /// Does a task.
    ///
    /// # Errors
    /// When it could not be done. It is safe to be done again.
    pub async fn run(&self, task: Task, now: Timestamp) -> Result<Done, SchedulerError> {
        Ok(match task {
            Task::Tick => Done::Ticked(self.tick(now).await?),
            Task::Reconcile => {
                let resent = self.reconcile().await?;
                // Boxed: the future is deep, and callers nest it further.
                Box::pin(self.end_overdue_sandboxes(now)).await?;
                Done::Resent(resent)
            }
            Task::SyncModels => Done::Synced(self.sync_models().await?),
            Task::Reap => Done::Reaped(self.reap(now).await?),
        })
    }

    async fn sync_models(&self) -> Result<Option<usize>, SyncError> {
        if !self.config.sync_models {
            return Ok(None);
        }
        let sync = bench_catalog::sync_models(&self.state, &self.config.chat, &self.config.runs.inference);
        // Boxed: the future is deep, and callers nest it further.
        Box::pin(sync).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_names_its_task() {
        for task in Task::ALL {
            assert_eq!(Task::from_input(&json!({"task": task.as_str(), "more": 1})), Ok(task));
        }
        for (input, part) in [
            (json!({"task": "dance"}), "dance"),
            (json!({"task": 7}), "no task 7"),
            (json!({}), "names no `task`"),
            (json!("tick"), "names no `task`"),
            (json!(null), "sync-models"),
        ] {
            let error = Task::from_input(&input).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("reconcile"), "{error}");
        }
    }
}
