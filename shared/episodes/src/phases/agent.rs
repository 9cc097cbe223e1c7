//! The agent's phase of a step.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::{Agent, EpisodeException, EpisodeStep};
use bench_environments::FetchFiles;
use bench_terminal_tasks::{Solution, Step, TaskFormat, solution_files, workdir_files};

use super::container::{self, Command, Container, user_name};
use super::{Course, Keeping, custom, ignore, keystrokes, step_folder, think};
use crate::program::Program;
use crate::stop::{Phase, Stop};

/// Time limit of an agent whose task has none.
pub(super) const AGENT_MAX: Duration = Duration::from_secs(23 * 3_600);
/// Folder of artifacts that no task has to name.
pub(super) const ARTIFACTS: &str = "/logs/artifacts";
/// Time limit of a step's `setup.sh`.
const SETUP_MAX: Duration = Duration::from_secs(600);

/// Prepares the step, lets the agent work, and keeps its logs. An agent that runs out of time, or whose command fails,
/// is verified all the same.
pub(super) async fn run(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    container: &mut Container,
    index: usize,
    step: &Step,
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    // Before the first step, no agent can have broken the environment.
    let phase = if index == 0 { Phase::Setup } else { Phase::Agent };
    if index == 0 && course.task.agent == Agent::Custom {
        custom::install(program, course, container).await?;
    }
    prepare(program, course, container, (index, step), phase).await?;
    container.use_network(program, step.agent.network.as_ref()).await?;
    match course.task.agent {
        Agent::Nop => result.agent_ms = Some(0),
        Agent::Oracle => oracle(program, course, container, index, step, result).await?,
        Agent::Custom => custom::run(program, course, container, (index, step), result).await?,
        Agent::Terminus2 | Agent::Bash => {
            Box::pin(think::run(program, course, container, index, step, result)).await?;
        }
    }
    container.use_network(program, None).await?;
    keep_logs(program, course, container, index, step).await
}

/// Prepares the environment of a step: folders, files, `setup.sh` and health check.
async fn prepare(
    program: &mut Program<'_>,
    course: &Course<'_>,
    container: &Container,
    (index, step): (usize, &Step),
    phase: Phase,
) -> Result<(), Stop> {
    if step.name.is_none() {
        return Ok(());
    }
    let broken = |stop: Stop| stop.broken_by_agent(phase);
    let clean = empty_folder("/logs/agent");
    container.prepare(program, &format!("s{index}-clean"), &clean, phase).await.map_err(broken)?;
    let files = workdir_files(&course.task.files.admitted.tree, step);
    if !files.is_empty() {
        let has_setup = files.contains_key("setup.sh");
        let folder = container.working_folder(program).await?;
        let files = course.task.files.inputs(&files);
        let name = format!("s{index}-workdir");
        container.put(program, &name, &folder, false, files, phase).await.map_err(broken)?;
        if has_setup {
            let command = Command {
                line: "bash ./setup.sh",
                user: user_name(&step.agent.user),
                env: Default::default(),
                time_limit: SETUP_MAX,
                phase,
            };
            let ended = container.shell(program, &format!("s{index}-setup"), command).await?;
            if let Some(why) = ended.not_started {
                let message = format!("`setup.sh` of the step could not be started: {why}");
                return Err(broken(Stop::exception("RuntimeError", message)));
            }
            if ended.exit_code != Some(0) {
                let message = format!("`setup.sh` of the step failed: exit code {:?}", ended.exit_code);
                return Err(Stop::exception("RuntimeError", message));
            }
        }
    }
    match &step.healthcheck {
        // What a later step needs may have been broken by the agent of an earlier one.
        Some(check) => {
            container.check_health(program, &format!("s{index}-health"), check).await.map_err(broken)
        }
        None => Ok(()),
    }
}

/// Runs the task's solution.
async fn oracle(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    container: &Container,
    index: usize,
    step: &Step,
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    let admitted = &course.task.files.admitted;
    let (path, env) = match &step.solution {
        Some(Solution::Script { path, env }) => (path, env),
        Some(Solution::Keystrokes(keys)) => {
            return keystrokes::run(program, course, container, (index, step), keys, result).await;
        }
        None => return Err(Stop::refused("the task has no solution, which the agent `oracle` runs")),
    };
    let env = env.resolve(course.task.variables).map_err(|missing| Stop::refused(missing.to_string()))?;
    let files = solution_files(&admitted.tree, step).map_err(|refusal| Stop::refused(refusal.to_string()))?;
    let is_old = admitted.task.format == TaskFormat::TerminalBench1;
    let env = if is_old { env } else { with_frontend(env) };
    let folder = if is_old { "/oracle" } else { "/solution" };
    let files = course.task.files.inputs(&files);
    container.put(program, &format!("s{index}-solution"), folder, true, files, Phase::Agent).await?;
    let script = path.rsplit('/').next().unwrap_or(path);
    let line = match is_old {
        true => format!("bash {folder}/{script} > /agent-logs/oracle.txt 2>&1"),
        false => format!("({folder}/{script}) > /logs/agent/oracle.txt 2>&1"),
    };
    let command = Command {
        line: &line,
        user: user_name(&step.agent.user),
        env,
        time_limit: step.agent.timeout.unwrap_or(AGENT_MAX),
        phase: Phase::Agent,
    };
    let ended = container.shell(program, &format!("s{index}-agent"), command).await?;
    result.agent_ms = Some(ended.elapsed_ms);
    if let Some(why) = ended.not_started {
        return Err(Stop::exception("RuntimeError", format!("the solution could not be started: {why}")));
    }
    result.exception =
        command_exception(ended.exit_code, "the solution", step.agent.timeout.unwrap_or(AGENT_MAX));
    Ok(())
}

/// Returns the exception of an agent's command that failed. Without an exit code, its time was up.
pub(super) fn command_exception(
    exit_code: Option<i32>,
    command: &str,
    time_limit: Duration,
) -> Option<EpisodeException> {
    let (name, message) = match exit_code {
        Some(0) => return None,
        Some(code) => ("NonZeroAgentExitCodeError", format!("{command} ended with exit code {code}")),
        None => ("AgentTimeoutError", format!("the agent did not end within its {} s", time_limit.as_secs())),
    };
    Some(EpisodeException { name: name.to_owned(), message })
}

/// Adds the variable with which Harbor keeps packages from asking questions while a script installs them. One of the
/// script's own wins.
pub(super) fn with_frontend(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    env.entry("DEBIAN_FRONTEND".to_owned()).or_insert_with(|| "noninteractive".to_owned());
    env
}

/// Runs the collect hooks, and copies logs and artifacts into the sandbox, before a verifier can change them.
async fn keep_logs(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    container: &Container,
    index: usize,
    step: &Step,
) -> Result<(), Stop> {
    for (at, hook) in step.verifier.collect.iter().enumerate() {
        let Some(id) = container.started.container(&hook.service) else { continue };
        let command = Command {
            line: &hook.command,
            user: user_name(&hook.user),
            env: Default::default(),
            time_limit: hook.timeout,
            phase: Phase::Agent,
        };
        let exec = if id == container.id { container.exec(command) } else { container::exec_in(id, command) };
        let name = format!("s{index}-collect-{at}");
        let run = program.run_once(&container.environment, &name, &exec, Phase::Agent, |_| true).await;
        ignore(run.map(drop))?;
    }
    let is_old = course.task.files.admitted.task.format == TaskFormat::TerminalBench1;
    let mut kept = match is_old {
        true => vec![("/agent-logs".to_owned(), "agent".to_owned(), Vec::new(), None)],
        false => vec![
            ("/logs/agent".to_owned(), "agent".to_owned(), Vec::new(), None),
            (ARTIFACTS.to_owned(), "artifacts".to_owned(), Vec::new(), None),
        ],
    };
    for artifact in &step.artifacts {
        let source = absolute(program, container, &artifact.source).await?;
        let folder = format!("artifacts/{}", artifact.kept_path());
        kept.push((source, folder, artifact.exclude.clone(), artifact.service.clone()));
    }
    for (at, (path, folder, exclude, service)) in kept.into_iter().enumerate() {
        let id = match service {
            None => container.id.as_str(),
            Some(service) => match container.started.container(&service) {
                Some(id) => id,
                None => continue,
            },
        };
        let fetch = match at {
            0 => agent_logs(container, id, &path, course.task.agent),
            _ => container.fetch_artifacts(id, &path, step),
        };
        let operation = format!("s{index}-keep-{at}");
        let environment = container.environment.clone();
        let copied =
            program.run_once(&environment, &operation, &fetch, Phase::Agent, |files| files.is_some());
        match copied.await {
            Ok(true) => {
                let folder = step_folder(step, &folder);
                course.keepings.push(Keeping { environment, operation, fetch, folder, exclude });
            }
            Ok(false) | Err(Stop::Exception(..)) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// Returns the request for the logs of an agent.
fn agent_logs(container: &Container, id: &str, path: &str, agent: Agent) -> FetchFiles {
    let first = match agent {
        Agent::Terminus2 => think::TERMINAL_LOGS.map(str::to_owned).to_vec(),
        Agent::Bash | Agent::Oracle | Agent::Nop | Agent::Custom => Vec::new(),
    };
    FetchFiles { shortens_logs: true, first, ..container.fetch(id, path) }
}

/// Returns the absolute path of an artifact.
pub(super) async fn absolute(
    program: &mut Program<'_>,
    container: &Container,
    path: &str,
) -> Result<String, Stop> {
    if path.starts_with('/') {
        return Ok(path.trim_end_matches('/').to_owned());
    }
    let folder = container.working_folder(program).await?;
    Ok(format!("{}/{}", folder.trim_end_matches('/'), path.trim_end_matches('/')))
}

/// Returns the command that empties a folder which everyone may write. A compose file may have mounted it, so that it can't
/// be removed itself.
pub(super) fn empty_folder(path: &str) -> String {
    let is_empty = format!(
        "for left in {path}/* {path}/.[!.]* {path}/..?*; do if [ -e \"$left\" ] || [ -L \"$left\" ]; then exit 1; fi; done"
    );
    format!("{{ rm -rf {path} 2>/dev/null; mkdir -p {path} && ({is_empty}) && chmod 777 {path}; }}")
}
