//! Budgets on the command line.

use std::sync::Mutex;

use serde_json::Value;

use crate::provider::{RecordedRequest, model_server};
use crate::support::{CommandOutput, TestDir, mmlu_pro_rows};

/// Runs five items one after the other. Each answer has 12 tokens.
fn run(dir: &TestDir, address: &str, more: &[&str]) -> CommandOutput {
    dir.write("items.jsonl", mmlu_pro_rows(5));
    let mut args = vec![
        "run",
        "--model",
        "openai-compatible/test-model",
        "--base-url",
        address,
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--concurrency",
        "1",
    ];
    args.extend_from_slice(more);
    dir.bench(&args)
}

fn questions(requests: &Mutex<Vec<RecordedRequest>>) -> usize {
    requests.lock().unwrap().iter().filter(|request| request.path == "/v1/chat/completions").count()
}

#[test]
fn a_run_stops_at_its_budget_and_resumes_with_a_larger_one() {
    let dir = TestDir::new();
    let (address, requests) = model_server(200);
    let output = run(&dir, &address, &["--budget-tokens", "30", "--json"]);
    output.assert_refused(1, "stopped: budget of 30 tokens reached (36 tokens spent), 3 of 5 samples done");
    assert!(output.stderr.contains("--budget-tokens"), "{}", output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    let found = &value[0];
    assert_eq!((&found["status"], &found["failure_reason"]), (&"failed".into(), &"budget".into()));
    assert_eq!((&found["budget"]["tokens"], &found["spent"]["tokens"]), (&30.into(), &36.into()));
    // There is a partial result: counted, without a score, exported and signed.
    let result = &found["results"][0];
    assert_eq!((&result["graded"], &result["score"]), (&3.into(), &Value::Null));
    assert_eq!((&result["score_of_graded"], &result["coverage"]), (&1.0.into(), &0.6.into()));
    assert_eq!(found["files"]["verified"], true);
    assert_eq!(questions(&requests), 3);

    let id = found["id"].as_str().unwrap();
    dir.bench(&["requeue", id]).assert_refused(1, "would stop at once");
    dir.bench(&["requeue", id, "--budget-tokens", "36", "--detach"]).assert_refused(1, "would stop at once");
    let again = dir.bench(&["run", "--resume", id, "--budget-tokens", "1000", "--json"]);
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    let value: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&value[0]["score"], &value[0]["spent"]["tokens"]), (&1.0.into(), &60.into()));
    assert_eq!(value[0]["failure_reason"], Value::Null);
    assert_eq!(questions(&requests), 5, "nothing is asked twice");
}

#[test]
fn dollars_need_a_price() {
    let dir = TestDir::new();
    let (address, requests) = model_server(200);
    run(&dir, &address, &["--budget-usd", "1"]).assert_refused(2, "--price IN,OUT");
    assert_eq!(questions(&requests), 0);
    // 7 × 1 + 5 × 2 dollars for a million answers.
    let output = run(&dir, &address, &["--budget-usd", "0.00003", "--price", "1,2"]);
    output.assert_refused(
        1,
        "stopped: budget of 0.000030 USD reached (0.000034 USD spent), 2 of 5 samples done",
    );
    assert!(output.stdout.contains("verified"), "{}", output.stdout);
}

#[test]
fn budgets_that_are_none_are_wrong_usage() {
    let dir = TestDir::new();
    for (flag, value) in [
        ("--budget-usd", "0"),
        ("--budget-usd=-1", ""),
        ("--budget-usd", "NaN"),
        ("--budget-tokens", "0"),
        ("--price", "1"),
        ("--price", "1,NaN"),
    ] {
        let mut args = vec!["run", "--model", "oracle", "--demo", flag];
        args.extend((!value.is_empty()).then_some(value));
        assert_eq!(dir.bench(&args).code, 2, "{flag} {value}");
    }
    // The oracle's answers cost nothing.
    let args = [
        "run",
        "--model",
        "oracle",
        "--demo",
        "--subset-count",
        "2",
        "--budget-usd",
        "0.01",
        "--budget-tokens",
        "1",
    ];
    let output = dir.bench(&args);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}
