use std::collections::BTreeMap;
use std::process::Command;

use serde_json::json;

use super::*;
use crate::testing::run;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn ask(request: Value) -> Result<Map<String, Value>, StepProblem> {
    let folder = tempfile::tempdir().unwrap();
    response(&run(&job(StepDomain::Demo, object(request)), folder.path()))
}

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

#[test]
fn jobs_take_steps() {
    let opened = ask(json!({"op": "open", "task_id": "lock_half_closed"})).unwrap();
    assert_eq!(opened["agent"]["tools"][0]["function"]["name"], "find_rider");
    let call = json!({"id": "a", "name": "press_lock", "arguments": {}, "requestor": "user"});
    let asked = json!({"op": "call", "task_id": "lock_half_closed", "messages": [], "calls": [call]});
    let result =
        json!({"role": "tool", "id": "a", "requestor": "user", "content": "The lock is closed.", "error": false});
    assert_eq!(ask(asked).unwrap()["results"], json!([result]));
    let problem = ask(json!({"op": "open", "task_id": "other"})).unwrap_err();
    assert_eq!(
        (problem.kind.as_str(), problem.to_string().as_str()),
        ("unknown-task", "the domain demo has no task `other`")
    );
}

#[test]
fn steps_without_a_response_say_how_they_ended() {
    let report = |end, response: Option<&str>| JobReport {
        end,
        files: response
            .map(|text| (RESPONSE.to_owned(), bench_domain::HarvestedFile::Text(text.to_owned())))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        stdout_tail: String::new(),
        stderr_tail: "first\nMemoryError\n".to_owned(),
        elapsed_ms: None,
        isolation: None,
    };
    for (end, text) in [
        (JobEnd::Exited(1), "exited with 1 without a response: MemoryError"),
        (JobEnd::TimedOut, "took too long"),
        (JobEnd::OverLimit, "more than a sandbox has"),
        (JobEnd::Vanished, "was killed"),
    ] {
        let problem = response(&report(end, None)).unwrap_err();
        assert!(problem.kind == "no-response" && problem.message.contains(text), "{problem}");
    }
    for text in ["", "[]", "{\"error\": 7}"] {
        assert_eq!(response(&report(JobEnd::Exited(0), Some(text))).unwrap_err().kind, "no-response", "{text}");
    }
}

/// Runs the probe of the official domain with a folder in place of the installed package.
fn probed(folder: Option<&str>) -> (bool, String) {
    let mut command = Command::new("bash");
    command.args(["-c", &probe(StepDomain::Telecom)]).env_remove(PACKAGE_VARIABLE);
    let output = folder.map_or(&mut command, |folder| command.env(PACKAGE_VARIABLE, folder)).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn sandboxes_without_the_package_or_with_another_version_are_refused() {
    let advice = "run bench sandy setup tau2 on the sandbox host";
    assert_eq!(probed(None), (false, format!("the sandbox has no tau2 package; {advice}")));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(probed(Some(path)), (false, format!("the sandbox has no tau2 package; {advice}")));
    let mark = |text: &str| std::fs::write(folder.path().join(PACKAGE_MARKER), text).unwrap();
    mark("{\n  \"name\": \"tau2\",\n  \"version\": \"1.0.10\"\n}");
    let other = format!("the sandbox has 1.0.10 of the tau2 package, and 1.0.1 is needed; {advice}");
    assert_eq!(probed(Some(path)), (false, other));
    mark("{\n  \"name\": \"tau2\",\n  \"version\": \"1.0.1\"\n}");
    assert_eq!(probed(Some(path)), (true, String::new()));
    let demo = Command::new("bash").args(["-c", &probe(StepDomain::Demo)]).status().unwrap();
    assert!(demo.success());
}
