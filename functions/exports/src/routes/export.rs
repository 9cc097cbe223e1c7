//! GET `/api/runs/{run_id}/export`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_domain::{BenchmarkName, Code, RunId};
use bench_state::RunWithBenchmarks;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldError, FieldReader, Identity, Path};
use http::{StatusCode, Uri, header};
use serde::Serialize;
use serde_json::json;
use tokio_util::io::ReaderStream;
use utoipa::ToSchema;

use crate::file::build::completed_at;
use crate::file::format::content_disposition;
use crate::{BuiltExport, ExportError, ExportFormat, ExportOrder, Exports};

/// Maximum length of a format name, in characters.
const FORMAT_CHARS_MAX: usize = 100;
/// Maximum length of a benchmark's name, in characters.
const BENCHMARK_CHARS_MAX: usize = 100;

/// Seconds after which to retry a request for an export that is being built.
const AGAIN_S: u64 = 2;

/// Exports a run that is over, as a table, as lines of JSON, as a protocol in Markdown, as a report, or as a signed archive.
///
/// `jsonl` has one JSON object per line and sample, in the order of the plan: the fields of samples of
/// `/api/runs/{run_id}/benchmarks/{benchmark_name}` with whole texts and `reasoning_tokens`, and in each line `run_id`,
/// `model`, `benchmark`, `protocol`, `dataset_id`, `dataset_revision`, `demo` and `software_version`. A large file is a redirect to an address that is valid for a few minutes.
///
/// `md` has the settings and results of a benchmark, then each sample with its texts. Unlike other formats, it is for everybody:
/// texts of gated and private datasets are left out unless the caller owns the run.
///
/// `pdf` is a report with scores, intervals, outcomes, cost and settings, for reading and printing. It has no prompts or
/// answers, so everybody may have it, too.
// The checks come in the order that clients of the compatible system know.
#[utoipa::path(
    get,
    path = "/api/runs/{run_id}/export",
    tag = "exports",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("format" = Option<String>, Query, description = "`csv` (default), `jsonl`, `md`, `pdf`, or `zip`, the signed archive"),
        ("benchmark" = Option<String>, Query, description = "Benchmark of the run, for `md` only; all of them by default"),
        ("also" = Option<String>, Query, description = "`csv`, for `zip` only: also builds the table if the archive has to be built, in less time than two exports take. The response is the archive; request the table by `format=csv` afterward"),
    ),
    responses(
        (status = 200, description = "The file", content((String = "text/csv"), (String = "application/x-ndjson"), (String = "text/markdown"), (String = "application/pdf"), (String = "application/zip"))),
        (status = 202, body = NotYetView, description = "The export is being built, or the run's benchmarks are still being closed; try again after `Retry-After` seconds"),
        (status = 307, description = "Address of a large file in `Location`, valid for a few minutes"),
        (status = 400, body = ErrorBody, description = "The run isn't over, or was canceled"),
        (status = 401, body = ErrorBody, description = "The items are for the run's owner only, and no key was sent"),
        (status = 403, body = ErrorBody, description = "The run belongs to another caller"),
        (status = 404, body = ErrorBody, description = "The run or the benchmark doesn't exist"),
        (status = 409, body = ErrorBody, description = "The run was requeued in the meantime"),
        (status = 422, body = ErrorBody, description = "The format doesn't exist, has no benchmark, or isn't built together with another"),
        (status = 503, body = ErrorBody, description = "The server has no usable signing key"),
    ),
)]
pub(crate) async fn export(
    State(exports): State<Arc<Exports>>,
    Path(run): Path<String>,
    identity: Identity,
    uri: Uri,
) -> Result<Response, ApiError> {
    let Wanted { format, benchmark, with_table } = read_query(&uri)?;
    let run: RunId = run.parse().map_err(|_| ApiError::new(Code::RunNotFound, "Run not found"))?;
    let found = exports.state.run_with_benchmarks(run).await?;
    let found = found.filter(|found| identity.reader().sees_run(&found.run.spec));
    let found = found.ok_or(ExportError::NotFound(run))?;
    match completed_at(&found) {
        Err(error @ ExportError::NotSettled) => {
            return Ok(not_ready(format!("{error} in {AGAIN_S} seconds")));
        }
        checked => checked?,
    };
    let benchmark = benchmark.map(|name| benchmark_of(&found, &name)).transpose()?;
    let mut order = ExportOrder { benchmark, with_table, ..format.into() };
    if has_private_items(&found, order.benchmark.as_ref()) {
        match format {
            // It has no texts of samples.
            ExportFormat::Pdf => {}
            ExportFormat::Markdown => order.hides = !identity.reader().owns(&found.run.spec.owner),
            _ => identity.caller()?.must_own(&found.run.spec.owner)?,
        }
    }
    // A separate task: a caller that disconnects doesn't interrupt the build, and a retry finds its result.
    let builder = Arc::clone(&exports);
    let mut building = tokio::spawn(async move { builder.build(run, order).await });
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

/// The parameters of a request.
struct Wanted {
    format: ExportFormat,
    /// Benchmark of a protocol.
    benchmark: Option<String>,
    /// True if the table is built together with the archive.
    with_table: bool,
}

fn read_query(uri: &Uri) -> Result<Wanted, ApiError> {
    let mut query = FieldReader::from_query(uri);
    let name = query.maybe_text("format", FORMAT_CHARS_MAX);
    let benchmark = query.maybe_text("benchmark", BENCHMARK_CHARS_MAX).filter(|name| !name.is_empty());
    let also = query.maybe_text("also", FORMAT_CHARS_MAX).filter(|name| !name.is_empty());
    let format = name.as_deref().map_or(Some(ExportFormat::Csv), ExportFormat::from_name);
    if benchmark.is_some() && format.is_some_and(|format| format != ExportFormat::Markdown) {
        query.note(
            "value_error",
            "benchmark",
            "Only `format=md` is of one benchmark; leave it out for others",
        );
    }
    let is_no_table = also.as_deref().is_some_and(|also| also != "csv");
    let is_no_archive = also.is_some() && format.is_some_and(|format| format != ExportFormat::Zip);
    if is_no_table || is_no_archive {
        query.note(
            "value_error",
            "also",
            "Only `format=zip&also=csv` builds two files; leave `also` out with other formats",
        );
    }
    query.finish()?;
    let format = format.ok_or_else(|| {
        ApiError::validation(vec![FieldError {
            kind: "string_pattern_mismatch",
            loc: vec!["query".into(), "format".into()],
            msg: format!("String should match pattern '{}'", ExportFormat::PATTERN),
            input: name.into(),
            ctx: Some(json!({ "pattern": ExportFormat::PATTERN })),
        }])
    })?;
    Ok(Wanted { format, benchmark, with_table: also.is_some() })
}

/// Returns the run's benchmark with this name, or with this former name of a benchmark.
fn benchmark_of(found: &RunWithBenchmarks, name: &str) -> Result<BenchmarkName, ExportError> {
    let named = name.parse::<BenchmarkName>().ok().and_then(|name| bench_benchmarks::find_named(&name));
    let record = found.benchmark(named.map_or(name, |benchmark| benchmark.name()));
    record.map(|record| record.name.clone()).ok_or_else(|| ExportError::no_such_benchmark(found, name))
}

/// Returns true if the run, or the named benchmark of it, contains items that only its owner may pass on.
fn has_private_items(found: &RunWithBenchmarks, name: Option<&BenchmarkName>) -> bool {
    let mut chosen =
        found.benchmarks.iter().filter(|benchmark| name.is_none_or(|name| benchmark.name == *name));
    chosen.any(|benchmark| {
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
        (false, ExportFormat::Pdf | ExportFormat::Zip) => length.div_ceil(3).saturating_mul(4),
        (false, ExportFormat::Csv | ExportFormat::Jsonl | ExportFormat::Markdown) => length.saturating_mul(2),
    }
}
