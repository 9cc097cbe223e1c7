//! Logs for people: notes like those of the command itself, without a line for each of many samples that end for the
//! same reason.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bench_domain::{Code, RunId};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::exit::{plain, says_disk_full};
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

impl RepeatedWarningFilter {
    /// Returns true if the event is logged.
    fn admits_event(&self, level: Level, fields: &EventFields) -> bool {
        let (Some(run), Level::WARN) = (&fields.run, level) else { return true };
        self.admits(run, &fields.message).unwrap_or_else(|| {
            output::warn(match fields.has_code {
                true => "more samples of the run ended for the same reason; -v shows each of them",
                false => "more warnings of this kind about the run follow; -v shows each of them",
            });
            false
        })
    }
}

impl<S: Subscriber> Layer<S> for RepeatedWarningFilter {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.admits_event(*event.metadata().level(), &EventFields::read(event))
    }
}

/// Runs of this command; `None` until it has some.
static OWN_RUNS: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// Hides events about other runs from now on: their own commands show them.
pub(crate) fn show_only(runs: &[RunId]) {
    let runs = runs.iter().map(ToString::to_string).collect();
    *OWN_RUNS.lock().unwrap_or_else(PoisonError::into_inner) = Some(runs);
}

fn is_of_another_command(run: &str) -> bool {
    let own = OWN_RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    own.as_ref().is_some_and(|own| !own.contains(run))
}

/// Prints events as warnings of the command, above its progress bars. Neither time nor level nor fields are shown: a
/// message says what people need.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    repeated: RepeatedWarningFilter,
}

/// True if an event said that the disk is full.
static SAW_DISK_FULL: AtomicBool = AtomicBool::new(false);

/// Returns true if an event has said that the disk is full.
pub(crate) fn saw_disk_full() -> bool {
    SAW_DISK_FULL.load(Ordering::Relaxed)
}

impl Notices {
    /// Returns the text of an event, or `None` if it isn't shown.
    fn text(&self, level: Level, fields: &EventFields) -> Option<String> {
        if fields.run.as_deref().is_some_and(is_of_another_command) {
            return None;
        }
        // The results of a run say how it ended, and what its provider refused: if that concerns all samples, the run
        // stops at once. Each command says itself that the disk is full, and what to do.
        let is_told_later = fields.is_end_of_run || fields.is_refused;
        let is_disk_full = says_disk_full(&fields.message);
        if is_disk_full {
            SAW_DISK_FULL.store(true, Ordering::Relaxed);
        }
        let is_told_later = is_told_later || is_disk_full;
        let is_shown =
            !fields.message.is_empty() && !is_told_later && self.repeated.admits_event(level, fields);
        is_shown.then(|| plain(&causes::readable(&fields.message)))
    }
}

impl<S: Subscriber> Layer<S> for Notices {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // The command itself may still succeed when a sample or run fails, so such errors are shown as warnings.
        if let Some(text) = self.text(*event.metadata().level(), &EventFields::read(event)) {
            output::warn(&text);
        }
    }
}

/// Fields of an event.
#[derive(Debug, Default)]
struct EventFields {
    run: Option<String>,
    /// True if the event has an error code, as events about the end of a sample have.
    has_code: bool,
    /// True if a sample ended because its request was refused.
    is_refused: bool,
    /// True if the event says how a run ended.
    is_end_of_run: bool,
    message: String,
}

impl EventFields {
    fn read(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "run.id" => self.run = Some(format!("{value:?}")),
            "error.code" => {
                self.has_code = true;
                let code = format!("{value:?}");
                let code = Code::from_name(code.trim_matches('"'));
                self.is_refused = matches!(code, Some(Code::RequestRejected | Code::JudgeRequestRejected));
            }
            "run.status" => self.is_end_of_run = true,
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
    fn notices_read_like_messages_of_the_command() {
        let notices = Notices::default();
        let event = |message: &str, has_code| EventFields {
            run: Some("one".to_owned()),
            has_code,
            message: message.to_owned(),
            ..EventFields::default()
        };
        let run = event("Run 1 waits for reconciliation: the table is gone.", false);
        let text = notices.text(Level::ERROR, &run);
        assert_eq!(text.as_deref(), Some("run 1 waits for reconciliation: the table is gone"));
        for sample in 0..10 {
            let ended = event(&format!("Sample x:{sample} ended: HTTP 500"), true);
            assert_eq!(notices.text(Level::WARN, &ended).is_some(), sample < LINES_MAX, "{sample}");
        }
        assert_eq!(notices.text(Level::WARN, &EventFields::default()), None);
        let end = EventFields { is_end_of_run: true, ..event("Run 1 failed: no key", false) };
        assert_eq!(notices.text(Level::ERROR, &end), None);
        let body = r#"Sample x:1 ended: HTTP 500 from X: {"error":{"message":"oh"}}"#;
        let text = notices.text(Level::WARN, &event(body, true));
        assert_eq!(text.as_deref(), Some("sample x:1 ended: HTTP 500 from X: oh"));
        let refused = EventFields { is_refused: true, ..event("Sample x:1 ended: HTTP 400", true) };
        assert_eq!(notices.text(Level::WARN, &refused), None);
    }

    #[test]
    fn refusals_are_known_by_their_code() {
        #[derive(Clone, Default)]
        struct Reader(Arc<Mutex<Vec<bool>>>);
        impl<S: Subscriber> Layer<S> for Reader {
            fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
                self.0.lock().unwrap().push(EventFields::read(event).is_refused);
            }
        }
        let reader = Reader::default();
        let read = Arc::clone(&reader.0);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(reader), || {
            tracing::warn!(error.code = "request_rejected", "no");
            tracing::warn!(error.code = %Code::JudgeRequestRejected, "no");
            tracing::warn!(error.code = "provider_error", "no");
        });
        assert_eq!(*read.lock().unwrap(), [true, true, false]);
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
