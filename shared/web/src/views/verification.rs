//! Results of verifications. Containers have written all of it: texts are limited and only shown as text.

use bench_domain::{EpisodeLog, EpisodeReport, VerificationReport};
use serde_json::{Map, Value, json};

use super::clean::{clean, object};
use super::episode::{LOG_BYTES_MAX, LOGS_BYTES_MAX, LOGS_MAX, episode_results, exception, name};
use super::execution::end_of;

/// Folder of a verification's files among those of its attempt.
const FOLDER: &str = "verification";

/// Returns the result of an answer that was verified: that of the agent, if one made it, with the verification.
pub(super) fn verified(report: &VerificationReport, episode: Option<&EpisodeReport>) -> Map<String, Value> {
    let mut results = match episode {
        Some(episode) => episode_results(episode),
        None => object(json!({ "engine": name(&report.engine), "episode_steps": [], "logs": [] })),
    };
    results.insert("verification".to_owned(), Value::Object(verification_results(report)));
    results
}

/// Returns the result of a verification: engine, end of its command, times, and the ends of its files.
fn verification_results(report: &VerificationReport) -> Map<String, Value> {
    let mut left = LOGS_BYTES_MAX;
    let logs = files(report).take(LOGS_MAX).map(|(path, log)| {
        let shown = end_of(&log.text, LOG_BYTES_MAX.min(left));
        left -= shown.len();
        let is_cut = shown.len() < log.text.len();
        json!({ "name": name(&path), "bytes": log.bytes, "end": clean(shown), "cut": is_cut })
    });
    let logs: Vec<Value> = logs.collect();
    object(json!({
        "engine": name(&report.engine),
        "round": report.round,
        "exit_code": report.exit_code,
        "timed_out": report.is_timed_out,
        "setup_ms": report.setup_ms,
        "command_ms": report.command_ms,
        "exception": report.exception.as_ref().map(exception),
        "logs": logs,
    }))
}

/// Returns what is kept of a verified answer as files for people: the patch, the outputs, and a summary with times.
pub fn verification_files(answer: &str, report: &VerificationReport) -> Vec<EpisodeLog> {
    let file = |name: String, text: String| EpisodeLog { name, bytes: text.len() as u64, text, omitted: 0 };
    let mut kept = Vec::new();
    if !answer.is_empty() {
        kept.push(file("patch.diff".to_owned(), answer.to_owned()));
    }
    kept.extend(files(report).map(|(name, log)| EpisodeLog { name, ..log.clone() }));
    let mut summary = verification_results(report);
    summary.remove("logs");
    let summary = serde_json::to_string_pretty(&Value::Object(summary)).unwrap_or_default();
    kept.push(file(format!("{FOLDER}/summary.json"), format!("{summary}\n")));
    kept
}

/// Returns the outputs and the other texts of a verification, by their names among the files of its attempt.
fn files(report: &VerificationReport) -> impl Iterator<Item = (String, &EpisodeLog)> {
    report.outputs.iter().chain(&report.logs).map(|log| (format!("{FOLDER}/{}", log.name), log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_files_beside_the_patch() {
        let log = |name: &str, text: &str| EpisodeLog {
            name: name.to_owned(),
            bytes: text.len() as u64,
            text: text.to_owned(),
            omitted: 0,
        };
        let report = VerificationReport {
            engine: "podman 4".to_owned(),
            command_ms: Some(5),
            outputs: vec![log("output.json", "{}")],
            logs: vec![log("command/stdout.txt", "applied")],
            ..VerificationReport::default()
        };
        let files = verification_files("diff", &report);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let expected = [
            "patch.diff",
            "verification/output.json",
            "verification/command/stdout.txt",
            "verification/summary.json",
        ];
        assert_eq!(names, expected);
        assert!(files[3].text.contains("\"command_ms\": 5") && !files[3].text.contains("logs"));
        assert_eq!(verification_files("", &report).len(), 3);
        let shown = verification_results(&report);
        assert_eq!(
            shown["logs"][0],
            json!({ "name": "verification/output.json", "bytes": 2, "end": "{}", "cut": false })
        );
    }
}
