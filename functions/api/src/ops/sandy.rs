//! GET `/api/ops/sandy/…`: data from the sandbox service.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use bench_domain::Code;
use bench_sandy::{HostMetric, Resources, SandboxStats, SandyError};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader, Identity};
use http::Uri;
use serde::Serialize;
use serde_json::Value;

use super::details::may_see_details;
use crate::Api;
use crate::context::lock;

/// Time for which a response or a failure is cached: any caller may ask, and others use the sandbox service too.
const CACHED_FOR: Duration = Duration::from_secs(5);
/// Maximum number of cached queries.
const CACHED_MAX: usize = 32;
const HOURS_DEFAULT: u64 = 12;
const HOURS_MAX: u64 = 48;
/// Maximum length of `ids`, in characters.
const IDS_CHARS_MAX: usize = 4_096;
/// Maximum number of sandboxes that `ids` may name.
const IDS_MAX: usize = 100;

/// Returns the resources of the sandbox host, and whether another sandbox fits.
#[utoipa::path(
    get, path = "/api/ops/sandy/resources", tag = "operations",
    responses(
        (status = 200, body = Resources),
        (status = 502, body = ErrorBody, description = "The sandbox service sent an invalid response"),
        (status = 503, body = ErrorBody, description = "The sandbox service is not configured or can't be reached"),
    ),
)]
pub(crate) async fn get_resources(State(api): State<Arc<Api>>) -> Result<Json<Value>, ApiError> {
    cached_response(&api, "resources".to_owned(), || api.ops.sandy.resources()).await
}

/// Returns the load of the sandbox host over time.
#[utoipa::path(
    get, path = "/api/ops/sandy/metrics", tag = "operations",
    params(("hours" = Option<u64>, Query, description = "Length of the time series in hours, 1 to 48, default 12")),
    responses(
        (status = 200, body = [HostMetric]),
        (status = 422, body = ErrorBody),
        (status = 502, body = ErrorBody, description = "The sandbox service sent an invalid response"),
        (status = 503, body = ErrorBody, description = "The sandbox service is not configured or can't be reached"),
    ),
)]
pub(crate) async fn get_metrics(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<Value>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let hours = fields.integer("hours", HOURS_DEFAULT, 1, HOURS_MAX);
    fields.finish()?;
    cached_response(&api, format!("metrics {hours}"), || api.ops.sandy.metrics(hours)).await
}

/// Returns the resource use of sandboxes.
///
/// On a public server, callers without the admin secret get an empty list.
#[utoipa::path(
    get, path = "/api/ops/sandy/sandboxes", tag = "operations", security((), ("admin" = []), ("session" = [])),
    params(("ids" = Option<String>, Query, description = "Ids of up to 100 sandboxes, comma-separated. Defaults to all")),
    responses(
        (status = 200, body = [SandboxStats]),
        (status = 422, body = ErrorBody),
        (status = 502, body = ErrorBody, description = "The sandbox service sent an invalid response"),
        (status = 503, body = ErrorBody, description = "The sandbox service is not configured or can't be reached"),
    ),
)]
pub(crate) async fn get_sandboxes(
    State(api): State<Arc<Api>>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let text = fields.maybe_text("ids", IDS_CHARS_MAX).unwrap_or_default();
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned);
    let ids: Vec<String> = ids.collect();
    if ids.len() > IDS_MAX {
        fields.note("too_long", "ids", format!("Input should have at most {IDS_MAX} ids"));
    }
    fields.finish()?;
    if !may_see_details(&api, &identity) {
        return Ok(Json(Value::Array(Vec::new())));
    }
    cached_response(&api, format!("sandboxes {}", ids.join(",")), || api.ops.sandy.sandboxes(&ids)).await
}

/// Returns the cached response to a query, or sends the query.
async fn cached_response<T, Fut>(
    api: &Api,
    query: String,
    ask: impl FnOnce() -> Fut,
) -> Result<Json<Value>, ApiError>
where
    T: Serialize,
    Fut: Future<Output = Result<T, SandyError>>,
{
    let known = lock(&api.ops.answers).get(&query).filter(|(at, _)| at.elapsed() < CACHED_FOR).cloned();
    let answer = match known {
        Some((_, answer)) => answer,
        None => {
            let answer = match ask().await {
                Ok(value) => Ok(serde_json::to_value(value).map_err(ApiError::internal)?),
                Err(error) => Err(error),
            };
            let mut answers = lock(&api.ops.answers);
            answers.retain(|_, (at, _)| at.elapsed() < CACHED_FOR);
            if answers.len() < CACHED_MAX {
                answers.insert(query, (Instant::now(), answer.clone()));
            }
            answer
        }
    };
    answer.map(Json).map_err(|error| {
        let code = match error {
            SandyError::Shape(_) | SandyError::TooLong => Code::SandboxBadResponse,
            _ => Code::SandboxUnavailable,
        };
        ApiError::new(code, error.to_string())
    })
}
