//! Solutions of Terminal-Bench 1 that are lists of keystrokes, typed into a terminal.

use std::time::Duration;

use bench_agents::session::{CAPTURE_HISTORY, CAPTURE_SCREEN, HAS_SESSION, SESSION};
use bench_domain::{EpisodeException, EpisodeLog, EpisodeStep};
use bench_environments::{Stroke, TypeKeys};
use bench_terminal_tasks::{Keystrokes, Step};

use super::agent::AGENT_MAX;
use super::container::{Container, user_name};
use super::{Course, step_folder, think};
use crate::program::Program;
use crate::stop::{Phase, Stop};

/// Size of the terminal, as officially.
const SIZE: (u16, u16) = (160, 40);
/// Signal of a command that the next one waits for.
const DONE: &str = "bench-runner-done";

/// Types a solution. A command that blocks longer than its limit ends the agent by time-out, and its work is verified.
pub(super) async fn run(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    container: &Container,
    (index, step): (usize, &Step),
    keystrokes: &[Keystrokes],
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    let logs = think::logs_folder(&course.task.files.admitted.task.format);
    think::start_terminal(program, container, (index, step), SIZE, logs, "").await?;
    let mut left = step.agent.timeout.unwrap_or(AGENT_MAX);
    let operation = TypeKeys {
        container: container.id.clone(),
        user: user_name(&step.agent.user),
        workdir: container.workdir.clone(),
        env: container.env.clone(),
        strokes: keystrokes.iter().map(|keys| stroke(keys, &mut left)).collect(),
        check: HAS_SESSION.to_owned(),
        history: CAPTURE_HISTORY.to_owned(),
        screen: CAPTURE_SCREEN.to_owned(),
        disk_bytes_max: Some(container.disk_bytes_max),
    };
    let name = format!("s{index}-agent");
    let captured = program.run(&container.environment, &name, &operation, Phase::Agent).await?;
    result.agent_ms = Some(captured.elapsed_ms);
    let bytes = captured.history.len() as u64;
    let name = step_folder(step, "agent/oracle.txt");
    course.report.logs.push(EpisodeLog { name, text: captured.history, bytes, omitted: 0 });
    if captured.typed < keystrokes.len() {
        let message = format!("keystrokes {} of the solution did not end in time", captured.typed + 1);
        result.exception = Some(EpisodeException { name: "AgentTimeoutError".to_owned(), message });
    }
    Ok(())
}

/// Returns the commands for keystrokes of a solution, within the time that is left.
fn stroke(keys: &Keystrokes, left: &mut Duration) -> Stroke {
    let send = |arguments: &[&str]| {
        let quoted: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        format!("tmux send-keys -t {SESSION} -- {}", quoted.join(" "))
    };
    let waits = keys.is_blocking && keys.has_enter;
    let commands = match (waits, keys.has_enter) {
        (true, _) => {
            let signal = format!("; tmux wait -S {DONE}");
            vec![send(&[keys.command.as_str(), signal.as_str(), "Enter"]), format!("tmux wait {DONE}")]
        }
        (false, true) => vec![send(&[keys.command.as_str(), "Enter"])],
        (false, false) => vec![send(&[keys.command.as_str()])],
    };
    let wait = if waits { Duration::ZERO } else { keys.min_timeout.min(*left) };
    let limit = if waits { keys.max_timeout.min(*left).max(Duration::from_secs(1)) } else { Duration::ZERO };
    *left = left.saturating_sub(wait.max(limit));
    let stroke = Stroke::new(commands, wait);
    if waits { Stroke { limit, ..stroke } } else { stroke }
}

/// Quotes a word for the shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\0', "").replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_block_signal_their_end() {
        let keys = |command: &str, is_blocking, has_enter| Keystrokes {
            command: command.to_owned(),
            min_timeout: Duration::from_secs(2),
            max_timeout: Duration::from_secs(180),
            is_blocking,
            has_enter,
        };
        let mut left = Duration::from_secs(100);
        let blocks = stroke(&keys("it's", true, true), &mut left);
        assert_eq!(
            blocks.commands,
            [
                r"tmux send-keys -t terminus-2 -- 'it'\''s' '; tmux wait -S bench-runner-done' 'Enter'",
                "tmux wait bench-runner-done"
            ]
        );
        assert_eq!((blocks.limit, left), (Duration::from_secs(100), Duration::ZERO));
        let mut left = Duration::from_secs(3);
        let plain = stroke(&keys("C-c", true, false), &mut left);
        assert_eq!(plain.commands, ["tmux send-keys -t terminus-2 -- 'C-c'"]);
        assert_eq!((plain.wait, left), (Duration::from_secs(2), Duration::from_secs(1)));
    }
}
