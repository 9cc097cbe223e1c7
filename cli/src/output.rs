//! The only module that prints. Data goes to standard output, everything else to standard error.

use std::borrow::Cow;
use std::fmt::Write as _;
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
    let text = if stdout.is_terminal() { escape_controls(text) } else { text.into() };
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
    note_with_label("", text);
}

fn note_with_label(label: &str, text: &str) {
    let text = if is_terminal() { escape_controls(text) } else { text.into() };
    // A failure is ignored, since it can't be reported elsewhere.
    let _ = bars::suspended(|| writeln!(io::stderr().lock(), "{label}{text}"));
}

/// Escapes control characters other than line feeds and tabs, and characters that reorder text: callers, providers and
/// datasets must not control the terminal. Escapes have JSON's form.
fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_control) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_control(c) {
            // Writing to a string can't fail.
            true => _ = write!(escaped, "\\u{:04x}", u32::from(c)),
            false => escaped.push(c),
        }
    }
    escaped.into()
}

/// Prints a warning on standard error.
pub(crate) fn warn(text: &str) {
    note_with_label(&format!("{} ", style("warning:").for_stderr().yellow().bold()), text);
}

/// Prints an error on standard error.
pub(crate) fn error(text: &str) {
    note_with_label(&format!("{} ", style("error:").for_stderr().red().bold()), text);
}

/// Prints advice on standard error.
pub(crate) fn hint(text: &str) {
    note_with_label(&format!("{} ", style("hint:").for_stderr().cyan()), text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_do_not_control_the_terminal() {
        for (text, shown) in [
            ("plain, ä, 漢字\n\tindented", "plain, ä, 漢字\n\tindented"),
            ("a\u{1b}]0;title\u{7}b", "a\\u001b]0;title\\u0007b"),
            ("\u{9b}2J", "\\u009b2J"),
            ("evil\u{202e}txt.exe", "evil\\u202etxt.exe"),
            ("over\rwritten", "over\\u000dwritten"),
        ] {
            assert_eq!(escape_controls(text), shown);
        }
    }
}
