//! Progress of runs, with a bar for each benchmark of each run.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::bars::bars;
use crate::views::{Benchmark, Run};
use crate::{format, output};

/// Interval of lines without a terminal.
const LINES_EVERY: Duration = Duration::from_secs(5);
/// Maximum number of columns for the name in front of a bar.
const NAME_CHARS_MAX: usize = 32;

/// Shows the progress of runs.
#[derive(Debug)]
pub(crate) struct RunProgress {
    bars: HashMap<String, ProgressBar>,
    /// Last line of each benchmark: samples done, and the time at which that number was first seen.
    lines: HashMap<String, BenchmarkLine>,
    printed_at: Option<Instant>,
    terminal: bool,
}

#[derive(Debug, Clone, Copy)]
struct BenchmarkLine {
    first_seen_at: Instant,
    completed_at_first: u64,
    last_printed: Option<u64>,
}

impl RunProgress {
    /// Starts without showing anything.
    pub(crate) fn new() -> Self {
        Self {
            bars: HashMap::new(),
            lines: HashMap::new(),
            printed_at: None,
            terminal: output::is_terminal(),
        }
    }

    /// Shows the current state of the runs.
    pub(crate) fn update(&mut self, runs: &[Run]) {
        let several = runs.len() > 1;
        for run in runs {
            for benchmark in run.benchmarks.iter().filter(|benchmark| benchmark.planned_samples > 0) {
                let key = format!("{}/{}", run.id, benchmark.benchmark_name);
                let shown = self.bars.contains_key(&key) || self.lines.contains_key(&key);
                if !shown && may_be_from_before_resume(run, benchmark) {
                    continue;
                }
                if self.terminal {
                    self.draw(key, run, benchmark, several);
                } else {
                    self.lines.entry(key).or_insert_with(|| BenchmarkLine {
                        first_seen_at: Instant::now(),
                        completed_at_first: benchmark.completed_samples,
                        last_printed: None,
                    });
                }
            }
        }
        let due = self.printed_at.is_none_or(|at| at.elapsed() >= LINES_EVERY);
        if !self.terminal && due && self.print(runs, several) {
            self.printed_at = Some(Instant::now());
        }
    }

    /// Leaves the bars in place and ends the progress.
    pub(crate) fn finish(self, runs: &[Run]) {
        if !self.terminal {
            let mut this = self;
            this.print(runs, runs.len() > 1);
            return;
        }
        for bar in self.bars.into_values() {
            if bar.length() == Some(bar.position()) { bar.finish() } else { bar.abandon() }
        }
    }

    fn draw(&mut self, key: String, run: &Run, benchmark: &Benchmark, several: bool) {
        let bar = self.bars.entry(key).or_insert_with(|| {
            let bar = ProgressBar::new(benchmark.planned_samples).with_position(benchmark.completed_samples);
            let bar = bars().add(bar.with_prefix(name(run, benchmark, several)));
            let template =
                "{prefix} {bar:24.cyan/dim} {pos}/{len} {percent:>3}%  {per_sec}  eta {eta}  {msg}";
            bar.set_style(
                ProgressStyle::with_template(template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .with_key(
                        "per_sec",
                        |state: &indicatif::ProgressState, text: &mut dyn std::fmt::Write| {
                            // Writing to a string can't fail.
                            let _ = write!(text, "{:.1}/s", state.per_sec());
                        },
                    ),
            );
            // Samples done before must not count towards this process's speed.
            bar.reset_eta();
            bar
        });
        bar.set_length(benchmark.planned_samples);
        bar.set_position(benchmark.completed_samples);
        bar.set_message(correct(benchmark));
    }

    /// Prints a line for each benchmark that progressed, and returns true if there was one.
    fn print(&mut self, runs: &[Run], several: bool) -> bool {
        let mut any = false;
        for run in runs {
            for benchmark in &run.benchmarks {
                let key = format!("{}/{}", run.id, benchmark.benchmark_name);
                let Some(line_state) = self.lines.get_mut(&key) else { continue };
                if line_state.last_printed == Some(benchmark.completed_samples) {
                    continue;
                }
                line_state.last_printed = Some(benchmark.completed_samples);
                any = true;
                output::note(&line(&name(run, benchmark, several), benchmark, *line_state));
            }
        }
        any
    }
}

/// Returns true if the counts may be from before the run was resumed: all samples are done but the run isn't over.
/// Samples to repeat are subtracted a moment later.
fn may_be_from_before_resume(run: &Run, benchmark: &Benchmark) -> bool {
    benchmark.completed_samples >= benchmark.planned_samples && !run.is_over()
}

fn line(name: &str, benchmark: &Benchmark, line_state: BenchmarkLine) -> String {
    let (done, planned) = (benchmark.completed_samples, benchmark.planned_samples);
    let seconds = line_state.first_seen_at.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    let (share, rate, left) = (
        done as f64 / planned.max(1) as f64,
        done.saturating_sub(line_state.completed_at_first) as f64 / seconds.max(0.001),
        planned.saturating_sub(done) as f64,
    );
    let mut text = format!("{name} {done}/{planned} {}", format::percent(Some(share)));
    if left > 0.0 && rate > 0.0 {
        text.push_str(&format!("  {rate:.1}/s  eta {}", format::seconds(left / rate)));
    }
    format!("{text}  {}", correct(benchmark)).trim_end().to_owned()
}

fn name(run: &Run, benchmark: &Benchmark, several: bool) -> String {
    let demo = if benchmark.demo { " (DEMO)" } else { "" };
    let name = &benchmark.benchmark_name;
    if !several {
        return format!("{name}{demo}");
    }
    let model = run.model_slug();
    let cut: String = model.chars().skip(model.chars().count().saturating_sub(NAME_CHARS_MAX)).collect();
    format!("{cut} {name}{demo}")
}

/// Formats the share of correct answers so far.
fn correct(benchmark: &Benchmark) -> String {
    if benchmark.graded_samples == 0 {
        return String::new();
    }
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    let share = benchmark.correct_samples as f64 / benchmark.graded_samples as f64;
    format!("correct {}", format::percent(Some(share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_before_are_not_shown() {
        let run = |status: &str, completed: u64| -> Run {
            serde_json::from_value(serde_json::json!({
                "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": status, "model_slug": "m",
                "provider": "chutes", "created_at": "2026-01-02T03:04:05Z",
                "benchmarks": [{ "benchmark_name": "hle", "status": "running", "planned_samples": 22,
                    "completed_samples": completed }],
            }))
            .unwrap()
        };
        let mut progress = RunProgress { terminal: false, ..RunProgress::new() };
        progress.update(&[run("queued", 22)]);
        assert!(progress.lines.is_empty() && progress.printed_at.is_none());
        progress.update(&[run("running", 2)]);
        let line_state = *progress.lines.values().next().unwrap();
        assert_eq!(
            (line_state.completed_at_first, line_state.last_printed),
            (2, Some(2)),
            "the speed counts from there"
        );
        // A benchmark that was shown before is still shown after its last sample.
        assert!(progress.print(&[run("running", 22)], false));
        // A run that was over from the start is shown.
        let mut progress = RunProgress { terminal: false, ..RunProgress::new() };
        progress.update(&[run("succeeded", 22)]);
        assert_eq!(progress.lines.len(), 1);
    }

    #[test]
    fn a_line_says_how_far_and_how_good() {
        let benchmark = Benchmark {
            benchmark_name: "mmlu_pro".into(),
            planned_samples: 4,
            completed_samples: 4,
            graded_samples: 4,
            correct_samples: 3,
            ..Benchmark::default()
        };
        let line_state =
            BenchmarkLine { first_seen_at: Instant::now(), completed_at_first: 0, last_printed: None };
        assert_eq!(line("mmlu_pro", &benchmark, line_state), "mmlu_pro 4/4 100.0%  correct 75.0%");
    }
}
