//! The only module that prints. Data goes to standard output, everything else to standard error.
//!
//! Standard output may be a pipe whose reader ends early, as with `head`. From then on nothing is written, and the command
//! ends with its usual status.
//!
//! On a terminal, texts are broken between words, and the lines that follow are indented. Commands to copy and texts in
//! back-ticks stay in one piece. In files and pipes, texts are as they are.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use console::style;
use serde::Serialize;

use crate::bars;
use crate::characters::{ascii, escape_all_but_colors, escape_controls, escape_foreign};
use crate::layout::{HANG, Layout, has_unicode, is_dumb};
use crate::page::Page;
use crate::table::Table;
use crate::table::wrap::{Breaks, wrap_hanging};

/// True if the reader of standard output is gone.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns true if standard error is a terminal that shows colors.
pub(crate) fn has_colors() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Returns the number of columns of the terminal on standard error.
pub(crate) fn error_width() -> Option<u16> {
    console::Term::stderr().size_checked().map(|(_, columns)| columns)
}

/// Returns the number of lines of the terminal on standard error.
pub(crate) fn error_height() -> Option<u16> {
    console::Term::stderr().size_checked().map(|(lines, _)| lines)
}

/// Prints a page of fields, texts and tables.
pub(crate) fn print_page(page: &Page) -> anyhow::Result<()> {
    print_rendered(&page.render(Layout::stdout()))
}

/// Prints a table.
pub(crate) fn print_table(table: &Table) -> anyhow::Result<()> {
    print_rendered(&table.render(Layout::stdout()))
}

/// Prints lines that this program wrote.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let text = if has_unicode() { text.into() } else { ascii(text) };
    print_rendered(&fit(&text, Layout::stdout().text_width()))
}

/// Breaks the lines of a message that are wider than the terminal.
fn fit(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) => wrap_hanging(text, width, HANG, Breaks::Sentences).join("\n").into(),
        None => text.into(),
    }
}

fn print_rendered(text: &str) -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        return write_line(text.into());
    }
    let text = escape_all_but_colors(text);
    write_line(if has_unicode() { text.into() } else { escape_foreign(&text) })
}

/// Prints data as it is. On a terminal, characters that would control it are escaped.
pub(crate) fn print_data(text: &str) -> anyhow::Result<()> {
    match io::stdout().is_terminal() {
        true => {
            let text = escape_controls(text);
            write_line(if has_unicode() { text } else { escape_foreign(&text).into_owned().into() })
        }
        false => write_line(text.into()),
    }
}

/// Prints a text of a dataset or model. On a terminal, its lines are broken between words.
pub(crate) fn print_verbatim(text: &str) -> anyhow::Result<()> {
    let mut page = Page::new(0, 0);
    page.verbatim(text);
    print_page(&page)
}

fn write_line(text: Cow<'_, str>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    written(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// Writes bytes of data.
pub(crate) fn write_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Checks the result of a write to standard output. A closed pipe is not an error: its reader needs no more output.
pub(crate) fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            IS_CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        other => other.context("could not write to standard output"),
    }
}

/// Returns true if the reader of standard output is gone, so that no more output is needed.
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Prints help, a version, or an error about the command line.
pub(crate) fn print_usage(error: &clap::Error) {
    let is_error = error.use_stderr();
    let (width, has_colors) = match is_error {
        true => (message_width(), console::colors_enabled_stderr()),
        false => (Layout::stdout().text_width(), console::colors_enabled()),
    };
    let text = error.render();
    let text = if has_colors { text.ansi().to_string() } else { text.to_string() };
    let text = if has_unicode() { text.into() } else { ascii(&text) };
    let text = fit(text.trim_end_matches('\n'), width);
    // Printing fails only if the pipe is closed and has no reader.
    let _ = match is_error {
        true => writeln!(io::stderr().lock(), "{text}"),
        false => writeln!(io::stdout().lock(), "{text}"),
    };
}

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print_data(&serde_json::to_string_pretty(value).context("could not write the result as JSON")?)
}

/// Prints a message on standard error.
pub(crate) fn note(text: &str) {
    note_with_label("", text);
}

fn note_with_label(label: &str, text: &str) {
    let text = format!("{label}{}", shown_on_stderr(text));
    let text = fit(&text, message_width());
    // A failure is ignored, since it can't be reported elsewhere.
    let _ = bars::suspended(|| writeln!(io::stderr().lock(), "{text}"));
}

/// Replaces characters that standard error can't show, and on a terminal those that would control it.
fn shown_on_stderr(text: &str) -> Cow<'_, str> {
    let has_unicode = has_unicode();
    let text = if has_unicode { text.into() } else { ascii(text) };
    match io::stderr().is_terminal() {
        true if has_unicode => escape_controls(&text).into_owned().into(),
        true => escape_foreign(&escape_controls(&text)).into_owned().into(),
        false => text,
    }
}

/// Returns the number of columns for messages, or `None` if they aren't shown on a terminal.
fn message_width() -> Option<usize> {
    let width = error_width().filter(|_| io::stderr().is_terminal());
    width.map(usize::from).filter(|columns| *columns > 0)
}

/// Prints a question on standard error, without ending the line.
pub(crate) fn ask(text: &str) {
    let text = shown_on_stderr(text);
    // The cursor stays behind the question.
    let gap = text.get(text.trim_end().len()..).unwrap_or_default();
    let text = format!("{}{gap}", fit(text.trim_end(), message_width()));
    let _ = bars::suspended(|| {
        let mut stderr = io::stderr().lock();
        write!(stderr, "{text}").and_then(|()| stderr.flush())
    });
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
