//! Logs of an episode: all of them shortened, or one of them page by page.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_domain::{Code, EpisodeLog, EpisodeReport};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Identity, Path};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::episode;
use super::params::Params;
use super::runs::{FoundEpisode, find_episode};
use crate::Api;
use crate::runs::item_log::{LogFileView, NAME_CHARS_MAX, PAGE_BYTES_DEFAULT, PAGE_BYTES_MAX, page};

/// Maximum length of all logs together, in characters.
const LOGS_CHARS_MAX: usize = 50_000;
/// Heading of the test output, by which clients find it.
const TEST_HEADING: &str = "=== TEST OUTPUT ===\n";

/// Logs of an episode.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EpisodeLogs)]
pub(crate) struct LogsView {
    run_id: u64,
    task_id: u64,
    run_number: u32,
    status: &'static str,
    /// The page of the log that `log` names. Without `log`, all logs together, at most 50,000 characters, with the test
    /// output last and never cut.
    logs: String,
    error_message: Option<String>,
    /// Stored logs.
    log_files: Vec<LogFileView>,
    /// Name of the log that the page is from.
    log: Option<String>,
    /// Offset of the page in bytes.
    offset: u64,
    /// Offset of the next page; null at the end.
    next_offset: Option<u64>,
}

/// Returns the logs of an episode.
///
/// With `log`, it returns a page of one log, which may have any length.
#[utoipa::path(
    get, path = "/api/tasks/{task_id}/runs/{run_id}/logs", tag = "tasks",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("task_id" = u64, Path, description = "Id of the task"),
        ("run_id" = u64, Path, description = "Id of the episode"),
        ("log" = Option<String>, Query, description = "Name of a log in `log_files`"),
        ("offset" = Option<u64>, Query, description = "First byte of the page, default 0"),
        ("limit" = Option<u64>, Query, description = "Size of the page in bytes, 4 to 1048576, default 65536"),
    ),
    responses(
        (status = 200, body = LogsView),
        (status = 404, body = ErrorBody, description = "There is no such episode or log, or it belongs to another caller"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_logs(
    State(api): State<Arc<Api>>,
    Path((task, run)): Path<(String, String)>,
    uri: Uri,
    identity: Identity,
) -> Result<Json<LogsView>, ApiError> {
    let mut params = Params::new(&[("task_id", &task), ("run_id", &run)], &uri);
    let (task, run) = (params.id("task_id"), params.id("run_id"));
    let name = params.query.maybe_text("log", NAME_CHARS_MAX);
    let offset = params.query.integer("offset", 0, 0, u64::MAX);
    // A page has room for at least one character.
    let limit = params.query.integer("limit", PAGE_BYTES_DEFAULT, 4, PAGE_BYTES_MAX);
    params.finish()?;
    let found = find_episode(&api, &identity, task, run).await?;
    let (all, report) = all_logs(&api, &found).await?.unwrap_or_default();
    let mut view = LogsView {
        run_id: found.view.id,
        task_id: found.view.task_id,
        run_number: found.view.run_number,
        status: found.view.status,
        logs: all,
        error_message: found.view.error_message.clone(),
        log_files: report.logs.iter().map(LogFileView::from).collect(),
        log: None,
        offset: 0,
        next_offset: None,
    };
    if let Some(name) = name {
        let log = report.logs.iter().find(|log| log.name == name);
        let log = log.ok_or_else(|| {
            ApiError::new(
                Code::LogNotFound,
                "the episode has no log of this name; `log_files` lists its logs",
            )
        })?;
        let (text, end) = page(&log.text, offset, limit);
        view.logs = text;
        view.log = Some(name);
        view.offset = offset;
        view.next_offset = end;
    }
    Ok(Json(view))
}

/// Returns all logs of an episode together, and its report; `None` if it isn't over.
pub(crate) async fn all_logs(
    api: &Api,
    found: &FoundEpisode,
) -> Result<Option<(String, EpisodeReport)>, ApiError> {
    let sample = found.sample.as_ref();
    let body = sample.and_then(|sample| sample.finished.as_ref()).and_then(|finished| finished.body.as_ref());
    let (Some(sample), Some(body)) = (sample, body) else { return Ok(None) };
    let report = episode::report(api, &found.loaded, sample, body).await?;
    Ok(report.map(|report| (compose(&report.logs, &report.test_output), report)))
}

fn is_test_output(log: &EpisodeLog) -> bool {
    log.name.ends_with("test-stdout.txt")
}

/// Puts logs and test output together. Only logs are cut.
fn compose(logs: &[EpisodeLog], test_output: &str) -> String {
    let tests = match test_output.is_empty() {
        true => String::new(),
        false => format!("\n\n{TEST_HEADING}{test_output}"),
    };
    let mut text = String::new();
    for log in logs.iter().filter(|log| !is_test_output(log)) {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}=== {} ===\n{}", log.name, log.text));
    }
    let room = LOGS_CHARS_MAX.saturating_sub(tests.chars().count());
    if let Some((end, _)) = text.char_indices().nth(room) {
        text.truncate(end);
    }
    text + &tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str, text: String) -> EpisodeLog {
        EpisodeLog { name: name.into(), bytes: text.len() as u64, text, omitted: 0 }
    }

    #[test]
    fn the_test_output_is_last_and_never_cut() {
        let tests = "t".repeat(5_000);
        let logs = [
            log("agent/oracle.txt", "ä".repeat(80_000)),
            log("verifier/test-stdout.txt", tests.clone()),
            log("build.log", "x".into()),
        ];
        let text = compose(&logs, &tests);
        assert_eq!(text.chars().count(), LOGS_CHARS_MAX);
        assert!(text.starts_with("=== agent/oracle.txt ===\nää"));
        assert!(text.ends_with(&format!("\n\n=== TEST OUTPUT ===\n{tests}")));
        assert_eq!(compose(&[], ""), "");
    }
}
