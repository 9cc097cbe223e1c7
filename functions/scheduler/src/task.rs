//! Tasks of the scheduler.

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
    /// Starts due runs of schedules and continues open firings. Every minute.
    Tick,
    /// Sends lost messages again and ends left-over sandboxes. Every five minutes.
    Reconcile,
    /// Imports the provider's list of models. Every hour.
    SyncModels,
    /// Removes keys that should have been deleted. Every hour.
    Reap,
}

impl Task {
    /// All tasks.
    pub const ALL: [Self; 4] = [Self::Tick, Self::Reconcile, Self::SyncModels, Self::Reap];

    /// Returns the name used in the input.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Reconcile => "reconcile",
            Self::SyncModels => "sync-models",
            Self::Reap => "reap",
        }
    }

    /// Parses the task from an input such as `{"task": "tick"}`.
    ///
    /// # Errors
    /// Quotes the invalid task name, if there is one.
    pub fn from_input(input: &Value) -> Result<Self, UnknownTask> {
        let name = input.get("task");
        let task =
            name.and_then(Value::as_str).and_then(|name| Self::ALL.into_iter().find(|t| t.as_str() == name));
        task.ok_or_else(|| UnknownTask(name.map(|name| name.to_string().chars().take(80).collect())))
    }
}

/// Error for an input that names no known task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTask(Option<String>);

impl fmt::Display for UnknownTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, "unknown task {name}")?,
            None => f.write_str("the input names no `task`")?,
        }
        let names: Vec<&str> = Task::ALL.iter().map(|task| task.as_str()).collect();
        write!(f, "; known tasks: {}", names.join(", "))
    }
}

impl std::error::Error for UnknownTask {}

/// Reason why a task stopped. The next call continues.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// The task is unknown.
    #[error(transparent)]
    Task(#[from] UnknownTask),
    /// The state store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// Reconciliation stopped.
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
    /// The catalog could not be updated and is unchanged.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

/// Results of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Results of a tick.
    Ticked(Ticked),
    /// Messages sent again.
    Resent(Resent),
    /// Number of models in the provider's list. `None` if it isn't fetched.
    Synced(Option<usize>),
    /// Keys checked and removed.
    Reaped(Reaped),
}

impl Done {
    /// Returns the counts by the names of their metrics.
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
    /// Runs the task that an input such as `{"task": "tick"}` names, at the time `now`.
    ///
    /// # Errors
    /// Fails if the task is unknown or failed. Retrying is safe.
    pub async fn handle(&self, input: &Value, now: Timestamp) -> Result<Done, SchedulerError> {
        self.run(Task::from_input(input)?, now).await
    }

    /// Runs a task.
    ///
    /// # Errors
    /// Fails if the task failed. Retrying is safe.
    pub async fn run(&self, task: Task, now: Timestamp) -> Result<Done, SchedulerError> {
        Ok(match task {
            Task::Tick => Done::Ticked(self.tick(now).await?),
            Task::Reconcile => {
                let resent = self.reconcile().await?;
                Box::pin(self.state.complete_owner_lists()).await?;
                // Boxed, because the future is large and callers nest it further.
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
        // Boxed, because the future is large and callers nest it further.
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
            (json!({"task": 7}), "unknown task 7"),
            (json!({}), "names no `task`"),
            (json!("tick"), "names no `task`"),
            (json!(null), "sync-models"),
        ] {
            let error = Task::from_input(&input).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("reconcile"), "{error}");
        }
    }
}
