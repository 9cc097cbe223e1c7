//! Lists and reads runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_domain::{ModelId, RunId, RunStatus};
use bench_state::RunFilter;
use bench_web::error::ErrorBody;
use bench_web::size::fitting;
use bench_web::views::RunView;
use bench_web::{ApiError, FieldReader, Path};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::runs::estimate::run_view;
use crate::runs::requests::{run_id, run_not_found};

/// Maximum number of concurrent reads of runs.
const CONCURRENT_READS: usize = 16;
const TEXT_CHARS_MAX: usize = 512;
/// Value of `status` for open runs whose process has ended.
const INTERRUPTED: &str = "interrupted";

/// Page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunsView {
    runs: Vec<RunView>,
    /// Number of all matching runs.
    total: u64,
    /// `offset` of the next page; null at the end.
    next_offset: Option<u64>,
}

/// Lists runs, newest first.
///
/// A response has at most 4 MiB, so a page of runs with long lists of items may end early. Continue with
/// `next_offset`.
#[utoipa::path(
    get, path = "/api/runs", tag = "runs",
    params(
        ("status" = Option<String>, Query, description = "Only runs with this status: `queued`, `running`, `succeeded`, `failed` or `canceled`; or `interrupted` for the queued and running ones whose process has ended"),
        ("model_id" = Option<String>, Query, description = "Only runs of the model with this id"),
        ("model_slug" = Option<String>, Query, description = "Part of the model's name at its provider, case-insensitive"),
        ("tag" = Option<String>, Query, description = "Only runs with all of these tags, separated by commas, such as `exp-7,law`"),
        ("name" = Option<String>, Query, description = "Part of the run's name, case-insensitive"),
        ("id_prefix" = Option<String>, Query, description = "Only runs whose id starts with these hexadecimal digits, 4 to 32; hyphens are ignored"),
        ("limit" = Option<u64>, Query, description = "Number of runs, at most 200, default 50"),
        ("offset" = Option<u64>, Query, description = "Number of runs to skip, default 0"),
    ),
    responses((status = 200, body = RunsView), (status = 422, body = ErrorBody)),
)]
pub(crate) async fn get_runs(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<RunsView>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let status = fields.maybe_text("status", TEXT_CHARS_MAX).filter(|status| !status.is_empty());
    let model_id = fields.maybe_choice("model_id", "a UUID", |text| text.parse::<ModelId>().ok());
    let model_slug = fields.maybe_text("model_slug", TEXT_CHARS_MAX).filter(|slug| !slug.is_empty());
    let tags = fields.maybe_text("tag", TEXT_CHARS_MAX).map(|text| tags(&text)).unwrap_or_default();
    let name = fields.maybe_text("name", TEXT_CHARS_MAX).filter(|name| !name.is_empty());
    let id_prefix = fields.maybe_choice("id_prefix", "4 to 32 hexadecimal digits", id_prefix);
    let limit = fields.integer("limit", 50, 0, 200);
    let offset = fields.integer("offset", 0, 0, u64::MAX);
    fields.finish()?;
    let is_interrupted = status.as_deref() == Some(INTERRUPTED);
    let known = status.as_deref().filter(|_| !is_interrupted).map(RunStatus::from_name);
    if known == Some(None) {
        // An unknown status matches no run; the request is still well-formed.
        return Ok(Json(RunsView { runs: Vec::new(), total: 0, next_offset: None }));
    }
    let filter = RunFilter {
        status: known.flatten(),
        model_id: model_id.map(|id| id.to_string()),
        model_slug,
        tags,
        name,
    };
    let (mut runs, total) = match id_prefix {
        prefix if is_interrupted => interrupted_runs(&api, filter, prefix.as_deref(), offset, limit).await?,
        None => list_runs(&api, &filter, offset, limit).await?,
        Some(prefix) => runs_starting_with(&api, &filter, &prefix, offset, limit).await?,
    };
    let mut next = offset.saturating_add(limit);
    if !api.config.streaming {
        let fits = fitting(&runs);
        if fits < runs.len() {
            runs.truncate(fits);
            next = offset.saturating_add(fits as u64);
        }
    }
    let next_offset = (limit > 0 && next < total).then_some(next);
    Ok(Json(RunsView { runs, total, next_offset }))
}

/// Returns the runs that match, newest first, and their total number.
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
    Ok((views(api, listing.runs).await?, listing.total))
}

/// Like [`list_runs`], for the runs whose ids start with these digits. The list's index has to be read whole in any case,
/// to count its runs.
async fn runs_starting_with(
    api: &Api,
    filter: &RunFilter,
    prefix: &str,
    offset: u64,
    limit: u64,
) -> Result<(Vec<RunView>, u64), ApiError> {
    let all = api.state.list_runs(filter, 0, u64::MAX).await?.runs.into_iter();
    let matching: Vec<RunId> = all.filter(|run| starts_with(*run, prefix)).collect();
    let total = matching.len() as u64;
    Ok((views(api, page(matching, offset, limit)).await?, total))
}

/// Like [`list_runs`], for open runs whose process has ended. They are few, since users resume or cancel them.
async fn interrupted_runs(
    api: &Api,
    mut filter: RunFilter,
    prefix: Option<&str>,
    offset: u64,
    limit: u64,
) -> Result<(Vec<RunView>, u64), ApiError> {
    let mut open = Vec::new();
    for status in [RunStatus::Queued, RunStatus::Running] {
        filter.status = Some(status);
        open.extend(api.state.list_runs(&filter, 0, u64::MAX).await?.runs);
    }
    open.retain(|run| prefix.is_none_or(|prefix| starts_with(*run, prefix)));
    let mut found = views(api, open).await?;
    found.retain(|run| run.interrupted);
    found.sort_by_key(|run| std::cmp::Reverse(run.created_at));
    let total = found.len() as u64;
    Ok((page(found, offset, limit), total))
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

/// Reads runs. Those that were deleted in the meantime are left out.
async fn views(api: &Api, runs: Vec<RunId>) -> Result<Vec<RunView>, ApiError> {
    let read = |run| async move {
        let Some(found) = api.state.run_with_benchmarks(run).await? else { return Ok(None) };
        run_view(api, &found).await.map(Some)
    };
    let views: Vec<Option<RunView>> =
        stream::iter(runs.into_iter().map(read)).buffered(CONCURRENT_READS).try_collect().await?;
    Ok(views.into_iter().flatten().collect())
}

/// Returns a run.
#[utoipa::path(
    get, path = "/api/runs/{run_id}", tag = "runs",
    params(("run_id" = String, Path, description = "Id of the run")),
    responses((status = 200, body = RunView), (status = 404, body = ErrorBody)),
)]
pub(crate) async fn get_run(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
) -> Result<Json<RunView>, ApiError> {
    let found = api.state.run_with_benchmarks(run_id(&run)?).await?.ok_or_else(run_not_found)?;
    run_view(&api, &found).await.map(Json)
}
