//! Answers of the scripted host: what the programs in a sandbox would print.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::request::RunRequest;

/// Folder of a sandbox.
const WORKSPACE: &str = "/workspace";
/// Main result file of an operation.
const RESULT: &str = "result.json";
/// Run time of every operation, in milliseconds. Has no effect.
const ELAPSED_MS: u32 = 1_000;
/// Lines of the test output and of the agent's log.
const LOG_LINES: usize = 40;

/// Output of the tests of a task of Terminal-Bench 1.
const TEST_SUMMARY: &str = "==== short test summary info ====\nPASSED test_outputs.py::test_done\n";

/// Change of an agent in a repository, with line ends of both kinds.
pub const CHANGE: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\r\n+b\r\n";
/// Results of the tests of a repository.
const TEST_RESULTS: &str =
    r#"{"tests": [{"name": "to fix", "status": "PASSED"}, {"name": "to keep", "status": "PASSED"}]}"#;

/// Returns the answer of a query.
pub(crate) fn query_answer(mark: &str, done: &Value) -> String {
    format!("{mark} {}\n", STANDARD.encode(json!({ "done": done }).to_string()))
}

/// Returns the facts about the engine.
pub(crate) fn facts() -> Value {
    json!({
        "engine": "docker", "version": "0.0.0", "compose": "0.0.0", "builder": "buildkit",
        "workspace": WORKSPACE, "host_workspace": WORKSPACE,
    })
}

/// Returns the answer about an operation that is running.
pub(crate) fn running_answer(mark: &str) -> String {
    format!("{mark} running {ELAPSED_MS}\n{mark} end\n")
}

/// Returns the record of an operation during which its container ended.
pub(crate) fn container_ended() -> Value {
    json!({ "failed": "gone", "why": "the container ended", "log": "" })
}

/// Returns the answer about an operation that has ended, with its results: the given record, or that of the script.
pub(crate) fn over_answer(
    mark: &str,
    run: &RunRequest,
    sandbox: u64,
    record: Option<Value>,
) -> anyhow::Result<String> {
    let results = match record {
        Some(record) => vec![(RESULT, record.to_string())],
        None => results(&run.operation()?, sandbox)?,
    };
    let mut answer = format!(
        "{mark} over exited 0 {ELAPSED_MS}\n{mark} isolation :\n{mark} noted exited 0 {ELAPSED_MS}\n{mark} tail out :\n\
         {mark} tail err :\n"
    );
    for (index, name) in run.results.iter().enumerate() {
        let (_, content) = results.iter().find(|(known, _)| known == name).with_context(|| {
            format!("the scripted host has no file `{name}` of the operation `{}`", run.job)
        })?;
        writeln!(answer, "{mark} file {index} text :{}", STANDARD.encode(content))?;
    }
    writeln!(answer, "{mark} end")?;
    Ok(answer)
}

/// Returns what an agent typed, or its command.
pub(crate) fn act_text(request: &Value) -> String {
    let strokes = request["strokes"].as_array().into_iter().flatten();
    let commands = strokes.flat_map(|stroke| stroke["commands"].as_array().into_iter().flatten());
    let typed: Vec<String> = commands.filter_map(Value::as_str).map(|line| format!("{line}\n")).collect();
    match request["command"].as_array().and_then(|command| command.last()).and_then(Value::as_str) {
        Some(line) if request.get("strokes").is_none() => format!("{line}\n"),
        _ => typed.concat(),
    }
}

/// Returns the result of an agent's operation after everything that was typed in its sandbox. A terminal ends with
/// `exit`.
pub(crate) fn act_result(request: &Value, all: &str) -> Value {
    if request.get("strokes").is_some() {
        return json!({
            "alive": !all.contains("exit"), "typed": 1, "history": format!("$ {all}"), "screen": format!("$ {all}"),
            "elapsed_ms": ELAPSED_MS,
        });
    }
    let output = json!({ "head": format!("ran {}", act_text(request)), "tail": "", "omitted": 0 });
    let nothing = json!({ "head": "", "tail": "", "omitted": 0 });
    json!({ "exit_code": 0, "started": true, "stdout": output, "stderr": nothing, "elapsed_ms": ELAPSED_MS })
}

/// Returns the result files of an operation. Operations are recognized by the fields of their requests.
fn results(request: &Value, sandbox: u64) -> anyhow::Result<Vec<(&'static str, String)>> {
    let has = |field: &str| request.get(field).is_some();
    let mut files = Vec::new();
    let done = if has("base") {
        files.push(("config.json", project(request)?.to_string()));
        json!({})
    } else if has("images") {
        json!({ "built": 0 })
    } else if has("folders") && has("service") {
        let service = request["service"].as_str().context("the service has no name")?;
        json!({ "containers": { service: format!("{sandbox:064x}") } })
    } else if has("files_max") {
        files.push(("fetched.b64", fetched(request["path"].as_str().unwrap_or_default())));
        json!({ "found": true, "skipped": [], "cut": false })
    } else if has("retries") || has("upload") || has("replace") {
        json!({})
    } else if has("command") {
        let text = |head: &str| json!({ "head": head, "tail": "", "omitted": 0 });
        let is_old_test = act_text(request).contains("/run-tests.sh");
        json!({
            "exit_code": 0, "started": true, "stdout": text(if is_old_test { TEST_SUMMARY } else { "" }),
            "stderr": text(""), "elapsed_ms": ELAPSED_MS,
        })
    } else {
        bail!("the scripted host has no answer to the operation {request}");
    };
    files.push((RESULT, json!({ "done": done }).to_string()));
    Ok(files)
}

/// Returns what `docker compose config` makes of a task without compose files.
fn project(request: &Value) -> anyhow::Result<Value> {
    let name = request["project"].as_str().context("the project has no name")?;
    let folder = request["folder"].as_str().unwrap_or_default();
    let base = request["base"].as_str().context("the project has no base")?;
    let base = base.replace("@FOLDER@", &format!("{WORKSPACE}/environments/{name}/task/{folder}"));
    let mut project: Value = serde_json::from_str(&base)?;
    for service in project["services"].as_object_mut().into_iter().flat_map(|services| services.values_mut())
    {
        // A compose file that defines the image itself.
        if service.get("build").is_none() && service.get("image").is_none() {
            let folder = format!("{WORKSPACE}/environments/{name}/task");
            service["build"] = json!({ "context": folder, "dockerfile": "Dockerfile" });
        }
        service["entrypoint"] = Value::Null;
        service["networks"] = json!({ "default": null });
    }
    project["name"] = name.into();
    project["networks"] = json!({ "default": { "name": format!("{name}_default"), "ipam": {} } });
    Ok(project)
}

/// Returns the files below a path of the container, as the program sends them: the length of a header, the header, and
/// the files' bytes, in base64.
fn fetched(path: &str) -> String {
    let log = "collected 3 items: everything as expected\n".repeat(LOG_LINES);
    let files: &[(&str, &str)] = match path {
        "/logs/verifier" => &[("reward.txt", "1\n"), ("test-stdout.txt", &log)],
        "/logs/agent" => &[("oracle.txt", &log)],
        "/logs/artifacts" => &[("kept.txt", "an artifact\n")],
        // A file that is fetched alone has no path below itself.
        "/var/lib/bench-instance/change.diff" => &[("", CHANGE)],
        "/workspace/output.json" => &[("", TEST_RESULTS)],
        _ => &[],
    };
    let entries =
        files.iter().map(|(path, text)| json!({ "path": path, "mode": 0o644, "bytes": text.len() }));
    let header = Value::Array(entries.collect()).to_string();
    let bytes: String = files.iter().map(|(_, text)| *text).collect();
    STANDARD.encode(format!("{}\n{header}{bytes}", header.len()))
}
