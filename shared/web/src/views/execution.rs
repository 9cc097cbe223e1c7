//! Steps of an item with several questions, and executions of answers in a sandbox. Models, or programs that
//! models wrote, produced all of it: texts are limited in length and only shown as text.

use std::collections::BTreeMap;

use bench_domain::{Execution, HarvestedFile, JobEnd, Step};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::clean::{clean, clean_value, object};

/// Maximum size of a step's prompt, and of its response, in bytes.
const STEP_TEXT_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of steps.
const STEPS_MAX: usize = 200;
/// Maximum size of a program's stdout or stderr, in bytes.
const OUTPUT_BYTES_MAX: usize = 8_000;
/// Maximum size of one file that a job left, in bytes.
const FILE_BYTES_MAX: usize = 32 * 1024;
/// Maximum size of all files together, in bytes.
const FILES_BYTES_MAX: usize = 128 * 1024;
/// Maximum number of files.
const FILES_MAX: usize = 64;
const PATH_BYTES_MAX: usize = 256;

/// One question of an item with several steps, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StepView {
    /// Name of the step in the dataset.
    pub name: String,
    /// Prompt of the question.
    pub prompt: String,
    /// The model's answer.
    pub response: String,
    /// Reasoning that the provider sent separately from the answer.
    pub reasoning: Option<String>,
    /// Reason why the model stopped, as reported by the provider.
    pub finish_reason: Option<String>,
    /// Time from the request to the end of the answer, in milliseconds.
    pub latency_ms: Option<u64>,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, including reasoning.
    pub output_tokens: Option<u64>,
    /// True if a text is longer than 256 KiB and only its beginning is shown.
    pub cut: bool,
}

impl StepView {
    fn new(step: &Step) -> Self {
        let Step { name, prompt, answer } = step;
        let (prompt, response) = (clean(&prompt.as_text()), clean(&answer.text));
        let reasoning = answer.reasoning.as_deref().map(clean);
        let texts = [Some(&prompt), Some(&response), reasoning.as_ref()];
        let cut = texts.into_iter().flatten().any(|text| text.len() > STEP_TEXT_BYTES_MAX);
        Self {
            name: beginning(&clean(name), PATH_BYTES_MAX).to_owned(),
            prompt: beginning(&prompt, STEP_TEXT_BYTES_MAX).to_owned(),
            response: beginning(&response, STEP_TEXT_BYTES_MAX).to_owned(),
            reasoning: reasoning.map(|text| beginning(&text, STEP_TEXT_BYTES_MAX).to_owned()),
            finish_reason: answer.finish.as_wire().map(clean),
            latency_ms: Some(answer.latency_ms),
            input_tokens: answer.usage.map(|usage| usage.input_tokens),
            output_tokens: answer.usage.map(|usage| usage.output_tokens),
            cut,
        }
    }
}

/// Returns the questions of an item; `None` if it has a single one.
pub(super) fn steps(steps: &[Step]) -> Option<Vec<StepView>> {
    (!steps.is_empty()).then(|| steps.iter().take(STEPS_MAX).map(StepView::new).collect())
}

/// Returns the result of an execution, in the field where clients of the compatible system look for test results.
pub(super) fn test_results(execution: &Execution) -> Map<String, Value> {
    let report = &execution.report;
    let (end, exit_code) = match report.end {
        JobEnd::Exited(code) => ("exited", Some(code)),
        JobEnd::TimedOut => ("timed-out", None),
        JobEnd::Vanished => ("vanished", None),
        JobEnd::Halted => ("halted", None),
        JobEnd::OverLimit => ("over-limit", None),
    };
    object(json!({
        "end": end,
        "exit_code": exit_code,
        "round": execution.round,
        "isolation": report.isolation.as_deref().map(|name| clean(beginning(name, PATH_BYTES_MAX))),
        "elapsed_ms": report.elapsed_ms,
        "stdout": clean(end_of(&report.stdout_tail, OUTPUT_BYTES_MAX)),
        "stderr": clean(end_of(&report.stderr_tail, OUTPUT_BYTES_MAX)),
        "files": files(&report.files),
    }))
}

/// Renders each file as an object: `json` if it is JSON, else `text`, with `cut` if only its beginning is
/// shown; `bytes` if it was too long to read; `not_a_file` if it isn't a file.
fn files(files: &BTreeMap<String, HarvestedFile>) -> Map<String, Value> {
    let mut left = FILES_BYTES_MAX;
    let shown = files.iter().take(FILES_MAX).map(|(path, harvested)| {
        let value = match harvested {
            HarvestedFile::TooLong(bytes) => json!({ "bytes": bytes }),
            HarvestedFile::NotAFile => json!({ "not_a_file": true }),
            HarvestedFile::Text(text) => {
                let shown = beginning(text, FILE_BYTES_MAX.min(left));
                left -= shown.len();
                let is_whole = shown.len() == text.len();
                match serde_json::from_str::<Value>(shown).ok().filter(|_| is_whole) {
                    Some(value) => json!({ "json": clean_value(value) }),
                    None => json!({ "text": clean(shown), "cut": !is_whole }),
                }
            }
        };
        (clean(beginning(path, PATH_BYTES_MAX)), value)
    });
    shown.collect()
}

/// Returns at most `bytes_max` bytes from the beginning of a text.
pub(super) fn beginning(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// Returns at most `bytes_max` bytes from the end of a text.
pub(super) fn end_of(text: &str, bytes_max: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes_max));
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bench_domain::{Answer, JobReport, Prompt};

    use super::*;

    fn report(files: BTreeMap<String, HarvestedFile>) -> Execution {
        Execution {
            round: 2,
            report: JobReport {
                end: JobEnd::Exited(3),
                files,
                stdout_tail: format!("{}end", "x\0".repeat(100_000)),
                stderr_tail: "ü".repeat(10_000),
                elapsed_ms: Some(12),
                isolation: Some("namespaces".into()),
            },
        }
    }

    #[test]
    fn what_a_job_left_is_bounded() {
        let deep = "[".repeat(20_000);
        let left = BTreeMap::from([
            (
                "a.json".to_owned(),
                HarvestedFile::Text("{\"results\":[true,-2],\"log\":\"x\\u0000y\"}".into()),
            ),
            ("b.txt".to_owned(), HarvestedFile::Text("not { json\0".into())),
            ("c.txt".to_owned(), HarvestedFile::Text("é".repeat(1_000_000))),
            ("d.json".to_owned(), HarvestedFile::Text(deep)),
            ("e".to_owned(), HarvestedFile::TooLong(1 << 40)),
            ("f".to_owned(), HarvestedFile::NotAFile),
        ]);
        let results = test_results(&report(left));
        assert_eq!((&results["end"], &results["exit_code"]), (&json!("exited"), &json!(3)));
        assert_eq!(results["files"]["a.json"], json!({ "json": { "results": [true, -2], "log": "xy" } }));
        assert_eq!(results["files"]["b.txt"], json!({ "text": "not { json", "cut": false }));
        assert_eq!(results["files"]["c.txt"]["text"].as_str().unwrap().len(), FILE_BYTES_MAX);
        assert_eq!(results["files"]["c.txt"]["cut"], true);
        assert!(results["files"]["d.json"]["text"].as_str().unwrap().starts_with("[["));
        assert_eq!(results["files"]["e"], json!({ "bytes": 1_u64 << 40 }));
        assert_eq!(results["files"]["f"], json!({ "not_a_file": true }));
        let stdout = results["stdout"].as_str().unwrap();
        assert!(stdout.ends_with("xxend") && stdout.len() < OUTPUT_BYTES_MAX && !stdout.contains('\0'));
        assert_eq!(results["stderr"].as_str().unwrap().len(), OUTPUT_BYTES_MAX);

        let many =
            (0..1_000).map(|n| (format!("{n:04}"), HarvestedFile::Text("[1]".repeat(20_000)))).collect();
        let results = test_results(&report(many));
        assert!(serde_json::to_string(&results).unwrap().len() < FILES_BYTES_MAX + 64 * 1024);
    }

    #[test]
    fn every_end_has_a_name() {
        let ends = [
            (JobEnd::TimedOut, "timed-out"),
            (JobEnd::Vanished, "vanished"),
            (JobEnd::Halted, "halted"),
            (JobEnd::OverLimit, "over-limit"),
        ];
        for (end, name) in ends {
            let mut execution = report(BTreeMap::new());
            execution.report.end = end;
            let results = test_results(&execution);
            assert_eq!((&results["end"], &results["exit_code"]), (&json!(name), &json!(null)));
        }
    }

    #[test]
    fn steps_are_bounded() {
        assert_eq!(steps(&[]), None);
        let step = |text: String| Step {
            name: "1.1".into(),
            prompt: Prompt::user("What?"),
            answer: Answer::local(text),
        };
        let shown = steps(&[step("a\0b".into()), step("ü".repeat(STEP_TEXT_BYTES_MAX))]).unwrap();
        assert_eq!((shown[0].response.as_str(), shown[0].cut), ("ab", false));
        assert_eq!((shown[1].response.len(), shown[1].cut), (STEP_TEXT_BYTES_MAX, true));
        assert_eq!(steps(&vec![step(String::new()); 1_000]).unwrap().len(), STEPS_MAX);
    }
}
