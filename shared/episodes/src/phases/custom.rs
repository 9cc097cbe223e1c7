//! The agent `custom`: its files, its install script and its run command in the container.
//!
//! Its variables are those of its `agent.toml`, with values of the order: nothing of the worker's environment enters it.

use std::collections::BTreeMap;

use bench_domain::{EpisodeLog, EpisodeStep};
use bench_environments::{ExecResult, TaskFile};
use bench_terminal_tasks::{CustomAgent, Step};
use serde::{Deserialize, Serialize};

use super::agent::{AGENT_MAX, command_exception, with_frontend};
use super::container::{Command, Container, Ended, ROOT, user_name};
use super::keystrokes::quoted;
use super::{Course, think};
use crate::program::Program;
use crate::stop::{Phase, Stop, last_line};

/// Folder of the agent in the container, as Harbor's installed agents have it.
const FOLDER: &str = "/installed-agent";
/// Name of the file with the step's instruction in that folder.
const INSTRUCTION: &str = "instruction.md";
/// Variable with the path of that file.
const INSTRUCTION_VARIABLE: &str = "AGENT_INSTRUCTION_FILE";
/// Log with the output of a failed install script.
const INSTALL_LOG: &str = "agent/install.txt";

/// End of an install script.
#[derive(Debug, Serialize, Deserialize)]
struct Installed {
    ended: Ended,
    /// Beginning and end of the output, if it failed.
    output: String,
}

impl From<ExecResult> for Installed {
    fn from(result: ExecResult) -> Self {
        let output = match result.exit_code {
            Some(0) => String::new(),
            _ => format!("{}{}", result.stdout.text(), result.stderr.text()),
        };
        Self { ended: Ended::from(result), output }
    }
}

/// Copies the agent's files and runs its install script as the superuser. Neither is part of the agent's time.
///
/// A script that fails says nothing about the agent's work, so the episode ends without a grade.
pub(super) async fn install(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    container: &Container,
) -> Result<(), Stop> {
    let agent = agent_of(course)?;
    let files = agent.files.iter().map(|file| TaskFile {
        path: file.path.clone(),
        is_executable: file.is_executable,
        bytes: file.bytes.clone(),
    });
    container.put(program, "custom-files", FOLDER, true, files.collect(), Phase::Setup).await?;
    let Some(script) = &agent.install else { return Ok(()) };
    let is_executable = agent.files.iter().any(|file| file.path == *script && file.is_executable);
    let shell = if is_executable { "" } else { "sh " };
    let line = format!("cd {FOLDER} && {shell}{} 2>&1", quoted(&format!("./{script}")));
    let command = Command {
        line: &line,
        user: Some(ROOT.to_owned()),
        env: with_frontend(variables(agent, course.task.variables)?),
        time_limit: agent.install_timeout,
        phase: Phase::Setup,
    };
    let exec = container.exec(command);
    let installed =
        program.run_once(&container.environment, "custom-install", &exec, Phase::Setup, Installed::from);
    let Installed { ended, output } = installed.await?;
    let setup_ms = course.report.setup_ms.unwrap_or_default();
    course.report.setup_ms = Some(setup_ms.saturating_add(ended.elapsed_ms));
    let failed = |name: &str, what: String| {
        let message = match last_line(&output) {
            Some(last) => format!("the install script of the agent {what}: {last}"),
            None => format!("the install script of the agent {what}"),
        };
        Stop::exception(name, message)
    };
    let stop = match (ended.not_started, ended.exit_code) {
        (None, Some(0)) => return Ok(()),
        (Some(_), _) => failed("RuntimeError", "could not be started".to_owned()),
        (None, Some(code)) => failed("RuntimeError", format!("ended with exit code {code}")),
        (None, None) => {
            let limit = agent.install_timeout.as_secs_f64();
            failed("AgentSetupTimeoutError", format!("did not end within its {limit} s"))
        }
    };
    let (name, bytes) = (INSTALL_LOG.to_owned(), output.len() as u64);
    course.report.logs.push(EpisodeLog { name, text: output, bytes, omitted: 0 });
    Err(stop)
}

/// Runs the agent's command on a step, as the agent's user in the folder of the task's commands.
pub(super) async fn run(
    program: &mut Program<'_>,
    course: &Course<'_>,
    container: &Container,
    (index, step): (usize, &Step),
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    let agent = agent_of(course)?;
    // What runs before the first step's command can only be broken by the install script.
    let phase = if index > 0 || agent.install.is_some() { Phase::Agent } else { Phase::Setup };
    let instruction = TaskFile {
        path: INSTRUCTION.to_owned(),
        is_executable: false,
        bytes: step.instruction.clone().into_bytes(),
    };
    let name = format!("s{index}-instruction");
    let put = container.put(program, &name, FOLDER, false, vec![instruction], phase).await;
    put.map_err(|stop| stop.broken_by_agent(phase))?;
    let logs = think::logs_folder(&course.task.files.admitted.task.format);
    let line = format!("sh -c {} > {logs}/custom.txt 2>&1", quoted(&agent.run));
    let mut env = variables(agent, course.task.variables)?;
    env.insert(INSTRUCTION_VARIABLE.to_owned(), format!("{FOLDER}/{INSTRUCTION}"));
    let time_limit = step.agent.timeout.unwrap_or(AGENT_MAX);
    let user = user_name(&step.agent.user);
    let command = Command { line: &line, user, env, time_limit, phase: Phase::Agent };
    let ended = container.shell(program, &format!("s{index}-agent"), command).await?;
    result.agent_ms = Some(ended.elapsed_ms);
    if let Some(why) = ended.not_started {
        let stop = Stop::exception("RuntimeError", format!("the agent could not be started: {why}"));
        return Err(stop.broken_by_agent(phase));
    }
    result.exception = command_exception(ended.exit_code, "the agent's command", time_limit);
    Ok(())
}

fn agent_of<'a>(course: &Course<'a>) -> Result<&'a CustomAgent, Stop> {
    course.task.custom.ok_or_else(|| Stop::refused("the order has no files of the agent"))
}

/// Returns the agent's variables.
fn variables(
    agent: &CustomAgent,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Stop> {
    agent.env.resolve(given).map_err(|missing| {
        let (agent, name) = (agent.title(), missing.name);
        Stop::refused(format!(
            "the agent `{agent}` needs the variable `{name}`, which the order doesn't have"
        ))
    })
}
