//! GET `/api/runs/{run_id}/export`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, RunId};
use bench_state::RunWithBenchmarks;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldError, FieldReader, Path};
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Serialize;
use serde_json::json;
use tokio_util::io::ReaderStream;
use utoipa::ToSchema;

use crate::file::build::completed_at;
use crate::file::format::content_disposition;
use crate::{BuiltExport, ExportError, ExportFormat, Exports};

/// Maximum length of a format name, in characters.
const FORMAT_CHARS_MAX: usize = 100;

/// Seconds after which to retry a request for an export that is being built.
const AGAIN_S: u64 = 2;

/// Exports a run that is over, as a table, as lines of JSON, or as a signed archive.
///
/// `jsonl` has one JSON object per line and sample, in the order of the plan: the fields of samples of
/// `/api/runs/{run_id}/benchmarks/{benchmark_name}` with whole texts and `reasoning_tokens`, and in each line `run_id`,
/// `model`, `benchmark`, `protocol`, `dataset_id`, `dataset_revision`, `demo` and `software_version`. A large file is a redirect to an address that is valid for a few minutes.
// The checks come in the order that clients of the compatible system know.
#[utoipa::path(
    get,
    path = "/api/runs/{run_id}/export",
    tag = "exports",
    security((), ("key" = []), ("admin" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("format" = Option<String>, Query, description = "`csv` (default), `jsonl`, or `zip`, the signed archive"),
    ),
    responses(
        (status = 200, description = "The file", content((String = "text/csv"), (String = "application/x-ndjson"), (String = "application/zip"))),
        (status = 202, body = NotYetView, description = "The export is being built, or the run's benchmarks are still being closed; try again after `Retry-After` seconds"),
        (status = 307, description = "Address of a large file in `Location`, valid for a few minutes"),
        (status = 400, body = ErrorBody, description = "The run isn't over, or was canceled"),
        (status = 401, body = ErrorBody, description = "The items are for the run's owner only, and no key was sent"),
        (status = 403, body = ErrorBody, description = "The run belongs to another caller"),
        (status = 404, body = ErrorBody, description = "The run doesn't exist"),
        (status = 409, body = ErrorBody, description = "The run was requeued in the meantime"),
        (status = 422, body = ErrorBody, description = "The format doesn't exist"),
        (status = 503, body = ErrorBody, description = "The server has no usable signing key"),
    ),
)]
pub(crate) async fn export(
    State(exports): State<Arc<Exports>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let format = read_format(&uri)?;
    let run: RunId = run.parse().map_err(|_| ApiError::new(Code::RunNotFound, "Run not found"))?;
    let found = exports.state.run_with_benchmarks(run).await?.ok_or(ExportError::NotFound(run))?;
    match completed_at(&found) {
        Err(error @ ExportError::NotSettled) => {
            return Ok(not_ready(format!("{error} in {AGAIN_S} seconds")));
        }
        checked => checked?,
    };
    if has_private_items(&found) {
        exports.config.access.caller(&headers)?.must_own(&found.run.spec.owner)?;
    }
    // A separate task: a caller that disconnects doesn't interrupt the build, and a retry finds its result.
    let builder = Arc::clone(&exports);
    let mut building = tokio::spawn(async move { builder.build(run, format).await });
    let built = match exports.config.build_wait {
        None => building.await,
        Some(wait) => match tokio::time::timeout(wait, &mut building).await {
            Ok(built) => built,
            Err(_) => {
                return Ok(not_ready(format!("the export is being built; try again in {AGAIN_S} seconds")));
            }
        },
    };
    let built = built.map_err(ExportError::Interrupted)??;
    deliver(&exports, &built, format).await
}

/// Returns the response while an export is being built or can't be built yet. The work continues, and a retry waits for it.
fn not_ready(detail: String) -> Response {
    let headers = [(header::RETRY_AFTER, AGAIN_S.to_string())];
    (StatusCode::ACCEPTED, headers, Json(NotYetView { detail })).into_response()
}

/// Response while an export isn't ready.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotYetView {
    /// Sentence for people.
    detail: String,
}

fn read_format(uri: &Uri) -> Result<ExportFormat, ApiError> {
    let mut query = FieldReader::from_query(uri);
    let name = query.maybe_text("format", FORMAT_CHARS_MAX);
    query.finish()?;
    let Some(name) = name else { return Ok(ExportFormat::Csv) };
    ExportFormat::from_name(&name).ok_or_else(|| {
        ApiError::validation(vec![FieldError {
            kind: "string_pattern_mismatch",
            loc: vec!["query".into(), "format".into()],
            msg: format!("String should match pattern '{}'", ExportFormat::PATTERN),
            input: name.into(),
            ctx: Some(json!({ "pattern": ExportFormat::PATTERN })),
        }])
    })
}

/// Returns true if the run contains items that only its owner may pass on.
fn has_private_items(found: &RunWithBenchmarks) -> bool {
    found.benchmarks.iter().any(|benchmark| {
        let dataset = benchmark.plan.as_ref().map(|plan| &plan.dataset);
        bench_benchmarks::is_private(&benchmark.name, dataset)
    })
}

async fn deliver(exports: &Exports, built: &BuiltExport, format: ExportFormat) -> Result<Response, ApiError> {
    let (blobs, config) = (&exports.blobs, &exports.config);
    let gone = || ExportError::Changed;
    let body = if carried_bytes(built.length, format, config.streaming) <= config.inline_bytes_max {
        Body::from(blobs.get(&built.key).await.map_err(ExportError::Blobs)?.ok_or_else(gone)?)
    } else if config.streaming && built.length <= config.streamed_bytes_max {
        let (_, stream) = blobs.stream(&built.key).await.map_err(ExportError::Blobs)?.ok_or_else(gone)?;
        Body::from_stream(ReaderStream::new(stream.into_async_read()))
    } else {
        let address = blobs.presign_get(&built.key, &built.filename, config.presigned_valid).await;
        let address = address.map_err(ExportError::Blobs)?;
        return Ok((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, address)]).into_response());
    };
    let headers = [
        (header::CONTENT_TYPE, built.content_type.to_owned()),
        (header::CONTENT_LENGTH, built.length.to_string()),
        (header::CONTENT_DISPOSITION, content_disposition(&built.filename)),
    ];
    Ok((headers, body).into_response())
}

/// Returns the size of a response as it is carried. Lambda puts it into a JSON text, which encodes an archive
/// as base64 and escapes quotes and line ends of a text.
fn carried_bytes(length: u64, format: ExportFormat, streaming: bool) -> u64 {
    match (streaming, format) {
        (true, _) => length,
        (false, ExportFormat::Zip) => length.div_ceil(3).saturating_mul(4),
        (false, ExportFormat::Csv | ExportFormat::Jsonl) => length.saturating_mul(2),
    }
}
