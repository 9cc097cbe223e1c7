//! Runs that wait for their provider: what the command says meanwhile.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bench_tests::model_server::{ModelServer, Reply};
use serde_json::Value;

use crate::support::{TestDir, mmlu_pro_rows};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn a_rate_limit_is_visible_while_the_command_waits_and_after_it_was_stopped() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let limited = |_: &_| {
        let message = r#"{"error":{"message":"come back in an hour"}}"#;
        Reply::Status(429, message.to_owned(), vec![("retry-after", "3600".to_owned())])
    };
    let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(limited))).unwrap();
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(28));
    let base_url = server.base_url();
    let mut child = dir
        .command(&[
            "run",
            "--model",
            "openai-compatible/m",
            "--base-url",
            &base_url,
            "--benchmark",
            "mmlu_pro",
        ])
        .args(["--dataset", "mmlu_pro=items.jsonl"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, read) = mpsc::channel();
    let stderr = child.stderr.take().unwrap();
    std::thread::spawn(move || {
        BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| {
            // The test may have what it needs.
            let _ = lines.send(line);
        });
    });
    let mut seen = Vec::new();
    let mut wait_for = |part: &str| loop {
        let line = read.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("no `{part}` in {seen:#?}"));
        seen.push(line.clone());
        if line.contains(part) {
            return line;
        }
    };
    let reason = wait_for("come back in an hour");
    assert!(reason.starts_with("rate limited ("), "{reason}");
    let line = wait_for("next request in");
    // One request in ten minutes asks whether the provider answers again.
    assert!(line.starts_with("rate limited, next request in 9 m") || line.contains("in 10 m 0 s"), "{line}");
    assert!(line.ends_with(", 28 waiting"), "{line}");
    // Another terminal sees the same.
    let shown = dir.json(&["runs", "--json"]);
    let (run, waiting) = (shown[0]["id"].as_str().unwrap(), &shown[0]["waiting"]);
    assert_eq!((&waiting["kind"], &waiting["waiting_samples"]), (&"rate_limited".into(), &28.into()));
    let detail = dir.bench(&["runs", run]);
    assert!(detail.stdout.contains("running 0/28, rate limited"), "{}", detail.stdout);
    assert!(detail.stdout.contains("come back in an hour"), "{}", detail.stdout);
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    wait_for("Continue with: bench run --resume");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!seen.iter().any(|line| line.contains("WARN") || line.contains("eta 0")), "{seen:#?}");

    // Nothing works on the run any more, so it doesn't wait either.
    let runs = dir.json(&["runs", "--json"]);
    assert_eq!((&runs[0]["interrupted"], &runs[0]["waiting"]), (&true.into(), &Value::Null));
    let id = runs[0]["id"].as_str().unwrap();
    let listed = dir.bench(&["runs"]);
    assert!(listed.stderr.contains("interrupted 0/28"), "{}", listed.stderr);
    let detail = dir.bench(&["runs", id]);
    assert!(detail.stdout.contains("interrupted 0/28"), "{}", detail.stdout);
    assert!(detail.stdout.contains(&format!("`bench run --resume {id}`")), "{}", detail.stdout);
    // One event for 28 samples.
    let events = dir.json(&["runs", id, "--events", "--json"]);
    let waits: Vec<&Value> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["event_type"] == "provider_wait_started")
        .collect();
    assert_eq!(waits.len(), 1, "{events:#}");
    assert!(waits[0]["message"].as_str().unwrap().contains("come back in an hour"), "{}", waits[0]);
}
