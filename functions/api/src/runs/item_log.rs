//! Logs of a sample that is an episode, page by page.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_blobs::BlobError;
use bench_domain::{Code, EpisodeLog, RunId, SampleBody};
use bench_state::SampleRecord;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader, Identity, Path};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::runs::one_sample::{OneSample, SampleQuery};
use crate::runs::requests::run_id;

/// Default and maximum size of a page in bytes.
pub(crate) const PAGE_BYTES_DEFAULT: u64 = 64 * 1024;
pub(crate) const PAGE_BYTES_MAX: u64 = 1 << 20;
/// Maximum length of a log's name, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 255;

/// A stored log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EpisodeLog)]
pub(crate) struct LogFileView {
    /// Name, such as `agent/oracle.txt`.
    name: String,
    /// Size of the stored text in bytes, which pages divide.
    bytes: u64,
    /// Number of bytes of the file that were left out in its middle.
    omitted: u64,
}

impl From<&EpisodeLog> for LogFileView {
    fn from(log: &EpisodeLog) -> Self {
        Self { name: log.name.clone(), bytes: log.text.len() as u64, omitted: log.omitted }
    }
}

/// Page of a log of an episode.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ItemLog)]
pub(crate) struct ItemLogView {
    /// Id of the run.
    #[schema(value_type = String, format = "uuid")]
    run_id: RunId,
    /// Name of the benchmark.
    benchmark_name: String,
    /// Index of the item in the run's plan, from 0.
    position: u32,
    /// Index of the sample among those of its item, from 0.
    sample: u32,
    /// Number of the attempt that the logs are of; null if there are none.
    attempt: Option<u32>,
    /// Stored logs: those of an episode, the artifacts of an attempt at a programming task, and patch and outputs of a
    /// verification. None before the sample is over, for samples of other benchmarks, and for others than the run's owner if
    /// the dataset is gated.
    log_files: Vec<LogFileView>,
    /// Name of the log that the page is from; null without `log`.
    log: Option<String>,
    /// The page; empty without `log`.
    text: String,
    /// Offset of the page in bytes.
    offset: u64,
    /// Offset of the next page; null at the end.
    next_offset: Option<u64>,
}

/// Returns a page of a log of an episode, such as `agent/trajectory.json`. Without `log`, lists the episode's logs.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/items/log", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("benchmark" = String, Query, description = "Name of the benchmark"),
        ("position" = Option<u32>, Query, description = "Index of the item in the run's plan, default 0"),
        ("sample" = Option<u32>, Query, description = "Index of the sample among those of its item, default 0"),
        ("attempt" = Option<u32>, Query, description = "Number of an attempt, from 1; default the one that was graded"),
        ("log" = Option<String>, Query, description = "Name of a log in `log_files`"),
        ("offset" = Option<u64>, Query, description = "First byte of the page, default 0"),
        ("limit" = Option<u64>, Query, description = "Size of the page in bytes, 4 to 1048576, default 65536"),
    ),
    responses(
        (status = 200, body = ItemLogView),
        (status = 404, body = ErrorBody, description = "The run, its benchmark, the sample or the log doesn't exist"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_item_log(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<ItemLogView>, ApiError> {
    let run = run_id(&run)?;
    let mut fields = FieldReader::from_query(&uri);
    let query = SampleQuery::read(&mut fields);
    let attempt = fields.integer("attempt", 0, 0, u32::MAX.into());
    let log = fields.maybe_text("log", NAME_CHARS_MAX);
    let offset = fields.integer("offset", 0, 0, u64::MAX);
    // A page has room for at least one character.
    let limit = fields.integer("limit", PAGE_BYTES_DEFAULT, 4, PAGE_BYTES_MAX);
    fields.finish()?;
    let one = query.find(&api, run, &identity).await?;
    one.must_exist()?;
    let attempt = u32::try_from(attempt).ok().filter(|attempt| *attempt > 0);
    let found = if one.is_hidden { None } else { stored_logs(&api, &one, attempt).await? };
    let (attempt, logs) = found.map_or_else(Default::default, |(attempt, logs)| (Some(attempt), logs));
    let mut view = ItemLogView {
        run_id: run,
        benchmark_name: one.benchmark.to_string(),
        position: query.position,
        sample: query.sample,
        attempt,
        log_files: logs.iter().map(LogFileView::from).collect(),
        log: None,
        text: String::new(),
        offset: 0,
        next_offset: None,
    };
    if let Some(name) = log {
        let log = logs.iter().find(|log| log.name == name);
        let log = log.ok_or_else(|| {
            ApiError::new(
                Code::LogNotFound,
                "the sample has no log of this name; `log_files` lists those of episodes",
            )
        })?;
        (view.text, view.next_offset) = page(&log.text, offset, limit);
        (view.log, view.offset) = (Some(name), offset);
    }
    Ok(Json(view))
}

/// Returns a page of an artifact of an attempt at a programming task or of a verification, such as `patch.diff`. Without `log`, lists the attempt's
/// artifacts. The answer is that of `GET /api/runs/{run_id}/items/log`.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/artifacts", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("benchmark" = String, Query, description = "Name of the benchmark"),
        ("position" = Option<u32>, Query, description = "Index of the item in the run's plan, default 0"),
        ("sample" = Option<u32>, Query, description = "Index of the sample among those of its item, default 0"),
        ("attempt" = Option<u32>, Query, description = "Number of an attempt, from 1; default the one that was graded"),
        ("log" = Option<String>, Query, description = "Name of an artifact in `log_files`"),
        ("offset" = Option<u64>, Query, description = "First byte of the page, default 0"),
        ("limit" = Option<u64>, Query, description = "Size of the page in bytes, 4 to 1048576, default 65536"),
    ),
    responses(
        (status = 200, body = ItemLogView),
        (status = 404, body = ErrorBody, description = "The run, its benchmark, the sample or the artifact doesn't exist"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_artifacts(
    state: State<Arc<Api>>,
    run: Path<String>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<ItemLogView>, ApiError> {
    get_item_log(state, run, identity, uri).await
}

/// Reads the logs of an attempt at a sample, by default the one that was graded. `None` if its stored body doesn't exist or
/// is lost.
async fn stored_logs(
    api: &Api,
    one: &OneSample,
    attempt: Option<u32>,
) -> Result<Option<(u32, Vec<EpisodeLog>)>, ApiError> {
    let Some(record) = &one.record else { return Ok(None) };
    let graded = record.finished.as_ref().and_then(|finished| finished.body.as_ref());
    let (number, sha256) = match (attempt, graded) {
        (Some(attempt), Some(graded)) if attempt == graded.attempt => (attempt, Some(&graded.sha256)),
        (Some(attempt), _) => (attempt, None),
        (None, Some(graded)) => (graded.attempt, Some(&graded.sha256)),
        (None, None) => return Ok(None),
    };
    let Some(address) = &one.address else { return Ok(None) };
    let body = match api.blobs.get_body(address, number, sha256.map(String::as_str)).await {
        Ok(Some((body, _))) => body,
        Ok(None) => return Ok(None),
        Err(error @ (BlobError::Damaged { .. } | BlobError::TooLarge { .. })) => {
            tracing::error!(run.id = %address.run, %error, "The logs of {address} cannot be read: {error}");
            return Ok(None);
        }
        Err(error) => return Err(ApiError::internal(error)),
    };
    let mut logs = artifacts(api, one, record, &body).await?;
    if let Some(report) = &body.verification {
        logs.extend(bench_web::views::verification_files(&body.answer.text, report));
    }
    logs.extend(body.episode.map(|report| report.logs).unwrap_or_default());
    Ok(Some((number, logs)))
}

/// Returns the artifacts of an attempt, for benchmarks that keep some.
async fn artifacts(
    api: &Api,
    one: &OneSample,
    record: &SampleRecord,
    body: &SampleBody,
) -> Result<Vec<EpisodeLog>, ApiError> {
    let benchmark = one.found.benchmark(one.benchmark.as_str());
    let Some(plan) = benchmark.and_then(|benchmark| benchmark.plan.as_ref()) else { return Ok(Vec::new()) };
    let spec = &one.found.run.spec;
    let has_grader =
        bench_benchmarks::find_for_run(spec, &one.benchmark).is_some_and(|found| found.sandbox().is_some());
    if !has_grader {
        return Ok(Vec::new());
    }
    let item =
        bench_datasets::load_item(&api.blobs, &plan.dataset.data_key, record.offset, record.length).await;
    let item = item.map_err(ApiError::internal)?;
    Ok(bench_benchmarks::artifacts(spec, &one.benchmark, &item, body))
}

/// Returns at most `limit` bytes of a text from `offset` on, and where the next page begins. Characters stay whole.
pub(crate) fn page(text: &str, offset: u64, limit: u64) -> (String, Option<u64>) {
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(text.len());
    let boundary = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (start, end) = (boundary(place(offset)), boundary(place(offset.saturating_add(limit))));
    let page = text.get(start..end).unwrap_or_default().to_owned();
    (page, (end < text.len()).then_some(end as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_end_between_characters_and_cover_the_text() {
        let text = "aé🦀b".repeat(100);
        for limit in [4, 5, 7, 64, 10_000] {
            let (mut read, mut offset) = (String::new(), Some(0));
            while let Some(at) = offset {
                let (part, next) = page(&text, at, limit);
                assert!(part.len() as u64 <= limit);
                read.push_str(&part);
                offset = next;
            }
            assert_eq!(read, text, "{limit}");
        }
        assert_eq!(page("é", 1, 4), ("é".to_owned(), None));
        assert_eq!(page("abc", u64::MAX, u64::MAX), (String::new(), None));
    }
}
