//! How things stand, as JSON.

use bench_domain::{RunId, RunStatus, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// How things stand.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OverviewView {
    /// Workers that told of themselves in the last three minutes.
    pub(super) workers: Vec<WorkerView>,
    /// The load of each minute of the look back in which somebody worked, in order.
    pub(super) timeseries: Vec<MinuteView>,
    /// How many runs there are of each status.
    pub(super) queue_counts: CountsView,
    /// Up to 25, the oldest first.
    pub(super) queued_runs: Vec<RunLine>,
    /// Up to 25, the latest start first.
    pub(super) running_runs: Vec<RunLine>,
    /// Up to 25 that succeeded, failed or were canceled, the latest end first. Chosen among the 40 of each status
    /// that were ordered last.
    pub(super) completed_runs: Vec<RunLine>,
    pub(super) worker_config: WorkerConfigView,
    pub(super) token_stats: TokenStatsView,
    /// Messages that wait, by queue.
    pub(super) queues: Vec<QueueView>,
    /// Up to 25 messages that nobody could read and that were taken out of their queue, the latest first.
    pub(super) unreadable_messages: Vec<UnreadableView>,
    /// Requests with a wrong admin secret in the last 24 hours, counted by whole hours.
    pub(super) wrong_admin_secrets_24h: u64,
}

/// A process that works.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WorkerView {
    pub(super) worker_id: String,
    pub(super) hostname: Option<String>,
    /// Runs it worked on in its last minute.
    pub(super) running_runs: u64,
    pub(super) max_concurrent_runs: u64,
    /// Samples it works on at once.
    pub(super) item_concurrency: u64,
    #[schema(value_type = String, format = DateTime)]
    pub(super) last_seen: Timestamp,
}

/// One minute.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct MinuteView {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub(super) timestamp: Timestamp,
    pub(super) worker_count: u64,
    pub(super) running_runs: u64,
    pub(super) queued_runs: u64,
}

/// Runs by status.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CountsView {
    pub(super) queued: u64,
    pub(super) running: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) canceled: u64,
}

/// A run in one line.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunLine {
    #[schema(value_type = String, format = "uuid")]
    pub(super) id: RunId,
    pub(super) model_slug: String,
    pub(super) provider: String,
    pub(super) subset_pct: u32,
    pub(super) subset_count: Option<u64>,
    pub(super) subset_seed: Option<String>,
    #[schema(value_type = String)]
    pub(super) status: RunStatus,
    #[schema(value_type = String, format = DateTime)]
    pub(super) created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(super) started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(super) completed_at: Option<Timestamp>,
    pub(super) benchmarks: Option<Vec<String>>,
}

/// What the workers are set to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WorkerConfigView {
    /// Runs at a time.
    pub(super) worker_max_concurrent: u64,
    /// Samples at a time, of one worker.
    pub(super) worker_item_concurrency: u64,
}

/// Tokens of lately.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TokenStatsView {
    pub(super) last_24h: WindowView,
    pub(super) last_7d: WindowView,
}

/// Tokens of a time. Counted by whole hours: a window reaches back up to an hour further than its name says.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WindowView {
    pub(super) window_hours: u32,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

/// A queue. A number is null where this server may not read it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct QueueView {
    /// `plans`, `items` or `finishes`.
    pub(super) name: &'static str,
    /// Waiting to be received.
    pub(super) visible: Option<u64>,
    /// Received and not done.
    pub(super) in_flight: Option<u64>,
    /// Not due yet.
    pub(super) delayed: Option<u64>,
    /// In its dead-letter queue, in whatever state.
    pub(super) dead: Option<u64>,
}

/// A message that nobody could read.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct UnreadableView {
    pub(super) message_id: String,
    pub(super) queue: String,
    #[schema(value_type = String, format = DateTime)]
    pub(super) sent_at: Timestamp,
    /// Why it cannot be read.
    pub(super) problem: String,
    /// The run that it seems to be about.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(super) run_id: Option<RunId>,
    /// The sample that it seems to be about.
    pub(super) sample: Option<String>,
}
