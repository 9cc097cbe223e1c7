//! Captures the log of all tests in this process.

use std::io::Write;
use std::sync::{Mutex, Once};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts capturing the log.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        let lines = tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::WARN);
        lines.with_ansi(false).with_writer(|| Lines).init();
    });
}

/// Returns the lines that contain both texts.
pub(crate) fn lines_with(one: &str, other: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    let lines = String::from_utf8_lossy(&lines);
    lines.lines().filter(|line| line.contains(one) && line.contains(other)).map(str::to_owned).collect()
}
