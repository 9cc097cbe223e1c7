//! The only module that prints. Data goes to standard output, everything else to standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process;

use anyhow::Context;
use console::style;
use serde::Serialize;

use crate::bars;

/// Returns true if standard error is a terminal, where progress bars can be drawn.
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns the number of columns for a table on standard output.
pub(crate) fn width() -> Option<u16> {
    console::Term::stdout().size_checked().map(|(_, columns)| columns)
}

/// Returns the number of columns of the terminal on standard error.
pub(crate) fn error_width() -> Option<u16> {
    console::Term::stderr().size_checked().map(|(_, columns)| columns)
}

/// Prints lines of data.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    written(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// Checks the result of a write to standard output. Ends the process if the pipe is closed.
pub(crate) fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        // The reader needs no more output, as with `head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(0),
        other => other.context("could not write to standard output"),
    }
}

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value).context("could not write the result as JSON")?)
}

/// Prints a message on standard error.
pub(crate) fn note(text: &str) {
    // A failure is ignored, since it can't be reported elsewhere.
    let _ = bars::suspended(|| writeln!(io::stderr().lock(), "{text}"));
}

/// Prints a warning on standard error.
pub(crate) fn warn(text: &str) {
    note(&format!("{} {text}", style("warning:").for_stderr().yellow().bold()));
}

/// Prints an error on standard error.
pub(crate) fn error(text: &str) {
    note(&format!("{} {text}", style("error:").for_stderr().red().bold()));
}

/// Prints advice on standard error.
pub(crate) fn hint(text: &str) {
    note(&format!("{} {text}", style("hint:").for_stderr().cyan()));
}
