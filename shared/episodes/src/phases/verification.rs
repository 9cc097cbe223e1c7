//! Verification of an answer in a fresh container of its instance: files, command, outputs.

use std::collections::BTreeMap;

use bench_domain::verification::LEFT_OUT_FOLDER;
use bench_domain::{EpisodeLog, VerificationReport, json_text_bytes};
use bench_environments::{Exec, ExecResult, Network};

use super::container::Command;
use super::{instance, setup_ms};
use crate::engine::engine_text;
use crate::instance::VerificationTask;
use crate::program::Program;
use crate::stop::{Phase, Stop};
use crate::stored::{LOGS_BYTES_MAX, log_of, whole_log_of};

/// Names of the command's own output among the logs.
const STDOUT_LOG: &str = "command/stdout.txt";
const STDERR_LOG: &str = "command/stderr.txt";
/// Maximum number of bytes of each of these that are kept.
const COMMAND_LOG_BYTES_MAX: usize = 256 << 10;
/// Maximum size of the line that says why an output file was left out.
const LEFT_OUT_BYTES_MAX: usize = 1 << 10;

/// Runs the verification from its beginning; everything that is over returns at once.
pub(crate) async fn run(
    program: &mut Program<'_>,
    task: &VerificationTask<'_>,
    report: &mut VerificationReport,
) -> Result<(), Stop> {
    let container = instance::start(program, &task.instance, Network::Public).await?;
    report.engine = engine_text(&program.facts().await?);
    let files = task.files.to_vec();
    container.put(program, "files", task.workspace, true, files, Phase::Setup).await?;
    report.setup_ms = Some(setup_ms(program));
    let command = Command {
        line: task.command,
        user: None,
        env: BTreeMap::new(),
        time_limit: task.time_limit,
        // What is verified runs here: a container that it ends is its own doing.
        phase: Phase::Agent,
    };
    let exec = Exec {
        stdout_bytes_max: COMMAND_LOG_BYTES_MAX,
        stderr_bytes_max: COMMAND_LOG_BYTES_MAX,
        ..container.exec(command)
    };
    // Not kept in the checkpoint, since its output may be large: the sandbox has it.
    let ended = program.run(&container.environment, "command", &exec, Phase::Agent).await?;
    note_end(&ended, report);
    if !ended.started {
        let why = ended.stderr.text().trim().to_owned();
        return Err(Stop::exception("RuntimeError", format!("the command could not be started: {why}")));
    }
    let mut room = LOGS_BYTES_MAX;
    for (at, name) in task.outputs.iter().enumerate() {
        let mut fetch = container.fetch(&container.id, &format!("{}/{name}", task.workspace));
        fetch.file_bytes_max = task.output_bytes_max;
        fetch.shortens_logs = true;
        let operation = format!("output-{at}");
        let fetched = program.run(&container.environment, &operation, &fetch, Phase::Agent).await?;
        let fetched = fetched.unwrap_or_default();
        let mut leave_out = |why: String| {
            let name = format!("{LEFT_OUT_FOLDER}{name}");
            report.logs.extend(log_of(&name, format!("{why}\n").as_bytes(), LEFT_OUT_BYTES_MAX));
        };
        if let Some(skipped) = fetched.skipped.first() {
            leave_out(match skipped.bytes {
                Some(bytes) => format!("{bytes} bytes, more than the limit of {}", task.output_bytes_max),
                None => "not a regular file".to_owned(),
            });
        }
        let Some(file) = fetched.files.into_iter().next() else { continue };
        let omitted = file.omitted;
        // Of the results, a part would be another grade.
        let kept = match at {
            0 => whole_log_of(name, file.bytes, room).map_err(leave_out).ok(),
            _ => log_of(name, &file.bytes, room),
        };
        let Some(mut log) = kept else { continue };
        room = room.saturating_sub(json_text_bytes(&log.text));
        log.omitted += omitted;
        log.bytes += omitted;
        report.outputs.push(log);
    }
    Ok(())
}

/// Notes how the command ended, and its own output.
fn note_end(ended: &ExecResult, report: &mut VerificationReport) {
    report.exit_code = ended.exit_code;
    report.is_timed_out = ended.is_timed_out();
    report.command_ms = Some(ended.elapsed_ms);
    for (name, kept) in [(STDOUT_LOG, &ended.stdout), (STDERR_LOG, &ended.stderr)] {
        let text = kept.text();
        if !text.is_empty() {
            let bytes = (kept.head.len() + kept.tail.len()) as u64 + kept.omitted;
            report.logs.push(EpisodeLog { name: name.to_owned(), text, bytes, omitted: kept.omitted });
        }
    }
}
