//! Judgings of a run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_domain::{RunId, RunStatus, Timestamp, UnusualStatus};
use bench_state::RunWithBenchmarks;
use bench_web::error::ErrorBody;
use bench_web::views::{JudgeOrderView, JudgeView};
use bench_web::{ApiError, Caller, Identity, Path};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::runs::requests::{run_id, run_not_found, visible_run};

/// Maximum number of concurrent reads of runs.
const CONCURRENT_READS: usize = 16;

/// Judgings of a run's answers.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JudgingsView {
    /// Run that asked the model: judging 1.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// Model of the run, with its provider.
    pub model: String,
    /// Judgings, by number.
    pub judgings: Vec<JudgingView>,
}

/// One judging.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JudgingView {
    /// Number of the judging; 1 is the run itself.
    pub version: u32,
    /// Run of the judging.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// Judge as ordered; null if no benchmark needs one.
    pub judge: Option<JudgeOrderView>,
    /// Time of the order.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Status of the run; null if it was deleted.
    #[schema(value_type = Option<String>)]
    pub status: Option<RunStatus>,
    /// True if the run was deleted. Its number isn't used again.
    pub deleted: bool,
    /// Results of the judged benchmarks.
    pub benchmarks: Vec<JudgedBenchmarkView>,
}

/// Result of one benchmark in a judging.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JudgedBenchmarkView {
    /// Name of the benchmark.
    pub benchmark_name: String,
    /// Status of the benchmark.
    pub status: String,
    /// Score; null until the benchmark is over, and if too few samples were graded.
    pub score: Option<f64>,
    /// Graded / planned samples; null until the benchmark is over.
    pub coverage: Option<f64>,
    /// Judge with the settings that were used; null until planned.
    pub judge: Option<JudgeView>,
}

/// Lists the judgings of a run's answers.
///
/// Judging 1 is the run itself. For a run that judges answers again, these are the judgings of the run that asked the
/// model. Callers who don't own the run get its public judgings that exist.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/judgings", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("run_id" = String, Path, description = "Id of the run")),
    responses((status = 200, body = JudgingsView), (status = 404, body = ErrorBody)),
)]
pub(crate) async fn get_judgings(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    identity: Identity,
) -> Result<Json<JudgingsView>, ApiError> {
    judgings_for(&api, run_id(&run)?, identity.reader()).await.map(Json)
}

/// Lists the judgings of a run.
///
/// # Errors
/// 404 when the run doesn't exist, or when the run that asked the model was deleted, and the list with it.
pub async fn judgings(api: &Api, run: RunId) -> Result<JudgingsView, ApiError> {
    judgings_for(api, run, &Caller::Local).await
}

/// Lists the judgings of a run that the caller may find.
async fn judgings_for(api: &Api, run: RunId, caller: &Caller) -> Result<JudgingsView, ApiError> {
    let asked = visible_run(api, run, caller).await?;
    let first = asked.spec.rejudges.map_or(run, |rejudges| rejudges.run);
    let found = api.state.run_with_benchmarks(first).await?;
    let Some(found) = found else {
        let detail = "the run whose answers were judged again was deleted";
        return Err(ApiError::unusual(UnusualStatus::JudgingsOfDeletedRun, detail));
    };
    if !caller.sees_run(&found.run.spec) {
        return Err(run_not_found());
    }
    let is_owner = caller.owns(&found.run.spec.owner);
    let records = api.state.judgings(first).await?;
    let read = |record: bench_state::JudgingRecord| async move {
        let found = api.state.run_with_benchmarks(record.run).await?;
        // The caller knows the id of the run in the path. A deleted run has no visibility any more.
        let is_listed =
            record.run == run || found.as_ref().map_or(is_owner, |found| caller.finds_run(&found.run.spec));
        if !is_listed {
            return Ok(None);
        }
        let view = JudgingView {
            version: record.version,
            run_id: record.run,
            judge: Some(JudgeOrderView::from(&record.judge)),
            created_at: record.created_at,
            status: found.as_ref().map(|found| found.run.state.status()),
            deleted: found.is_none(),
            benchmarks: found.as_ref().map(benchmarks).unwrap_or_default(),
        };
        Ok::<_, ApiError>(Some(view))
    };
    let again: Vec<Option<JudgingView>> =
        stream::iter(records.into_iter().map(read)).buffered(CONCURRENT_READS).try_collect().await?;
    let spec = &found.run.spec;
    let itself = JudgingView {
        version: 1,
        run_id: first,
        judge: spec.judge.as_ref().map(JudgeOrderView::from),
        created_at: spec.created_at,
        status: Some(found.run.state.status()),
        deleted: false,
        benchmarks: benchmarks(&found),
    };
    let model = spec.model.qualified();
    Ok(JudgingsView {
        run_id: first,
        model,
        judgings: std::iter::once(itself).chain(again.into_iter().flatten()).collect(),
    })
}

/// Returns the judged benchmarks of a run.
fn benchmarks(found: &RunWithBenchmarks) -> Vec<JudgedBenchmarkView> {
    let spec = &found.run.spec;
    let judged = found.benchmarks.iter().filter(|record| {
        bench_benchmarks::find_for_run(spec, &record.name)
            .is_some_and(|benchmark| benchmark.judge().is_some())
    });
    let view = judged.map(|record| JudgedBenchmarkView {
        benchmark_name: record.name.to_string(),
        status: record.state.status().to_string(),
        score: record.state.report().and_then(|report| report.score),
        coverage: record.state.report().map(|report| report.coverage),
        judge: record.plan.as_ref().and_then(|plan| plan.judge.as_ref()).map(JudgeView::from),
    });
    view.collect()
}
