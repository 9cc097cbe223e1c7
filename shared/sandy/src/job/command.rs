//! Our own commands in a sandbox: small Python programs, and the lines that they answer.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::job::ALLOW_LANDLOCK;
use uuid::Uuid;

use super::JobError;
use crate::error::shown;
use crate::{ExecRequest, Sandy};

/// Longest answer, in bytes: a piece of a result file in base64, and room for the tails.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// Characters of what a command says about its failure.
const REASON_CHARS_MAX: usize = 200;
/// What shells say when there is no such program.
const EXIT_NO_PROGRAM: i32 = 127;

/// A command, each safe to be run twice, also at the same time.
pub(super) struct Command {
    /// Completes "the sandbox could not …".
    pub(super) step: &'static str,
    code: &'static str,
}

macro_rules! command {
    ($name:ident, $step:literal, $file:literal) => {
        pub(super) const $name: Command = Command {
            step: $step,
            code: concat!(include_str!("scripts/common.py"), "\n", include_str!(concat!("scripts/", $file))),
        };
    };
}

command!(UNPACK, "unpack the job's files", "unpack.py");
command!(PLACE, "look for the job's files", "place.py");
command!(FETCH, "download a file of the job", "fetch.py");
command!(START, "start the job", "start.py");
command!(LOOK, "look at the job", "look.py");
command!(HARVEST, "read what the job left", "harvest.py");
command!(STOP, "stop the job", "stop.py");

impl Command {
    /// Runs it as a short command, and gives the words of each line that it answers, without its mark. There is at least one.
    pub(super) async fn run(
        &self,
        sandy: &Sandy,
        sandbox: &str,
        words: &[&str],
    ) -> Result<Vec<Vec<String>>, JobError> {
        self.run_within(sandy, sandbox, words, sandy.timing.command, BTreeMap::new()).await
    }

    /// Runs it as a short command that may restrict itself with Landlock, as may all that it starts.
    pub(super) async fn run_with_landlock(
        &self,
        sandy: &Sandy,
        sandbox: &str,
        words: &[&str],
    ) -> Result<Vec<Vec<String>>, JobError> {
        let env = BTreeMap::from([(ALLOW_LANDLOCK.to_owned(), "1".to_owned())]);
        self.run_within(sandy, sandbox, words, sandy.timing.command, env).await
    }

    /// Runs it as one that moves bytes.
    pub(super) async fn run_long(
        &self,
        sandy: &Sandy,
        sandbox: &str,
        words: &[&str],
    ) -> Result<Vec<Vec<String>>, JobError> {
        self.run_within(sandy, sandbox, words, sandy.timing.unpack, BTreeMap::new()).await
    }

    async fn run_within(
        &self,
        sandy: &Sandy,
        sandbox: &str,
        words: &[&str],
        timeout: Duration,
        env: BTreeMap<String, String>,
    ) -> Result<Vec<Vec<String>>, JobError> {
        let mark = Uuid::new_v4().simple().to_string();
        let command = self.line(&mark, words);
        let exec = ExecRequest { env, answer_bytes_max: ANSWER_BYTES_MAX, ..ExecRequest::new(command) };
        let output = sandy.exec(sandbox, &exec.repeatable().within(timeout)).await?;
        let lines: Vec<Vec<String>> = output
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix(mark.as_str())?.strip_prefix(' '))
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
        match lines.first().and_then(|line| line.first()) {
            Some(first) if first == "failed" => {
                let reason = lines[0].get(1).map_or(String::new(), |reason| reason.replace('_', " "));
                Err(JobError::Failed { step: self.step, reason: shown(&reason, REASON_CHARS_MAX) })
            }
            Some(_) if output.exit_code == 0 => Ok(lines),
            _ if output.exit_code == EXIT_NO_PROGRAM => Err(JobError::NoPython),
            _ if output.exit_code != 0 => {
                let said = output.stderr.lines().next_back().unwrap_or_default();
                let reason = format!("exit code {}: {}", output.exit_code, shown(said, REASON_CHARS_MAX));
                Err(JobError::Failed { step: self.step, reason })
            }
            _ => Err(self.garbled()),
        }
    }

    pub(super) fn garbled(&self) -> JobError {
        JobError::Garbled { step: self.step }
    }

    /// One line of shell. The shell becomes the program: where processes are scarce, every one counts.
    fn line(&self, mark: &str, words: &[&str]) -> String {
        let mut line = format!("exec python3 -I -S -c {} {mark}", quoted(self.code));
        for word in words {
            line.push(' ');
            line.push_str(&quoted(word));
        }
        line
    }
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longest argument of a program, which a command line is to its shell.
    const ARGUMENT_BYTES_MAX: usize = 128 << 10;

    #[test]
    fn commands_leave_room_for_their_words() {
        for command in [&UNPACK, &PLACE, &FETCH, &START, &LOOK, &HARVEST, &STOP] {
            let line = command.line("mark", &["a b", "it's", "$(x)"]);
            assert!(line.ends_with(r"mark 'a b' 'it'\''s' '$(x)'"), "{}", command.step);
            assert!(line.len() < ARGUMENT_BYTES_MAX / 4, "{}: {}", command.step, line.len());
        }
    }
}
