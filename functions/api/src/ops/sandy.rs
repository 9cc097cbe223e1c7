//! GET `/api/ops/sandy/…`: what the sandbox service tells of itself.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use bench_domain::Code;
use bench_sandy::{HostMetric, Resources, SandboxStats, SandyError};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader};
use http::{HeaderMap, Uri};
use serde::Serialize;
use serde_json::Value;

use super::details::sees_details;
use crate::Api;
use crate::context::held;

/// How long an answer, or that there was none, stays good: anybody may ask, and the service is not ours alone.
const GOOD_FOR: Duration = Duration::from_secs(5);
/// Different questions whose answers are kept.
const KEPT_MAX: usize = 32;
const HOURS_DEFAULT: u64 = 12;
const HOURS_MAX: u64 = 48;
/// Characters of `ids`.
const IDS_CHARS_MAX: usize = 4_096;
/// Sandboxes that are asked for by their ids.
const IDS_MAX: usize = 100;

/// What the host of the sandboxes has, and whether another one fits.
#[utoipa::path(
    get, path = "/api/ops/sandy/resources", tag = "operations",
    responses(
        (status = 200, body = Resources),
        (status = 502, body = ErrorBody, description = "The service's answer has another shape"),
        (status = 503, body = ErrorBody, description = "The service is not configured or cannot be reached"),
    ),
)]
pub(crate) async fn get_resources(State(api): State<Arc<Api>>) -> Result<Json<Value>, ApiError> {
    kept(&api, "resources".to_owned(), || api.ops.sandy.resources()).await
}

/// How busy the host of the sandboxes was.
#[utoipa::path(
    get, path = "/api/ops/sandy/metrics", tag = "operations",
    params(("hours" = Option<u64>, Query, description = "Look back, 1 to 48, default 12")),
    responses(
        (status = 200, body = [HostMetric]),
        (status = 422, body = ErrorBody),
        (status = 502, body = ErrorBody, description = "The service's answer has another shape"),
        (status = 503, body = ErrorBody, description = "The service is not configured or cannot be reached"),
    ),
)]
pub(crate) async fn get_metrics(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<Value>, ApiError> {
    let mut fields = FieldReader::of_query(&uri);
    let hours = fields.integer("hours", HOURS_DEFAULT, 1, HOURS_MAX);
    fields.finish()?;
    kept(&api, format!("metrics {hours}"), || api.ops.sandy.metrics(hours)).await
}

/// What sandboxes use.
///
/// On a server that is not bound to loopback callers without the admin secret get an empty list.
#[utoipa::path(
    get, path = "/api/ops/sandy/sandboxes", tag = "operations", security((), ("admin" = [])),
    params(("ids" = Option<String>, Query, description = "Only these, comma-separated, up to 100")),
    responses(
        (status = 200, body = [SandboxStats]),
        (status = 422, body = ErrorBody),
        (status = 502, body = ErrorBody, description = "The service's answer has another shape"),
        (status = 503, body = ErrorBody, description = "The service is not configured or cannot be reached"),
    ),
)]
pub(crate) async fn get_sandboxes(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut fields = FieldReader::of_query(&uri);
    let text = fields.maybe_text("ids", IDS_CHARS_MAX).unwrap_or_default();
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned);
    let ids: Vec<String> = ids.collect();
    if ids.len() > IDS_MAX {
        fields.note("too_long", "ids", format!("At most {IDS_MAX} ids are taken"));
    }
    fields.finish()?;
    if !sees_details(&api, &headers) {
        return Ok(Json(Value::Array(Vec::new())));
    }
    kept(&api, format!("sandboxes {}", ids.join(",")), || api.ops.sandy.sandboxes(&ids)).await
}

/// The answer to a question of lately, else a new one.
async fn kept<T, Fut>(api: &Api, question: String, ask: impl FnOnce() -> Fut) -> Result<Json<Value>, ApiError>
where
    T: Serialize,
    Fut: Future<Output = Result<T, SandyError>>,
{
    let known = held(&api.ops.answers).get(&question).filter(|(at, _)| at.elapsed() < GOOD_FOR).cloned();
    let answer = match known {
        Some((_, answer)) => answer,
        None => {
            let answer = match ask().await {
                Ok(told) => Ok(serde_json::to_value(told).map_err(ApiError::internal)?),
                Err(error) => Err(error),
            };
            let mut answers = held(&api.ops.answers);
            answers.retain(|_, (at, _)| at.elapsed() < GOOD_FOR);
            if answers.len() < KEPT_MAX {
                answers.insert(question, (Instant::now(), answer.clone()));
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
