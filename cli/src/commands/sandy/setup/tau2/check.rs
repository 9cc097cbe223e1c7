//! Check of the package in a sandbox: takes a real step there.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bench_benchmarks::tau_bench_telecom::PACKAGE_VERSION;
use bench_benchmarks::tau_bench_telecom::step::{files, script};
use bench_domain::FileContent;
use bench_sandbox::isolation::{Exec, Output};
use bench_stack::sandboxes::tau2::current_link;
use serde_json::{Value, json};

use crate::commands::sandy::setup::in_sandbox;
use crate::exit::last_line;

/// Line that ends a file's text in a command.
const END: &str = "end-of-file-of-step";

/// Returns the command that evaluates an empty conversation about the package's first task, which loads all of the package.
pub(in crate::commands) fn step(data_dir: &Path, timeout: Duration) -> Exec {
    let order = fs::read(current_link(data_dir).join("tasks/order.json")).ok();
    let order =
        order.and_then(|order| serde_json::from_slice::<Vec<String>>(&order).ok()).unwrap_or_default();
    let request = json!({
        "version": 1, "domain": "telecom", "package": PACKAGE_VERSION, "op": "evaluate", "task_id": order.first(),
        "messages": [], "termination_reason": "user_stop",
    });
    let mut command = String::from("mkdir tau2-check && cd tau2-check\n");
    for file in files(&request.to_string()) {
        let FileContent::Bytes(bytes) = &file.content else { continue };
        let text = String::from_utf8_lossy(bytes);
        command.push_str(&format!("cat > {} <<'{END}'\n{}\n{END}\n", file.path, text.trim_end_matches('\n')));
    }
    command.push_str(&format!("( {} ) && cat response.json\n", script().trim()));
    in_sandbox(command, timeout)
}

/// Reads the output of [`step`]. Returns the problem, if there's one.
pub(in crate::commands) fn problem(output: &Output) -> Option<String> {
    let response: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let Some(response) = response.filter(|_| output.exit_code == Some(0)) else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Some(match output.exit_code {
            None => "a step takes too long".to_owned(),
            Some(_) => last_line(&stderr).unwrap_or("the step printed no reason").to_owned(),
        });
    };
    match response.pointer("/error/message").and_then(Value::as_str) {
        Some(message) => Some(message.to_owned()),
        None => response.get("reward_info").is_none().then(|| "the step has no result".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_a_step_is_read() {
        let output = |exit_code, stdout: &str, stderr: &str| Output {
            exit_code,
            stdout: stdout.as_bytes().to_vec(),
            stderr: stderr.as_bytes().to_vec(),
            dropped_bytes: 0,
        };
        let read = |exit_code, stdout, stderr| problem(&output(exit_code, stdout, stderr));
        assert_eq!(read(Some(0), r#"{"reward_info": {"reward": 0.0}}"#, ""), None);
        let refused = r#"{"error": {"kind": "wrong-version", "message": "the sandbox has tau2 0.2.0"}}"#;
        assert_eq!(read(Some(0), refused, "").as_deref(), Some("the sandbox has tau2 0.2.0"));
        assert_eq!(read(Some(0), "{}", "").as_deref(), Some("the step has no result"));
        assert_eq!(read(Some(1), "", "a\nImportError: b\n").as_deref(), Some("ImportError: b"));
        assert_eq!(read(None, "", "").as_deref(), Some("a step takes too long"));
    }

    #[test]
    fn the_command_writes_the_script_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let exec = step(folder.path(), Duration::from_secs(60));
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &exec.command]).current_dir(folder.path()).env_remove("SANDY_TAU2");
        let output = shell.output().unwrap();
        let response: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(response["error"]["kind"], "missing-package");
        for file in files("{}").iter().filter(|file| file.path != "request.json") {
            let FileContent::Bytes(bytes) = &file.content else { panic!() };
            assert_eq!(&fs::read(folder.path().join("tau2-check").join(&file.path)).unwrap(), bytes);
        }
    }
}
