//! Progress bars of this process, and what is printed while they are shown.

use std::io::{self, Write};
use std::sync::OnceLock;

use indicatif::MultiProgress;

/// All bars of this process: what else is printed must not go between them.
pub(crate) fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(MultiProgress::new)
}

/// Prints while the bars are out of the way.
pub(crate) fn suspended<T>(print: impl FnOnce() -> T) -> T {
    bars().suspend(print)
}

/// Where logs go: standard error, past the bars.
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
