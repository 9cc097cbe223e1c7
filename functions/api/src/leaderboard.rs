//! `/api/leaderboard`: models ranked within one benchmark.

mod boards;
mod candidate;
mod view;

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use bench_domain::{BenchmarkName, Code, RunId, RunStatus};
use bench_state::{RunFilter, RunWithBenchmarks};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Caller, FieldReader, Identity};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Uri;
use utoipa::OpenApi;

use self::boards::Boards;
use self::candidate::{Candidate, Exclusion};
use self::view::{ExcludedView, LeaderboardView, ListedBenchmark, TIE_METHOD};
use crate::Api;
use crate::runs::list::{Statuses, listed_owners, runs_with_statuses};
use crate::runs::search::SEARCHED_RUNS_MAX;

/// Maximum number of runs of the benchmark, the newest ones, that are read.
const RUNS_MAX: usize = 500;
const CONCURRENT_READS: usize = 16;
const NAME_CHARS_MAX: usize = 128;

/// Returns the route.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new().route("/api/leaderboard", get(get_leaderboard))
}

/// OpenAPI description of the route.
#[derive(OpenApi)]
#[openapi(paths(get_leaderboard))]
pub(crate) struct Document;

/// Ranks models within one benchmark.
///
/// Only like is ranked with like: each board has one protocol, prompt template, dataset revision, set of items, judge and
/// set of changed settings. Of each model and thinking level, the latest run in which every sample was graded ranks; its best run is shown with
/// the number of runs that it was chosen from. Differences that chance explains are ties, shown as ranges of ranks. On a
/// server that isn't bound to loopback, the oracle, stored responses, demo data, files of users and addresses other than
/// the provider's own never rank. Without `benchmark`, the response only lists the benchmarks that have runs.
#[utoipa::path(
    get, path = "/api/leaderboard", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("benchmark" = Option<String>, Query, description = "Name of the benchmark")),
    responses(
        (status = 200, body = LeaderboardView),
        (status = 404, body = ErrorBody, description = "There is no such benchmark"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_leaderboard(
    State(api): State<Arc<Api>>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<LeaderboardView>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let name = fields.maybe_text("benchmark", NAME_CHARS_MAX).filter(|name| !name.trim().is_empty());
    fields.finish()?;
    let benchmark = name.map(|name| find(&name)).transpose()?;
    leaderboard(&api, benchmark, identity.reader()).await.map(Json)
}

/// Returns the name of a benchmark.
fn find(name: &str) -> Result<BenchmarkName, ApiError> {
    let parsed = name.trim().parse::<BenchmarkName>().ok();
    let found = parsed.and_then(|name| bench_benchmarks::find_named(&name));
    found.and_then(|benchmark| benchmark.name().parse().ok()).ok_or_else(|| {
        ApiError::new(Code::BenchmarkNotFound, "benchmark not found; `GET /api/benchmarks` lists them")
    })
}

async fn leaderboard(
    api: &Api,
    benchmark: Option<BenchmarkName>,
    caller: &Caller,
) -> Result<LeaderboardView, ApiError> {
    // A run that failed may have benchmarks that succeeded.
    let statuses = Statuses::of(&[RunStatus::Succeeded, RunStatus::Failed]);
    let filter = RunFilter { viewer: listed_owners(caller), ..RunFilter::default() };
    let mut over = runs_with_statuses(api, filter, &statuses).await?;
    let mut is_complete = over.len() <= SEARCHED_RUNS_MAX;
    over.truncate(SEARCHED_RUNS_MAX);
    let facts = api.run_facts(&over).await?;
    let benchmarks = bench_benchmarks::all().iter().filter_map(|known| {
        let has = |run: &&RunId| {
            facts
                .get(*run)
                .is_some_and(|facts| facts.benchmarks.iter().any(|name| name.as_str() == known.name()))
        };
        let runs = over.iter().filter(has).count() as u64;
        (runs > 0).then(|| ListedBenchmark { benchmark_name: known.name().to_owned(), runs })
    });
    let mut benchmarks: Vec<ListedBenchmark> = benchmarks.collect();
    benchmarks.sort_by(|a, b| a.benchmark_name.cmp(&b.benchmark_name));
    let (mut boards, mut excluded) = (Boards::default(), ExcludedView::default());
    let (mut runs_read, mut oldest_read_at) = (0, None);
    if let Some(name) = &benchmark {
        over.retain(|run| facts.get(run).is_some_and(|facts| facts.benchmarks.contains(name)));
        is_complete &= over.len() <= RUNS_MAX;
        over.truncate(RUNS_MAX);
        runs_read = over.len() as u64;
        let read = over.into_iter().map(|run| api.state.run_with_benchmarks(run));
        let mut found = stream::iter(read).buffered(CONCURRENT_READS);
        while let Some(run) = found.try_next().await? {
            // It may have been deleted or hidden in the meantime.
            let Some(run) = run.filter(|run| caller.finds_run(&run.run.spec)) else { continue };
            oldest_read_at = Some(run.run.spec.created_at);
            match candidate(api, &run, name) {
                Ok(candidate) => boards.add(candidate),
                Err(reason) => excluded.count(reason),
            }
        }
    }
    let (boards, partial) = boards.finish();
    excluded.partial = partial;
    Ok(LeaderboardView {
        benchmark: benchmark.as_ref().map(ToString::to_string),
        benchmarks,
        boards,
        tie_method: TIE_METHOD,
        excluded,
        runs_read,
        runs_max: RUNS_MAX as u64,
        is_complete,
        oldest_read_at,
    })
}

fn candidate(api: &Api, run: &RunWithBenchmarks, name: &BenchmarkName) -> Result<Candidate, Exclusion> {
    let record = run.benchmark(name.as_str()).ok_or(Exclusion::Failed)?;
    let is_exposed = !api.config.server.local;
    Candidate::new(run, record, is_exposed)
}
