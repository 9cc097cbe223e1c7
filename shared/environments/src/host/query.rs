//! Queries: short commands in the sandbox that may run any number of times.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_sandy::ExecRequest;
use bench_sandy::job::JobError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::EngineHost;
use crate::EnvironmentError;
use crate::outcome::read_outcome;
use crate::program::command_line;

/// Maximum size of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Exit code of shells for a program that doesn't exist.
const EXIT_NO_PROGRAM: i32 = 127;

/// Runs a query. Its answer comes after a mark that containers don't know, since their output may be in it.
pub(super) async fn query<T: DeserializeOwned>(
    host: EngineHost<'_>,
    name: &'static str,
    program: &str,
    request: &Value,
    timeout: Duration,
) -> Result<T, EnvironmentError> {
    let mark = Uuid::new_v4().simple().to_string();
    let line = command_line(program, &[&mark, &STANDARD.encode(request.to_string())]);
    let exec = ExecRequest { answer_bytes_max: ANSWER_BYTES_MAX, ..ExecRequest::new(line) };
    let output = host.sandy.exec(host.sandbox, &exec.repeatable().within(timeout)).await;
    let output = output.map_err(|error| EnvironmentError::from(JobError::from(error)))?;
    let answer = output.stdout.lines().find_map(|line| line.strip_prefix(&mark)?.strip_prefix(' '));
    let Some(answer) = answer else {
        return Err(match output.exit_code {
            EXIT_NO_PROGRAM => EnvironmentError::Host(JobError::NoPython),
            code => EnvironmentError::Engine {
                why: format!("the query `{name}` ended with exit code {code}"),
                log: output.stderr.chars().take(1_000).collect(),
            },
        });
    };
    let unexpected = || EnvironmentError::UnexpectedResult { operation: name.to_owned() };
    let outcome = STANDARD.decode(answer.trim_end()).map_err(|_| unexpected())?;
    let done = read_outcome(name, &outcome)?;
    serde_json::from_value(done).map_err(|_| unexpected())
}
