//! Progress bars of this process, and printing while they are shown.

use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, OnceLock};

use indicatif::{MultiProgress, ProgressDrawTarget};

use self::screen::Screen;
use crate::characters::ascii;
use crate::layout::has_unicode;

mod screen;

/// Maximum number of redraws per second.
const REDRAWS_PER_SECOND: u8 = 20;

/// Terminal with the bars.
static SCREEN: LazyLock<Screen> = LazyLock::new(Screen::stderr);

/// Returns true if standard error is a terminal where progress bars can be drawn: it moves its cursor and shows the
/// characters of a bar.
pub(crate) fn can_draw() -> bool {
    io::stderr().is_terminal() && has_unicode()
}

/// Returns all progress bars of this process. Other output must go around them.
pub(crate) fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(|| {
        MultiProgress::with_draw_target(match can_draw() {
            true => ProgressDrawTarget::term_like_with_hz(Box::new(SCREEN.clone()), REDRAWS_PER_SECOND),
            false => ProgressDrawTarget::hidden(),
        })
    })
}

/// Leaves the lines of finished bars in place. Until then, the next message erases as many lines above it, even if they
/// are results that were printed meanwhile.
pub(crate) fn keep_finished() {
    SCREEN.keep();
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
        let shown = match std::str::from_utf8(bytes) {
            Ok(text) if !has_unicode() => ascii(text),
            _ => "".into(),
        };
        let shown = if shown.is_empty() { bytes } else { shown.as_bytes() };
        suspended(|| io::stderr().lock().write_all(shown)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
