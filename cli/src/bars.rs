//! Progress bars of this process, and printing while they are shown.

use std::io::{self, Write};
use std::sync::OnceLock;

use indicatif::MultiProgress;

/// Returns all progress bars of this process. Other output must go around them.
pub(crate) fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(MultiProgress::new)
}

/// Hides the bars while `print` runs.
pub(crate) fn suspended<T>(print: impl FnOnce() -> T) -> T {
    bars().suspend(print)
}

/// Returns the writer for logs: standard error, without disturbing the bars.
pub(crate) fn log_writer() -> impl Write {
    LogWriter
}

struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        suspended(|| io::stderr().lock().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
