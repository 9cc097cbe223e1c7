//! Table of episodes on the terminal, above the bar of its benchmark.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{RunProgress, key};
use crate::bars::bars;
use crate::output;
use crate::progress::episodes::{EpisodePage, EpisodePageView, Episodes, Size, render};
use crate::views::{Benchmark, Run};

/// Number of lines that stay free: the cursor's, and that of a download.
const LINES_FREE: usize = 2;

/// Table of the tasks of a benchmark.
#[derive(Debug)]
pub(super) struct LiveTable {
    episodes: Episodes,
    /// Number of requests for pages.
    requests: u64,
    /// All lines of the table.
    bar: ProgressBar,
}

/// Returns the size of each of some tables beside the lines of bars.
fn size(tables: usize, other_lines: usize) -> Size {
    let lines = usize::from(output::error_height().unwrap_or(24));
    let free = lines.saturating_sub(LINES_FREE + other_lines);
    Size { columns: output::error_width().unwrap_or(80).into(), lines: (free / tables.max(1)).max(1) }
}

impl LiveTable {
    /// Places a table above the bar of its benchmark; `None` for a benchmark without episodes.
    pub(super) fn new(benchmark: &Benchmark, below: &ProgressBar) -> Option<Self> {
        benchmark.has_agent().then(|| {
            let bar = bars().insert_before(below, ProgressBar::new_spinner());
            bar.set_style(
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            Self { episodes: Episodes::default(), requests: 0, bar }
        })
    }

    /// Draws what was read so far.
    fn draw(&mut self, run: &Run, benchmark: &Benchmark, size: Size) {
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

impl RunProgress {
    /// Returns the page of episodes to read, if one is due: the last one was at least `every` ago. Benchmarks take turns.
    pub(crate) fn next_page(&mut self, runs: &[Run], every: Duration) -> Option<EpisodePage> {
        if self.page_at.is_some_and(|at| Instant::now() < at) {
            return None;
        }
        let page = self.any_page(runs)?;
        self.page_at = Some(Instant::now() + every);
        Some(page)
    }

    /// Returns a page of episodes whose end wasn't read yet.
    pub(crate) fn any_page(&mut self, runs: &[Run]) -> Option<EpisodePage> {
        let keys = runs.iter().flat_map(|run| run.benchmarks.iter().map(move |benchmark| (run, benchmark)));
        let (key, run, benchmark) = keys
            .map(|(run, benchmark)| (key(run, benchmark), run, benchmark))
            .filter_map(|(key, run, benchmark)| {
                let table = self.shown.get(&key)?.table.as_ref()?;
                (!table.episodes.are_over()).then_some((table.requests, (key, run, benchmark)))
            })
            .min_by_key(|(requests, _)| *requests)?
            .1;
        let table = self.shown.get_mut(&key)?.table.as_mut()?;
        table.requests += 1;
        table.episodes.next_page(&run.id, &benchmark.benchmark_name)
    }

    /// Takes the answer to the request for a page.
    pub(crate) fn add_page(&mut self, page: &EpisodePage, view: EpisodePageView) {
        let shown = self.shown.get_mut(&format!("{}/{}", page.run, page.benchmark));
        if let Some(table) = shown.and_then(|shown| shown.table.as_mut()) {
            table.episodes.add(view);
        }
    }

    /// Waits longer than usual before the next page, since the last request failed.
    pub(crate) fn delay_pages(&mut self, wait: Duration) {
        self.page_at = Some(Instant::now() + wait);
    }

    /// Draws the tables of episodes, which share the lines that the bars leave free.
    pub(super) fn draw_tables(&mut self, runs: &[Run]) {
        let tables = self.shown.values().filter(|shown| shown.table.is_some()).count();
        let size = size(tables, self.shown.len() + self.waits.len());
        for run in runs {
            for benchmark in &run.benchmarks {
                let shown = self.shown.get_mut(&key(run, benchmark));
                if let Some(table) = shown.and_then(|shown| shown.table.as_mut()) {
                    table.draw(run, benchmark, size);
                }
            }
        }
    }
}
