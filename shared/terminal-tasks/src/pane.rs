//! Parsers of the terminal's text after the tests of a Terminal-Bench 1 task.

use std::collections::BTreeMap;

use crate::model::PaneParser;

/// Result of each test by name: true if it passed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaneResults(pub BTreeMap<String, bool>);

impl PaneResults {
    /// Returns true if all tests passed. As in the official program, this includes a summary without any test.
    pub fn is_resolved(&self) -> bool {
        self.0.values().all(|passed| *passed)
    }
}

/// Text without the part that the parser needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the terminal shows no {expected}: the tests did not run to their end")]
pub struct PaneError {
    /// Part that is missing.
    pub expected: &'static str,
}

/// Parses the text of a terminal.
///
/// # Errors
/// If the summary or the markers of the parser are missing.
pub fn parse_pane(parser: PaneParser, text: &str) -> Result<PaneResults, PaneError> {
    match parser {
        PaneParser::Pytest => parse_pytest(text),
        PaneParser::SweBench => {
            parse_marked(text, "SWEBench results starts here", "SWEBench results ends here")
        }
        PaneParser::SwePerf => {
            parse_marked(text, "SWE-Perf results starts here", "SWE-Perf results ends here")
        }
        PaneParser::MleBench => {
            let block = between(text, "MLEBench results starts here", "MLEBench results ends here");
            Ok(single("tests", block.trim() == "ALL TESTS PASSED"))
        }
        PaneParser::SweLancer => {
            let text = text.to_lowercase();
            let is_completed = text.contains("user_tool") && text.contains("completed");
            let has_passed =
                text.contains("swe lancer success") || (!text.contains("swe lancer failure") && is_completed);
            Ok(single("swelancer_task", has_passed))
        }
    }
}

fn single(name: &str, has_passed: bool) -> PaneResults {
    PaneResults(BTreeMap::from([(name.to_owned(), has_passed)]))
}

fn parse_marked(text: &str, start: &str, end: &str) -> Result<PaneResults, PaneError> {
    if !text.contains(start) || !text.contains(end) {
        return Err(PaneError { expected: "block of results between its markers" });
    }
    Ok(single("tests", between(text, start, end).trim() == "PASSED"))
}

/// Returns the text after the first start marker and before the last end marker, or all of it where one is missing.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let text = text.split_once(start).map_or(text, |(_, after)| after);
    text.rsplit_once(end).map_or(text, |(before, _)| before)
}

/// Reads the lines after the first banner of pytest's short summary. Later lines of the same name replace earlier ones.
fn parse_pytest(text: &str) -> Result<PaneResults, PaneError> {
    let summary = after_banner(text).ok_or(PaneError { expected: "`short test summary info` of pytest" })?;
    Ok(PaneResults(summary.lines().filter_map(parse_line).collect()))
}

/// Returns the text after `=+ short test summary info =+` in any case.
fn after_banner(text: &str) -> Option<&str> {
    const TITLE: &str = "short test summary info";
    let lower = text.to_ascii_lowercase();
    lower.match_indices(TITLE).find_map(|(at, _)| {
        let (before, after) = (text.get(..at)?, text.get(at + TITLE.len()..)?);
        let after = after.trim_start().strip_prefix('=')?;
        before.trim_end().ends_with('=').then(|| after.trim_start_matches('='))
    })
}

/// Reads a line of the summary: a status and, after the first `::`, the name of the test.
fn parse_line(line: &str) -> Option<(String, bool)> {
    // Only messages of failures are cut off, at the last dash.
    let line = match line.rsplit_once(" - ") {
        Some((before, _)) if line.starts_with("FAILED") => before,
        _ => line,
    };
    let (status, path) = line.trim_start().split_once(char::is_whitespace)?;
    let has_passed = match status.trim_matches(':') {
        "PASSED" | "XFAIL" | "SKIPPED" => true,
        "FAILED" | "XPASS" | "ERROR" => false,
        _ => return None,
    };
    let path = path.trim();
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    (!name.is_empty()).then(|| (name.to_owned(), has_passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pytest_agrees_with_the_official_parser() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/terminal_bench_text.json");
        let vectors: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = vectors["pytest_panes"].as_array().unwrap();
        assert_eq!(cases.len(), 18);
        for case in cases {
            let (label, official) = (&case["label"], &case["official"]);
            let parsed = parse_pane(PaneParser::Pytest, case["pane"].as_str().unwrap());
            let Ok(parsed) = parsed else {
                assert_eq!(official["failure_mode"], "parse_error", "{label}");
                continue;
            };
            let names = parsed.0.iter().map(|(name, passed)| {
                (name.clone(), serde_json::Value::from(if *passed { "passed" } else { "failed" }))
            });
            let names: serde_json::Map<_, _> = names.collect();
            assert_eq!(serde_json::Value::from(names), official["tests"], "{label}");
            assert_eq!(parsed.is_resolved(), official["resolved"], "{label}");
        }
    }

    #[test]
    fn markers_and_sentences_decide() {
        let bench = |text: &str| {
            format!("noise\nSWEBench results starts here\n{text}\nSWEBench results ends here\n$ ")
        };
        let perf = |text: &str| format!("SWE-Perf results starts here {text} SWE-Perf results ends here");
        let mle = |text: &str| format!("MLEBench results starts here\n{text}\nMLEBench results ends here");
        for (parser, text, expected) in [
            (PaneParser::SweBench, bench("PASSED"), Some(true)),
            (PaneParser::SweBench, bench("FAILED"), Some(false)),
            (PaneParser::SweBench, bench("PASSED PASSED"), Some(false)),
            (PaneParser::SweBench, "PASSED".to_owned(), None),
            (PaneParser::SweBench, "SWEBench results starts here\nPASSED".to_owned(), None),
            (PaneParser::SwePerf, perf("PASSED"), Some(true)),
            (PaneParser::SwePerf, bench("PASSED"), None),
            (PaneParser::MleBench, mle("ALL TESTS PASSED"), Some(true)),
            (PaneParser::MleBench, mle("SOME"), Some(false)),
            (PaneParser::MleBench, String::new(), Some(false)),
            (PaneParser::SweLancer, "SWE Lancer Success".to_owned(), Some(true)),
            (PaneParser::SweLancer, "swe lancer failure, user_tool completed".to_owned(), Some(false)),
            (PaneParser::SweLancer, "user_tool has completed".to_owned(), Some(true)),
            (PaneParser::SweLancer, String::new(), Some(false)),
        ] {
            let resolved = parse_pane(parser, &text).ok().map(|results| results.is_resolved());
            assert_eq!(resolved, expected, "{parser:?} {text}");
        }
    }

    #[test]
    fn any_text_has_a_result() {
        proptest::proptest!(|(text in r"((=+ ?short test summary info ?=+)|PASSED|FAILED|[ -é::\n]){0,20}")| {
            for parser in PaneParser::ALL {
                let _ = parse_pane(parser, &text);
            }
        });
    }
}
