//! The lines of a terminal that show progress bars.
//!
//! The cursor is always at the start of the line below the bars. Most terminals break lines that no longer fit when their
//! width changes, so the bars are then higher than when they were drawn. Lines are erased as high as they are now.

use std::env;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use console::{Term, measure_text_width};
use indicatif::TermLike;

/// Number of columns of a terminal that doesn't say how many it has.
const COLUMNS_UNKNOWN: u16 = 80;
const LINES_UNKNOWN: u16 = 24;

/// Draws bars on standard error. Clones draw on the same lines.
#[derive(Debug, Clone)]
pub(super) struct Screen {
    term: Term,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// True if the terminal breaks lines again when its width changes.
    rewraps: bool,
    /// Lines on the terminal that may be erased, from top to bottom.
    drawn: Vec<DrawnLine>,
    /// Texts to draw: each line of the bars, followed by the spaces that fill it.
    texts: Vec<String>,
    /// Number of rows to erase, as counted when they were drawn.
    erased: usize,
}

/// A line as it was drawn.
#[derive(Debug, Clone, Copy)]
struct DrawnLine {
    width: usize,
    /// Columns of the terminal at that time.
    columns: usize,
}

impl DrawnLine {
    /// Returns the number of rows on a terminal with these columns.
    fn rows(self, columns: usize) -> usize {
        self.width.div_ceil(columns.max(1)).max(1)
    }
}

impl Screen {
    pub(super) fn stderr() -> Self {
        let is = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        // These two cut lines off, unless a multiplexer draws on them.
        let cuts = is("XTERM_VERSION") || env::var_os("TERM").is_some_and(|term| term == "linux");
        Self { term: Term::stderr(), state: Arc::new(Mutex::new(State::new(is("TMUX") || !cuts))) }
    }

    /// Leaves the lines in place that are drawn now.
    pub(super) fn keep(&self) {
        self.state().drawn.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn columns(&self) -> u16 {
        self.term.size_checked().map_or(COLUMNS_UNKNOWN, |(_, columns)| columns)
    }
}

impl State {
    const fn new(rewraps: bool) -> Self {
        Self { rewraps, drawn: Vec::new(), texts: Vec::new(), erased: 0 }
    }

    /// Takes the collected texts, and returns what draws them on a terminal with these columns.
    fn redraw(&mut self, columns: usize) -> String {
        let mut rows = 0;
        let mut left = std::mem::take(&mut self.erased);
        while left > 0
            && let Some(line) = self.drawn.pop()
        {
            let then = line.rows(line.columns);
            rows += if self.rewraps { line.rows(columns) } else { then };
            left = left.saturating_sub(then);
        }
        // The lines above are finished, and stay.
        self.drawn.clear();
        let mut out = String::new();
        if rows > 0 {
            // Line by line: some terminals move a screen that is erased as a whole into their history.
            out.push('\r');
            out.push_str(&"\u{1b}[1A\u{1b}[2K".repeat(rows));
        }
        for line in std::mem::take(&mut self.texts).chunks(2).filter_map(|pair| pair.first()) {
            let line = line.trim_end();
            self.drawn.push(DrawnLine { width: measure_text_width(line), columns });
            out.push_str(line);
            out.push('\n');
        }
        out
    }
}

impl TermLike for Screen {
    /// Leaves one column free: behind a text in the last one, terminals differ in the place of the cursor.
    fn width(&self) -> u16 {
        self.columns().saturating_sub(1).max(1)
    }

    /// Leaves one line free for the cursor.
    fn height(&self) -> u16 {
        let lines = self.term.size_checked().map_or(LINES_UNKNOWN, |(lines, _)| lines);
        lines.saturating_sub(1).max(1)
    }

    // Only `flush` moves the cursor: it knows where the lines are by then.
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.state().texts.extend([text.to_owned(), String::new()]);
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.state().texts.push(text.to_owned());
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.state().erased += 1;
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let out = self.state().redraw(usize::from(self.columns()));
        if out.is_empty() {
            return Ok(());
        }
        self.term.write_str(&out)?;
        self.term.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws lines as indicatif does, after erasing `erased` rows.
    fn draw(state: &mut State, erased: usize, lines: &[&str], columns: usize) -> String {
        state.erased = erased;
        for line in lines {
            state.texts.extend([(*line).to_owned(), " ".repeat(columns.saturating_sub(line.len()))]);
        }
        state.redraw(columns)
    }

    fn erased(rows: usize) -> String {
        format!("\r{}", "\u{1b}[1A\u{1b}[2K".repeat(rows))
    }

    #[test]
    fn lines_are_erased_as_high_as_they_are_after_a_resize() {
        let wide = "x".repeat(119);
        let mut state = State::new(true);
        assert_eq!(draw(&mut state, 0, &[&wide, "short"], 120), format!("{wide}\nshort\n"));
        // The first line has become two.
        assert_eq!(draw(&mut state, 2, &["a", "b"], 60), erased(3) + "a\nb\n");
        assert_eq!(draw(&mut state, 2, &["c", "d"], 120), erased(2) + "c\nd\n");
        // A terminal that cuts lines off keeps their number.
        let mut state = State::new(false);
        draw(&mut state, 0, &[&wide, "short"], 120);
        assert_eq!(draw(&mut state, 2, &["a"], 60), erased(2) + "a\n");
    }

    #[test]
    fn finished_lines_above_stay() {
        let mut state = State::new(true);
        draw(&mut state, 0, &["done", "bar"], 80);
        assert_eq!(draw(&mut state, 1, &["bar 2"], 80), erased(1) + "bar 2\n");
        assert_eq!(draw(&mut state, 1, &[], 80), erased(1) + "");
        assert_eq!(draw(&mut state, 0, &[], 80), "");
    }

    #[test]
    fn kept_lines_and_what_follows_them_stay() {
        let screen = Screen { term: Term::stderr(), state: Arc::new(Mutex::new(State::new(true))) };
        draw(&mut screen.state(), 0, &["table", "bar"], 80);
        screen.keep();
        // Results were printed below the bar, which indicatif would erase before the next message.
        assert_eq!(draw(&mut screen.state(), 1, &[], 80), "");
    }

    #[test]
    fn a_line_wider_than_the_terminal_is_erased_whole() {
        let mut state = State::new(true);
        draw(&mut state, 0, &["x".repeat(30).as_str()], 20);
        assert_eq!(draw(&mut state, 2, &["y"], 20), erased(2) + "y\n");
    }
}
