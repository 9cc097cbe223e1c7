//! The miniature repository: recorded patches through the entry script.

use bench_domain::Outcome;

use super::*;

fn candidates() -> Vec<Value> {
    let text = fs::read_to_string(format!("{MINI}/candidates.json")).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    match all["candidates"].take() {
        Value::Array(candidates) => candidates,
        other => panic!("{other}"),
    }
}

/// Returns the statuses in the parser's output, or null.
fn statuses(report: &VerificationReport) -> Value {
    let Some(output) = report.output("output.json") else { return Value::Null };
    let output: Value = serde_json::from_str(output).unwrap();
    let tests = output["tests"].as_array().unwrap().iter();
    tests.map(|test| (test["name"].as_str().unwrap().to_owned(), test["status"].clone())).collect()
}

#[test]
fn patches_get_the_official_verdicts() {
    let (item, scripts) = (item(mini_row()), mini_scripts());
    let candidates = candidates();
    assert_eq!(candidates.len(), 15);
    for candidate in &candidates {
        let label = candidate["label"].as_str().unwrap();
        let patch = candidate["patch"].as_str().unwrap();
        let cleaned = candidate["patch_after_strip"].as_str().unwrap_or(patch);
        let files = protocol().verification(&item, patch, &scripts).unwrap().files;
        assert_eq!(files[0].path, "patch.diff");
        assert_eq!(files[0].text, cleaned, "{label}");
        let (code, report) = Container::mini().verify(&item, patch, &scripts);
        assert_eq!(code.map(Value::from), Some(candidate["entry_exit_code"].clone()), "{label}");
        assert_eq!(statuses(&report), candidate["statuses"], "{label}");
        assert_eq!(is_resolved(&item, patch, &report), candidate["resolved"], "{label}");
    }
}

#[test]
fn all_lines_of_the_setup_would_remove_the_patch() {
    let (scripts, patch) = (mini_scripts(), mini_row()["patch"].as_str().unwrap().to_owned());
    let row = mini_row();
    let lines = row["before_repo_set_cmd"].as_str().unwrap();
    let item = mini_with(&[("before_repo_set_cmd", &lines.replace('\n', "; "))]);
    let (_, report) = Container::mini().verify(&item, &patch, &scripts);
    assert!(!is_resolved(&item, &patch, &report));
}

#[test]
fn verdicts_list_the_required_tests() {
    let (item, scripts) = (item(mini_row()), mini_scripts());
    let (_, report) = Container::mini().verify(&item, "", &scripts);
    let verdict = protocol().grade(&item, "", &report);
    assert_eq!(verdict.outcome, Outcome::NoAnswer);
    assert_eq!(
        verdict.reason,
        "There is no change, so the tests were run on the base commit. \
         2 of 5 required tests did not pass: 2 of 2 to fix, 0 of 3 to keep."
    );
    assert_eq!(verdict.detail["test_counts"], serde_json::json!({ "FAILED": 2, "PASSED": 3, "SKIPPED": 1 }));
    let to_fix = &verdict.detail["fail_to_pass"];
    assert_eq!((&to_fix["passed"], &to_fix["of"]), (&Value::from(0), &Value::from(2)));
    assert_eq!(
        to_fix["tests"][0],
        serde_json::json!({ "name": "tests/test_cart.py | test_count", "status": "FAILED" })
    );
    assert_eq!(verdict.detail["pass_to_pass"]["passed"], 3);
}

#[test]
fn no_results_are_unresolved() {
    let item = item(mini_row());
    for (report, part) in [
        (VerificationReport::default(), "left no results"),
        (
            VerificationReport { is_timed_out: true, ..VerificationReport::default() },
            "time for the tests was over",
        ),
    ] {
        let verdict = protocol().grade(&item, "x", &report);
        assert_eq!((verdict.outcome, verdict.score), (Outcome::Incorrect, Some(0.0)));
        assert!(verdict.reason.contains(part), "{verdict:?}");
        assert_eq!(verdict.detail["resolved"], false);
    }
    // A result that was written in time counts although a process was left running.
    let log = |text: &str| EpisodeLog { name: "output.json".into(), text: text.into(), bytes: 1, omitted: 0 };
    let all = [
        "test_cart.py | test_count",
        "test_cart.py | test_bad_count",
        "test_cart.py | test_empty",
        "test_cart.py | test_single",
        "test_names.py | test_names",
    ];
    let tests: Vec<Value> =
        all.map(|name| serde_json::json!({ "name": format!("tests/{name}"), "status": "PASSED" })).to_vec();
    let output = serde_json::json!({ "tests": tests }).to_string();
    let report = VerificationReport {
        is_timed_out: true,
        outputs: vec![log(&output)],
        ..VerificationReport::default()
    };
    assert!(is_resolved(&item, "x", &report));
}
