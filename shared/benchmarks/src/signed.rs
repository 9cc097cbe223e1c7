//! Results that a supervisor in a sandbox signed with a key that the programs it runs don't have.

use bench_domain::{JobEnd, JobReport};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::grading::shorten;

/// Maximum number of characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 300;

/// Result file: a text and its authentication code.
#[derive(Deserialize)]
struct SignedResult {
    text: String,
    code: String,
}

/// Returns the text of a result file if the supervisor wrote it.
pub(crate) fn read_signed(report: &JobReport, path: &str, key: &[u8]) -> Result<String, String> {
    let Some(file) = report.files.get(path) else { return Err(format!("`{path}` is missing")) };
    let text = report.text(path).ok_or_else(|| format!("`{path}` cannot be read: {file:?}"))?;
    let SignedResult { text, code } =
        serde_json::from_str(text).map_err(|error| format!("`{path}` cannot be parsed: {error}"))?;
    let inner = Sha256::new().chain_update(key).chain_update(format!("{path}\n{text}")).finalize();
    let expected = hex::encode(Sha256::new().chain_update(key).chain_update(inner).finalize());
    match expected == code {
        true => Ok(text),
        false => Err(format!("`{path}` was not written by the supervisor")),
    }
}

/// Returns the text of a result file, whoever wrote it.
pub(crate) fn unsigned_text(report: &JobReport, path: &str) -> Option<String> {
    serde_json::from_str(report.text(path)?).ok().map(|SignedResult { text, .. }| text)
}

/// Describes why a report has no verdict, including how its job ended.
pub(crate) fn describe_failure(why: &str, report: &JobReport) -> String {
    let end = match report.end {
        JobEnd::Exited(status) => format!("the job exited with status {status}"),
        JobEnd::TimedOut => "the job exceeded its time limit".to_owned(),
        JobEnd::Vanished => "the job disappeared".to_owned(),
        JobEnd::Halted => "the job was stopped by its program".to_owned(),
        JobEnd::OverLimit => "the program exceeded the sandbox's limits".to_owned(),
    };
    let last = report.stderr_tail.trim().lines().last().unwrap_or_default();
    let complaint =
        if last.is_empty() { String::new() } else { format!(": {}", shorten(last, ERROR_CHARS_MAX)) };
    format!("{why}; {end}{complaint}")
}
