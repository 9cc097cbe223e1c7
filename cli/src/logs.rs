//! Logs for people, without a line for each of many samples that end for the same reason.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::{causes, output};

/// Maximum number of log lines about samples of a run with the same cause.
const LINES_MAX: u32 = 3;
/// Maximum number of causes to count at once. After that, counting starts over.
const CAUSES_MAX: usize = 1_000;

/// Filter that passes only the first warnings with the same cause about samples of a run.
#[derive(Debug, Default)]
pub(crate) struct RepeatedWarningFilter {
    seen: Mutex<HashMap<(String, Vec<String>), u32>>,
}

impl RepeatedWarningFilter {
    /// Returns true if the message is logged, false if it is dropped, and `None` for the first one dropped.
    fn admits(&self, run: &str, message: &str) -> Option<bool> {
        // The text in front of `: ` identifies the sample.
        let cause = causes::cause(message.split_once(": ").map_or(message, |(_, cause)| cause));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= CAUSES_MAX {
            seen.clear();
        }
        let count = seen.entry((run.to_owned(), cause)).or_default();
        *count = count.saturating_add(1);
        (*count != LINES_MAX + 1).then_some(*count <= LINES_MAX)
    }
}

impl<S: Subscriber> Layer<S> for RepeatedWarningFilter {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        if *event.metadata().level() != Level::WARN {
            return true;
        }
        let mut warning = SampleWarning::default();
        event.record(&mut warning);
        let (Some(run), true) = (&warning.run, warning.has_code) else { return true };
        self.admits(run, &warning.message).unwrap_or_else(|| {
            output::warn("more samples of the run ended for the same reason; -v shows each of them");
            false
        })
    }
}

/// Fields of a warning about a sample.
#[derive(Debug, Default)]
struct SampleWarning {
    run: Option<String>,
    /// True if the event has an error code, as events about the end of a sample have.
    has_code: bool,
    message: String,
}

impl Visit for SampleWarning {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "run.id" => self.run = Some(format!("{value:?}")),
            "error.code" => self.has_code = true,
            "message" => self.message = format!("{value:?}"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_cause_is_logged_a_few_times() {
        let buffer = LogBuffer::default();
        let writer = buffer.clone();
        let logs = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false);
        tracing::subscriber::with_default(logs.finish().with(RepeatedWarningFilter::default()), || {
            for sample in 0..20 {
                for run in ["one", "two"] {
                    tracing::warn!(run.id = %run, error.code = "no_stored_response", "Sample x:{sample} ended: no response for item `q{sample}`");
                }
                tracing::warn!(run.id = %"one", error.code = "provider_error", "Sample x:{sample} ended: HTTP 500");
                tracing::warn!("Sample {sample} of nothing");
                tracing::warn!(run.id = %"one", "Storing failed: {sample}");
                tracing::info!(run.id = %"one", "Sample {sample} done: HTTP 500");
            }
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        let lines = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!((lines("no response"), lines("ended: HTTP 500")), (6, 3), "{text}");
        assert_eq!((lines("of nothing"), lines("Storing"), lines("done")), (20, 20, 20));
    }

    #[test]
    fn the_number_of_counted_causes_is_limited() {
        let filter_repeated = RepeatedWarningFilter::default();
        for number in 0..CAUSES_MAX * 3 {
            assert_eq!(filter_repeated.admits("run", &format!("Sample 1 ended: cause{number}")), Some(true));
        }
        assert!(filter_repeated.seen.lock().unwrap().len() <= CAUSES_MAX);
    }
}
