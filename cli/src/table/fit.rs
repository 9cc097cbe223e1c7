//! Choice of the columns of a table and of their widths.

use super::wrap::{widest_line, widest_part};
use super::{Column, Flow};
use crate::layout::Layout;

/// Number of spaces between columns.
pub(super) const GAP: usize = 2;
/// Width at which a column of several words is comfortable to read.
const WORDS_COMFORTABLE: usize = 24;
/// Minimum width of a preview.
const PREVIEW_MIN: usize = 8;

/// Widths of a column.
#[derive(Debug, Clone, Copy)]
struct Widths {
    index: usize,
    rank: u8,
    is_dropped_last: bool,
    /// Below it, words would be broken.
    min: usize,
    /// Width down to which texts of several words and long names shrink before short texts are broken.
    tight: usize,
    /// Width down to which texts of several words shrink before columns of short texts do.
    cramped: usize,
    /// Width down to which the column shrinks before others are dropped.
    comfortable: usize,
    /// Width at which no cell is broken or cut.
    whole: usize,
}

impl Widths {
    fn new(index: usize, column: &Column, rows: &[Vec<String>]) -> Self {
        let cells = || rows.iter().filter_map(|row| row.get(index));
        let title = widest_part(&column.title, column.breaks);
        let widest_cell = cells().map(|cell| widest_line(cell)).max().unwrap_or(0);
        let widest_word = cells().map(|cell| widest_part(cell, column.breaks)).max().unwrap_or(0);
        let whole = widest_cell.max(widest_line(&column.title));
        let (min, cramped) = match column.flow {
            Flow::Line => (widest_word, widest_cell),
            Flow::Words => {
                let parts = cells().map(|cell| widest_part(cell, column.breaks_within(cell, 0)));
                (parts.max().unwrap_or(0), widest_word)
            }
            Flow::Preview => (widest_cell.min(PREVIEW_MIN), widest_cell.min(PREVIEW_MIN)),
        };
        let comfortable =
            if column.flow == Flow::Line { widest_cell } else { widest_cell.min(WORDS_COMFORTABLE) };
        let (min, cramped) = (min.max(title), cramped.max(title));
        let comfortable = comfortable.max(cramped);
        let tight = if column.flow == Flow::Line { cramped } else { min };
        let Column { rank, is_dropped_last, .. } = *column;
        Self { index, rank, is_dropped_last, min, tight, cramped, comfortable, whole }
    }
}

/// Returns true if all columns fit, without a broken cell in those of short texts.
pub(super) fn is_comfortable(columns: &[Column], rows: &[Vec<String>], layout: Layout) -> bool {
    !layout.is_terminal || total(&all_widths(columns, rows), |widths| widths.comfortable) <= layout.width
}

fn all_widths(columns: &[Column], rows: &[Vec<String>]) -> Vec<Widths> {
    let all = columns.iter().enumerate();
    all.map(|(index, column)| Widths::new(index, column, rows)).collect()
}

/// Removes the last of the columns with the highest rank that may be dropped now. Returns false if there is none.
fn drop_one(shown: &mut Vec<Widths>, may_drop: impl Fn(&Widths) -> bool) -> bool {
    let droppable = || shown.iter().filter(|widths| widths.rank > 0 && may_drop(widths));
    let highest = droppable().map(|widths| widths.rank).max();
    match shown.iter().rposition(|widths| Some(widths.rank) == highest && may_drop(widths)) {
        Some(last) => {
            shown.remove(last);
            true
        }
        None => false,
    }
}

/// Returns the indices and widths of the columns to show, or `None` if the rows must be stacked.
pub(super) fn fit(columns: &[Column], rows: &[Vec<String>], layout: Layout) -> Option<Vec<(usize, usize)>> {
    let mut shown = all_widths(columns, rows);
    while layout.is_terminal
        && total(&shown, |widths| widths.comfortable) > layout.width
        && drop_one(&mut shown, |widths| !widths.is_dropped_last)
    {}
    while layout.is_terminal
        && total(&shown, |widths| widths.min) > layout.width
        && drop_one(&mut shown, |_| true)
    {}
    let start = [
        |widths: &Widths| widths.comfortable,
        |widths: &Widths| widths.cramped,
        |widths: &Widths| widths.tight,
        |widths: &Widths| widths.min,
    ]
    .into_iter()
    .find(|width| total(&shown, width) <= layout.width)?;
    let mut chosen: Vec<usize> = shown.iter().map(start).collect();
    let mut left = layout.width - total(&shown, start);
    for goal in [|widths: &Widths| widths.comfortable, |widths: &Widths| widths.whole] {
        while left > 0 {
            // The column that is most cramped gets the next one.
            let cramped =
                shown.iter().zip(&chosen).enumerate().filter(|(_, (widths, width))| **width < goal(widths));
            let most = cramped.max_by_key(|(_, (widths, width))| goal(widths) * 1_000 / (**width).max(1));
            let Some((position, _)) = most else { break };
            chosen[position] += 1;
            left -= 1;
        }
    }
    Some(shown.iter().map(|widths| widths.index).zip(chosen).collect())
}

/// Returns the width of a line whose columns have these widths.
fn total(shown: &[Widths], width: impl Fn(&Widths) -> usize) -> usize {
    shown.iter().map(width).sum::<usize>() + GAP * shown.len().saturating_sub(1)
}
