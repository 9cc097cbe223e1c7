//! The catalog of benchmarks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use bench_benchmarks::{Benchmark, Options};
use bench_domain::run::DatasetChoice;
use bench_domain::{BenchmarkName, Code, RunSpec};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader, Path};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::context::lock;
use crate::views::benchmark::{BenchmarkView, StoredData, describe_protocol};

const PROTOCOL_CHARS_MAX: usize = 128;
/// Time for which the list of stored datasets and texts is cached.
const STORED_FOR: Duration = Duration::from_secs(60);

/// List of all benchmarks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BenchmarksView {
    benchmarks: Vec<BenchmarkView>,
}

/// Lists the benchmarks.
///
/// Each is described under its default protocol; `protocols` has the others.
#[utoipa::path(
    get, path = "/api/benchmarks", tag = "catalog",
    params(("texts" = Option<bool>, Query, description = "`false` leaves deviations, sources and official texts out, which are most of the response; default `true`")),
    responses((status = 200, body = BenchmarksView), (status = 422, body = ErrorBody), (status = 500, body = ErrorBody)),
)]
pub(crate) async fn get_benchmarks(
    State(api): State<Arc<Api>>,
    uri: Uri,
) -> Result<Json<BenchmarksView>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let texts = fields.maybe_flag("texts").unwrap_or(true);
    fields.finish()?;
    let mut benchmarks = benchmarks(&api).await?;
    if !texts {
        benchmarks.iter_mut().for_each(BenchmarkView::remove_texts);
    }
    Ok(Json(BenchmarksView { benchmarks }))
}

/// Returns a benchmark with all its protocols.
///
/// The fields outside of `protocols` describe the requested protocol.
#[utoipa::path(
    get, path = "/api/benchmarks/{benchmark_name}", tag = "catalog",
    params(
        ("benchmark_name" = String, Path, description = "Name of the benchmark, such as `mmlu_pro`"),
        ("protocol" = Option<String>, Query, description = "Short name of the protocol to describe. Defaults to the first one"),
    ),
    responses(
        (status = 200, body = BenchmarkView),
        (status = 404, body = ErrorBody, description = "The benchmark or the protocol doesn't exist"),
        (status = 422, body = ErrorBody),
        (status = 500, body = ErrorBody),
    ),
)]
pub(crate) async fn get_benchmark(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<BenchmarkView>, ApiError> {
    let benchmark = find(&name)?;
    let mut fields = FieldReader::from_query(&uri);
    let protocol = fields.maybe_text("protocol", PROTOCOL_CHARS_MAX);
    fields.finish()?;
    let shown = bench_benchmarks::with_protocol(benchmark, protocol.as_deref().map(str::trim))
        .map_err(|unknown| ApiError::new(Code::ProtocolNotFound, unknown.to_string()))?;
    let stored = stored(&api).await?;
    Ok(Json(view(&api, benchmark, shown, &stored)))
}

/// Finds a benchmark by its name, as paths have it.
pub(crate) fn find(name: &str) -> Result<&'static dyn Benchmark, ApiError> {
    let own = name.parse::<BenchmarkName>().ok().filter(|parsed| parsed.as_str() == name);
    own.and_then(|name| bench_benchmarks::find_named(&name)).ok_or_else(|| {
        ApiError::new(Code::BenchmarkNotFound, "benchmark not found; `GET /api/benchmarks` lists them")
    })
}

/// Returns all benchmarks by name, with the stored parts of their datasets and official texts. Downloads nothing.
///
/// # Errors
/// When the blob store can't be read.
pub async fn benchmarks(api: &Api) -> Result<Vec<BenchmarkView>, ApiError> {
    let stored = stored(api).await?;
    let mut views: Vec<BenchmarkView> =
        bench_benchmarks::all().iter().map(|benchmark| view(api, *benchmark, *benchmark, &stored)).collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(views)
}

/// Returns the names of the benchmarks that a page or a command should preselect.
pub fn default_benchmarks() -> Vec<String> {
    let selected = bench_benchmarks::all().iter().map(|benchmark| benchmark.metadata());
    selected.filter(|facts| facts.default_selected).map(|facts| facts.name.to_owned()).collect()
}

/// Returns the number of items that a run can choose from, before the benchmark is loaded: those of the
/// published dataset or of the demo data. Returns 0 if the number isn't known, as for a user's file.
pub(crate) fn known_items(spec: &RunSpec, name: &BenchmarkName) -> u64 {
    let Some(benchmark) = bench_benchmarks::find_for_run(spec, name) else { return 0 };
    match spec.datasets.get(name).unwrap_or(&DatasetChoice::Hub) {
        DatasetChoice::Hub => benchmark.spec().items,
        DatasetChoice::Demo => {
            let options = spec.options.get(name);
            bench_benchmarks::demo_items(benchmark, options.unwrap_or(&Options::new()))
        }
        DatasetChoice::Local { .. } => 0,
    }
}

async fn stored(api: &Api) -> Result<Arc<StoredData>, ApiError> {
    let cached = lock(&api.stored).clone();
    if let Some((at, stored)) = cached
        && at.elapsed() < STORED_FOR
    {
        return Ok(stored);
    }
    let stored = Arc::new(StoredData::load(&api.library).await.map_err(ApiError::internal)?);
    *lock(&api.stored) = Some((Instant::now(), Arc::clone(&stored)));
    Ok(stored)
}

fn view(
    api: &Api,
    benchmark: &'static dyn Benchmark,
    shown: &'static dyn Benchmark,
    stored: &StoredData,
) -> BenchmarkView {
    let missing = api.library.check(shown, &DatasetChoice::Hub).err().map(|error| error.to_string());
    describe_protocol(benchmark, shown, stored, api.config.answer_time, missing)
}
