use std::process::Command;
use std::time::Duration;

use bench_domain::{JobEnd, JobSpec, ResultFile};
use serde_json::{Value, json};

use super::*;
use crate::testing::run;

#[test]
fn the_script_follows_its_protocol() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        std::fs::write(folder.path().join(path), text).unwrap();
    }
    let output = Command::new("python3")
        .args(["-I", "-B", "-c", include_str!("check_step.py")])
        .arg(folder.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, "all is as it should be\n", "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a step as a job, with `prefix` before the command, and returns the response.
fn step(prefix: &str, request: &Value) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let job = JobSpec {
        files: files(&request.to_string()),
        script: format!("{prefix}{}", script()),
        time_limit: Duration::from_secs(60),
        memory_bytes: 1 << 30,
        probe: None,
        needs_landlock: false,
        results: vec![ResultFile { path: "response.json".to_owned(), bytes_max: 1 << 20 }],
    };
    let report = run(&job, folder.path());
    assert_eq!(report.end, JobEnd::Exited(0), "{}", report.stderr_tail);
    serde_json::from_str(report.text("response.json").unwrap()).unwrap()
}

#[test]
fn jobs_take_steps() {
    let opened =
        step("", &json!({"version": 1, "domain": "demo", "op": "open", "task_id": "lock_half_closed"}));
    assert_eq!(opened["agent"]["tools"][0]["function"]["name"], "find_rider");
    let text = "The lock is closed.";
    let called = step(
        "",
        &json!({
            "version": 1, "domain": "demo", "op": "call", "task_id": "lock_half_closed", "messages": [],
            "calls": [{"id": "a", "name": "press_lock", "arguments": {}, "requestor": "user"}],
        }),
    );
    let result = json!({"role": "tool", "id": "a", "requestor": "user", "content": text, "error": false});
    assert_eq!(called["results"], json!([result]));
}

#[test]
fn sandboxes_without_the_package_say_so() {
    let request =
        json!({"version": 1, "domain": "telecom", "package": "1.0.1", "op": "open", "task_id": "x"});
    let refused = step(&format!("unset {PACKAGE_VARIABLE}\n"), &request);
    let message = "the sandbox has no tau2 package; run `bench sandy setup tau2` on its host";
    assert_eq!(refused["error"], json!({"kind": "missing-package", "message": message}));
    // A folder whose description is missing, with its Python.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let python = String::from_utf8(python.stdout).unwrap();
    std::os::unix::fs::symlink(python.trim(), folder.path().join("bin/python3")).unwrap();
    let set = format!("export {PACKAGE_VARIABLE}='{}'\n", folder.path().display());
    let refused = step(&set, &request);
    assert_eq!(refused["error"]["kind"], "missing-package");
    let marker = json!({"name": "tau2", "version": "0.2.0", "digest": "00"});
    std::fs::write(folder.path().join(PACKAGE_MARKER), marker.to_string()).unwrap();
    let refused = step(&set, &request);
    let message = "the sandbox has tau2 0.2.0, and 1.0.1 is needed; run `bench sandy setup tau2` on its host";
    assert_eq!(refused["error"], json!({"kind": "wrong-version", "message": message}));
}
