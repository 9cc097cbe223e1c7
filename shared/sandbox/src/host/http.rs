//! The HTTP API. Handlers parse the request, call the host, and wrap its result.

mod auth;
mod bodies;
mod error;
mod path;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use bench_domain::Code;
use http::Uri;
use serde_json::{Value, json};

use self::error::ApiError;
use self::path::Id;
use super::{ExecRequest, HostError, Metric, NewSandbox, ResourcesView, SandboxHost, SandboxView, StatsView};

/// Default number of hours of metrics.
const HOURS_DEFAULT: u64 = 12;
/// Maximum length of a query string, in bytes.
const QUERY_BYTES_MAX: usize = 64 * 1024;

type Host = State<Arc<SandboxHost>>;
type ApiResult<T> = Result<Json<T>, ApiError>;

/// Returns the router of a host's API.
///
/// If the host has a key, every request must send it. Bodies and answers are JSON. An error is `{"detail": …, "code":
/// …}` with one sentence: 400 for what this host doesn't support, 401, 404 for a sandbox that doesn't exist, 408 for a
/// body that doesn't arrive in time, 409 for a file that can't be written, 413, 422, 429, 501 if this machine can't
/// isolate programs, and 503 with `Retry-After`.
pub fn router(host: Arc<SandboxHost>) -> Router {
    Router::new()
        .route("/api/sandboxes", post(create))
        .route("/api/sandboxes/stats", get(stats))
        .route("/api/sandboxes/{id}", get(show))
        .route("/api/sandboxes/{id}/exec", post(exec))
        .route("/api/sandboxes/{id}/files/write", post(write_file))
        .route("/api/sandboxes/{id}/terminate", post(terminate))
        .route("/api/sandboxes/{id}/agent/run", post(run_agent))
        .route("/api/resources", get(resources))
        .route("/api/metrics/timeseries", get(metrics))
        .fallback(|| async { ApiError::new(Code::RouteNotFound, "No API endpoint has this path.") })
        .method_not_allowed_fallback(|| async {
            ApiError::new(Code::MethodNotAllowed, "This endpoint doesn't support this HTTP method.")
        })
        .layer(from_fn_with_state(Arc::clone(&host), auth::check))
        .with_state(host)
}

async fn create(State(host): Host, request: Request) -> ApiResult<SandboxView> {
    let body: NewSandbox = bodies::read_json(&host, request, bodies::SMALL_BYTES_MAX).await?.value;
    Ok(Json(host.create(&body).await?))
}

async fn show(State(host): Host, Id(id): Id) -> ApiResult<SandboxView> {
    Ok(Json(host.get(&id).await?))
}

async fn exec(State(host): Host, Id(id): Id, request: Request) -> ApiResult<super::ExecView> {
    // Report a missing sandbox before reading the body.
    host.get(&id).await?;
    let body: ExecRequest = bodies::read_json(&host, request, bodies::SMALL_BYTES_MAX).await?.value;
    Ok(Json(host.exec(&id, body).await?))
}

async fn write_file(State(host): Host, Id(id): Id, request: Request) -> ApiResult<Value> {
    host.get(&id).await?;
    // The body's memory counts until the file is written.
    let body =
        bodies::read_json::<bodies::WriteFileRequest>(&host, request, host.config().body_bytes_max).await?;
    host.write_file(&id, &body.value.path, body.value.content.as_bytes()).await?;
    Ok(Json(json!({ "path": body.value.path, "bytes": body.value.content.len() })))
}

async fn terminate(State(host): Host, Id(id): Id) -> ApiResult<Value> {
    host.terminate(&id).await?;
    Ok(Json(json!({ "sandboxId": id, "status": "terminated" })))
}

async fn run_agent(State(host): Host, Id(id): Id) -> Result<(), ApiError> {
    host.get(&id).await?;
    Err(ApiError::new(
        Code::NotSupported,
        "This sandbox host has no coding agents: it runs commands only. Use a Sandy server that has them.",
    ))
}

async fn resources(State(host): Host) -> Json<ResourcesView> {
    host.find_engine();
    Json(host.resources())
}

async fn metrics(State(host): Host, uri: Uri) -> ApiResult<Vec<Metric>> {
    let hours = match query_value(&uri, "hours")? {
        None => HOURS_DEFAULT,
        // A value that isn't a number becomes 0, which `metrics` rejects.
        Some(hours) => hours.parse().unwrap_or(0),
    };
    Ok(Json(host.metrics(hours)?))
}

async fn stats(State(host): Host, uri: Uri) -> ApiResult<Vec<StatsView>> {
    let ids = query_value(&uri, "ids")?;
    let ids: Option<Vec<&str>> = ids
        .as_deref()
        .map(|ids| ids.split(',').map(str::trim).filter(|id| !id.is_empty()).collect())
        .filter(|ids: &Vec<&str>| !ids.is_empty());
    Ok(Json(host.stats(ids.as_deref()).await))
}

/// Returns the value of a query parameter; the first one if it is repeated.
fn query_value(uri: &Uri, name: &str) -> Result<Option<String>, HostError> {
    let query = uri.query().unwrap_or_default();
    if query.len() > QUERY_BYTES_MAX {
        return Err(HostError::Invalid(format!("The query has more than {QUERY_BYTES_MAX} bytes.")));
    }
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    Ok(pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned()))
}
