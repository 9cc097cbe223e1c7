//! The one place that prints. Data goes to standard output, everything about it to standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process;

use anyhow::Context;
use console::style;
use serde::Serialize;

use crate::bars;

/// Whether standard error is a terminal: progress bars are drawn there.
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Columns that a table on standard output may have.
pub(crate) fn width() -> Option<u16> {
    console::Term::stdout().size_checked().map(|(_, columns)| columns)
}

/// Columns of the terminal that standard error is.
pub(crate) fn error_width() -> Option<u16> {
    console::Term::stderr().size_checked().map(|(_, columns)| columns)
}

/// Prints lines of data.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    written(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// What came of a write to standard output. Ends the process when nobody reads any more.
pub(crate) fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        // Whoever read this has seen enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(0),
        other => other.context("could not write to standard output"),
    }
}

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value).context("could not write the result as JSON")?)
}

/// Tells something on standard error.
pub(crate) fn note(text: &str) {
    // Nothing can be done when nobody hears it.
    let _ = bars::suspended(|| writeln!(io::stderr().lock(), "{text}"));
}

/// Warns on standard error.
pub(crate) fn warn(text: &str) {
    note(&format!("{} {text}", style("warning:").for_stderr().yellow().bold()));
}

/// Says on standard error what went wrong.
pub(crate) fn error(text: &str) {
    note(&format!("{} {text}", style("error:").for_stderr().red().bold()));
}

/// Says on standard error what to do about it.
pub(crate) fn hint(text: &str) {
    note(&format!("{} {text}", style("hint:").for_stderr().cyan()));
}
