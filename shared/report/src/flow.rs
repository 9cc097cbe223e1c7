//! Places texts one below the other, and starts a new page where the room ends.

use crate::bidi_lines::{Line, TextBox};
use crate::canvas::{Area, Drawing, Link, OutlineEntry, Page};
use crate::content::Figure;
use crate::shaping::Typesetter;
use crate::style::{
    ACCENT, ALERT, ALERT_FAINT, BODY, BOTTOM, Color, FAINT, FIGURE, HEADING, LINE, MARGIN_X, MARGIN_Y, SMALL,
    TextStyle, WIDTH,
};

/// Maximum length of a name, label or cell, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 160;
/// Maximum length of a value or sentence, in characters.
pub(crate) const SENTENCE_CHARS_MAX: usize = 1_200;
/// Thickness of the lines between rows.
pub(crate) const HAIRLINE: f32 = 0.6;
/// Indentation of the sentences of a list.
const BULLET_INDENT: f32 = 11.0;
/// Height of a page's content.
const PAGE_ROOM: f32 = BOTTOM - MARGIN_Y;
/// Content of a last page that is lower than this isn't worth a page.
const LAST_PAGE_MIN: f32 = 100.0;

/// Horizontal alignment in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
    Center,
}

/// Spacing of the content of pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spacing {
    /// Factor of the gaps between parts.
    gaps: f32,
    /// Page that ends early, so that more is on the next one, and the height that it leaves.
    short_page: Option<(usize, f32)>,
}

impl Spacing {
    pub(crate) const NORMAL: Self = Self { gaps: 1.0, short_page: None };
    pub(crate) const TIGHT: Self = Self { gaps: 0.4, short_page: None };

    /// Returns normal spacing with a page that ends early.
    pub(crate) const fn short(page: usize) -> Self {
        Self { short_page: Some((page, LAST_PAGE_MIN * 1.5)), ..Self::NORMAL }
    }
}

/// Pages with the place where the next content goes.
pub(crate) struct Flow<'a> {
    typesetter: &'a Typesetter<'a>,
    pages: Vec<Page>,
    y: f32,
    spacing: Spacing,
}

impl<'a> Flow<'a> {
    pub(crate) fn new(typesetter: &'a Typesetter<'a>, spacing: Spacing) -> Self {
        Self { typesetter, pages: vec![Page::default()], y: MARGIN_Y, spacing }
    }

    pub(crate) fn typesetter(&self) -> &'a Typesetter<'a> {
        self.typesetter
    }

    pub(crate) fn y(&self) -> f32 {
        self.y
    }

    pub(crate) fn into_pages(self) -> Vec<Page> {
        self.pages
    }

    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Returns true if the last of several pages has only a few lines.
    pub(crate) fn has_sparse_end(&self) -> bool {
        self.pages.len() > 1 && self.y - MARGIN_Y < LAST_PAGE_MIN
    }

    /// Returns the lowest edge of content on this page.
    pub(crate) fn bottom(&self) -> f32 {
        match self.spacing.short_page {
            Some((page, height)) if page + 1 == self.pages.len() => BOTTOM - height,
            _ => BOTTOM,
        }
    }

    /// Returns true if a page has room for this height below what is on this one.
    pub(crate) fn has_room(&self, height: f32) -> bool {
        self.y + height <= self.bottom()
    }

    pub(crate) fn page(&mut self) -> &mut Page {
        if self.pages.is_empty() {
            self.pages.push(Page::default());
        }
        let last = self.pages.len() - 1;
        &mut self.pages[last]
    }

    /// Starts a page, unless nothing is on this one yet.
    pub(crate) fn new_page(&mut self) {
        if !self.page().drawings.is_empty() {
            self.pages.push(Page::default());
        }
        self.y = MARGIN_Y;
    }

    /// Starts a page if less than this height is left. Returns true if it did.
    pub(crate) fn make_room(&mut self, height: f32) -> bool {
        let is_full = !self.has_room(height) && self.y > MARGIN_Y;
        if is_full {
            self.new_page();
        }
        is_full
    }

    /// Leaves a gap between parts, which is smaller with tight spacing.
    pub(crate) fn gap(&mut self, height: f32) {
        self.y += height * self.spacing.gaps;
    }

    pub(crate) fn move_to(&mut self, y: f32) {
        self.y = y;
    }

    /// Adds an entry to the table of contents.
    pub(crate) fn outline(&mut self, title: &str) {
        let y = self.y;
        self.page().outline.push(OutlineEntry { title: title.to_owned(), y });
    }

    pub(crate) fn link(&mut self, area: Area, url: &str) {
        self.page().links.push(Link { area, url: url.to_owned() });
    }

    /// Draws a line of text in a column, below `top`.
    pub(crate) fn line_at(
        &mut self,
        line: Line,
        style: TextStyle,
        x: f32,
        top: f32,
        width: f32,
        align: Align,
    ) {
        let x = match align {
            Align::Left => x,
            Align::Right => x + width - line.width,
            Align::Center => x + (width - line.width) / 2.0,
        };
        self.page().drawings.push(Drawing::Text { x, baseline: top + style.baseline(), line, style });
    }

    /// Draws a text in one line, shortened to the width.
    pub(crate) fn text_at(
        &mut self,
        text: &str,
        style: TextStyle,
        x: f32,
        top: f32,
        width: f32,
        align: Align,
    ) {
        let text_box = TextBox { width, lines_max: 1, chars_max: NAME_CHARS_MAX };
        for line in self.typesetter.lines(text, style, text_box) {
            self.line_at(line, style, x, top, width, align);
        }
    }

    /// Places a text of any length, over pages if needed.
    pub(crate) fn paragraph(&mut self, text: &str, style: TextStyle) {
        self.indented(text, style, 0.0, usize::MAX);
    }

    /// Places a text of at most this many lines.
    pub(crate) fn limited(&mut self, text: &str, style: TextStyle, lines_max: usize) {
        self.indented(text, style, 0.0, lines_max);
    }

    fn indented(&mut self, text: &str, style: TextStyle, indent: f32, lines_max: usize) {
        let width = WIDTH - indent;
        let text_box = TextBox { width, lines_max, chars_max: SENTENCE_CHARS_MAX };
        let lines = self.typesetter.lines(text, style, text_box);
        // A text stays on one page if a page has room for it.
        self.make_room((style.line_height() * count(lines.len())).min(PAGE_ROOM));
        for line in lines {
            self.make_room(style.line_height());
            let top = self.y;
            self.line_at(line, style, MARGIN_X + indent, top, width, Align::Left);
            self.y += style.line_height();
        }
    }

    /// Places a heading on the page of what follows, whose first part has this height.
    pub(crate) fn heading(&mut self, text: &str, next: f32) {
        const GAP: f32 = 4.0;
        self.gap(12.0);
        let text_box = TextBox { width: WIDTH, lines_max: 2, chars_max: SENTENCE_CHARS_MAX };
        let lines = self.typesetter.lines(text, HEADING, text_box).len();
        self.make_room((HEADING.line_height() * count(lines) + GAP + next).min(PAGE_ROOM));
        self.limited(text, HEADING, 2);
        self.gap(GAP);
    }

    /// Returns the height of the first of some sentences.
    pub(crate) fn bullet_height(&self, sentences: &[String]) -> f32 {
        let first = sentences.first().map(String::as_str).unwrap_or_default();
        self.paragraph_height(first, BODY, BULLET_INDENT)
    }

    /// Returns the height of a text of any length.
    pub(crate) fn paragraph_height(&self, text: &str, style: TextStyle, indent: f32) -> f32 {
        let width = WIDTH - indent;
        let text_box = TextBox { width, lines_max: usize::MAX, chars_max: SENTENCE_CHARS_MAX };
        style.line_height() * count(self.typesetter.lines(text, style, text_box).len())
    }

    /// Places sentences with a bullet each. Each is on one page if a page has room for it.
    pub(crate) fn bullets(&mut self, sentences: &[String]) {
        for sentence in sentences {
            let height = self.paragraph_height(sentence, BODY, BULLET_INDENT);
            self.make_room(height.min(PAGE_ROOM));
            let (y, middle) = (self.y, self.y + BODY.line_height() / 2.0);
            self.page().drawings.push(Drawing::Dot {
                x: MARGIN_X + 3.0,
                y: middle,
                radius: 1.4,
                color: ACCENT,
            });
            self.move_to(y);
            self.indented(sentence, BODY, BULLET_INDENT, usize::MAX);
            self.gap(3.0);
        }
    }

    /// Draws a line over the width of the text.
    pub(crate) fn rule(&mut self, color: Color) {
        let area = Area { x: MARGIN_X, y: self.y, width: WIDTH, height: HAIRLINE };
        self.page().rectangle(area, color);
        self.y += HAIRLINE;
    }

    /// Places a notice on a colored background.
    pub(crate) fn notice(&mut self, text: &str) {
        const PADDING: f32 = 8.0;
        let style = BODY.colored(ALERT);
        let width = WIDTH - 2.0 * PADDING;
        let text_box = TextBox { width, lines_max: 6, chars_max: SENTENCE_CHARS_MAX };
        let lines = self.typesetter.lines(text, style, text_box);
        let height = style.line_height() * count(lines.len()) + 2.0 * PADDING;
        self.make_room(height);
        let y = self.y;
        self.page().rectangle(Area { x: MARGIN_X, y, width: WIDTH, height }, ALERT_FAINT);
        self.page().rectangle(Area { x: MARGIN_X, y, width: 2.5, height }, ALERT);
        self.y += PADDING;
        for line in lines {
            let top = self.y;
            self.line_at(line, style, MARGIN_X + PADDING, top, width, Align::Left);
            self.y += style.line_height();
        }
        self.y += PADDING;
    }

    /// Places figures in large type side by side.
    pub(crate) fn figures(&mut self, figures: &[Figure]) {
        const GAP: f32 = 8.0;
        const PADDING: f32 = 9.0;
        const HEIGHT: f32 = 52.0;
        const DETAIL_LINES: std::ops::RangeInclusive<usize> = 2..=3;
        let figures = figures.get(..figures.len().min(4)).unwrap_or_default();
        if figures.is_empty() {
            return;
        }
        let tiles = count(figures.len());
        let width = (WIDTH - GAP * (tiles - 1.0)) / tiles;
        let inner = width - 2.0 * PADDING;
        let text_box = TextBox { width: inner, lines_max: *DETAIL_LINES.end(), chars_max: NAME_CHARS_MAX };
        let details: Vec<_> =
            figures.iter().map(|figure| self.typesetter.lines(&figure.detail, SMALL, text_box)).collect();
        let lines = details.iter().map(Vec::len).fold(*DETAIL_LINES.start(), usize::max);
        let height = HEIGHT + SMALL.line_height() * count(lines);
        self.make_room(height);
        let (mut x, top) = (MARGIN_X, self.y);
        for (figure, detail) in figures.iter().zip(details) {
            self.page().rectangle(Area { x, y: top, width, height }, FAINT);
            self.page().rectangle(Area { x, y: top, width, height: 1.6 }, ACCENT);
            self.text_at(&figure.label, SMALL, x + PADDING, top + 8.0, inner, Align::Left);
            let style = self.fitting(&figure.value, FIGURE, inner);
            self.text_at(&figure.value, style, x + PADDING, top + 20.0, inner, Align::Left);
            let mut line_top = top + 46.0;
            for line in detail {
                self.line_at(line, SMALL, x + PADDING, line_top, inner, Align::Left);
                line_top += SMALL.line_height();
            }
            x += width + GAP;
        }
        self.y += height;
    }

    /// Returns the style in the largest size, down to half of it, in which a text fits the width.
    fn fitting(&self, text: &str, style: TextStyle, width: f32) -> TextStyle {
        let needed = self.typesetter.width(&crate::clean::clean(text, NAME_CHARS_MAX), style);
        match needed > width {
            true => TextStyle { size: (style.size * width / needed).max(style.size / 2.0), ..style },
            false => style,
        }
    }

    /// Draws the line below a row.
    pub(crate) fn row_line(&mut self) {
        self.rule(LINE);
    }
}

#[allow(clippy::cast_precision_loss)] // a number of lines
pub(crate) fn count(lines: usize) -> f32 {
    lines as f32
}
