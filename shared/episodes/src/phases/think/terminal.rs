//! The terminal of `terminus-2`: installation, start, recording.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_agents::session::{KEEP_HISTORY, STOP_RECORDING, start_recording, start_session};
use bench_agents::terminus2::Terminus2Settings;
use bench_terminal_tasks::{Step, TaskFormat};

use super::Work;
use super::machine::Machine;
use crate::phases::container::{Command, Container, Ended, ROOT, user_name};
use crate::program::Program;
use crate::stop::{Phase, Stop};

/// Time limits of the installation of missing programs, and of other commands.
const INSTALL_MAX: Duration = Duration::from_secs(240);
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// Installs tmux, and the recorder if it is asked for as first argument, by the first package manager that is there.
/// Succeeds if tmux is there afterwards.
const INSTALL: &str = include_str!("terminal/install.sh");

/// Files of the terminal in the folder of logs.
const PANE: &str = "terminus_2.pane";
const RECORDING: &str = "recording.cast";
/// Logs of the terminal, which are kept however many files the agent writes beside them.
pub(in crate::phases) const TERMINAL_LOGS: [&str; 2] = [PANE, RECORDING];

/// Ends the session of the task's previous step, which has the same name. Without another session, the server of tmux then
/// exits, and refuses a new session until it is gone.
const END_EARLIER_SESSION: &str = "tmux kill-session -t terminus-2 2>/dev/null; tries=20; \
    while [ $tries -gt 0 ] && left=$(tmux list-sessions 2>/dev/null) && [ -z \"$left\" ]; do \
    tries=$((tries - 1)); sleep 0.1; done; ";

/// A terminal that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terminal {
    is_recorded: bool,
}

/// Installs tmux, and the recorder if it is named, and starts the terminal of a step of the task.
pub(in crate::phases) async fn start(
    program: &mut Program<'_>,
    container: &Container,
    (index, step): (usize, &Step),
    (columns, rows): (u16, u16),
    logs: &str,
    recorder: &str,
) -> Result<(), Stop> {
    let install = format!("recorder={recorder}\n{INSTALL}");
    let root = Some(ROOT.to_owned());
    let installed =
        shell(program, container, &format!("s{index}-install"), &install, root, INSTALL_MAX).await?;
    if installed.exit_code != Some(0) {
        let why = "the container has no tmux, and it could not be installed";
        return Err(Stop::exception("RuntimeError", with_end(why, &installed)));
    }
    let start = start_session(columns, rows, &format!("{logs}/{PANE}"), &BTreeMap::new());
    let before = if index > 0 { END_EARLIER_SESSION } else { "" };
    let start = format!("{before}{start} && {{ {KEEP_HISTORY}; true; }}");
    let user = user_name(&step.agent.user);
    let started = shell(program, container, &format!("s{index}-terminal"), &start, user, COMMAND_MAX).await?;
    match started.exit_code {
        Some(0) => Ok(()),
        _ => {
            let why = with_end("the terminal session could not be started", &started);
            Err(Stop::exception("RuntimeError", why))
        }
    }
}

/// Adds the last line of a command's output to a message.
fn with_end(message: &str, ended: &Ended) -> String {
    match ended.last_line.as_str() {
        "" => message.to_owned(),
        line => format!("{message}: {line}"),
    }
}

/// Returns the folder of the agent's logs.
pub(in crate::phases) const fn logs_folder(format: &TaskFormat) -> &'static str {
    match format {
        TaskFormat::TerminalBench1 => "/agent-logs",
        TaskFormat::Harbor { .. } => "/logs/agent",
    }
}

impl Work<'_, '_> {
    /// Starts the terminal that the agent needs, if it needs one.
    pub(super) async fn open_terminal(&mut self, machine: &Machine) -> Result<Option<Terminal>, Stop> {
        let Machine::Terminus2(agent) = machine else { return Ok(None) };
        let settings: &Terminus2Settings = agent.settings();
        let recorder = if settings.is_recording { "asciinema" } else { "" };
        let logs = logs_folder(&self.course.task.files.admitted.task.format);
        let size = (settings.columns, settings.rows);
        // After the first step, the agent may have removed what the terminal needs.
        let phase = if self.index == 0 { Phase::Setup } else { Phase::Agent };
        let started =
            start(self.program, self.container, (self.index, self.step), size, logs, recorder).await;
        started.map_err(|stop| stop.broken_by_agent(phase))?;
        let has_recorder = settings.is_recording && self.command("recorder", "asciinema --version").await?;
        if has_recorder {
            let [record, clear] = start_recording(&format!("{logs}/{RECORDING}"));
            self.command("record", &format!("{record}\nsleep 1\n{clear}")).await?;
        }
        Ok(Some(Terminal { is_recorded: has_recorder }))
    }

    /// Ends the recording.
    pub(super) async fn close_terminal(&mut self, terminal: Option<Terminal>) -> Result<(), Stop> {
        if terminal.is_some_and(|terminal| terminal.is_recorded) {
            self.command("stop-record", &format!("{STOP_RECORDING}; sleep 0.5 || sleep 1")).await?;
        }
        Ok(())
    }

    /// Runs a short command as the agent's user. Returns true if it succeeds.
    async fn command(&mut self, name: &str, line: &str) -> Result<bool, Stop> {
        let (name, user) = (format!("s{}-{name}", self.index), user_name(&self.step.agent.user));
        let code = shell(self.program, self.container, &name, line, user, COMMAND_MAX).await?.exit_code;
        Ok(code == Some(0))
    }
}

/// Runs a command once, and returns its exit code; `None` if it took too long.
async fn shell(
    program: &mut Program<'_>,
    container: &Container,
    name: &str,
    line: &str,
    user: Option<String>,
    time_limit: Duration,
) -> Result<Ended, Stop> {
    let command = Command { line, user, env: BTreeMap::new(), time_limit, phase: Phase::Agent };
    container.shell(program, name, command).await
}
