//! Schedules: orders with planned times. The API stores them, and the scheduler makes their runs.
//!
//! Reading is public as for runs, except for the webhook's address; owner and admin may change. A key that
//! comes with the order is encrypted for the schedule, used only for its runs, and deleted with it.

mod agent;
mod body;
mod change;
mod find;
mod view;

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bench_domain::schedule::{Firing, Schedule};
use bench_domain::{RunId, Timestamp};
use bench_state::ScheduleRecord;
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::size::fitting;
use bench_web::{ApiError, Caller, FieldReader, Identity, Path};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{StatusCode, Uri};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use self::body::{Change, ScheduleBody, ScheduleOrder};
use self::find::find;
use crate::Api;
use crate::runs::create::refuse_in_maintenance;

use self::view::Rights;
pub use self::view::{FiringView, ScheduleView};

/// Maximum number of concurrent reads of latest firings.
const CONCURRENT_READS: usize = 16;
const TIME_CHARS_MAX: usize = 50;

/// Returns the routes of schedules.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/api/schedules", get(get_schedules).post(post_schedule))
        .route(
            "/api/schedules/{schedule_id}",
            get(get_schedule).patch(patch_schedule).delete(delete_schedule),
        )
        .route("/api/schedules/{schedule_id}/firings", get(get_firings))
        .route("/api/schedules/{schedule_id}/run-now", post(post_run_now))
}

/// OpenAPI description of these routes.
#[derive(OpenApi)]
#[openapi(paths(
    get_schedules,
    post_schedule,
    get_schedule,
    patch_schedule,
    delete_schedule,
    get_firings,
    post_run_now
))]
pub(crate) struct Document;

/// Page of schedules.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SchedulesView {
    /// Schedules, oldest first.
    schedules: Vec<ScheduleView>,
    /// Number of all schedules that the caller may see.
    total: u64,
    /// `offset` of the next page; null at the end.
    next_offset: Option<u64>,
}

/// Page of firings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiringsView {
    /// Firings, latest first.
    firings: Vec<FiringView>,
    /// `before` of the next page, with earlier firings; null at the end.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_before: Option<Timestamp>,
}

/// A schedule that was just created or changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SavedView {
    #[serde(flatten)]
    schedule: ScheduleView,
    /// Ordered names that aren't benchmarks. The schedule leaves them out.
    ignored_benchmarks: Vec<String>,
    /// Fields of the request that were ignored, one sentence each.
    warnings: Vec<String>,
}

/// Confirmation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScheduleDeleted)]
pub(crate) struct DeletedView {
    /// Always true: failures are errors.
    success: bool,
    message: &'static str,
}

async fn view(api: &Api, record: &ScheduleRecord, caller: &Caller) -> Result<ScheduleView, ApiError> {
    let schedule = &record.schedule;
    let last = api.state.firings(schedule.id, None, 1).await?;
    let last = firing_views(api, schedule, &last, caller).await?.pop();
    let view = ScheduleView::new(schedule, Rights::of(caller, schedule), bench_clock::now());
    Ok(ScheduleView { last, ..view })
}

/// Returns firings of a schedule as the caller may see them.
async fn firing_views(
    api: &Api,
    schedule: &Schedule,
    firings: &[Firing],
    caller: &Caller,
) -> Result<Vec<FiringView>, ApiError> {
    let is_owner = caller.owns(&schedule.owner);
    let mut views: Vec<FiringView> = firings.iter().map(|firing| FiringView::new(firing, is_owner)).collect();
    if is_owner {
        return Ok(views);
    }
    let named = |view: &FiringView| [view.run_id, view.comparison.as_ref().map(|with| with.with_run)];
    let runs: Vec<RunId> = views.iter().flat_map(named).flatten().collect();
    let records = api.state.runs(&runs).await?.into_iter();
    let shown = records.filter(|run| {
        let visibility = run.spec.labels.visibility;
        caller.finds_run(&run.spec)
            || caller.sees_run(&run.spec) && visibility <= schedule.run.labels.visibility
    });
    let shown: HashSet<RunId> = shown.map(|run| run.spec.id).collect();
    views.iter_mut().for_each(|view| view.retain_runs(&shown));
    Ok(views)
}

/// Lists schedules, oldest first.
///
/// A response has at most 4 MiB, so a page may end early. Continue with `next_offset`.
#[utoipa::path(
    get, path = "/api/schedules", tag = "schedules", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("limit" = Option<u64>, Query, description = "Number of schedules, 1 to 200, default 100"),
        ("offset" = Option<u64>, Query, description = "Number of schedules to skip, default 0"),
        ("mine" = Option<bool>, Query, description = "True for only the caller's own schedules"),
    ),
    responses((status = 200, body = SchedulesView), (status = 422, body = ErrorBody)),
)]
pub(crate) async fn get_schedules(
    State(api): State<Arc<Api>>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<SchedulesView>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let limit = fields.integer("limit", 100, 1, 200);
    let offset = fields.integer("offset", 0, 0, u64::MAX);
    let mine = fields.flag("mine");
    fields.finish()?;
    let caller = identity.reader();
    let mut records = api.state.list_schedules().await?;
    records.retain(|ScheduleRecord { schedule, .. }| match mine {
        true => caller.is_own(&schedule.owner),
        false => schedule.run.labels.visibility.is_public() || caller.owns(&schedule.owner),
    });
    let total = records.len() as u64;
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    let records: Vec<ScheduleRecord> = records.into_iter().skip(skip).take(take).collect();
    let read: Vec<_> = records.iter().map(|record| view(&api, record, caller)).collect();
    let mut schedules: Vec<ScheduleView> =
        stream::iter(read).buffered(CONCURRENT_READS).try_collect().await?;
    schedules.truncate(fitting(&schedules));
    let next = offset.saturating_add(schedules.len() as u64);
    Ok(Json(SchedulesView { schedules, total, next_offset: (next < total).then_some(next) }))
}

/// Creates a schedule.
///
/// The bearer key of this request pays for its runs; it is stored encrypted until the schedule is deleted. Without a
/// key, the operator's key pays: on a server on loopback, and for the holder of the admin secret. Without
/// `subset_seed`, the schedule's id is the seed, so all its runs have the same items.
#[utoipa::path(
    post, path = "/api/schedules", tag = "schedules", security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body = ScheduleOrder,
    params(
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge, stored like the other key"),
        ("X-User-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the user model, stored like the other key"),
    ),
    responses(
        (status = 201, body = SavedView),
        (status = 400, body = ErrorBody, description = "The benchmarks or the provider are unknown, the terms of a dataset aren't accepted, a budget in dollars needs a price that isn't known, or a judge is needed"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The provider refuses the key"),
        (status = 404, body = ErrorBody, description = "The model doesn't exist"),
        (status = 409, body = ErrorBody, description = "The maximum number of schedules is reached, or the owner has one of this name"),
        (status = 422, body = ErrorBody, description = "A field is invalid, or the order has too many samples"),
        (status = 429, body = ErrorBody, description = "Too many orders; `Retry-After` has the seconds to wait"),
        (status = 503, body = ErrorBody, description = "The server is under maintenance"),
    ),
)]
pub(crate) async fn post_schedule(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let fields = read_object(&parts.headers, body).await?;
    let body = ScheduleBody::read(fields, api.config.server.local)?;
    refuse_in_maintenance(&api)?;
    let warnings = body.order.warnings.iter().map(ToString::to_string).collect();
    let (record, ignored) = change::create(&api, body, &parts).await?;
    // The maker may see the whole schedule, even if the request doesn't identify the caller as its owner.
    let schedule = ScheduleView::new(&record, Rights::MAKER, bench_clock::now());
    let saved = SavedView { schedule, ignored_benchmarks: ignored, warnings };
    Ok((StatusCode::CREATED, Json(saved)).into_response())
}

/// Returns a schedule.
#[utoipa::path(
    get, path = "/api/schedules/{schedule_id}", tag = "schedules", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("schedule_id" = String, Path, description = "Id of the schedule")),
    responses((status = 200, body = ScheduleView), (status = 404, body = ErrorBody)),
)]
pub(crate) async fn get_schedule(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    identity: Identity,
) -> Result<Json<ScheduleView>, ApiError> {
    let record = find(&api, &id, identity.reader()).await?;
    view(&api, &record, identity.reader()).await.map(Json)
}

/// Changes the sent fields of a schedule.
///
/// Null resets an optional field. The order is checked again only if one of its fields is sent. `benchmark_options` replaces
/// all earlier options except the agent with its own. `agent` replaces the agent with its options, and null resets it;
/// `agent_options` adds to its options, and null resets them.
#[utoipa::path(
    patch, path = "/api/schedules/{schedule_id}", tag = "schedules",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("schedule_id" = String, Path, description = "Id of the schedule"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge, to replace it"),
        ("X-User-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the user model, to replace it"),
    ),
    request_body(content = ScheduleOrder, description = "Any fields of a new schedule"),
    responses(
        (status = 200, body = SavedView),
        (status = 400, body = ErrorBody, description = "The benchmarks or the provider are unknown, or a budget in dollars needs a price that isn't known"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The schedule belongs to another caller"),
        (status = 404, body = ErrorBody, description = "The schedule or the model doesn't exist"),
        (status = 409, body = ErrorBody, description = "Other requests kept changing it, or the owner has another schedule of this name"),
        (status = 422, body = ErrorBody, description = "A field is invalid"),
    ),
)]
pub(crate) async fn patch_schedule(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<SavedView>, ApiError> {
    let (parts, body) = request.into_parts();
    let identity = Identity::of(&parts);
    let change = Change::new(read_object(&parts.headers, body).await?.into_fields());
    let (ignored, warnings) = change::change(&api, &id, &change, &parts).await?;
    let record = find(&api, &id, identity.reader()).await?;
    let schedule = view(&api, &record, identity.reader()).await?;
    Ok(Json(SavedView { schedule, ignored_benchmarks: ignored, warnings }))
}

/// Deletes a schedule with its key and its history. Its runs stay.
#[utoipa::path(
    delete, path = "/api/schedules/{schedule_id}", tag = "schedules",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("schedule_id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 200, body = DeletedView),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The schedule belongs to another caller"),
        (status = 404, body = ErrorBody, description = "The schedule doesn't exist"),
        (status = 409, body = ErrorBody, description = "Other requests kept changing it; try again"),
    ),
)]
pub(crate) async fn delete_schedule(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    identity: Identity,
) -> Result<Json<DeletedView>, ApiError> {
    change::delete(&api, &id, &identity).await?;
    Ok(Json(DeletedView { success: true, message: "Schedule deleted" }))
}

/// Lists the firings of a schedule, latest first, each with its comparison with the run before.
#[utoipa::path(
    get, path = "/api/schedules/{schedule_id}/firings", tag = "schedules",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("schedule_id" = String, Path, description = "Id of the schedule"),
        ("limit" = Option<u64>, Query, description = "Number of firings, 1 to 200, default 50"),
        ("before" = Option<String>, Query, description = "Only firings planned before this time (RFC 3339)"),
    ),
    responses((status = 200, body = FiringsView), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)),
)]
pub(crate) async fn get_firings(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<FiringsView>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let limit = fields.integer("limit", 50, 1, 200);
    let before = fields.maybe_text("before", TIME_CHARS_MAX).filter(|text| !text.is_empty());
    // A `+` in a time zone becomes a space in a query string.
    let before = before.map(|text| text.trim().replace(' ', "+").parse::<Timestamp>());
    if matches!(before, Some(Err(_))) {
        fields.note("value_error", "before", "Input should be the `next_before` of a page");
    }
    fields.finish()?;
    let schedule = find(&api, &id, identity.reader()).await?.schedule;
    let limit = usize::try_from(limit).unwrap_or(1);
    let found: Vec<Firing> = api.state.firings(schedule.id, before.and_then(Result::ok), limit).await?;
    let is_last = found.len() < limit;
    let mut firings = firing_views(&api, &schedule, &found, identity.reader()).await?;
    let fits = fitting(&firings);
    let is_cut = fits < firings.len();
    firings.truncate(fits);
    let next_before = firings.last().map(|last| last.planned_at).filter(|_| is_cut || !is_last);
    Ok(Json(FiringsView { firings, next_before }))
}

/// Runs a schedule now, in addition to its planned times. The run is created within a minute.
#[utoipa::path(
    post, path = "/api/schedules/{schedule_id}/run-now", tag = "schedules",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("schedule_id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 202, body = FiringView),
        (status = 400, body = ErrorBody, description = "The schedule is off"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The schedule belongs to another caller"),
        (status = 404, body = ErrorBody, description = "The schedule doesn't exist"),
        (status = 429, body = ErrorBody, description = "Too many orders; `Retry-After` has the seconds to wait"),
        (status = 503, body = ErrorBody, description = "The server is under maintenance"),
    ),
)]
pub(crate) async fn post_run_now(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    refuse_in_maintenance(&api)?;
    let (parts, _) = request.into_parts();
    let firing = change::run_now(&api, &id, &parts).await?;
    Ok((StatusCode::ACCEPTED, Json(FiringView::new(&firing, true))).into_response())
}
