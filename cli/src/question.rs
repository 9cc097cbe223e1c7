//! Questions to the person at the terminal. Scripts are never asked.

use std::io::{self, BufRead, IsTerminal};

use anyhow::Context;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Problem;
use crate::output;

/// Returns true if there is a terminal to ask at: standard input and standard error.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question, and returns true if the answer is yes. The end of the input counts as no.
///
/// # Errors
/// Fails with `nothing`, such as `nothing was deleted`, if the user presses Ctrl-C.
pub(crate) async fn confirm(question: &str, nothing: &str) -> anyhow::Result<bool> {
    // Before the question is shown, so that Ctrl-C always ends the command in the same way.
    let mut interrupts = signal(SignalKind::interrupt()).context("can't watch for Ctrl-C")?;
    tokio::select! {
        answer = ask(question) => answer,
        _ = interrupts.recv() => {
            // The cursor is still behind the question.
            output::note("");
            Err(Problem::interrupted(nothing).into())
        }
    }
}

async fn ask(question: &str) -> anyhow::Result<bool> {
    output::ask(&format!("{question} [y/N] "));
    // In a thread of its own, so that this process answers requests of others meanwhile.
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = read.await.context("the answer was not read")?.context("could not read the answer")?;
    if line.is_empty() {
        // The cursor is still behind the question.
        output::note("");
    }
    Ok(is_yes(&line))
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for (line, expected) in
            [("y\n", true), (" YES \r\n", true), ("\n", false), ("", false), ("n\n", false), ("yy\n", false)]
        {
            assert_eq!(is_yes(line), expected, "{line:?}");
        }
    }
}
