//! The operators' overview as JSON.

use bench_domain::run::Owner;
use bench_domain::{RunId, RunStatus, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// Workers, load, runs, queues and tokens.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OverviewView {
    /// Workers that sent a heartbeat in the last three minutes.
    pub(crate) workers: Vec<WorkerView>,
    /// Load by minute, in order. Minutes without a working worker are left out.
    pub(crate) timeseries: Vec<MinuteView>,
    /// Number of runs by status.
    pub(crate) queue_counts: CountsView,
    /// Up to 25 queued runs, oldest first.
    pub(crate) queued_runs: Vec<RunLine>,
    /// Up to 25 running runs, latest start first.
    pub(crate) running_runs: Vec<RunLine>,
    /// Up to 25 runs that succeeded, failed or were canceled, latest end first, from the 40 most recently ordered
    /// runs of each status.
    pub(crate) completed_runs: Vec<RunLine>,
    /// Settings of the workers.
    pub(crate) worker_config: WorkerConfigView,
    /// Tokens of the last day and week.
    pub(crate) token_stats: TokenStatsView,
    /// Number of messages by queue.
    pub(crate) queues: Vec<QueueView>,
    /// Up to 25 unreadable messages that were removed from their queue, latest first.
    pub(crate) unreadable_messages: Vec<UnreadableView>,
    /// Requests with a wrong admin secret in the last 24 hours, counted by whole hours.
    pub(crate) wrong_admin_secrets_24h: u64,
}

/// A worker process.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WorkerView {
    /// Id of the worker.
    pub(crate) worker_id: String,
    /// Name of its host.
    pub(crate) hostname: Option<String>,
    /// Runs that it worked on in its last minute.
    pub(crate) running_runs: u64,
    /// Maximum number of concurrent runs.
    pub(crate) max_concurrent_runs: u64,
    /// Number of samples that it processes concurrently.
    pub(crate) item_concurrency: u64,
    /// Time of its last heartbeat.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) last_seen: Timestamp,
}

/// Load of a minute.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct MinuteView {
    /// Start of the minute.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) timestamp: Timestamp,
    /// Number of workers.
    pub(crate) worker_count: u64,
    /// Number of running runs.
    pub(crate) running_runs: u64,
    /// Number of queued runs.
    pub(crate) queued_runs: u64,
}

/// Number of runs by status.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CountsView {
    pub(crate) queued: u64,
    pub(crate) running: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) canceled: u64,
}

/// A run in one line.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunLine {
    /// Id of the run.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) id: RunId,
    /// Name of the model with its provider, as in orders.
    pub(crate) model: String,
    /// Effort or budget of the model's thinking, such as `high` or `8192 tokens`; null if it wasn't ordered.
    pub(crate) thinking_level: Option<String>,
    /// Name of the model at its provider.
    pub(crate) model_slug: String,
    /// Provider of the model.
    pub(crate) provider: String,
    /// Share of the items, in percent.
    pub(crate) subset_pct: u32,
    /// Number of items; takes precedence over `subset_pct`.
    pub(crate) subset_count: Option<u64>,
    /// Seed that selects the items.
    pub(crate) subset_seed: Option<String>,
    /// Status of the run.
    #[schema(value_type = String)]
    pub(crate) status: RunStatus,
    /// True if the run is open but its process has ended.
    pub(crate) interrupted: bool,
    /// Time of the order.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// Time at which work began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) started_at: Option<Timestamp>,
    /// Time at which the run ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) completed_at: Option<Timestamp>,
    /// Benchmarks of the run.
    pub(crate) benchmarks: Option<Vec<String>>,
    /// Owner of a run that isn't public, who sees it in lists.
    #[serde(skip)]
    pub(crate) hidden_owner: Option<Owner>,
}

/// Settings of the workers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WorkerConfigView {
    /// Number of runs that are evaluated at a time.
    pub(crate) worker_max_concurrent: u64,
    /// Number of samples that a worker processes concurrently.
    pub(crate) worker_item_concurrency: u64,
}

/// Tokens of recent time windows.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TokenStatsView {
    /// Tokens of the last 24 hours.
    pub(crate) last_24h: WindowView,
    /// Tokens of the last seven days.
    pub(crate) last_7d: WindowView,
}

/// Tokens of a time window. Whole hours are counted, so a window may begin up to an hour earlier than its name says.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WindowView {
    /// Length of the window, in hours.
    pub(crate) window_hours: u32,
    /// Tokens of prompts.
    pub(crate) input_tokens: u64,
    /// Tokens of answers.
    pub(crate) output_tokens: u64,
}

/// Number of messages in a queue. A number is null if this server may not read it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct QueueView {
    /// Name: `plans`, `items`, `turns` or `finishes`.
    pub(crate) name: &'static str,
    /// Messages that wait to be received.
    pub(crate) visible: Option<u64>,
    /// Messages that are being processed.
    pub(crate) in_flight: Option<u64>,
    /// Messages that aren't due yet.
    pub(crate) delayed: Option<u64>,
    /// All messages in the dead-letter queue.
    pub(crate) dead: Option<u64>,
}

/// A message that couldn't be parsed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct UnreadableView {
    /// Id of the message.
    pub(crate) message_id: String,
    /// Name of its queue.
    pub(crate) queue: String,
    /// Time at which it was sent.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) sent_at: Timestamp,
    /// Reason why it couldn't be parsed.
    pub(crate) problem: String,
    /// Run that it seems to concern.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) run_id: Option<RunId>,
    /// Sample that it seems to concern.
    pub(crate) sample: Option<String>,
}
