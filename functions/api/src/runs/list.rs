//! Lists and reads runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_domain::{ModelId, RunStatus};
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
        ("status" = Option<String>, Query, description = "Only runs with this status: `queued`, `running`, `succeeded`, `failed` or `canceled`"),
        ("model_id" = Option<String>, Query, description = "Only runs of the model with this id"),
        ("model_slug" = Option<String>, Query, description = "Part of the model's name at its provider, case-insensitive"),
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
    let limit = fields.integer("limit", 50, 0, 200);
    let offset = fields.integer("offset", 0, 0, u64::MAX);
    fields.finish()?;
    let known = status.as_deref().map(RunStatus::from_name);
    if known == Some(None) {
        // An unknown status matches no run; the request is still well-formed.
        return Ok(Json(RunsView { runs: Vec::new(), total: 0, next_offset: None }));
    }
    let filter =
        RunFilter { status: known.flatten(), model_id: model_id.map(|id| id.to_string()), model_slug };
    let (mut runs, total) = list_runs(&api, &filter, offset, limit).await?;
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
    let read = |run| async move {
        // The run was deleted in the meantime.
        let Some(found) = api.state.run_with_benchmarks(run).await? else { return Ok(None) };
        run_view(api, &found).await.map(Some)
    };
    let views: Vec<Option<RunView>> =
        stream::iter(listing.runs.into_iter().map(read)).buffered(CONCURRENT_READS).try_collect().await?;
    Ok((views.into_iter().flatten().collect(), listing.total))
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
