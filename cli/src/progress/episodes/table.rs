//! Live table of episodes: a line per task, as many as the terminal has room for.

use console::{measure_text_width, style, truncate_str};

use super::TaskEpisodes;
use super::mark::Mark;
use crate::characters::escape_controls;
use crate::format;
use crate::table::wrap::cut;

const GAP: usize = 2;
/// Maximum and minimum width of names.
const NAME_COLUMNS_MAX: usize = 48;
const NAME_COLUMNS_MIN: usize = 8;
/// Minimum numbers of lines with titles, and with a legend.
const LINES_WITH_TITLES: usize = 4;
const LINES_WITH_LEGEND: usize = 8;
const ELLIPSIS: &str = "…";

/// Space for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    /// Number of lines, at least 1.
    pub(crate) lines: usize,
}

/// Order of tasks in the table: the first lines show what is at work, and what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Running,
    Failed,
    Waiting,
    Passed,
}

impl Group {
    const ALL: [Self; 4] = [Self::Running, Self::Failed, Self::Waiting, Self::Passed];

    fn of(task: &TaskEpisodes) -> Self {
        let has = |marks: &[Mark]| task.marks.iter().any(|mark| marks.contains(mark));
        if has(&[Mark::Running]) {
            Self::Running
        } else if has(&[Mark::Partial, Mark::Failed, Mark::Error]) {
            Self::Failed
        } else if has(&[Mark::Waiting]) {
            Self::Waiting
        } else {
            Self::Passed
        }
    }

    /// Returns the words behind the number of tasks in the group.
    const fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Failed => "with failures",
            Self::Waiting => "waiting",
            Self::Passed => "passed",
        }
    }
}

/// A line of a task.
#[derive(Debug, Clone)]
struct Line {
    name: String,
    episodes: String,
    rate: String,
    time: String,
}

impl TaskEpisodes {
    fn count(&self, is_counted: impl Fn(Mark) -> bool) -> u64 {
        self.marks.iter().filter(|mark| is_counted(**mark)).count() as u64
    }

    /// Formats the episodes that passed among those with a grade: `7/10 70.0%`.
    fn rate(&self) -> String {
        let (passed, graded) = (self.count(|mark| mark == Mark::Passed), self.count(Mark::is_graded));
        #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
        match graded {
            0 => "–".to_owned(),
            graded => {
                format!("{passed}/{graded} {:>6}", format::percent(Some(passed as f64 / graded as f64)))
            }
        }
    }
}

/// Renders the table with at most this number of lines. No line is wider than `size.columns`.
pub(crate) fn render(tasks: &[TaskEpisodes], size: Size) -> Vec<String> {
    // The last column stays free.
    let columns = size.columns.saturating_sub(1).max(1);
    let mut order: Vec<(Group, &TaskEpisodes)> = tasks.iter().map(|task| (Group::of(task), task)).collect();
    // Stable: tasks of a group keep the order of the plan.
    order.sort_by_key(|(group, _)| *group);
    let has_titles = size.lines >= LINES_WITH_TITLES;
    let has_legend = size.lines >= LINES_WITH_LEGEND;
    let room = size.lines.saturating_sub(usize::from(has_titles) + usize::from(has_legend));
    let shown = if order.len() <= room { order.len() } else { room.saturating_sub(1) };
    let (shown, hidden) = order.split_at(shown);
    let mut lines = if shown.is_empty() { Vec::new() } else { rows(shown, columns, has_titles) };
    if has_legend {
        lines.push(legend(shown, columns));
    }
    if !hidden.is_empty() {
        lines.push(hidden_line(hidden, columns));
    }
    lines.into_iter().map(|line| truncate_str(&line, columns, ELLIPSIS).into_owned()).collect()
}

fn rows(shown: &[(Group, &TaskEpisodes)], columns: usize, has_titles: bool) -> Vec<String> {
    let name_columns = NAME_COLUMNS_MAX.min((columns / 3).max(NAME_COLUMNS_MIN));
    let titles = Line {
        name: "task".to_owned(),
        episodes: "episodes".to_owned(),
        rate: "passed".to_owned(),
        time: "median".to_owned(),
    };
    let line = |task: &TaskEpisodes, episodes: String| Line {
        name: cut(&escape_controls(&task.name), name_columns, ELLIPSIS),
        episodes,
        rate: task.rate(),
        time: task.median_ms.map_or_else(|| "–".to_owned(), duration),
    };
    let titles: Vec<Line> = has_titles.then_some(titles).into_iter().collect();
    let with = |episodes: &dyn Fn(&TaskEpisodes) -> String| {
        titles.iter().cloned().chain(shown.iter().map(|(_, task)| line(task, episodes(task)))).collect()
    };
    // Marks if all rows have room for them beside all other columns, else counts.
    let marked: Vec<Line> = with(&|task| marks(&task.marks));
    let lines = if Line::width(&marked, 4) <= columns { marked } else { with(&counts) };
    // Where the counts have no room either, the columns on the right are left out.
    let kept = (2..=4).rev().find(|kept| Line::width(&lines, *kept) <= columns).unwrap_or(2);
    let widths = Line::widths(&lines);
    let mut rendered: Vec<String> = lines.iter().map(|line| line.render(&widths, kept)).collect();
    if has_titles && let Some(titles) = rendered.first_mut() {
        *titles = style(&*titles).for_stderr().dim().to_string();
    }
    rendered
}

impl Line {
    fn cells(&self) -> [&str; 4] {
        [&self.name, &self.episodes, &self.rate, &self.time]
    }

    fn widths(lines: &[Self]) -> [usize; 4] {
        let mut widths = [0; 4];
        for line in lines {
            for (width, cell) in widths.iter_mut().zip(line.cells()) {
                *width = measure_text_width(cell).max(*width);
            }
        }
        widths
    }

    /// Returns the width of the first columns of these lines.
    fn width(lines: &[Self], kept: usize) -> usize {
        Self::widths(lines).iter().take(kept).sum::<usize>() + GAP * (kept - 1)
    }

    /// Renders the first columns; numbers are aligned to the right.
    fn render(&self, widths: &[usize; 4], kept: usize) -> String {
        let cells = self.cells().into_iter().zip(widths).enumerate().take(kept).map(|(at, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(measure_text_width(cell)));
            if at < 2 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

/// Draws a mark for each episode.
fn marks(marks: &[Mark]) -> String {
    let equal = marks.chunk_by(|a, b| a == b);
    equal.filter_map(|run| Some(run.first()?.paint(run.first()?.symbol().repeat(run.len())))).collect()
}

/// Counts the episodes by mark: `✓ 7  ✗ 3`.
fn counts(task: &TaskEpisodes) -> String {
    let counts = Mark::ALL.into_iter().filter_map(|mark| {
        let count = task.count(|its| its == mark);
        (count > 0).then(|| mark.paint(format!("{}{}", mark.symbol(), format::count(count))))
    });
    counts.collect::<Vec<_>>().join(" ")
}

/// Formats a duration briefly: `12 s`, `4 m 10 s`.
#[allow(clippy::cast_precision_loss)] // durations are far below 2^53
fn duration(ms: u64) -> String {
    if ms < 10_000 { format!("{:.1} s", ms as f64 / 1_000.0) } else { format::seconds(ms as f64 / 1_000.0) }
}

/// Explains the marks that the lines have, as far as there is room.
fn legend(shown: &[(Group, &TaskEpisodes)], columns: usize) -> String {
    let is_shown = |mark: &Mark| shown.iter().any(|(_, task)| task.marks.contains(mark));
    let (mut text, mut width) = (String::new(), 0);
    for mark in Mark::ALL.into_iter().filter(is_shown) {
        let part = format!("{} {}", mark.symbol(), mark.word());
        let gap = if width > 0 { GAP } else { 0 };
        width += gap + measure_text_width(&part);
        if width > columns {
            break;
        }
        text.push_str(&" ".repeat(gap));
        text.push_str(&mark.paint(part));
    }
    text
}

/// Says how many tasks aren't shown, and in which state they are.
fn hidden_line(hidden: &[(Group, &TaskEpisodes)], columns: usize) -> String {
    let number = format::plural(hidden.len() as u64, "task");
    let groups = Group::ALL.into_iter().filter_map(|group| {
        let count = hidden.iter().filter(|(its, _)| *its == group).count();
        (count > 0).then(|| format!("{} {}", format::count(count as u64), group.words()))
    });
    let brief = format!("{number} not shown");
    let long = format!("{brief}: {}", groups.collect::<Vec<_>>().join(", "));
    if measure_text_width(&long) <= columns { long } else { brief }
}
