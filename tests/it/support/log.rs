//! Captures the log of all tests in this process.

use std::io::Write;
use std::sync::{Mutex, Once};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct CapturedLines;

impl Write for CapturedLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts capturing the log.
pub(crate) fn capture() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_ansi(false);
        lines.with_writer(|| CapturedLines).init();
    });
}

/// Returns the lines that contain this text.
pub(crate) fn lines_with(text: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    let lines = String::from_utf8_lossy(&lines);
    lines.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// Returns the number of errors that contain this text.
pub(crate) fn errors_with(text: &str) -> usize {
    lines_with(text).iter().filter(|line| line.contains(" ERROR ")).count()
}
