//! Progress of a file upload.

use indicatif::{ProgressBar, ProgressStyle};

use crate::bars::{bars, can_draw};
use crate::output;

/// Shows how much of a file was sent: a bar on a terminal, otherwise one line.
#[derive(Debug, Clone)]
pub(crate) struct FileProgress {
    bar: Option<ProgressBar>,
}

impl FileProgress {
    /// Starts the progress of a file before its first byte is sent.
    pub(crate) fn new(name: String, bytes: u64) -> Self {
        if !can_draw() {
            output::note(&format!("Uploading {name}: {} MB", bytes.div_ceil(1_000_000)));
            return Self { bar: None };
        }
        let bar = bars().add(ProgressBar::new(bytes).with_prefix(name));
        let template = "{prefix} {bar:24.cyan/dim} {bytes}/{total_bytes}  {bytes_per_sec}  eta {eta}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar: Some(bar) }
    }

    /// Adds the number of bytes sent.
    pub(crate) fn add(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
