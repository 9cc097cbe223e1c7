//! Table of episodes on the terminal, above the bar of its benchmark.

use indicatif::{ProgressBar, ProgressStyle};

use crate::bars::bars;
use crate::output;
use crate::progress::episodes::{Episodes, Size, render};
use crate::views::{Benchmark, Run};

/// Number of lines that stay free: the cursor's, and that of a download.
const LINES_FREE: usize = 2;

/// Table of the tasks of a benchmark.
#[derive(Debug)]
pub(super) struct LiveTable {
    pub(super) episodes: Episodes,
    /// Number of requests for pages.
    pub(super) requests: u64,
    /// All lines of the table.
    bar: ProgressBar,
}

/// Returns the size of each of some tables beside the lines of bars.
pub(super) fn size(tables: usize, other_lines: usize) -> Size {
    let lines = usize::from(output::error_height().unwrap_or(24));
    let free = lines.saturating_sub(LINES_FREE + other_lines);
    Size { columns: output::error_width().unwrap_or(80).into(), lines: (free / tables.max(1)).max(1) }
}

impl LiveTable {
    /// Places a table above the bar of its benchmark; `None` for a benchmark without episodes.
    pub(super) fn new(benchmark: &Benchmark, below: &ProgressBar) -> Option<Self> {
        let known = bench_benchmarks::find(&benchmark.benchmark_name)?;
        known.has_agent().then(|| {
            let bar = bars().insert_before(below, ProgressBar::new_spinner());
            bar.set_style(
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            Self { episodes: Episodes::default(), requests: 0, bar }
        })
    }

    /// Draws what was read so far.
    pub(super) fn draw(&mut self, run: &Run, benchmark: &Benchmark, size: Size) {
        self.episodes.observe(benchmark);
        if run.is_over() {
            self.episodes.close();
        }
        if self.episodes.is_known() {
            self.bar.set_message(render(&self.episodes.tasks(), size).join("\n"));
        }
    }

    /// Leaves the table in place.
    pub(super) fn finish(self) {
        if self.episodes.is_known() {
            self.bar.abandon();
        } else {
            self.bar.finish_and_clear();
            bars().remove(&self.bar);
        }
    }
}
