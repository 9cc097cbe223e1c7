//! Jobs in the agent's sandbox: layout of the project, commands, and collection of what changed. No file of them holds tests,
//! solutions, a proof or a key.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_code_tasks::{Change, CodeTask, Workspace, WorkspaceFile};
use bench_domain::{JobEnd, JobReport, JobSpec};
use bench_terminal_tasks::TaskPath;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::code_lab::grader::{MEMORY_BYTES, SUPERVISOR, file, place, probe, result};
use crate::grading::shorten;
use crate::scorers::workspace::{WorkspaceChange, WorkspaceCommand, WorkspaceCommandEnd, WorkspaceError};

const AGENT: &str = include_str!("agent.py");
const RESULT: &str = "result.json";
const FOLDER_BYTES_MAX: u64 = 64 << 10;
/// Time to lay out a project, to collect what changed, and for a command's own program besides the command.
const LAYOUT_TIME: Duration = Duration::from_secs(120);
const COLLECTION_TIME: Duration = Duration::from_secs(300);
const COMMAND_TIME: Duration = Duration::from_secs(60);

/// Maximum size of a changed file, of all of them together, and their number.
const FILE_BYTES_MAX: u64 = 1 << 20;
const FILES_BYTES_MAX: u64 = 4 << 20;
const FILES_MAX: usize = 500;
/// Maximum size of the collected files as JSON, in which a byte can take six.
const COLLECTED_BYTES_MAX: u64 = 6 * FILES_BYTES_MAX + (2 << 20);

/// Maximum number of characters of a line about a file that is left out.
const LINE_CHARS_MAX: usize = 400;

/// Returns the job that lays out a task's project.
pub(super) fn layout(task: &CodeTask) -> JobSpec {
    let place = Value::Object(place(task, task.workspace.files()));
    JobSpec {
        files: vec![
            file("supervisor.py", SUPERVISOR),
            file("agent.py", AGENT),
            file("task.json", &place.to_string()),
        ],
        script: "exec python3 -I -B agent.py layout\n".to_owned(),
        time_limit: LAYOUT_TIME,
        memory_bytes: MEMORY_BYTES,
        probe: Some(probe(task)),
        needs_landlock: false,
        results: vec![result(RESULT, FOLDER_BYTES_MAX)],
    }
}

/// Returns the project's folder.
pub(super) fn folder(report: &JobReport) -> Option<String> {
    #[derive(Deserialize)]
    struct Layout {
        folder: String,
    }
    serde_json::from_str::<Layout>(report.text(RESULT)?).ok().map(|layout| layout.folder)
}

/// Returns the job that runs a command. The programs of the first job are still in the sandbox.
pub(super) fn command(task: &CodeTask, command: &WorkspaceCommand) -> JobSpec {
    let WorkspaceCommand { script, time_limit, output_bytes_max } = command;
    let about =
        json!({ "script": script, "seconds": time_limit.as_secs_f64(), "output_bytes": output_bytes_max });
    let place = Value::Object(place(task, &BTreeMap::new()));
    let output_bytes_max = *output_bytes_max as u64;
    JobSpec {
        files: vec![file("task.json", &place.to_string()), file("command.json", &about.to_string())],
        script: "exec python3 -I -B ../layout/agent.py run\n".to_owned(),
        time_limit: *time_limit + COMMAND_TIME,
        memory_bytes: MEMORY_BYTES,
        probe: None,
        needs_landlock: false,
        // A character can take six bytes in JSON, and more if it replaces a byte.
        results: vec![result(RESULT, 14 * output_bytes_max + (64 << 10))],
    }
}

/// Result of `agent.py run`.
#[derive(Deserialize)]
struct CommandEnd {
    exit_code: Option<i32>,
    timed_out: bool,
    head: String,
    tail: String,
    omitted: u64,
    elapsed_ms: u64,
}

/// Reads a command's end. Without a result, its program was killed, or the agent has removed it.
pub(super) fn command_end(report: &JobReport) -> WorkspaceCommandEnd {
    let end = report.text(RESULT).and_then(|text| serde_json::from_str::<CommandEnd>(text).ok());
    match end {
        Some(CommandEnd { exit_code, timed_out, head, tail, omitted, elapsed_ms }) => WorkspaceCommandEnd {
            exit_code,
            is_timed_out: timed_out,
            output: format!("{head}{tail}"),
            omitted_bytes: omitted,
            elapsed_ms,
        },
        None => WorkspaceCommandEnd {
            exit_code: match report.end {
                JobEnd::Exited(code) => Some(code),
                JobEnd::TimedOut | JobEnd::Vanished | JobEnd::Halted | JobEnd::OverLimit => None,
            },
            is_timed_out: report.end == JobEnd::TimedOut,
            output: format!("{}{}", report.stdout_tail, report.stderr_tail),
            omitted_bytes: 0,
            elapsed_ms: report.elapsed_ms.unwrap_or_default(),
        },
    }
}

/// Returns the job that collects the files which differ from the task's.
pub(super) fn collection(task: &CodeTask) -> JobSpec {
    let digest = |file: &WorkspaceFile| hex::encode(Sha256::digest(&file.bytes));
    let originals: BTreeMap<&String, String> =
        task.workspace.files().iter().map(|(path, file)| (path, digest(file))).collect();
    let about = json!({
        "originals": originals,
        "file_bytes_max": FILE_BYTES_MAX,
        "bytes_max": FILES_BYTES_MAX,
        "files_max": FILES_MAX,
    });
    JobSpec {
        files: vec![file("agent.py", AGENT), file("collect.json", &about.to_string())],
        script: "exec python3 -I -B agent.py collect\n".to_owned(),
        time_limit: COLLECTION_TIME,
        memory_bytes: MEMORY_BYTES,
        probe: None,
        needs_landlock: false,
        results: vec![result(RESULT, COLLECTED_BYTES_MAX)],
    }
}

/// Result of `agent.py collect`.
#[derive(Deserialize)]
struct Collected {
    end: String,
    files: BTreeMap<String, String>,
    removed: Vec<String>,
    skipped: Vec<Skipped>,
    #[serde(default)]
    more_skipped: u64,
}

#[derive(Deserialize)]
struct Skipped {
    path: String,
    why: String,
}

/// Computes the change of a task's project. The collected texts are data: nothing but their content counts.
pub(super) fn change(task: &CodeTask, report: &JobReport) -> Result<WorkspaceChange, WorkspaceError> {
    let Some(text) = report.text(RESULT) else {
        return Err(WorkspaceError::Unreadable(format!("the job ended without them: {:?}", report.end)));
    };
    let collected: Collected =
        serde_json::from_str(text).map_err(|error| WorkspaceError::Unreadable(error.to_string()))?;
    let bytes: usize = collected.files.values().map(String::len).sum();
    let too_large = match collected.end.as_str() {
        "complete" if bytes as u64 <= FILES_BYTES_MAX && collected.files.len() <= FILES_MAX => None,
        "too-many" => Some("the agent left too many files and folders".to_owned()),
        _ => Some(format!(
            "the agent changed more than {FILES_MAX} files or {} MiB of text",
            FILES_BYTES_MAX >> 20
        )),
    };
    if let Some(why) = too_large {
        return Err(WorkspaceError::TooLarge(why));
    }
    let (mut lines, mut files) = (Vec::new(), task.workspace.files().clone());
    for path in &collected.removed {
        files.remove(path);
    }
    for (path, text) in collected.files {
        if let Err(problem) = TaskPath::new(&path) {
            lines.push((path, problem.to_string()));
            continue;
        }
        let is_executable = files.get(&path).is_some_and(|file| file.is_executable);
        files.insert(path, WorkspaceFile { bytes: text.into_bytes(), is_executable });
    }
    let change = Change::between(&task.workspace, &Workspace::new(files))
        .map_err(|error| WorkspaceError::TooLarge(format!("the agent's change is too large: {error}")))?;
    lines.extend(change.left_out);
    lines.extend(collected.skipped.into_iter().map(|Skipped { path, why }| (path, why)));
    let mut left_out: String = lines.iter().map(|(path, why)| line(path, why)).collect();
    if collected.more_skipped > 0 {
        left_out.push_str(&format!("{} more\n", collected.more_skipped));
    }
    Ok(WorkspaceChange { reply: change.reply, left_out })
}

/// Returns a line about a file that isn't part of the change.
fn line(path: &str, why: &str) -> String {
    let line: String =
        format!("{path}: {why}").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{}\n", shorten(&line, LINE_CHARS_MAX))
}
