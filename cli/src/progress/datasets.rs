//! Progress of dataset downloads.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bench_datasets::{Progress, Step};
use indicatif::{ProgressBar, ProgressStyle};

use crate::bars::{bars, can_draw};
use crate::{format, output};

/// Interval of lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Minimum number of columns for a bar and the speed of a download.
const WIDE_COLUMNS: u16 = 120;

/// Shows progress while datasets are prepared.
#[derive(Debug, Default)]
pub(crate) struct DatasetProgress {
    state: Mutex<BarState>,
}

#[derive(Debug, Default)]
struct BarState {
    bar: Option<ProgressBar>,
    kind: Option<BarKind>,
    line_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BarKind {
    Message,
    Bytes,
}

impl DatasetProgress {
    /// Removes the bar after the datasets are ready.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
            bars().remove(&bar);
        }
        state.kind = None;
    }

    fn lock(&self) -> MutexGuard<'_, BarState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BarState {
    /// Returns the bar for the current step.
    fn bar(&mut self, kind: BarKind) -> &ProgressBar {
        let bar = self.bar.get_or_insert_with(|| {
            let bar = bars().insert(0, ProgressBar::new(0));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if self.kind != Some(kind) {
            self.kind = Some(kind);
            bar.set_style(match kind {
                BarKind::Message => style("{spinner:.cyan} {wide_msg}"),
                BarKind::Bytes if output::error_width().is_some_and(|columns| columns < WIDE_COLUMNS) => {
                    style("{spinner:.cyan} {decimal_bytes}/{decimal_total_bytes} {wide_msg}")
                }
                BarKind::Bytes => style(
                    "{spinner:.cyan} {msg} {bar:24.cyan/dim} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} eta {eta}",
                ),
            });
        }
        bar
    }

    /// Prints a line if the last one is at least `LINE_EVERY` old.
    fn line_if_due(&mut self, text: impl FnOnce() -> String) {
        if self.line_at.is_none_or(|at| at.elapsed() >= LINE_EVERY) {
            self.line_at = Some(Instant::now());
            output::note(&text());
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for DatasetProgress {
    fn step(&self, step: Step<'_>) {
        if let Step::Waiting { wait, problem } = step {
            let seconds = format::seconds(wait.as_secs_f64());
            output::note(&format!("The dataset hub did not answer ({problem}); trying again in {seconds}"));
            return;
        }
        let mut state = self.lock();
        if !can_draw() {
            match step {
                Step::Resolving { dataset } => state.line_if_due(|| format!("Asking the hub for {dataset}")),
                Step::Downloading { file, done_bytes, total_bytes } => state.line_if_due(|| {
                    let total = total_bytes.map(format::bytes);
                    match (done_bytes, total) {
                        (0, None) => format!("Downloading {file}"),
                        (0, Some(total)) => format!("Downloading {file}: {total}"),
                        (done, None) => format!("Downloading {file}: {}", format::bytes(done)),
                        (done, Some(total)) => {
                            format!("Downloading {file}: {} of {total}", format::bytes(done))
                        }
                    }
                }),
                // These steps end faster than people can read a line.
                Step::Unpacking { .. } | Step::Normalizing { .. } | Step::Waiting { .. } => {}
            }
            return;
        }
        match step {
            Step::Resolving { dataset } => {
                state.bar(BarKind::Message).set_message(format!("Asking the hub for {dataset}"));
            }
            Step::Downloading { file, done_bytes, total_bytes } => {
                let bar = state.bar(BarKind::Bytes);
                bar.set_length(total_bytes.unwrap_or(done_bytes));
                bar.set_position(done_bytes);
                bar.set_message(format!("Downloading {file}"));
            }
            Step::Unpacking { documents } => {
                let documents = format::plural(documents, "document");
                state.bar(BarKind::Message).set_message(format!("Unpacking the archive: {documents}"));
            }
            Step::Normalizing { items } => {
                let items = format::plural(items, "item");
                state.bar(BarKind::Message).set_message(format!("Preparing the dataset: {items}"));
            }
            Step::Waiting { .. } => {}
        }
    }
}
