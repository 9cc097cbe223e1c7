//! Progress of runs, with a bar for each benchmark of each run, and a line for each run that waits for its provider.
//! Above the bar of a benchmark with episodes is a table of its tasks.

mod live;

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use bench_domain::Timestamp;
use console::measure_text_width;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use self::live::LiveTable;
use super::pace::Pace;
use crate::bars::{bars, can_draw, keep_finished};
use crate::layout::has_unicode;
use crate::table::wrap::cut;
use crate::views::{Benchmark, Run, Waiting};
use crate::{causes, format, output};

/// Minimum interval of lines without bars.
const LINES_EVERY_MIN: Duration = Duration::from_secs(5);
/// Maximum interval of lines without bars.
const LINES_EVERY_MAX: Duration = Duration::from_secs(300);
/// Interval of lines without bars, as a share of the time since the first one.
const LINES_EVERY_SHARE: u32 = 12;
/// Interval of lines about a wait that goes on, without bars.
const WAIT_LINES_EVERY: Duration = Duration::from_secs(600);
/// Minimum change of a wait's end that is reported immediately where there are no progress bars.
const WAIT_CHANGE_MIN: Duration = Duration::from_secs(60);
/// Maximum number of columns for the name in front of a bar.
const NAME_CHARS_MAX: usize = 32;
/// Minimum numbers of columns for a short bar and for a long one.
const BAR_COLUMNS: [u16; 2] = [60, 100];

/// Shows the progress of runs.
#[derive(Debug)]
pub(crate) struct RunProgress {
    shown: HashMap<String, ShownBenchmark>,
    /// Waits of the runs, by id.
    waits: HashMap<String, ShownWait>,
    started_at: Instant,
    printed_at: Option<Instant>,
    /// Earliest time of the next request for episodes.
    page_at: Option<Instant>,
    terminal: bool,
}

/// A benchmark whose progress is shown.
#[derive(Debug)]
struct ShownBenchmark {
    /// `None` without bars.
    bar: Option<ProgressBar>,
    /// Tasks of a benchmark with episodes; `None` without bars.
    table: Option<LiveTable>,
    /// Columns of the terminal that the bar was made for.
    columns: u16,
    pace: Pace,
    last_printed: Option<u64>,
}

/// A wait that is shown.
#[derive(Debug)]
struct ShownWait {
    /// `None` without bars.
    bar: Option<ProgressBar>,
    until: Timestamp,
    printed_at: Instant,
}

impl RunProgress {
    /// Starts without showing anything.
    pub(crate) fn new() -> Self {
        Self {
            shown: HashMap::new(),
            waits: HashMap::new(),
            started_at: Instant::now(),
            printed_at: None,
            page_at: None,
            terminal: can_draw(),
        }
    }

    /// Shows the current state of the runs.
    pub(crate) fn update(&mut self, runs: &[Run]) {
        let several = runs.len() > 1;
        let now = Instant::now();
        for run in runs {
            for benchmark in run.benchmarks.iter().filter(|benchmark| benchmark.planned_samples > 0) {
                let key = key(run, benchmark);
                if !self.shown.contains_key(&key) {
                    if may_be_from_before_resume(run, benchmark) {
                        continue;
                    }
                    let bar = self.terminal.then(|| benchmark_bar(benchmark));
                    let table = bar.as_ref().and_then(|bar| LiveTable::new(benchmark, bar));
                    let pace = Pace::default();
                    let first = ShownBenchmark { bar, table, columns: 0, pace, last_printed: None };
                    self.shown.insert(key.clone(), first);
                }
                if let Some(shown) = self.shown.get_mut(&key) {
                    shown.pace.note(now, benchmark.completed_samples);
                    shown.draw(run, benchmark, several, now);
                }
            }
            self.show_wait(run, several, bench_clock::now());
        }
        self.draw_tables(runs);
        let due = self.printed_at.is_none_or(|at| at.elapsed() >= line_interval(self.started_at.elapsed()));
        if !self.terminal && due && self.print(runs, several) {
            self.printed_at = Some(Instant::now());
        }
    }

    /// Leaves the bars in place and ends the progress.
    pub(crate) fn finish(&mut self, runs: &[Run]) {
        for (_, wait) in self.waits.drain() {
            wait.remove();
        }
        self.draw_tables(runs);
        if !self.terminal {
            self.print(runs, runs.len() > 1);
            return;
        }
        for (_, shown) in self.shown.drain() {
            if let Some(table) = shown.table {
                table.finish();
            }
            let Some(bar) = shown.bar else { continue };
            if bar.length() == Some(bar.position()) { bar.finish() } else { bar.abandon() }
        }
        keep_finished();
    }

    /// Shows that a run waits, in a line below its bars or, without bars, now and then.
    fn show_wait(&mut self, run: &Run, several: bool, now: Timestamp) {
        let Some(waiting) = run.waiting.as_ref().filter(|_| !run.is_over()) else {
            if let Some(ended) = self.waits.remove(&run.id) {
                ended.remove();
                if !self.terminal && !run.is_over() {
                    output::note(&format!("{}the provider answers again", run_label(run, several)));
                }
            }
            return;
        };
        let text = format!("{}{}", run_label(run, several), waiting.describe(now));
        if let Some(shown) = self.waits.get_mut(&run.id) {
            match &shown.bar {
                Some(bar) => bar.set_message(text),
                None if shown.is_due(waiting) => {
                    shown.until = waiting.until;
                    shown.printed_at = Instant::now();
                    output::note(&text);
                }
                None => {}
            }
            return;
        }
        if let Some(message) = &waiting.message {
            // Once, above the bars: it is too long for a line that is drawn again and again.
            let message = causes::readable(message);
            output::note(&format!("{}{} ({message})", run_label(run, several), waiting.reason()));
        }
        let bar = self.terminal.then(|| wait_bar(&text));
        if bar.is_none() {
            output::note(&text);
        }
        self.waits
            .insert(run.id.clone(), ShownWait { bar, until: waiting.until, printed_at: Instant::now() });
    }

    /// Prints a line for each benchmark that progressed, and returns true if there was one.
    fn print(&mut self, runs: &[Run], several: bool) -> bool {
        let (mut any, now) = (false, Instant::now());
        for run in runs {
            for benchmark in &run.benchmarks {
                let Some(shown) = self.shown.get_mut(&key(run, benchmark)) else { continue };
                if shown.last_printed == Some(benchmark.completed_samples) {
                    continue;
                }
                shown.last_printed = Some(benchmark.completed_samples);
                any = true;
                output::note(&shown.line(&name(run, benchmark, several), run, benchmark, now));
            }
        }
        any
    }
}

impl ShownBenchmark {
    fn draw(&mut self, run: &Run, benchmark: &Benchmark, several: bool, now: Instant) {
        let Some(bar) = &self.bar else { return };
        let columns = output::error_width().unwrap_or(80);
        if columns != self.columns {
            // The first time, and whenever the terminal has another width.
            self.columns = columns;
            bar.set_style(style(bar_template(columns)));
            bar.set_prefix(cut_name(&name(run, benchmark, several), benchmark.planned_samples, columns));
        }
        bar.set_length(benchmark.planned_samples);
        bar.set_position(benchmark.completed_samples);
        let used =
            measure_text_width(&bar.prefix()) + columns_beside_name(benchmark.planned_samples, columns);
        bar.set_message(fit(self.state(run, benchmark, now), usize::from(columns).saturating_sub(used)));
    }

    /// Formats the pace, the time that is left, the share of correct answers, and the number of samples without a score.
    /// Each part has a rank: on narrow terminals, those with the highest one are left out first.
    fn state(&self, run: &Run, benchmark: &Benchmark, now: Instant) -> Vec<(u8, String)> {
        let left = benchmark.planned_samples.saturating_sub(benchmark.completed_samples);
        let mut parts = Vec::new();
        if left > 0 {
            let waits = run.waiting.is_some();
            let per_second = self.pace.per_second(now).filter(|_| !waits);
            parts.extend(per_second.map(|per_second| (3, pace(per_second))));
            let eta = self.pace.seconds_left(now, left).filter(|_| !waits);
            parts.push((0, format!("eta {}", eta.map_or_else(|| "–".to_owned(), format::seconds))));
        }
        parts.extend(correct(benchmark).map(|correct| (1, correct)));
        parts.extend(without_score(benchmark).map(|ungraded| (2, ungraded)));
        parts
    }

    fn line(&self, name: &str, run: &Run, benchmark: &Benchmark, now: Instant) -> String {
        let (done, planned) = (benchmark.completed_samples, benchmark.planned_samples);
        let state = fit(self.state(run, benchmark, now), usize::MAX);
        format!("{name} {done}/{planned} {}  {state}", format::percent(share(done, planned)))
            .trim_end()
            .to_owned()
    }
}

impl ShownWait {
    /// Returns true if the wait should be reported again: it became longer, or has gone on for long.
    fn is_due(&self, waiting: &Waiting) -> bool {
        waiting.until.since(self.until) >= WAIT_CHANGE_MIN || self.printed_at.elapsed() >= WAIT_LINES_EVERY
    }

    fn remove(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            bars().remove(bar);
        }
    }
}

fn key(run: &Run, benchmark: &Benchmark) -> String {
    format!("{}/{}", run.id, benchmark.benchmark_name)
}

/// Creates a bar, which is drawn when it fits the terminal.
fn benchmark_bar(benchmark: &Benchmark) -> ProgressBar {
    bars().add(ProgressBar::new(benchmark.planned_samples).with_position(benchmark.completed_samples))
}

/// Cuts a name that would leave no room for the bar and the counts behind it.
fn cut_name(name: &str, planned: u64, columns: u16) -> String {
    let ellipsis = if has_unicode() { "…" } else { "..." };
    cut(name, usize::from(columns).saturating_sub(columns_beside_name(planned, columns)), ellipsis)
}

/// Returns the number of columns that a bar, the counts and the gaps take, at most.
fn columns_beside_name(planned: u64, columns: u16) -> usize {
    // The last column stays free.
    let counts = planned.to_string().len() * 2 + " /  ".len() + 1;
    counts
        + match columns {
            columns if columns < BAR_COLUMNS[0] => 0,
            columns if columns < BAR_COLUMNS[1] => 12 + "  100.0%".len(),
            _ => 24 + "  100.0%".len(),
        }
}

/// Joins the parts of a line that have room in these columns. Leaves out those with the highest rank first.
fn fit(mut parts: Vec<(u8, String)>, room: usize) -> String {
    const GAP: &str = "  ";
    let width = |parts: &[(u8, String)]| {
        parts.iter().map(|(_, part)| measure_text_width(part) + GAP.len()).sum::<usize>()
    };
    while width(&parts) > room.saturating_add(GAP.len()) {
        let highest = parts.iter().map(|(rank, _)| *rank).max();
        parts.retain(|(rank, _)| Some(*rank) != highest);
    }
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(GAP)
}

fn bar_template(columns: u16) -> &'static str {
    match columns {
        columns if columns < BAR_COLUMNS[0] => "{prefix} {pos}/{len}  {wide_msg}",
        columns if columns < BAR_COLUMNS[1] => {
            "{prefix} {bar:12.cyan/dim} {pos}/{len} {share:>6}  {wide_msg}"
        }
        _ => "{prefix} {bar:24.cyan/dim} {pos}/{len} {share:>6}  {wide_msg}",
    }
}

/// Creates a line below the bars.
fn wait_bar(text: &str) -> ProgressBar {
    let bar = bars().add(ProgressBar::new_spinner().with_message(text.to_owned()));
    bar.set_style(style("  {wide_msg}"));
    bar.tick();
    bar
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("share", |state: &ProgressState, out: &mut dyn fmt::Write| {
        // Writing to a line in memory can't fail.
        let _ = out.write_str(&format::percent(share(state.pos(), state.len().unwrap_or(0))));
    })
}

/// Returns the share of the samples that are done.
fn share(done: u64, planned: u64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    (planned > 0).then(|| done as f64 / planned as f64)
}

/// Returns the interval of lines without bars: the longer the work takes, the longer it is.
fn line_interval(elapsed: Duration) -> Duration {
    (elapsed / LINES_EVERY_SHARE).clamp(LINES_EVERY_MIN, LINES_EVERY_MAX)
}

/// Returns true if the counts may be from before the run was resumed: all samples are done but the run isn't over.
/// Samples to repeat are subtracted a moment later.
fn may_be_from_before_resume(run: &Run, benchmark: &Benchmark) -> bool {
    benchmark.completed_samples >= benchmark.planned_samples && !run.is_over()
}

/// Formats a pace: `2.5/s`, or `3.0/min` for slow benchmarks.
fn pace(per_second: f64) -> String {
    match per_second {
        fast if fast >= 0.5 => format!("{fast:.1}/s"),
        slow => format!("{:.1}/min", slow * 60.0),
    }
}

/// Names a run in front of a message, if several are shown.
fn run_label(run: &Run, several: bool) -> String {
    if several { format!("{}: ", cut_model(run)) } else { String::new() }
}

/// Returns the end of the model's name, with its thinking level, if ordered.
fn cut_model(run: &Run) -> String {
    let model = run.model_slug();
    run.with_level(model.chars().skip(model.chars().count().saturating_sub(NAME_CHARS_MAX)).collect())
}

fn name(run: &Run, benchmark: &Benchmark, several: bool) -> String {
    let demo = if benchmark.demo { " (DEMO)" } else { "" };
    let name = benchmark.listed_name();
    if !several {
        return format!("{name}{demo}");
    }
    format!("{} {name}{demo}", cut_model(run))
}

/// Formats the share of correct answers so far; `None` before the first one.
fn correct(benchmark: &Benchmark) -> Option<String> {
    if benchmark.graded_samples == 0 {
        return None;
    }
    let share = share(benchmark.correct_samples, benchmark.graded_samples);
    Some(format!("correct {}", format::percent(share)))
}

/// Formats the number of samples that ended without a score, such as those whose requests were refused.
fn without_score(benchmark: &Benchmark) -> Option<String> {
    let ungraded = benchmark.completed_samples.saturating_sub(benchmark.graded_samples);
    (ungraded > 0).then(|| format!("{} without a score", format::count(ungraded)))
}

#[cfg(test)]
mod tests;
