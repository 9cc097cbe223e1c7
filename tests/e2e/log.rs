//! Captures errors that functions log in this process.

use std::io::Write;
use std::sync::Mutex;

static ERRORS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct CapturedErrors;

impl Write for CapturedErrors {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        ERRORS.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts capturing errors.
pub(crate) fn capture() {
    let errors = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_ansi(false);
    errors.with_writer(|| CapturedErrors).init();
}

/// Returns the number of captured lines that contain the text.
pub(crate) fn errors_with(text: &str) -> usize {
    let errors = ERRORS.lock().unwrap();
    String::from_utf8_lossy(&errors).lines().filter(|line| line.contains(text)).count()
}
