//! The terminal of `terminus-2`: installation, start, recording.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_agents::session::{KEEP_HISTORY, STOP_RECORDING, start_recording, start_session};
use bench_agents::terminus2::Terminus2Settings;
use bench_terminal_tasks::TaskFormat;

use super::Work;
use super::machine::Machine;
use crate::phases::container::{Command, ROOT, user_name};
use crate::stop::{Phase, Stop};

/// Time limits of the installation of missing programs, and of other commands.
const INSTALL_MAX: Duration = Duration::from_secs(240);
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// Installs tmux, and the recorder if it is asked for as first argument, by the first package manager that is there.
/// Succeeds if tmux is there afterwards.
const INSTALL: &str = include_str!("terminal/install.sh");

/// A terminal that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terminal {
    is_recorded: bool,
}

impl Work<'_, '_> {
    /// Starts the terminal that the agent needs, if it needs one.
    pub(super) async fn open_terminal(&mut self, machine: &Machine) -> Result<Option<Terminal>, Stop> {
        let Machine::Terminus2(agent) = machine else { return Ok(None) };
        let settings: &Terminus2Settings = agent.settings();
        let recorder = if settings.is_recording { "asciinema" } else { "" };
        let install = format!("recorder={recorder}\n{INSTALL}");
        if self.command("install", &install, true, INSTALL_MAX).await? != Some(0) {
            return Err(Stop::exception("RuntimeError", "the container has no tmux, and it could not be installed"));
        }
        let pane = format!("{}/terminus_2.pane", self.logs());
        let start = start_session(settings.columns, settings.rows, &pane, &BTreeMap::new());
        // A session of the task's previous step would have the same name.
        let before = "tmux kill-session -t terminus-2 2>/dev/null; ";
        let before = if self.index > 0 { before } else { "" };
        let start = format!("{before}{start} && {{ {KEEP_HISTORY}; true; }}");
        if self.command("terminal", &start, false, COMMAND_MAX).await? != Some(0) {
            return Err(Stop::exception("RuntimeError", "the terminal session could not be started"));
        }
        if !settings.is_recording || self.command("recorder", "asciinema --version", false, COMMAND_MAX).await? != Some(0)
        {
            return Ok(Some(Terminal { is_recorded: false }));
        }
        let [record, clear] = start_recording(&format!("{}/recording.cast", self.logs()));
        let record = format!("{record}\nsleep 1\n{clear}");
        self.command("record", &record, false, COMMAND_MAX).await?;
        Ok(Some(Terminal { is_recorded: true }))
    }

    /// Ends the recording.
    pub(super) async fn close_terminal(&mut self, terminal: Option<Terminal>) -> Result<(), Stop> {
        if terminal.is_some_and(|terminal| terminal.is_recorded) {
            let stop = format!("{STOP_RECORDING}; sleep 0.5 || sleep 1");
            self.command("stop-record", &stop, false, COMMAND_MAX).await?;
        }
        Ok(())
    }

    /// Returns the folder of the agent's logs.
    fn logs(&self) -> &'static str {
        match self.course.task.files.admitted.task.format {
            TaskFormat::TerminalBench1 => "/agent-logs",
            _ => "/logs/agent",
        }
    }

    /// Runs a command once, and returns its exit code; `None` if it took too long.
    async fn command(
        &mut self,
        name: &str,
        line: &str,
        is_root: bool,
        time_limit: Duration,
    ) -> Result<Option<i32>, Stop> {
        let user = if is_root { Some(ROOT.to_owned()) } else { user_name(&self.step.agent.user) };
        let command = Command { line, user, env: BTreeMap::new(), time_limit, phase: Phase::Agent };
        let name = format!("s{}-{name}", self.index);
        let ended = self.container.shell(self.program, &name, command).await?;
        Ok(ended.exit_code)
    }
}
