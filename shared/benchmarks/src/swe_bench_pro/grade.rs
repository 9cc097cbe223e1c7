//! Grades a change by the results of an instance's tests.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bench_domain::{Outcome, Verdict, VerificationReport};
use serde_json::{Map, Value, json};

use super::image;
use super::patch::without_binary_sections;
use super::row::Instance;
use crate::grading::shorten;
use crate::python;

/// Result file of the parser.
pub(super) const OUTPUT: &str = "output.json";
/// Files to read after a verification.
pub(super) const OUTPUTS: [&str; 3] = [OUTPUT, "stdout.log", "stderr.log"];
/// Status of a test that counts.
const PASSED: &str = "PASSED";
/// Maximum number of tests that a verdict lists of each kind.
const TESTS_LISTED_MAX: usize = 200;
/// Maximum length of a test's name in a verdict, in characters.
const NAME_CHARS_MAX: usize = 300;
/// Maximum size of the tests of a kind in a verdict, in bytes of their names. Records of samples have a limit.
const NAMES_BYTES_MAX: usize = 40_000;
/// Maximum length of a status in a verdict, in characters.
const STATUS_CHARS_MAX: usize = 20;
/// Maximum number of statuses that a verdict counts; others count together.
const STATUSES_MAX: usize = 16;
/// Name under which other statuses are counted.
const OTHER_STATUSES: &str = "other";

/// Status that a verdict gives to a required test without a result.
const MISSING: &str = "MISSING";

/// Results of tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Results {
    /// Statuses by name; a test that was run several times has several.
    statuses: BTreeMap<String, BTreeSet<String>>,
    /// Number of results by status.
    counts: BTreeMap<String, u64>,
}

impl Results {
    /// Reads the parser's output.
    ///
    /// # Errors
    /// Returns the problem in one phrase. The official program takes such an output for none.
    fn parse(text: &str) -> Result<Self, String> {
        let read = serde_json::from_str(text).or_else(|error| match lenient(text) {
            Some(lenient) => serde_json::from_str(&lenient).map_err(|_| error),
            None => Err(error),
        });
        let output: Value = read.map_err(|error| format!("it isn't JSON: {error}"))?;
        let tests = output.get("tests").and_then(Value::as_array).ok_or("it has no list `tests`")?;
        let mut results = Self::default();
        for test in tests {
            let status = test.get("status").ok_or("one of its tests has no status")?;
            let status = status.as_str().map_or_else(|| status.to_string(), str::to_owned);
            let counted = shorten(&status, STATUS_CHARS_MAX);
            let has_room = results.counts.len() < STATUSES_MAX || results.counts.contains_key(&counted);
            let counted = if has_room { counted } else { OTHER_STATUSES.to_owned() };
            *results.counts.entry(counted).or_default() += 1;
            match test.get("name") {
                Some(Value::String(name)) => {
                    results.statuses.entry(name.clone()).or_default().insert(status);
                }
                // Names of other types equal no text, and lists can't be compared at all.
                None | Some(Value::Array(_) | Value::Object(_)) if status == PASSED => {
                    return Err("one of its passed tests has no name".to_owned());
                }
                _ => {}
            }
        }
        Ok(results)
    }

    fn has_passed(&self, name: &str) -> bool {
        self.statuses.get(name).is_some_and(|statuses| statuses.contains(PASSED))
    }

    /// Returns the status of a test for people: that of a passed run if there is one.
    fn status(&self, name: &str) -> &str {
        match self.statuses.get(name) {
            None => MISSING,
            Some(statuses) if statuses.contains(PASSED) => PASSED,
            Some(statuses) => statuses.first().map_or(MISSING, String::as_str),
        }
    }
}

/// Rewrites what Python's reader of JSON accepts beyond the standard: `NaN`, infinities and halves of characters. Returns `None`
/// if there is nothing of it.
fn lenient(text: &str) -> Option<String> {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_string = false;
    let mut is_changed = false;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match c {
            '"' => is_string = !is_string,
            '\\' if is_string => match unit(rest) {
                Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => {
                    length = 12
                }
                Some(0xD800..=0xDFFF) => {
                    written.push('\u{fffd}');
                    is_changed = true;
                    rest = rest.get(6..).unwrap_or_default();
                    continue;
                }
                _ => length = rest.chars().take(2).map(char::len_utf8).sum(),
            },
            _ if !is_string => {
                let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word));
                if let Some(word) = word {
                    written.push_str("null");
                    is_changed = true;
                    rest = rest.get(word.len()..).unwrap_or_default();
                    continue;
                }
            }
            _ => {}
        }
        written.push_str(rest.get(..length).unwrap_or_default());
        rest = rest.get(length..).unwrap_or_default();
    }
    is_changed.then_some(written)
}

/// Returns the code unit of an escape `\uXXXX` at the beginning of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Returns the verdict: resolved if every test that must pass has passed.
pub(super) fn verdict(instance: &Instance, patch: &str, report: &VerificationReport) -> Verdict {
    let cleaned = without_binary_sections(patch);
    let results = match report.output(OUTPUT) {
        Some(text) => {
            Results::parse(text).map_err(|problem| format!("The parser's output can't be read: {problem}."))
        }
        None if report.is_timed_out => {
            Err("The time for the tests was over before their results were written.".to_owned())
        }
        None => Err(match report.left_out(OUTPUT) {
            Some(why) => format!("The parser's output can't be read: {why}."),
            None => "The tests left no results.".to_owned(),
        }),
    };
    let mut detail = Map::new();
    detail.insert("instance_id".into(), json!(instance.instance_id));
    detail.insert("patch_bytes".into(), json!(patch.len()));
    if cleaned.len() != patch.len() {
        detail.insert("patch_bytes_cleaned".into(), json!(cleaned.len()));
    }
    note_image(instance, &mut detail);
    let required = || instance.fail_to_pass.iter().chain(&instance.pass_to_pass);
    let (is_resolved, mut reason) = match &results {
        Ok(results) => {
            let failed: HashSet<&String> = required().filter(|name| !results.has_passed(name)).collect();
            (failed.is_empty(), describe(instance, results, failed.len()))
        }
        Err(problem) => (false, problem.clone()),
    };
    detail.insert("resolved".into(), json!(is_resolved));
    note_tests(instance, results.as_ref().ok(), &mut detail);
    if is_resolved {
        return Verdict { detail, ..Verdict::correct("resolved") };
    }
    let is_empty = python::strip(&cleaned).is_empty();
    if is_empty {
        let what = if patch.is_empty() { "There is no change" } else { "The patch changes no text file" };
        reason = format!("{what}, so the tests were run on the base commit. {reason}");
    }
    let outcome = if is_empty { Outcome::NoAnswer } else { Outcome::Incorrect };
    Verdict {
        extracted: (!is_empty).then(|| "unresolved".to_owned()),
        detail,
        ..Verdict::wrong(outcome, reason)
    }
}

/// Describes the tests that didn't pass, in one sentence.
fn describe(instance: &Instance, results: &Results, failed: usize) -> String {
    let count = |names: &[String]| names.iter().filter(|name| !results.has_passed(name)).count();
    let (to_fix, to_keep) = (count(&instance.fail_to_pass), count(&instance.pass_to_pass));
    if results.statuses.is_empty() {
        return "No test had a result.".to_owned();
    }
    let all = instance.fail_to_pass.iter().chain(&instance.pass_to_pass).collect::<HashSet<_>>().len();
    format!(
        "{failed} of {all} required tests did not pass: {to_fix} of {} to fix, {to_keep} of {} to keep.",
        instance.fail_to_pass.len(),
        instance.pass_to_pass.len()
    )
}

fn note_image(instance: &Instance, detail: &mut Map<String, Value>) {
    let Ok(reference) = image::reference(instance) else { return };
    let by_rules = image::tag_by_rules(&instance.instance_id, &instance.repo);
    let by_rules = by_rules.map(|tag| format!("{}:{tag}", image::REPOSITORY));
    if let Some(by_rules) = by_rules.filter(|by_rules| *by_rules != reference) {
        detail.insert("image_by_rules".into(), json!(by_rules));
    }
    detail.insert("image".into(), json!(reference));
}

/// Lists the required tests with their statuses: those that did not pass first, as far as there is room.
fn note_tests(instance: &Instance, results: Option<&Results>, detail: &mut Map<String, Value>) {
    let Some(results) = results else { return };
    detail.insert("test_counts".into(), json!(results.counts));
    for (key, names) in [("fail_to_pass", &instance.fail_to_pass), ("pass_to_pass", &instance.pass_to_pass)] {
        let (passed, failed): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| results.has_passed(name));
        let mut room = NAMES_BYTES_MAX;
        let named = failed.iter().chain(&passed).take(TESTS_LISTED_MAX).map(|name| {
            let shown = shorten(name, NAME_CHARS_MAX);
            room = room.saturating_sub(shown.len());
            (room > 0)
                .then(|| json!({ "name": shown, "status": shorten(results.status(name), STATUS_CHARS_MAX) }))
        });
        let tests: Vec<Value> = named.map_while(|test| test).collect();
        let (of, passed) = (names.len(), passed.len());
        detail.insert(key.into(), json!({ "passed": passed, "of": of, "tests": tests }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_names_of_a_verdict_have_an_end() {
        let tests: Vec<Value> = (0..5_000)
            .map(|n| json!({ "name": format!("{n}{}", "\u{1f600}".repeat(400)), "status": format!("STATUS {n}") }))
            .collect();
        let results = Results::parse(&json!({ "tests": tests }).to_string()).unwrap();
        assert_eq!(results.counts.len(), STATUSES_MAX + 1);
        assert_eq!(results.counts.values().sum::<u64>(), 5_000);
        let names: Vec<String> = results.statuses.keys().cloned().collect();
        let instance = Instance { pass_to_pass: names.clone(), fail_to_pass: names, ..instance() };
        let mut detail = Map::new();
        note_tests(&instance, Some(&results), &mut detail);
        assert_eq!(detail["fail_to_pass"]["of"], 5_000);
        let bytes = json!(detail).to_string().len();
        assert!((60_000..100_000).contains(&bytes), "{bytes}");
    }

    fn instance() -> Instance {
        Instance {
            instance_id: "instance_a__b-1".to_owned(),
            repo: "a/b".to_owned(),
            base_commit: "0123456".to_owned(),
            patch: String::new(),
            problem_statement: String::new(),
            requirements: String::new(),
            interface: String::new(),
            fail_to_pass: Vec::new(),
            pass_to_pass: Vec::new(),
            test_checkout: String::new(),
            selected: String::new(),
            dockerhub_tag: String::new(),
        }
    }

    #[test]
    fn outputs_that_are_left_out_are_unresolved_and_say_why() {
        use bench_domain::EpisodeLog;
        let text = "8000000000 bytes, more than the limit of 16777216\n".to_owned();
        let log = EpisodeLog { name: format!("left-out/{OUTPUT}"), bytes: 50, text, omitted: 0 };
        let report = VerificationReport { logs: vec![log], ..VerificationReport::default() };
        let verdict = verdict(&instance(), "diff --git a/a b/a\n", &report);
        assert_eq!(verdict.outcome, Outcome::Incorrect);
        assert!(
            verdict.reason.ends_with("read: 8000000000 bytes, more than the limit of 16777216."),
            "{}",
            verdict.reason
        );
    }

    #[test]
    fn outputs_are_read_as_python_reads_them() {
        for (text, expected) in [
            (r#"{"tests": []}"#, Ok(vec![])),
            (
                r#"{"tests": [{"name": "a", "status": "PASSED"}, {"name": "a", "status": "FAILED"}]}"#,
                Ok(vec!["a"]),
            ),
            (r#"{"tests": [{"name": "a", "status": "SKIPPED"}]}"#, Ok(vec![])),
            (r#"{"tests": [{"name": 7, "status": "PASSED"}, {"status": "FAILED"}]}"#, Ok(vec![])),
            (
                r#"{"time": NaN, "tests": [{"name": "NaN", "status": "PASSED", "s": -Infinity}]}"#,
                Ok(vec!["NaN"]),
            ),
            (
                r#"{"x": "\ud800 \"\\", "tests": [{"name": "\ud83d\ude00", "status": "PASSED"}]}"#,
                Ok(vec!["😀"]),
            ),
            (r#"{"tests": [{"name": ["a"], "status": "PASSED"}]}"#, Err("no name")),
            (r#"{"tests": [{"status": "PASSED"}]}"#, Err("no name")),
            (r#"{"tests": [{"name": "a"}]}"#, Err("no status")),
            (r#"{"tests": {}}"#, Err("no list")),
            ("[]", Err("no list")),
            ("", Err("isn't JSON")),
            ("{\"tests\": [}", Err("isn't JSON")),
        ] {
            match (Results::parse(text), expected) {
                (Ok(results), Ok(names)) => {
                    let passed = results.statuses.keys().filter(|name| results.has_passed(name));
                    assert_eq!(passed.collect::<Vec<_>>(), names, "{text}");
                }
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{text}: {problem}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
