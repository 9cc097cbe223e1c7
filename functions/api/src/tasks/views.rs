//! Tasks and episodes in the shapes that clients of the earlier runner know.

use bench_domain::{Agent, Timestamp};
use bench_state::TaskRecord;
use bench_tasks::item_id;
use serde::Serialize;
use utoipa::ToSchema;

use super::episode::{ERROR, PASSED, PENDING, RUNNING};
use super::progress::Progress;
use crate::cache::tasks::TaskResultsView;

/// Formats a time as these clients expect it: UTC, without a zone.
pub(crate) fn naive(time: Timestamp) -> String {
    time.to_string().trim_end_matches('Z').to_owned()
}

/// An uploaded task.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Task)]
pub(crate) struct TaskView {
    id: u64,
    /// Name that the uploader gave.
    name: String,
    /// Always null.
    #[schema(value_type = Option<String>)]
    description: Option<()>,
    /// File name that the client sent, without control characters.
    original_filename: String,
    /// Model, as given. It goes to OpenRouter, with or without the prefix `openrouter/`. Empty for an agent that asks no
    /// model.
    model: String,
    /// Agent, as given. `GET /api/agents` lists those that can be ordered.
    agent: String,
    /// Harness, as given. It has no effect.
    harness: String,
    /// Number of episodes of an execution.
    num_runs: u32,
    /// `pending` before the first episode is ordered, `running`, or `completed` once all ordered episodes are over.
    status: &'static str,
    /// Time of the upload, in UTC without a zone.
    created_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    /// Number of ordered episodes.
    total_runs: u64,
    /// Episodes with the full reward.
    passed_runs: u64,
    /// Episodes that are over without the full reward, including those that failed for other reasons.
    failed_runs: u64,
    /// Episodes among them without a grade: the run ended first, or its provider or sandbox failed.
    error_runs: u64,
    /// False for a task that was stored for a run; lists leave it out.
    listed: bool,
    /// Content hash, equal for equal files.
    content_hash: String,
    /// Id of the item in runs: `NAME@HASH12`.
    task: String,
    /// Size of the archive in bytes.
    archive_bytes: u64,
    /// Ids of the runs that have the episodes, without other callers' private runs.
    run_ids: Vec<String>,
    /// Episodes of all orders. The other counts are those of the episodes that the task's own routes ordered.
    results: TaskResultsView,
}

/// A task that was uploaded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AddedTask)]
pub(crate) struct AddedTaskView {
    #[serde(flatten)]
    pub(crate) task: TaskView,
    /// Id of the oldest other task of the caller with the same files, whose stored archive this task uses; null if the
    /// files are new.
    pub(crate) same_files_as: Option<u64>,
    /// Keys of the task's files that have no effect, and scripts that can't run because their lines end as on Windows; one
    /// sentence each.
    pub(crate) warnings: Vec<String>,
}

/// A task with its episodes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskDetail)]
pub(crate) struct TaskDetailView {
    #[serde(flatten)]
    pub(crate) task: TaskView,
    pub(crate) runs: Vec<EpisodeView>,
}

/// An episode.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Episode)]
pub(crate) struct EpisodeView {
    /// Id, unique over all tasks.
    pub(crate) id: u64,
    pub(crate) task_id: u64,
    /// Number within the task, from 1.
    pub(crate) run_number: u32,
    /// `pending` until the episode has a sandbox, then `running`; at the end `passed` (full reward), `failed` (graded
    /// below it) or `error`.
    pub(crate) status: &'static str,
    /// Time at which the episode had its first sandbox, in UTC without a zone; null if it has had none.
    pub(crate) started_at: Option<String>,
    pub(crate) completed_at: Option<String>,
    pub(crate) tests_total: u64,
    pub(crate) tests_passed: u64,
    pub(crate) tests_failed: u64,
    /// Logs and test output, at most 50,000 characters. Null in lists, and for an episode that isn't over.
    pub(crate) logs: Option<String>,
    pub(crate) error_message: Option<String>,
    /// Time of setup, agent and verifier; if they weren't measured, from start to end. Null before the end, and for an
    /// episode that never started.
    pub(crate) duration_seconds: Option<f64>,
    /// Reward; null for an episode without a grade.
    pub(crate) reward: Option<f64>,
    /// Tokens of all requests to the model, also of environments that were lost before the episode started over. Null
    /// before the end, and for an agent that asks no model.
    pub(crate) input_tokens: Option<u64>,
    /// Tokens of all replies, reasoning included.
    pub(crate) output_tokens: Option<u64>,
    /// Tokens of requests that the provider read from its cache, in the environment that the result is from. Null without
    /// a report of the agent.
    pub(crate) cached_tokens: Option<u64>,
    /// Cost of that environment's requests in US dollars, as the provider reports it or by the run's price. Null if
    /// neither is known.
    pub(crate) cost_usd: Option<f64>,
}

/// Result of an episode.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EpisodeResult)]
pub(crate) struct EpisodeResultView {
    run_id: u64,
    task_id: u64,
    /// `pending` or `running` if the episode wasn't over when the request's time was.
    status: &'static str,
    /// True for the full reward.
    success: bool,
    /// Reward; null while the episode isn't over. An episode that ended without a grade has 0, as in the earlier runner,
    /// and `graded` is false.
    reward: Option<f64>,
    /// True if the episode ended with a grade, which `reward` is.
    graded: bool,
    tests_total: u64,
    tests_passed: u64,
    tests_failed: u64,
    duration_seconds: Option<f64>,
    error: Option<String>,
}

/// Confirmation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskMessage)]
pub(crate) struct MessageView {
    pub(crate) message: String,
}

/// Confirmation for a task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskDone)]
pub(crate) struct TaskDoneView {
    pub(crate) message: String,
    pub(crate) task_id: u64,
}

/// Returns true if an agent asks a model. Agents of other versions may.
fn asks_model(agent: &str) -> bool {
    agent.parse::<Agent>().map_or(true, Agent::asks_model)
}

impl TaskView {
    /// Creates the view of a task.
    pub(crate) fn new(task: &TaskRecord, progress: &Progress, results: TaskResultsView) -> Self {
        let facts = &task.facts;
        Self {
            id: task.id,
            name: facts.name.clone(),
            description: None,
            original_filename: facts.file_name.clone(),
            model: if asks_model(&facts.agent) { facts.model.clone() } else { String::new() },
            agent: facts.agent.clone(),
            harness: facts.harness.clone(),
            num_runs: facts.num_runs,
            status: progress.status(),
            created_at: naive(facts.created_at),
            started_at: progress.started_at.map(naive),
            completed_at: progress.completed_at().map(naive),
            total_runs: progress.total,
            passed_runs: progress.passed,
            failed_runs: progress.failed,
            error_runs: progress.errors(),
            listed: !facts.unlisted,
            content_hash: facts.content_hash.clone(),
            task: item_id(task),
            archive_bytes: facts.archive_bytes,
            run_ids: progress.runs.iter().map(ToString::to_string).collect(),
            results,
        }
    }
}

impl TaskView {
    /// Returns true if the task has this status.
    pub(crate) fn has_status(&self, status: &str) -> bool {
        self.status == status
    }
}

impl EpisodeResultView {
    /// Creates the result of an episode.
    pub(crate) fn new(episode: &EpisodeView) -> Self {
        let is_over = ![PENDING, RUNNING].contains(&episode.status);
        Self {
            run_id: episode.id,
            task_id: episode.task_id,
            status: episode.status,
            success: episode.status == PASSED,
            reward: episode.reward.or(is_over.then_some(0.0)),
            graded: is_over && episode.status != ERROR,
            tests_total: episode.tests_total,
            tests_passed: episode.tests_passed,
            tests_failed: episode.tests_failed,
            duration_seconds: episode.duration_seconds,
            error: episode.error_message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_no_zone() {
        assert_eq!(naive(Timestamp::from_micros(1_234_567)), "1970-01-01T00:00:01.234567");
    }
}
