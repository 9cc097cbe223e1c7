//! Lists and reads runs.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use bench_domain::run::Owner;
use bench_domain::{BenchmarkName, ModelId, RunId, RunStatus};
use bench_state::{RunFilter, RunRecord};
use bench_web::error::ErrorBody;
use bench_web::size::fitting;
use bench_web::views::RunView;
use bench_web::{ApiError, Caller, FieldReader, Identity, Path};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::runs::estimate::run_view;
use crate::runs::requests::{run_id, visible_run_with_benchmarks};
use crate::runs::search::RunSearch;
use crate::runs::tasks::visible_task;
use crate::runs::viewer::Viewer;

/// Maximum number of concurrent reads of runs.
const CONCURRENT_READS: usize = 16;
const TEXT_CHARS_MAX: usize = 512;
/// Value of `status` for open runs whose process has ended.
const INTERRUPTED: &str = "interrupted";
/// Value of `owner` for the caller's own runs.
const ME: &str = "me";

/// Page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunsView {
    runs: Vec<RunView>,
    /// Number of all matching runs.
    total: u64,
    /// `offset` of the next page; null at the end.
    next_offset: Option<u64>,
    /// Number of older runs that weren't looked at: `model`, `benchmark`, `owner` and `search` look at the newest 5,000
    /// runs that match the other filters. So does `mine` after an update from a version without it, until the first
    /// reconciliation.
    unsearched: u64,
}

/// Statuses that a list is limited to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Statuses {
    /// Names that aren't a status match no run.
    known: Vec<RunStatus>,
    is_interrupted: bool,
}

impl Statuses {
    pub(crate) fn of(known: &[RunStatus]) -> Self {
        Self { known: known.to_vec(), is_interrupted: false }
    }

    fn parse(text: &str) -> Self {
        let mut statuses = Self::default();
        for name in text.split(',').map(str::trim) {
            statuses.is_interrupted |= name == INTERRUPTED;
            let status = RunStatus::from_name(name).filter(|status| !statuses.known.contains(status));
            statuses.known.extend(status);
        }
        statuses
    }
}

/// Selection of runs.
#[derive(Debug, Default)]
struct Selection {
    /// `None` for all statuses.
    statuses: Option<Statuses>,
    /// Other filters that the table's indexes can answer.
    filter: RunFilter,
    id_prefix: Option<String>,
    /// Only these runs; `None` for all.
    among: Option<Vec<RunId>>,
    /// Only these runs of the caller, newest first; `None` for those of all callers.
    mine: Option<Vec<RunId>>,
    search: RunSearch,
}

impl Selection {
    /// Returns true if each of the runs in `among` and `mine` matches.
    fn has_no_other_filter(&self) -> bool {
        let RunFilter { status, model_id, model_slug, tags, name, viewer: _ } = &self.filter;
        self.statuses.is_none()
            && status.is_none()
            && model_id.is_none()
            && model_slug.is_none()
            && tags.is_empty()
            && name.is_none()
            && self.id_prefix.is_none()
            && self.search.is_everything()
    }
}

/// Lists runs, newest first.
///
/// All filters can be combined. A response has at most 4 MiB, so a page of runs with long lists of items may end early.
/// Continue with `next_offset`.
#[utoipa::path(
    get, path = "/api/runs", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("status" = Option<String>, Query, description = "Only runs with one of these statuses, separated by commas: `queued`, `running`, `succeeded`, `failed` or `canceled`; or `interrupted` for the queued and running ones whose process has ended"),
        ("model" = Option<String>, Query, description = "Part of the model's name with its provider, case-insensitive, such as `openrouter/vendor`"),
        ("benchmark" = Option<String>, Query, description = "Only runs of this benchmark"),
        ("owner" = Option<String>, Query, description = "`me` for only the caller's own runs"),
        ("mine" = Option<bool>, Query, description = "True for only the caller's own runs, all of which are looked at"),
        ("search" = Option<String>, Query, description = "Text in the model's name with its provider, in the run's name or in a tag, case-insensitive; or the first digits of the run's id, 4 or more"),
        ("model_id" = Option<String>, Query, description = "Only runs of the model with this id"),
        ("model_slug" = Option<String>, Query, description = "Part of the model's name at its provider, case-insensitive"),
        ("tag" = Option<String>, Query, description = "Only runs with all of these tags, separated by commas, such as `exp-7,law`"),
        ("name" = Option<String>, Query, description = "Part of the run's name, case-insensitive"),
        ("id_prefix" = Option<String>, Query, description = "Only runs whose id starts with these hexadecimal digits, 4 to 32; hyphens are ignored"),
        ("task" = Option<u64>, Query, description = "Only runs with episodes of the uploaded terminal task with this id"),
        ("limit" = Option<u64>, Query, description = "Number of runs, at most 200, default 50"),
        ("offset" = Option<u64>, Query, description = "Number of runs to skip, default 0"),
    ),
    responses(
        (status = 200, body = RunsView),
        (status = 404, body = ErrorBody, description = "The caller has no such task"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_runs(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<RunsView>, ApiError> {
    let (parts, _) = request.into_parts();
    let mut fields = FieldReader::from_query(&parts.uri);
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let lower = |text: Option<String>| given(text).map(|text| text.trim().to_lowercase());
    let status = given(fields.maybe_text("status", TEXT_CHARS_MAX));
    let model_id = fields.maybe_choice("model_id", "a UUID", |text| text.parse::<ModelId>().ok());
    let model_slug = given(fields.maybe_text("model_slug", TEXT_CHARS_MAX));
    let tags = fields.maybe_text("tag", TEXT_CHARS_MAX).map(|text| tags(&text)).unwrap_or_default();
    let name = given(fields.maybe_text("name", TEXT_CHARS_MAX));
    let id_prefix = fields.maybe_choice("id_prefix", "4 to 32 hexadecimal digits", id_prefix);
    let model = lower(fields.maybe_text("model", TEXT_CHARS_MAX));
    let benchmark = given(fields.maybe_text("benchmark", TEXT_CHARS_MAX));
    let is_own = fields.maybe_choice("owner", "`me`", |text| (text.trim() == ME).then_some(())).is_some();
    let is_mine = fields.flag("mine");
    let text = lower(fields.maybe_text("search", TEXT_CHARS_MAX));
    let task = fields.maybe_choice("task", "the id of a task", |text| text.trim().parse::<u64>().ok());
    let limit = fields.integer("limit", 50, 0, 200);
    let offset = fields.integer("offset", 0, 0, u64::MAX);
    fields.finish()?;
    let among = match task {
        Some(task) => Some(runs_with_task(&api, &Identity::of(&parts), task).await?),
        None => None,
    };
    let viewer = Viewer::of(&api, &parts).await?;
    // Before the owners' lists have the runs of older versions, the newest runs are searched.
    let has_lists = is_mine && api.has_owner_lists().await?;
    let mine = match has_lists {
        true => Some(api.state.runs_of(&viewer.caller.own()).await?),
        false => None,
    };
    let selection = Selection {
        statuses: status.as_deref().map(Statuses::parse),
        filter: RunFilter {
            status: None,
            model_id: model_id.map(|id| id.to_string()),
            model_slug,
            tags,
            name,
            viewer: listed_owners(&viewer.caller),
        },
        id_prefix,
        among,
        mine,
        search: RunSearch {
            model,
            benchmark: benchmark.map(|name| named_benchmark(&name)),
            owner: (is_own || is_mine && !has_lists).then(|| viewer.caller.clone()),
            text,
        },
    };
    let Found { runs, total, unsearched } = select(&api, selection, offset, limit).await?;
    let mut runs = views(&api, runs, &viewer).await?;
    let mut next = offset.saturating_add(limit);
    if !api.config.streaming {
        let fits = fitting(&runs);
        if fits < runs.len() {
            runs.truncate(fits);
            next = offset.saturating_add(fits as u64);
        }
    }
    let next_offset = (limit > 0 && next < total).then_some(next);
    Ok(Json(RunsView { runs, total, next_offset, unsearched }))
}

/// Returns all runs with episodes of a task that the caller may see.
async fn runs_with_task(api: &Api, identity: &Identity, task: u64) -> Result<Vec<RunId>, ApiError> {
    let task = visible_task(api, identity, task).await?;
    Ok(api.state.runs_with_task(task.id).await?.into_iter().map(|order| order.run).collect())
}

/// Returns the owners whose hidden runs lists show to a caller; `None` for those of all owners.
pub(crate) fn listed_owners(caller: &Caller) -> Option<Vec<Owner>> {
    (!caller.is_admin()).then(|| caller.own())
}

/// Returns true if lists show a run to the caller of this filter.
fn is_listed(filter: &RunFilter, run: &RunRecord) -> bool {
    let is_own = |owners: &Vec<Owner>| owners.contains(&run.spec.owner);
    run.spec.labels.visibility.is_public() || filter.viewer.as_ref().is_none_or(is_own)
}

/// Page of the runs that match.
struct Found {
    runs: Vec<RunId>,
    total: u64,
    unsearched: u64,
}

/// Returns a page of the runs that match, newest first.
async fn select(api: &Api, selection: Selection, offset: u64, limit: u64) -> Result<Found, ApiError> {
    if selection.has_no_other_filter() {
        let all = match (&selection.among, &selection.mine) {
            // Other callers, such as admins, may have ordered hidden runs with the task.
            (Some(among), None) => {
                let records = api.state.runs(among).await?.into_iter();
                let shown = records.filter(|run| is_listed(&selection.filter, run));
                Some(shown.map(|run| run.spec.id).collect::<Vec<_>>())
            }
            (None, Some(mine)) => Some(mine.clone()),
            _ => None,
        };
        if let Some(all) = all {
            return Ok(Found { total: all.len() as u64, runs: page(all, offset, limit), unsearched: 0 });
        }
    }
    let Selection { statuses, filter, id_prefix, mut among, mine, search } = selection;
    if let Some(mine) = mine {
        among = Some(match among {
            Some(among) => mine.into_iter().filter(|run| among.contains(run)).collect(),
            None => mine,
        });
    }
    let one_status = match &statuses {
        None => Some(None),
        Some(Statuses { known, is_interrupted: false }) if known.len() == 1 => Some(known.first().copied()),
        Some(_) => None,
    };
    if let (Some(status), None, None, true) = (one_status, &id_prefix, &among, search.is_everything()) {
        let listing = api.state.list_runs(&RunFilter { status, ..filter }, offset, limit).await?;
        return Ok(Found { runs: listing.runs, total: listing.total, unsearched: 0 });
    }
    // The index has to be read whole in any case, to count its runs.
    let mut all = match (one_status, statuses) {
        (None, Some(statuses)) => runs_with_statuses(api, filter, &statuses).await?,
        (status, _) => {
            let filter = RunFilter { status: status.flatten(), ..filter };
            api.state.list_runs(&filter, 0, u64::MAX).await?.runs
        }
    };
    if let Some(among) = among {
        let among: HashSet<RunId> = among.into_iter().collect();
        all.retain(|run| among.contains(run));
    }
    all.retain(|run| id_prefix.as_ref().is_none_or(|prefix| starts_with(*run, prefix)));
    let (all, unsearched) = api.search_runs(all, &search).await?;
    let total = all.len() as u64;
    Ok(Found { runs: page(all, offset, limit), total, unsearched })
}

/// Returns the runs with any of these statuses, newest first.
pub(crate) async fn runs_with_statuses(
    api: &Api,
    filter: RunFilter,
    statuses: &Statuses,
) -> Result<Vec<RunId>, ApiError> {
    // The last list leaves out what is hidden from the viewer.
    let list = |status| {
        let filter = RunFilter { status: Some(status), viewer: None, ..filter.clone() };
        async move { api.state.list_runs(&filter, 0, u64::MAX).await }
    };
    let mut wanted = HashSet::new();
    for status in &statuses.known {
        wanted.extend(list(*status).await?.runs);
    }
    if statuses.is_interrupted {
        // They are few, since users resume or cancel them.
        let mut open = list(RunStatus::Queued).await?.runs;
        open.extend(list(RunStatus::Running).await?.runs);
        let read = open.into_iter().map(|run| async move { api.state.run(run).await });
        let records: Vec<_> = stream::iter(read).buffered(CONCURRENT_READS).try_collect().await?;
        let interrupted = records
            .into_iter()
            .flatten()
            .filter(|record| record.state.status().is_open() && !api.state.works_on(record));
        wanted.extend(interrupted.map(|record| record.spec.id));
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = api.state.list_runs(&filter, 0, u64::MAX).await?.runs;
    all.retain(|run| wanted.contains(run));
    Ok(all)
}

/// Returns the name of the benchmark that a caller means; `None` if there is none.
fn named_benchmark(text: &str) -> Option<BenchmarkName> {
    let name = text.trim().parse::<BenchmarkName>().ok()?;
    bench_benchmarks::find_named(&name)?.name().parse().ok()
}

/// Returns the runs that match, newest first, as the person at this machine sees them, and their total number.
///
/// # Errors
/// When they can't be read.
pub async fn list_runs(
    api: &Api,
    filter: &RunFilter,
    offset: u64,
    limit: u64,
) -> Result<(Vec<RunView>, u64), ApiError> {
    let listing = api.state.list_runs(filter, offset, limit).await?;
    Ok((views(api, listing.runs, &Viewer::local()).await?, listing.total))
}

fn page<T>(all: Vec<T>, offset: u64, limit: u64) -> Vec<T> {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    all.into_iter().skip(count(offset)).take(count(limit)).collect()
}

fn starts_with(run: RunId, prefix: &str) -> bool {
    run.0.simple().to_string().starts_with(prefix)
}

/// Splits a list of tags, which contain no commas themselves.
fn tags(text: &str) -> Vec<String> {
    let mut tags: Vec<String> =
        text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// Parses the first digits of a run's id.
fn id_prefix(text: &str) -> Option<String> {
    let digits = text.replace('-', "").to_ascii_lowercase();
    let is_prefix = (4..=32).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_hexdigit());
    is_prefix.then_some(digits)
}

/// Reads runs. Those that were deleted or hidden from the viewer in the meantime are left out.
async fn views(api: &Api, runs: Vec<RunId>, viewer: &Viewer) -> Result<Vec<RunView>, ApiError> {
    let read = |run| async move {
        let found = api.state.run_with_benchmarks(run).await?;
        let Some(found) = found.filter(|found| viewer.caller.finds_run(&found.run.spec)) else {
            return Ok(None);
        };
        run_view(api, &found, viewer).await.map(Some)
    };
    let views: Vec<Option<RunView>> =
        stream::iter(runs.into_iter().map(read)).buffered(CONCURRENT_READS).try_collect().await?;
    Ok(views.into_iter().flatten().collect())
}

/// Returns a run.
#[utoipa::path(
    get, path = "/api/runs/{run_id}", tag = "runs",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("run_id" = String, Path, description = "Id of the run")),
    responses((status = 200, body = RunView), (status = 404, body = ErrorBody)),
)]
pub(crate) async fn get_run(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Json<RunView>, ApiError> {
    let (parts, _) = request.into_parts();
    let found = visible_run_with_benchmarks(&api, run_id(&run)?, Identity::of(&parts).reader()).await?;
    run_view(&api, &found, &Viewer::of(&api, &parts).await?).await.map(Json)
}
