//! Commands that the client runs in a sandbox: small Python programs that print their answers line by line.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::job::ALLOW_LANDLOCK;
use uuid::Uuid;

use super::JobError;
use crate::error::single_line;
use crate::{ExecRequest, Sandy};

/// Maximum size of an answer, in bytes: fits a piece of a result file in base64, and the last bytes of stdout and stderr.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// Maximum number of characters of a command's error text.
const REASON_CHARS_MAX: usize = 200;
/// Exit code of shells for a program that doesn't exist.
const EXIT_NO_PROGRAM: i32 = 127;

/// A command. All commands can safely run twice, even concurrently.
pub(super) struct Command {
    /// Completes the sentence "the sandbox could not …".
    pub(super) step: &'static str,
    code: &'static str,
}

/// Defines a command by its program: the files in order, then a call of the last one's `main` within this time in seconds.
macro_rules! command {
    ($name:ident, $step:literal, $seconds:literal, $($file:literal),+) => {
        pub(super) const $name: Command = Command {
            step: $step,
            code: concat!(
                include_str!("scripts/common.py"),
                $("\n", include_str!(concat!("scripts/", $file)),)+
                "\nguarded(main, ", $seconds, ")\n"
            ),
        };
    };
}

command!(UNPACK, "unpack the job's files", 55, "unpack.py");
command!(PLACE, "look for the job's files", 8, "place.py");
command!(FETCH, "download a file of the job", 8, "fetch.py");
command!(START, "start the job", 8, "start.py");
command!(LOOK, "look at the job", 8, "look.py");
command!(HARVEST, "read the results of the job", 25, "harvest.py");
command!(STOP, "stop the job", 9, "stop.py");
command!(RUN, "run the job", 55, "unpack.py", "start.py", "look.py", "harvest.py", "run.py");

impl Command {
    /// Runs the command with the short time limit. Returns the words of each line of its answer, without the mark;
    /// there is at least one line.
    pub(super) async fn run(
        &self,
        sandy: &Sandy,
        sandbox: &str,
        words: &[&str],
    ) -> Result<Vec<Vec<String>>, JobError> {
        self.run_within(sandy, sandbox, words, sandy.timing.command, BTreeMap::new()).await
    }

    /// Runs the command with the short time limit, and allows it and everything it starts to use Landlock.
    pub(super) async fn run_with_landlock(
        &self,
        sandy: &Sandy,
        sandbox: &str,
        words: &[&str],
    ) -> Result<Vec<Vec<String>>, JobError> {
        let env = BTreeMap::from([(ALLOW_LANDLOCK.to_owned(), "1".to_owned())]);
        self.run_within(sandy, sandbox, words, sandy.timing.command, env).await
    }

    /// Runs the command with the time limit for moving bytes.
    pub(super) async fn run_long(
        &self,
        sandy: &Sandy,
        sandbox: &str,
        words: &[&str],
    ) -> Result<Vec<Vec<String>>, JobError> {
        self.run_within(sandy, sandbox, words, sandy.timing.unpack, BTreeMap::new()).await
    }

    pub(super) async fn run_within(
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
                Err(JobError::Failed { step: self.step, reason: single_line(&reason, REASON_CHARS_MAX) })
            }
            Some(_) if output.exit_code == 0 => Ok(lines),
            _ if output.exit_code == EXIT_NO_PROGRAM => Err(JobError::NoPython),
            _ if output.exit_code != 0 => {
                let text = output.stderr.lines().next_back().unwrap_or_default();
                let reason =
                    format!("exit code {}: {}", output.exit_code, single_line(text, REASON_CHARS_MAX));
                Err(JobError::Failed { step: self.step, reason })
            }
            _ => Err(self.unexpected_answer()),
        }
    }

    pub(super) fn unexpected_answer(&self) -> JobError {
        JobError::UnexpectedAnswer { step: self.step }
    }

    /// Returns the shell command. The shell is replaced by the program, since processes may be scarce.
    fn line(&self, mark: &str, words: &[&str]) -> String {
        let mut line = format!("exec python3 -I -S -c {} {mark}", shell_quoted(self.code));
        for word in words {
            line.push(' ');
            line.push_str(&shell_quoted(word));
        }
        line
    }
}

/// Quotes a word for the shell.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's limit for one argument, and therefore for a command line.
    const ARGUMENT_BYTES_MAX: usize = 128 << 10;

    #[test]
    fn commands_leave_room_for_their_words() {
        for command in [&UNPACK, &PLACE, &FETCH, &START, &LOOK, &HARVEST, &STOP, &RUN] {
            let line = command.line("mark", &["a b", "it's", "$(x)"]);
            assert!(line.ends_with(r"mark 'a b' 'it'\''s' '$(x)'"), "{}", command.step);
            assert!(line.len() < ARGUMENT_BYTES_MAX / 3, "{}: {}", command.step, line.len());
        }
    }
}
