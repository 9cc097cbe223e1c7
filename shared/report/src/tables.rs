//! Facts with names, and tables with aligned columns.

use crate::bidi_lines::{Line, TextBox};
use crate::canvas::Area;
use crate::content::Fact;
use crate::flow::{Align, Flow, NAME_CHARS_MAX, SENTENCE_CHARS_MAX, count};
use crate::style::{
    ACCENT_LIGHT, BODY, CODE, Color, FAINT, LABEL, MARGIN_X, SMALL, STRONG, TextStyle, WIDTH,
};

/// Width of the names of facts.
const LABEL_WIDTH: f32 = 118.0;
/// Maximum number of lines of a fact's value.
const VALUE_LINES_MAX: usize = 5;
/// Room on both sides of a cell.
const CELL_PADDING: f32 = 7.0;
/// Maximum width of a column other than the first.
const COLUMN_WIDTH_MAX: f32 = 120.0;
/// Maximum height of facts that stay on one page with their heading.
const FEW_FACTS: f32 = 150.0;
/// Height of a table's head with the first row.
pub(crate) const TABLE_MIN: f32 = 54.0;
/// Maximum number of rows of a table; the rest is counted.
const ROWS_MAX: usize = 120;

/// Column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) align: Align,
}

/// Cell of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) style: TextStyle,
    /// Share of the cell's width that a bar behind the row takes.
    pub(crate) bar: Option<f32>,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: BODY, bar: None }
    }

    pub(crate) fn strong(text: impl Into<String>) -> Self {
        Self { style: STRONG, ..Self::new(text) }
    }

    pub(crate) fn colored(text: impl Into<String>, color: Color) -> Self {
        Self { style: BODY.colored(color), ..Self::new(text) }
    }

    pub(crate) fn bar(share: f32) -> Self {
        Self { bar: Some(share.clamp(0.0, 1.0)), ..Self::new("") }
    }
}

/// Fact in lines.
struct SetFact {
    labels: Vec<Line>,
    values: Vec<Line>,
    style: TextStyle,
    height: f32,
    /// True without a name: it belongs to the fact above.
    is_continued: bool,
}

/// Returns the height of a fact and of those that belong to it.
fn height_together(facts: &[SetFact], index: usize) -> f32 {
    let rest = facts.get(index..).unwrap_or_default();
    let others = rest.iter().skip(1).take_while(|fact| fact.is_continued);
    rest.iter().take(1).chain(others).map(|fact| fact.height).sum()
}

impl Flow<'_> {
    /// Places names and values in two columns. Facts without a name stay with the one above.
    pub(crate) fn facts(&mut self, facts: &[Fact]) {
        let set: Vec<SetFact> = facts.iter().map(|fact| self.set_fact(fact)).collect();
        let together: Vec<f32> = (0..set.len()).map(|index| height_together(&set, index)).collect();
        for (fact, height) in set.into_iter().zip(together) {
            self.make_room(height);
            let SetFact { labels, values, style, height, .. } = fact;
            let width = WIDTH - LABEL_WIDTH;
            let top = self.y();
            for (index, line) in labels.into_iter().enumerate() {
                let top = top + LABEL.line_height() * count(index);
                self.line_at(line, LABEL, MARGIN_X, top, LABEL_WIDTH, Align::Left);
            }
            for (index, line) in values.into_iter().enumerate() {
                // Both styles stand on the baselines of the label's.
                let top = top + LABEL.line_height() * count(index) + LABEL.baseline() - style.baseline();
                self.line_at(line, style, MARGIN_X + LABEL_WIDTH, top, width, Align::Left);
            }
            self.move_to(top + height);
        }
    }

    /// Returns the height of what stays below the heading of some facts: all of them if they are few, else the first with
    /// those that stay with it.
    pub(crate) fn fact_height(&self, facts: &[Fact]) -> f32 {
        let all = facts.iter().map(|fact| self.set_fact(fact).height).sum();
        if all <= FEW_FACTS {
            return all;
        }
        let others = facts.iter().skip(1).take_while(|fact| fact.label.is_empty());
        facts.iter().take(1).chain(others).map(|fact| self.set_fact(fact).height).sum()
    }

    /// Breaks a fact into lines.
    fn set_fact(&self, fact: &Fact) -> SetFact {
        let style = if fact.is_code { CODE } else { BODY };
        let value_box =
            TextBox { width: WIDTH - LABEL_WIDTH, lines_max: VALUE_LINES_MAX, chars_max: SENTENCE_CHARS_MAX };
        let label_box =
            TextBox { width: LABEL_WIDTH - CELL_PADDING, lines_max: 3, chars_max: NAME_CHARS_MAX };
        let values = self.typesetter().lines(&fact.value, style, value_box);
        let labels = self.typesetter().lines(&fact.label, LABEL, label_box);
        let height = LABEL.line_height() * count(values.len().max(labels.len())) + 2.0;
        SetFact { labels, values, style, height, is_continued: fact.label.is_empty() }
    }

    /// Places a table. The first column takes the room that the others leave; its texts may have two lines.
    pub(crate) fn table(&mut self, columns: &[Column], rows: &[Vec<Cell>]) {
        let shown = rows.get(..rows.len().min(ROWS_MAX)).unwrap_or_default();
        let widths = self.column_widths(columns, shown);
        self.table_head(columns, &widths);
        for row in shown {
            let first = row.first();
            let lines_box = TextBox {
                width: widths.first().copied().unwrap_or(WIDTH) - 2.0 * CELL_PADDING,
                lines_max: 2,
                chars_max: NAME_CHARS_MAX,
            };
            let lines = first
                .map(|cell| self.typesetter().lines(&cell.text, cell.style, lines_box))
                .unwrap_or_default();
            let height = BODY.line_height() * count(lines.len().max(1)) + 4.0;
            if self.make_room(height) {
                self.table_head(columns, &widths);
            }
            let top = self.y() + 2.0;
            if let Some(cell) = first {
                for (index, line) in lines.into_iter().enumerate() {
                    let top = top + BODY.line_height() * count(index);
                    self.line_at(
                        line,
                        cell.style,
                        MARGIN_X + CELL_PADDING,
                        top,
                        lines_box.width,
                        Align::Left,
                    );
                }
            }
            let mut x = MARGIN_X + widths.first().copied().unwrap_or_default();
            for ((cell, column), width) in row.iter().zip(columns).zip(&widths).skip(1) {
                self.cell(cell, column.align, x, top, *width);
                x += width;
            }
            self.move_to(top - 2.0 + height);
            self.row_line();
        }
        if let Some(hidden) = rows.len().checked_sub(ROWS_MAX).filter(|hidden| *hidden > 0) {
            self.gap(4.0);
            self.limited(&format!("{hidden} more rows are in the signed archive."), SMALL, 2);
        }
    }

    fn cell(&mut self, cell: &Cell, align: Align, x: f32, top: f32, width: f32) {
        let inner = width - 2.0 * CELL_PADDING;
        match cell.bar {
            Some(share) => {
                let y = top + BODY.line_height() / 2.0 - 2.5;
                let track = Area { x: x + CELL_PADDING, y, width: inner, height: 5.0 };
                self.page().rectangle(track, FAINT);
                if share > 0.0 {
                    self.page().rectangle(Area { width: (inner * share).max(0.8), ..track }, ACCENT_LIGHT);
                }
            }
            None => self.text_at(&cell.text, cell.style, x + CELL_PADDING, top, inner, align),
        }
    }

    fn table_head(&mut self, columns: &[Column], widths: &[f32]) {
        let height = SMALL.line_height() + 8.0;
        // With the first row, which may have two lines.
        self.make_room(height + BODY.line_height() * 2.0 + 6.0);
        let top = self.y();
        self.page().rectangle(Area { x: MARGIN_X, y: top, width: WIDTH, height }, FAINT);
        let mut x = MARGIN_X;
        for (column, width) in columns.iter().zip(widths) {
            let inner = width - 2.0 * CELL_PADDING;
            self.text_at(&column.title, SMALL, x + CELL_PADDING, top + 4.0, inner, column.align);
            x += width;
        }
        self.move_to(top + height);
    }

    /// Returns the widths of the columns: those after the first fit their widest cell.
    fn column_widths(&self, columns: &[Column], rows: &[Vec<Cell>]) -> Vec<f32> {
        let cell_width = |text: &str, style| {
            let one_line = TextBox { width: COLUMN_WIDTH_MAX, lines_max: 1, chars_max: NAME_CHARS_MAX };
            self.typesetter().lines(text, style, one_line).first().map_or(0.0, |line| line.width)
        };
        let mut widths: Vec<f32> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let cells = rows.iter().filter_map(|row| row.get(index));
                let widest = cells
                    .map(|cell| {
                        if cell.bar.is_some() { COLUMN_WIDTH_MAX } else { cell_width(&cell.text, cell.style) }
                    })
                    .fold(cell_width(&column.title, SMALL), f32::max);
                widest + 2.0 * CELL_PADDING + 0.5
            })
            .collect();
        let others: f32 = widths.iter().skip(1).sum();
        if let Some(first) = widths.first_mut() {
            *first = (WIDTH - others).max(90.0);
        }
        widths
    }
}
