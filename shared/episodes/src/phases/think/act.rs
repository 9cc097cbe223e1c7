//! Commands of agents as operations of the environment.

use std::time::Duration;

use bench_agents::session::{CAPTURE_HISTORY, CAPTURE_SCREEN, HAS_SESSION};
use bench_agents::{BashCommand, CommandResult, Keystrokes, Seen, TerminalState};
use bench_environments::{Exec, Stroke, TaskFile, TypeKeys};

use super::Work;
use crate::phases::container::{Command, Container, user_name};
use crate::program::Program;
use crate::stop::{Phase, Stop};

/// Length above which a script is put into a file, in bytes: a program's argument has at most 128 KiB.
const ARGUMENT_BYTES_MAX: usize = 64 << 10;
/// Folder for such scripts in containers.
const SCRIPTS: &str = "/tmp/.bench-scripts";

/// Result of an act: what was seen, and the time it took in milliseconds.
pub(in crate::phases) type Acted = (Seen, u64);

impl Work<'_, '_> {
    /// Types keystrokes and captures the terminal, within the time that is left.
    pub(super) async fn type_keys(
        &mut self,
        step: u32,
        strokes: &[Keystrokes],
        mut left: Duration,
    ) -> Result<Acted, Stop> {
        let strokes = strokes.iter().enumerate().map(|(at, keys)| {
            let wait = Duration::from_millis(keys.wait_ms()).min(left);
            left = left.saturating_sub(wait);
            Stroke::new(keys.send_commands(&format!("s{}-{step}-{at}", self.index)), wait)
        });
        let operation = TypeKeys {
            container: self.container.id.clone(),
            user: user_name(&self.step.agent.user),
            workdir: self.container.workdir.clone(),
            env: self.container.env.clone(),
            strokes: strokes.collect(),
            check: HAS_SESSION.to_owned(),
            history: CAPTURE_HISTORY.to_owned(),
            screen: CAPTURE_SCREEN.to_owned(),
            disk_bytes_max: Some(self.container.disk_bytes_max),
        };
        let name = format!("s{}-do-{step}", self.index);
        let environment = self.container.environment.clone();
        let captured = self.program.run(&environment, &name, &operation, Phase::Agent).await?;
        let terminal =
            TerminalState { is_alive: captured.alive, history: captured.history, screen: captured.screen };
        Ok((Seen::Terminal(terminal), captured.elapsed_ms))
    }

    /// Runs a command of `bash`, within the time that is left.
    pub(super) async fn run_command(
        &mut self,
        step: u32,
        command: &BashCommand,
        left: Duration,
    ) -> Result<Acted, Stop> {
        let user = user_name(&self.step.agent.user);
        run_command(self.program, self.container, (self.index, step), user, command, left).await
    }
}

/// Runs a command of an agent's step, within the time that is left. `index` is that of the task's step.
pub(in crate::phases) async fn run_command(
    program: &mut Program<'_>,
    container: &Container,
    (index, step): (usize, u32),
    user: Option<String>,
    command: &BashCommand,
    left: Duration,
) -> Result<Acted, Stop> {
    let script = command.script.replace('\0', "");
    let name = format!("s{index}-do-{step}");
    let line = match script.len() <= ARGUMENT_BYTES_MAX {
        true => format!("exec 2>&1\n{script}"),
        false => {
            let path = format!("s{index}-{step}.sh");
            let line = format!("exec 2>&1\n. {SCRIPTS}/{path}");
            let file = TaskFile { path, is_executable: false, bytes: script.into_bytes() };
            let put = format!("{name}-put");
            container.put(program, &put, SCRIPTS, false, vec![file], Phase::Agent).await?;
            line
        }
    };
    let limit = Duration::from_millis(command.time_limit_ms).min(left);
    let about =
        Command { line: &line, user, env: Default::default(), time_limit: limit, phase: Phase::Agent };
    let exec = Exec {
        workdir: Some(command.folder.clone()),
        stdout_bytes_max: command.output_bytes_max.saturating_mul(2),
        ..container.exec(about)
    };
    let ended = program.run(&container.environment, &name, &exec, Phase::Agent).await?;
    // The engine's own explanation goes to standard error, for example if the folder is gone.
    let output = match ended.started {
        true => format!("{}{}", ended.stdout.head, ended.stdout.tail),
        false => format!("{}{}", ended.stdout.text(), ended.stderr.text()),
    };
    let result = CommandResult {
        exit_code: ended.exit_code,
        is_timed_out: ended.is_timed_out(),
        output,
        omitted_bytes: ended.stdout.omitted,
    };
    Ok((Seen::Command(result), ended.elapsed_ms))
}
