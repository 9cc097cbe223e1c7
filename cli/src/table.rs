//! Tables that fit the width of the output.
//!
//! A table that is too wide is replaced by its narrow form, if it has one, then loses columns, those with the highest rank
//! before the others, both on a terminal only. Then cells are broken between words. If that isn't enough, the rows are
//! stacked: each becomes a list of all its fields.

mod fit;
pub(crate) mod wrap;

use console::measure_text_width;

use self::fit::{GAP, fit, is_comfortable};
use self::wrap::{Breaks, cut, widest_part, wrap, wrap_hanging};
use crate::layout::Layout;

/// Indent of the lines of a stacked field after its first.
const INDENT: usize = 2;
/// Minimum number of columns for the values beside the titles of stacked fields.
const VALUE_COLUMNS_MIN: usize = 24;

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    title: String,
    is_number: bool,
    rank: u8,
    /// True if cells are broken as far as possible before the column is dropped.
    is_dropped_last: bool,
    flow: Flow,
    breaks: Breaks,
}

/// Use of the space in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Cells stay on one line while columns can be dropped instead.
    Line,
    /// Cells of several words, which may take several lines.
    Words,
    /// Cells show the beginning of a text, on one line.
    Preview,
}

impl Column {
    /// Creates a column of short texts.
    pub(crate) fn text(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            is_number: false,
            rank: 0,
            is_dropped_last: false,
            flow: Flow::Line,
            breaks: Breaks::Words,
        }
    }

    /// Creates a column of numbers, which are aligned to the right.
    pub(crate) fn number(title: impl Into<String>) -> Self {
        Self { is_number: true, ..Self::text(title) }
    }

    /// Creates a column of texts of several words.
    pub(crate) fn words(title: impl Into<String>) -> Self {
        Self { flow: Flow::Words, ..Self::text(title) }
    }

    /// Creates a column of names with slashes, after which they may be broken.
    pub(crate) fn path(title: impl Into<String>) -> Self {
        Self { breaks: Breaks::Slashes, ..Self::words(title) }
    }

    /// Creates a column that shows the beginning of long texts.
    pub(crate) fn preview(title: impl Into<String>) -> Self {
        Self { flow: Flow::Preview, ..Self::text(title) }
    }

    /// Returns where a cell may be broken: after a hyphen only if nothing else fits.
    fn breaks_within(&self, cell: &str, width: usize) -> Breaks {
        match self.breaks {
            Breaks::Slashes if widest_part(cell, Breaks::Slashes) > width => Breaks::Hyphens,
            breaks => breaks,
        }
    }

    /// Keeps cells on one line while columns can be dropped instead.
    #[must_use]
    pub(crate) fn on_one_line(mut self) -> Self {
        self.flow = Flow::Line;
        self
    }

    /// Aligns cells to the right.
    #[must_use]
    pub(crate) fn aligned_right(mut self) -> Self {
        self.is_number = true;
        self
    }

    /// Allows terminals to drop the column if it has no room even after all cells are broken.
    #[must_use]
    pub(crate) fn drop_last(mut self) -> Self {
        self.rank = 1;
        self.is_dropped_last = true;
        self
    }

    /// Allows terminals that are too narrow to drop the column. Columns with a higher rank are dropped first.
    #[must_use]
    pub(crate) fn drop_as(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    narrow: Option<Box<Table>>,
}

impl Table {
    /// Creates a table without rows.
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), narrow: None }
    }

    /// Sets the form for terminals that are too narrow for this one.
    #[must_use]
    pub(crate) fn or_narrow(mut self, narrow: Self) -> Self {
        self.narrow = Some(Box::new(narrow));
        self
    }

    /// Adds a row with one cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.columns.len(), "{row:?}");
        self.rows.push(row);
    }

    /// Renders the table, without a line end after the last row.
    pub(crate) fn render(&self, layout: Layout) -> String {
        let table = self.showable(layout);
        if let Some(narrow) =
            self.narrow.as_ref().filter(|_| !is_comfortable(&table.columns, &table.rows, layout))
        {
            return narrow.render(layout);
        }
        match fit(&table.columns, &table.rows, layout) {
            Some(widths) => table.lines(&widths, layout).join("\n"),
            None => table.stacked(layout.width).join("\n"),
        }
    }

    /// Replaces characters that can't be shown.
    fn showable(&self, layout: Layout) -> Self {
        // Cells are trimmed, so that spaces of others don't widen columns.
        let showable = |text: &str| layout.showable(text.trim_end()).into_owned();
        let columns =
            self.columns.iter().map(|column| Column { title: showable(&column.title), ..column.clone() });
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| showable(cell)).collect());
        Self { columns: columns.collect(), rows: rows.collect(), narrow: None }
    }

    /// Renders the columns of these indices and widths side by side.
    fn lines(&self, widths: &[(usize, usize)], layout: Layout) -> Vec<String> {
        let ellipsis = if layout.has_unicode { "…" } else { "..." };
        let rule = if layout.has_unicode { "─" } else { "-" };
        let titles: Vec<_> = self.columns.iter().map(|column| column.title.as_str()).collect();
        let mut lines =
            self.row_lines(widths, &titles, |column, width, title| wrap(title, width, column.breaks));
        lines.push(
            widths.iter().map(|(_, width)| rule.repeat(*width)).collect::<Vec<_>>().join(&" ".repeat(GAP)),
        );
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(String::as_str).collect();
            lines.extend(self.row_lines(widths, &cells, |column, width, cell| match column.flow {
                Flow::Preview => vec![cut(cell, width, ellipsis)],
                Flow::Line | Flow::Words => wrap(cell, width, column.breaks_within(cell, width)),
            }));
        }
        let hidden: Vec<&str> = self
            .columns
            .iter()
            .enumerate()
            .filter(|(index, _)| widths.iter().all(|(shown, _)| shown != index))
            .map(|(_, column)| column.title.as_str())
            .collect();
        if !hidden.is_empty() {
            let note = format!("Not shown in {} columns: {}", layout.width, hidden.join(", "));
            lines.extend(wrap_hanging(&note, layout.width, INDENT, Breaks::Words));
        }
        lines
    }

    fn row_lines(
        &self,
        widths: &[(usize, usize)],
        cells: &[&str],
        break_cell: impl Fn(&Column, usize, &str) -> Vec<String>,
    ) -> Vec<String> {
        let broken: Vec<(usize, bool, Vec<String>)> = widths
            .iter()
            .filter_map(|(index, width)| {
                let (column, cell) = (self.columns.get(*index)?, cells.get(*index)?);
                Some((*width, column.is_number, break_cell(column, *width, cell)))
            })
            .collect();
        let height = broken.iter().map(|(_, _, lines)| lines.len()).max().unwrap_or(0);
        (0..height)
            .map(|line| {
                let cells = broken.iter().map(|(width, is_number, lines)| {
                    let text = lines.get(line).map_or("", String::as_str);
                    let space = " ".repeat(width.saturating_sub(measure_text_width(text)));
                    if *is_number { format!("{space}{text}") } else { format!("{text}{space}") }
                });
                cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
            })
            .collect()
    }

    /// Renders each row as a list of its fields.
    fn stacked(&self, width: usize) -> Vec<String> {
        let title_width =
            self.columns.iter().map(|column| measure_text_width(&column.title)).max().unwrap_or(0);
        let is_beside = title_width + GAP + VALUE_COLUMNS_MIN <= width;
        let mut lines = Vec::new();
        for row in &self.rows {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for (column, cell) in self.columns.iter().zip(row) {
                if is_beside {
                    let indent = title_width + GAP;
                    let space = " ".repeat(indent - measure_text_width(&column.title));
                    let broken = wrap(cell, width - indent, column.breaks);
                    hang(&format!("{}{space}", column.title), indent, &broken, &mut lines);
                } else {
                    let text = format!("{}: {}", column.title, cell.replace('\n', "; "));
                    let first = wrap(&text, width.saturating_sub(INDENT).max(1), column.breaks);
                    hang("", INDENT, &first, &mut lines);
                }
            }
        }
        lines
    }
}

/// Appends lines, the first after `start` and the others indented.
fn hang(start: &str, indent: usize, broken: &[String], lines: &mut Vec<String>) {
    for (index, line) in broken.iter().enumerate() {
        let start = if index == 0 { start.to_owned() } else { " ".repeat(indent) };
        lines.push(format!("{start}{line}").trim_end().to_owned());
    }
}

#[cfg(test)]
impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render(Layout::FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::text("run"),
            Column::path("model"),
            Column::words("benchmarks").drop_as(1),
            Column::number("score"),
            Column::text("created").drop_as(2),
        ]);
        let row = [
            "3f2b8c1e",
            "chutes/deepseek-ai/DeepSeek-V3",
            "mmlu_pro, gpqa_diamond",
            "51.9%",
            "2026-01-02 03:04",
        ];
        table.row(row.map(str::to_owned));
        table
    }

    fn render(width: usize, is_terminal: bool) -> String {
        table().render(Layout { width, is_terminal, has_unicode: true })
    }

    #[test]
    fn a_wide_terminal_shows_everything_on_one_line() {
        assert_eq!(
            render(120, true),
            "run       model                           benchmarks              score  created\n\
             ────────  ──────────────────────────────  ──────────────────────  ─────  ────────────────\n\
             3f2b8c1e  chutes/deepseek-ai/DeepSeek-V3  mmlu_pro, gpqa_diamond  51.9%  2026-01-02 03:04"
        );
    }

    #[test]
    fn columns_are_dropped_in_the_order_of_their_ranks() {
        assert!(render(80, true).ends_with("\nNot shown in 80 columns: created"), "{}", render(80, true));
        assert!(
            render(45, true).ends_with("\nNot shown in 45 columns: benchmarks, created"),
            "{}",
            render(45, true)
        );
    }

    #[test]
    fn a_column_that_is_dropped_last_stays_while_others_can_be_broken() {
        let mut table = Table::new([
            Column::text("created (UTC)").drop_last(),
            Column::path("model"),
            Column::words("tags").drop_as(2),
        ]);
        table.row(["01-02 03:04", "chutes/deepseek-ai/DeepSeek-V3", "a, b"].map(str::to_owned));
        let render = |width| table.render(Layout { width, is_terminal: true, has_unicode: true });
        assert_eq!(
            render(25),
            "created      model\n(UTC)\n───────────  ────────────\n01-02 03:04  chutes/\n             deepseek-ai/\n             \
             DeepSeek-V3\nNot shown in 25 columns:\n  tags"
        );
        assert!(render(20).contains("\n01-02    chutes/\n03:04    "), "{}", render(20));
        let hidden = render(14);
        assert!(hidden.starts_with("model\n") && hidden.ends_with("  created\n  (UTC), tags"), "{hidden}");
    }

    #[test]
    fn a_narrow_form_replaces_a_table_that_would_be_broken() {
        let one = |cell: &str| {
            let mut table = Table::new([Column::path("model").on_one_line()]);
            table.row([cell.to_owned()]);
            table
        };
        let table = one("openai-compatible/qwen3").or_narrow(one("qwen3"));
        let render = |width, is_terminal| table.render(Layout { width, is_terminal, has_unicode: true });
        assert!(render(30, true).ends_with("openai-compatible/qwen3"));
        assert!(render(20, true).ends_with("─\nqwen3"));
        assert!(render(20, false).ends_with("openai-compatible/\nqwen3"), "{}", render(20, false));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_broken() {
        let words: Vec<String> =
            table().rows[0].iter().flat_map(|cell| cell.split([' ', '/', '-'])).map(str::to_owned).collect();
        for width in 20..140 {
            for is_terminal in [true, false] {
                let text = render(width, is_terminal);
                for line in text.lines() {
                    assert!(measure_text_width(line) <= width, "{width}: {line}\n{text}");
                }
                let is_stacked = text.starts_with("run:") || text.starts_with("run ") && !text.contains('─');
                for word in words.iter().filter(|_| !is_terminal || is_stacked) {
                    assert!(text.contains(word.as_str()), "{width}: {word}\n{text}");
                }
            }
        }
    }

    #[test]
    fn rows_are_stacked_where_their_words_have_no_room() {
        assert_eq!(
            render(20, true),
            "run: 3f2b8c1e\nmodel: chutes/\n  deepseek-ai/\n  DeepSeek-V3\nbenchmarks:\n  mmlu_pro,\n  gpqa_diamond\nscore: 51.9%\n\
             created:\n  2026-01-02 03:04"
        );
        assert!(
            render(36, false).starts_with("run         3f2b8c1e\nmodel       chutes/deepseek-ai/"),
            "{}",
            render(36, false)
        );
    }

    #[test]
    fn files_have_whole_rows() {
        let mut table = Table::new([Column::words("text"), Column::preview("more")]);
        table.row(["word ".repeat(100), "x ".repeat(90)]);
        let text = table.render(Layout::FILE);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains(&"word ".repeat(99)) && text.ends_with(&"x ".repeat(90).trim_end()), "{text}");
    }

    #[test]
    fn output_that_is_no_terminal_keeps_its_columns() {
        for width in [60, 80] {
            let text = render(width, false);
            assert!(
                text.contains("benchmarks") && text.contains("created") && !text.contains("Not shown"),
                "{text}"
            );
        }
    }

    #[test]
    fn ascii_terminals_get_ascii() {
        let mut table = Table::new([Column::text("score"), Column::preview("text")]);
        table.row(["50.0% (25.0–75.0)".to_owned(), "one two three four five six seven".to_owned()]);
        let text = table.render(Layout { width: 40, is_terminal: true, has_unicode: false });
        assert_eq!(
            text,
            "score              text\n-----------------  ---------------------\n50.0% (25.0-75.0)  one two three four..."
        );
        assert!(text.is_ascii());
    }

    #[test]
    fn cells_do_not_control_the_terminal() {
        let mut table = Table::new([Column::text("text")]);
        table.row(["\u{1b}[31mred".to_owned()]);
        let text = table.render(Layout { width: 40, is_terminal: true, has_unicode: true });
        assert!(text.ends_with("\n\\u001b[31mred"), "{text}");
    }
}
