//! GET `/api/ops/overview`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use bench_domain::{RunStatus, Timestamp};
use bench_queue::{Depth, QueueError, QueueName};
use bench_state::ops::{Heartbeat, MinuteLoad, RunCounts, TokenSum};
use bench_state::{RunRecord, StateError, UnreadableRecord};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Caller, FieldReader, Identity};
use futures_util::future::{join_all, try_join_all};
use http::Uri;

use super::details::may_see_details;
use super::series;
use crate::Api;
use crate::context::lock;
use crate::views::overview::{
    CountsView, MinuteView, OverviewView, QueueView, RunLine, TokenStatsView, UnreadableView, WindowView,
    WorkerConfigView, WorkerView,
};

/// Time for which an overview is cached, since open pages poll at the same interval.
const CACHED_FOR: Duration = Duration::from_secs(2);
const MINUTES_DEFAULT: u64 = 360;
const MINUTES_MIN: u64 = 30;
/// Maximum number of runs in each list.
const LIST_MAX: usize = 25;
/// Number of runs per status to read for a list that isn't ordered by creation time.
const RUNS_READ: u32 = 40;
/// Maximum number of unreadable messages to show.
const UNREADABLE_MAX: u32 = 25;
/// Maximum length of the problem of an unreadable message, in characters.
const PROBLEM_CHARS_MAX: usize = 300;
const DAY_HOURS: u32 = 24;
const WEEK_HOURS: u32 = 168;

/// Returns workers, load, runs, queues and tokens.
///
/// On a public server, callers without the admin secret get only totals: the lists of workers, runs and messages are
/// empty.
#[utoipa::path(
    get, path = "/api/ops/overview", tag = "operations", security((), ("admin" = []), ("session" = [])),
    params(("minutes" = Option<u64>, Query, description = "Length of the time series in minutes, 30 to 1440, default 360")),
    responses((status = 200, body = OverviewView), (status = 422, body = ErrorBody)),
)]
pub(crate) async fn get_overview(
    State(api): State<Arc<Api>>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<Arc<OverviewView>>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let minutes = fields.integer("minutes", MINUTES_DEFAULT, MINUTES_MIN, series::MINUTES_MAX);
    fields.finish()?;
    let view = cached_overview(&api, minutes).await?;
    Ok(Json(match may_see_details(&api, &identity) {
        true if identity.reader().is_admin() => view,
        true => Arc::new(view.seen_by(identity.reader())),
        false => Arc::new(view.totals()),
    }))
}

async fn cached_overview(api: &Api, minutes: u64) -> Result<Arc<OverviewView>, ApiError> {
    let cached = lock(&api.ops.overview).clone();
    if let Some((at, cached_minutes, view)) = cached
        && cached_minutes == minutes
        && at.elapsed() < CACHED_FOR
    {
        return Ok(view);
    }
    let view = Arc::new(overview(api, bench_clock::now(), minutes).await?);
    *lock(&api.ops.overview) = Some((Instant::now(), minutes, Arc::clone(&view)));
    Ok(view)
}

impl OverviewView {
    /// Returns a copy without hidden runs of others.
    fn seen_by(&self, caller: &Caller) -> Self {
        let seen = |runs: &[RunLine]| {
            let is_seen = |run: &&RunLine| run.hidden_owner.as_ref().is_none_or(|owner| caller.owns(owner));
            runs.iter().filter(is_seen).cloned().collect()
        };
        Self {
            queued_runs: seen(&self.queued_runs),
            running_runs: seen(&self.running_runs),
            completed_runs: seen(&self.completed_runs),
            ..self.clone()
        }
    }

    /// Returns a copy without details of single workers, runs and messages.
    fn totals(&self) -> Self {
        Self {
            workers: Vec::new(),
            queued_runs: Vec::new(),
            running_runs: Vec::new(),
            completed_runs: Vec::new(),
            unreadable_messages: Vec::new(),
            ..self.clone()
        }
    }
}

/// Returns the overview at `now`, with a time series of the last `minutes` minutes.
///
/// # Errors
/// When the state can't be read. Numbers of queues that can't be read are null instead.
pub async fn overview(api: &Api, now: Timestamp, minutes: u64) -> Result<OverviewView, ApiError> {
    let state = &api.state;
    let load = series::load(api, now, minutes);
    let newest = |status| state.newest_runs(status, RUNS_READ);
    let lists = async {
        let over = [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled].map(newest);
        let mut over: Vec<RunRecord> = try_join_all(over).await?.into_iter().flatten().collect();
        over.sort_by_key(|run| std::cmp::Reverse(run.state.completed_at()));
        let mut running = newest(RunStatus::Running).await?;
        running.sort_by_key(|run| std::cmp::Reverse(run.state.started_at()));
        let queued = state.oldest_runs(RunStatus::Queued, RUNS_READ).await?;
        Ok::<_, StateError>((queued, running, over))
    };
    let small = async {
        let counts = state.run_counts().await?;
        let tokens = state.tokens_by_hour(now, WEEK_HOURS).await?;
        let wrong_secrets = state.wrong_secrets(now, DAY_HOURS).await?;
        Ok::<_, StateError>((counts, tokens, wrong_secrets, state.unreadable(UNREADABLE_MAX).await?))
    };
    let queues = join_all(QueueName::ALL.map(|name| queue_view(api, name)));
    // Boxed because the futures are large, and callers nest them further.
    let (load, lists, small, queues) =
        tokio::join!(Box::pin(load), Box::pin(lists), Box::pin(small), Box::pin(queues));
    let ((workers, minutes), (queued, running, over), (counts, tokens, wrong_secrets, unreadable)) =
        (load?, lists?, small?);
    let lines = |runs: Vec<RunRecord>| {
        let line = |run| RunLine::new(run, !state.works_on(run));
        runs.iter().take(LIST_MAX).map(line).collect()
    };
    Ok(OverviewView {
        workers: workers.into_iter().map(WorkerView::from).collect(),
        timeseries: minutes.into_iter().map(MinuteView::from).collect(),
        queue_counts: counts.into(),
        queued_runs: lines(queued),
        running_runs: lines(running),
        completed_runs: lines(over),
        worker_config: WorkerConfigView {
            worker_max_concurrent: api.config.queue_slots as u64,
            worker_item_concurrency: api.config.item_concurrency,
        },
        token_stats: TokenStatsView {
            last_24h: window(&tokens, now, DAY_HOURS),
            last_7d: window(&tokens, now, WEEK_HOURS),
        },
        queues,
        unreadable_messages: unreadable.into_iter().map(UnreadableView::from).collect(),
        wrong_admin_secrets_24h: wrong_secrets,
    })
}

/// Returns the sum of the hours that overlap the window.
fn window(hours: &[(Timestamp, TokenSum)], now: Timestamp, window_hours: u32) -> WindowView {
    let window = i64::from(window_hours) * 3_600_000_000;
    let reaches = |start: &Timestamp| start.as_micros() + 3_600_000_000 > now.as_micros() - window;
    let inside = hours.iter().filter(|(start, _)| reaches(start));
    let sum = inside.fold(TokenSum::default(), |sum, (_, tokens)| sum.plus(*tokens));
    WindowView { window_hours, input_tokens: sum.input_tokens, output_tokens: sum.output_tokens }
}

async fn queue_view(api: &Api, name: QueueName) -> QueueView {
    let readable = |found: Result<Depth, QueueError>| match found {
        Ok(depth) => Some(depth),
        Err(error) => {
            tracing::warn!(%error, "A queue cannot be shown to operators: {error}");
            None
        }
    };
    let (depth, dead) = tokio::join!(api.queues.depth(name), api.queues.dead_depth(name));
    let (depth, dead) = (readable(depth), readable(dead));
    QueueView {
        name: name.as_str(),
        visible: depth.map(|depth| depth.visible),
        in_flight: depth.map(|depth| depth.in_flight),
        delayed: depth.map(|depth| depth.delayed),
        dead: dead.map(|dead| dead.visible + dead.in_flight + dead.delayed),
    }
}

impl RunLine {
    fn new(run: &RunRecord, is_abandoned: bool) -> Self {
        let (spec, state) = (&run.spec, &run.state);
        let names = || spec.benchmarks.iter().map(ToString::to_string).collect();
        Self {
            id: spec.id,
            model: spec.model.qualified(),
            thinking_level: spec.generation.thinking_level(),
            model_slug: spec.model.slug.clone(),
            provider: spec.model.provider.clone(),
            subset_pct: spec.subset.pct,
            subset_count: spec.subset.count,
            subset_seed: spec.subset.seed.clone(),
            status: state.status(),
            interrupted: is_abandoned && state.status().is_open(),
            created_at: spec.created_at,
            started_at: state.started_at(),
            completed_at: state.completed_at(),
            benchmarks: Some(spec.selected_benchmarks.clone().unwrap_or_else(names)),
            hidden_owner: (!spec.labels.visibility.is_public()).then(|| spec.owner.clone()),
        }
    }
}

impl From<Heartbeat> for WorkerView {
    fn from(heartbeat: Heartbeat) -> Self {
        Self {
            worker_id: heartbeat.worker_id,
            hostname: heartbeat.hostname,
            running_runs: heartbeat.running_runs,
            max_concurrent_runs: heartbeat.max_concurrent_runs,
            item_concurrency: heartbeat.item_concurrency,
            last_seen: heartbeat.at,
        }
    }
}

impl From<MinuteLoad> for MinuteView {
    fn from(load: MinuteLoad) -> Self {
        let MinuteLoad { timestamp, worker_count, running_runs, queued_runs } = load;
        Self { timestamp, worker_count, running_runs, queued_runs }
    }
}

impl From<RunCounts> for CountsView {
    fn from(counts: RunCounts) -> Self {
        let RunCounts { queued, running, succeeded, failed, canceled } = counts;
        Self { queued, running, succeeded, failed, canceled }
    }
}

impl From<UnreadableRecord> for UnreadableView {
    fn from(message: UnreadableRecord) -> Self {
        Self {
            message_id: message.message_id,
            queue: message.queue,
            sent_at: message.sent_at,
            problem: message.problem.chars().take(PROBLEM_CHARS_MAX).collect(),
            run_id: message.run,
            sample: message.sample,
        }
    }
}
