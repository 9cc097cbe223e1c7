//! Pages of a command's output: headings, fields, texts and tables, fit to the width of the output.

use std::borrow::Cow;

use console::{measure_text_width, style};

use crate::layout::{HANG, Layout};
use crate::table::Table;
use crate::table::wrap::{Breaks, wrap, wrap_hanging};

/// Minimum number of columns for a text beside the name of its field. With less room, it is below the name.
const TEXT_COLUMNS_MIN: usize = 24;
/// Indent of a text below the name of its field.
const BELOW_INDENT: usize = 4;
/// Distance of the columns to which tabs of a text move on.
const TAB_COLUMNS: usize = 8;

/// Part of a page.
#[derive(Debug, Clone)]
enum Block {
    Heading(String),
    /// Name and text of a field.
    Field(String, String),
    Paragraph(String),
    /// Start of a text, and the text.
    Text(String, String),
    Banner(String),
    /// Text of a dataset or model, with its own line breaks.
    Verbatim(String),
    Blank,
    Table(Table),
}

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    blocks: Vec<Block>,
    indent: usize,
    name_width: usize,
}

impl Page {
    /// Creates an empty page whose fields are indented, with names of at most `name_width` columns.
    pub(crate) const fn new(indent: usize, name_width: usize) -> Self {
        Self { blocks: Vec::new(), indent, name_width }
    }

    /// Adds a title.
    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, text: impl Into<String>) {
        self.blocks.push(Block::Field(name.to_owned(), text.into()));
    }

    /// Adds a paragraph.
    pub(crate) fn paragraph(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    /// Adds a text. If it is broken, its lines are aligned after `start`, or indented without one.
    pub(crate) fn text(&mut self, start: &str, text: impl Into<String>) {
        self.blocks.push(Block::Text(start.to_owned(), text.into()));
    }

    /// Adds a warning that readers must not overlook.
    pub(crate) fn banner(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Banner(text.into()));
    }

    /// Adds a text of a dataset or model. On a terminal, lines that are too wide are broken between words, too.
    pub(crate) fn verbatim(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Verbatim(text.into()));
    }

    pub(crate) fn blank(&mut self) {
        self.blocks.push(Block::Blank);
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Renders the page, without a line end after the last line.
    pub(crate) fn render(&self, layout: Layout) -> String {
        let width = layout.text_width();
        let mut lines = Vec::new();
        for block in &self.blocks {
            match block {
                Block::Heading(text) => {
                    let text = broken(&layout.showable(text), width);
                    lines.extend(text.iter().map(|line| style(line).bold().to_string()));
                }
                Block::Field(name, text) => {
                    // A name that fills its column still needs a gap before the text.
                    let start =
                        format!("{}{name:<1$} ", " ".repeat(self.indent), self.name_width.saturating_sub(1));
                    self.hang(&start, &layout.showable(text), width, &mut lines);
                }
                Block::Text(start, text) if start.is_empty() => {
                    let text = layout.showable(text);
                    lines.extend(wrap_hanging(&text, width.unwrap_or(usize::MAX), HANG, Breaks::Sentences));
                }
                Block::Paragraph(text) => lines.extend(broken(&layout.showable(text), width)),
                Block::Text(start, text) => self.hang(start, &layout.showable(text), width, &mut lines),
                Block::Banner(text) => {
                    let text = broken(&layout.showable(text), width.map(|width| width.saturating_sub(2)));
                    lines.extend(
                        text.iter()
                            .map(|line| style(format!(" {line} ")).yellow().reverse().bold().to_string()),
                    );
                }
                Block::Verbatim(text) => match width {
                    Some(width) => {
                        let text = layout.showable(text);
                        let text = without_tabs(&text);
                        lines.extend(wrap_hanging(&text, width, 0, Breaks::Words));
                        lines.extend(text.ends_with('\n').then(String::new));
                    }
                    None => lines.push(text.clone()),
                },
                Block::Blank => lines.push(String::new()),
                Block::Table(table) => lines.push(table.render(layout)),
            }
        }
        lines.join("\n")
    }

    /// Appends a text after its start. On terminals that are too narrow, the text is below its start.
    fn hang(&self, start: &str, text: &str, width: Option<usize>, lines: &mut Vec<String>) {
        let indent = measure_text_width(start);
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
        let is_cramped = room < TEXT_COLUMNS_MIN && indent > BELOW_INDENT;
        let Some(width) = width.filter(|_| is_cramped) else {
            for (index, line) in wrap(text, room, Breaks::Sentences).iter().enumerate() {
                let line_width = measure_text_width(line);
                let is_too_wide = line_width > room && width.is_some_and(|width| line_width <= width);
                match index {
                    0 if is_too_wide => {
                        lines.push(start.trim_end().to_owned());
                        lines.push(indented(line, indent, width));
                    }
                    0 => lines.push(format!("{start}{line}").trim_end().to_owned()),
                    _ => lines.push(indented(line, indent, width)),
                }
            }
            return;
        };
        let line = format!("{} {text}", start.trim_end());
        if measure_text_width(&line) <= width && !text.contains('\n') {
            lines.push(line.trim_end().to_owned());
            return;
        }
        let mut below = |text: &str, indent: usize| {
            let broken = wrap(text, width.saturating_sub(indent).max(1), Breaks::Sentences);
            lines.extend(broken.iter().map(|line| indented(line, indent, Some(width))));
        };
        below(start.trim(), self.indent);
        below(text, self.indent.clamp(2, BELOW_INDENT));
    }
}

fn broken(text: &str, width: Option<usize>) -> Vec<String> {
    wrap(text, width.unwrap_or(usize::MAX).max(1), Breaks::Sentences)
}

/// Indents a line, but less if it fits only then: commands and addresses are copied in one piece.
fn indented(line: &str, indent: usize, width: Option<usize>) -> String {
    let line_width = measure_text_width(line);
    let indent = match width {
        Some(width) if line_width <= width => indent.min(width - line_width),
        _ => indent,
    };
    format!("{}{line}", " ".repeat(indent)).trim_end().to_owned()
}

/// Replaces tabs by as many spaces as a terminal would show.
fn without_tabs(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return text.into();
    }
    let mut replaced = String::with_capacity(text.len() + 64);
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\n' => {
                replaced.push(c);
                column = 0;
            }
            '\t' => {
                let spaces = TAB_COLUMNS - column % TAB_COLUMNS;
                replaced.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            c => {
                replaced.push(c);
                column += measure_text_width(c.encode_utf8(&mut [0; 4]));
            }
        }
    }
    replaced.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn layout(width: usize, is_terminal: bool) -> Layout {
        Layout { width, is_terminal, has_unicode: true }
    }

    #[test]
    fn long_texts_are_broken_between_words_on_terminals() {
        let mut page = Page::new(2, 14);
        page.field("name", "word ".repeat(20));
        page.field("url", "x".repeat(100));
        let text = page.render(layout(60, true));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[..3].iter().all(|line| line.len() <= 60), "{text}");
        assert!(
            lines[0].starts_with("  name          word") && lines[1].starts_with("                word"),
            "{text}"
        );
        assert_eq!(lines[3].len(), 116);
        assert_eq!(page.render(layout(60, false)).lines().count(), 2);
    }

    #[test]
    fn a_name_that_fills_its_column_keeps_a_gap() {
        let mut page = Page::new(2, 6);
        page.field("name", "a");
        page.field("longer name", "b");
        assert_eq!(page.render(layout(80, true)), "  name  a\n  longer name b");
    }

    #[test]
    fn narrow_terminals_have_texts_below_the_names() {
        let mut page = Page::new(2, 14);
        page.field("status", "ok");
        page.field("follows", "a protocol of several words");
        assert_eq!(page.render(layout(20, true)), "  status ok\n  follows\n  a protocol of\n  several words");
    }

    #[test]
    fn commands_and_addresses_are_never_broken() {
        let mut page = Page::new(0, 12);
        page.field("resume:", "`bench run --resume 3f2b8c1e` continues the run");
        let text = page.render(layout(40, true));
        assert_eq!(text, "resume:\n           `bench run --resume 3f2b8c1e`\n            continues the run");
        let text = page.render(layout(36, true));
        assert!(text.lines().any(|line| line == "       `bench run --resume 3f2b8c1e`"), "{text}");
    }

    #[test]
    fn texts_of_models_keep_their_lines() {
        let mut page = Page::new(0, 0);
        page.verbatim("def f():\n\treturn one + two\n\n    a list item of several words");
        assert_eq!(
            page.render(layout(20, true)),
            "def f():\n        return one +\n        two\n\n    a list item of\n    several words"
        );
        assert_eq!(
            page.render(layout(20, false)),
            "def f():\n\treturn one + two\n\n    a list item of several words"
        );
    }

    #[test]
    fn texts_are_aligned_after_their_start() {
        let mut page = Page::new(0, 0);
        page.text("- ", "one two three four five six seven");
        assert_eq!(page.render(layout(30, true)), "- one two three four five six\n  seven");
        let mut page = Page::new(0, 0);
        page.text("", "one two three");
        page.paragraph("one two three");
        assert_eq!(page.render(layout(9, true)), "one two\n  three\none two\nthree");
    }
}
