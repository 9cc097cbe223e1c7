//! Artifacts of an attempt at a task, under the names that the reference harness gives them.

use bench_code_tasks::{Answer as Change, ReadError, unified_diff};
use bench_domain::{Answer, EpisodeLog, Execution, SampleBody};
use bench_items::Item;
use serde_json::{Value, json};

use super::grader::{FailedBuild, TaskResults, unsigned_results};
use super::row;

/// Returns the artifacts of a stored attempt. Files that would be empty are left out.
pub(super) fn artifacts(item: &Item, body: &SampleBody) -> Vec<EpisodeLog> {
    let results = body.execution.as_ref().and_then(|execution| unsigned_results(&execution.report));
    let mut files = vec![
        ("prompt.txt", body.prompt.as_text()),
        ("response.txt", body.answer.text.clone()),
        ("response.json", pretty(&response(&body.answer))),
    ];
    if let Ok(task) = row::task(item) {
        let applied = Change::read(&body.answer.text)
            .map_err(|error| describe(&error, body))
            .and_then(|change| change.apply(&task.workspace).map_err(|error| error.to_string()));
        match applied {
            Ok(applied) => {
                files.push((
                    "patch.diff",
                    unified_diff(&task.workspace, &applied.workspace, &applied.changed),
                ));
            }
            Err(why) => files.push(("error.log", format!("{why}\n"))),
        }
    }
    if let Some(results) = &results {
        files.push(("build.log", results.build_output.clone()));
        files.push(("stdout.log", results.test_output.clone()));
        files.push(("tests.json", pretty(&tests(results))));
        files.extend(results.crash.as_ref().map(|crash| ("error.log", format!("{crash}\n"))));
    }
    if let Some(execution) = &body.execution {
        files.push(("stderr.log", execution.report.stderr_tail.clone()));
        files.push(("execution.json", pretty(&execution_facts(execution, results.as_ref()))));
    }
    let files = files.into_iter().filter(|(_, text)| !text.is_empty());
    files
        .map(|(name, text)| EpisodeLog { name: name.to_owned(), bytes: text.len() as u64, text, omitted: 0 })
        .collect()
}

/// Describes an answer without a change. An agent answers by what it leaves, and not by a reply.
fn describe(error: &ReadError, body: &SampleBody) -> String {
    match (error, &body.episode) {
        (ReadError::Empty, Some(episode)) => match &episode.exception {
            Some(exception) => format!("the agent left no change: {}", exception.message),
            None => "the agent left no change".to_owned(),
        },
        _ => error.to_string(),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).map_or_else(|_| String::new(), |text| format!("{text}\n"))
}

/// Returns what the provider said about its reply, without the text.
fn response(answer: &Answer) -> Value {
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("text");
    }
    value
}

fn tests(results: &TaskResults) -> Value {
    let test = |(name, test): (&String, &super::TestResult)| json!({ "test": name, "outcome": test.outcome, "seconds": test.seconds, "message": test.text });
    json!(results.tests.iter().map(test).collect::<Vec<_>>())
}

fn execution_facts(execution: &Execution, results: Option<&TaskResults>) -> Value {
    let build = results.and_then(|results| results.build.as_ref());
    json!({
        "sandbox": execution.round,
        "isolation": execution.report.isolation,
        "end": execution.report.end,
        "elapsed_ms": execution.report.elapsed_ms,
        "build_seconds": results.map(|results| results.build_seconds),
        "test_seconds": results.map(|results| results.test_seconds),
        "limit_seconds": results.and_then(|results| results.limit_seconds),
        "limit_reason": results.filter(|results| results.limit_seconds.is_some()).map(|results| &results.limit_reason),
        "timed_out": results.map(|results| results.timed_out),
        "failed_build": build.map(|FailedBuild { argv, status }| json!({ "argv": argv, "status": status })),
        "own_user": results.map(|results| results.apart),
    })
}

#[cfg(test)]
mod tests {
    use bench_domain::{EpisodeException, EpisodeReport, Prompt};

    use super::*;

    #[test]
    fn an_agent_without_a_change_has_no_empty_reply() {
        let item = Item::new("x", None, bench_items::Row::new());
        let with = |episode| SampleBody {
            episode,
            ..SampleBody::new("x", Prompt::user("?"), Answer::local(""), "")
        };
        let report = |exception: Option<&str>| EpisodeReport {
            agent: "bash".to_owned(),
            round: 1,
            exception: exception.map(|message| EpisodeException {
                name: "ChangeTooLargeError".to_owned(),
                message: message.to_owned(),
            }),
            ..EpisodeReport::default()
        };
        for (body, expected) in [
            (with(None), "the reply is empty"),
            (with(Some(report(None))), "the agent left no change"),
            (
                with(Some(report(Some("it left too many files")))),
                "the agent left no change: it left too many files",
            ),
        ] {
            assert_eq!(describe(&ReadError::Empty, &body), expected);
        }
        assert!(
            artifacts(&item, &with(None)).iter().all(|file| file.name != "error.log"),
            "the item is no task"
        );
    }
}
