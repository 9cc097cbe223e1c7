//! The operators' overview as JSON.

use bench_domain::{RunId, RunStatus, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// How things stand.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OverviewView {
    /// Workers that told of themselves in the last three minutes.
    pub(crate) workers: Vec<WorkerView>,
    /// The load of each minute of the look back in which somebody worked, in order.
    pub(crate) timeseries: Vec<MinuteView>,
    /// How many runs there are of each status.
    pub(crate) queue_counts: CountsView,
    /// Up to 25, the oldest first.
    pub(crate) queued_runs: Vec<RunLine>,
    /// Up to 25, the latest start first.
    pub(crate) running_runs: Vec<RunLine>,
    /// Up to 25 that succeeded, failed or were canceled, the latest end first. Chosen among the 40 of each status
    /// that were ordered last.
    pub(crate) completed_runs: Vec<RunLine>,
    pub(crate) worker_config: WorkerConfigView,
    pub(crate) token_stats: TokenStatsView,
    /// Messages that wait, by queue.
    pub(crate) queues: Vec<QueueView>,
    /// Up to 25 messages that nobody could read and that were taken out of their queue, the latest first.
    pub(crate) unreadable_messages: Vec<UnreadableView>,
    /// Requests with a wrong admin secret in the last 24 hours, counted by whole hours.
    pub(crate) wrong_admin_secrets_24h: u64,
}

/// A process that works.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WorkerView {
    pub(crate) worker_id: String,
    pub(crate) hostname: Option<String>,
    /// Runs it worked on in its last minute.
    pub(crate) running_runs: u64,
    pub(crate) max_concurrent_runs: u64,
    /// Samples it works on at once.
    pub(crate) item_concurrency: u64,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) last_seen: Timestamp,
}

/// One minute.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct MinuteView {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) timestamp: Timestamp,
    pub(crate) worker_count: u64,
    pub(crate) running_runs: u64,
    pub(crate) queued_runs: u64,
}

/// Runs by status.
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
    #[schema(value_type = String, format = "uuid")]
    pub(crate) id: RunId,
    pub(crate) model_slug: String,
    pub(crate) provider: String,
    pub(crate) subset_pct: u32,
    pub(crate) subset_count: Option<u64>,
    pub(crate) subset_seed: Option<String>,
    #[schema(value_type = String)]
    pub(crate) status: RunStatus,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) benchmarks: Option<Vec<String>>,
}

/// What the workers are set to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WorkerConfigView {
    /// Runs at a time.
    pub(crate) worker_max_concurrent: u64,
    /// Samples at a time, of one worker.
    pub(crate) worker_item_concurrency: u64,
}

/// Tokens of lately.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TokenStatsView {
    pub(crate) last_24h: WindowView,
    pub(crate) last_7d: WindowView,
}

/// Tokens of a time. Counted by whole hours: a window reaches back up to an hour further than its name says.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WindowView {
    pub(crate) window_hours: u32,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// A queue. A number is null where this server may not read it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct QueueView {
    /// `plans`, `items` or `finishes`.
    pub(crate) name: &'static str,
    /// Waiting to be received.
    pub(crate) visible: Option<u64>,
    /// Received and not done.
    pub(crate) in_flight: Option<u64>,
    /// Not due yet.
    pub(crate) delayed: Option<u64>,
    /// In its dead-letter queue, in whatever state.
    pub(crate) dead: Option<u64>,
}

/// A message that nobody could read.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct UnreadableView {
    pub(crate) message_id: String,
    pub(crate) queue: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) sent_at: Timestamp,
    /// Why it cannot be read.
    pub(crate) problem: String,
    /// The run that it seems to be about.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) run_id: Option<RunId>,
    /// The sample that it seems to be about.
    pub(crate) sample: Option<String>,
}
