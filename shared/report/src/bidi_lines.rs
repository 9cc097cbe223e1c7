//! Breaks a text into lines, and puts the pieces of each line into visual order.

use std::ops::Range;

use unicode_bidi::{BidiInfo, ParagraphInfo};

use crate::clean::clean;
use crate::shaping::{GlyphRun, Typesetter, attaches, is_attached};
use crate::style::TextStyle;

/// Line of glyphs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// Runs from left to right.
    pub(crate) runs: Vec<GlyphRun>,
    /// Width in points.
    pub(crate) width: f32,
}

/// Limits of a text on a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextBox {
    /// Width in points.
    pub(crate) width: f32,
    /// Maximum number of lines; a longer text ends with an ellipsis.
    pub(crate) lines_max: usize,
    /// Maximum number of characters.
    pub(crate) chars_max: usize,
}

impl Typesetter<'_> {
    /// Breaks a text into lines of at most this width. At least one line is returned.
    pub(crate) fn lines(&self, text: &str, style: TextStyle, text_box: TextBox) -> Vec<Line> {
        let text = clean(text, text_box.chars_max);
        let bidi = BidiInfo::new(&text, None);
        // A cleaned text has no line ends, so it is one paragraph.
        let Some(paragraph) = bidi.paragraphs.first() else { return vec![Line::default()] };
        let mut ranges = self.break_lines(&text, style, text_box.width);
        if ranges.len() <= text_box.lines_max.max(1) {
            return ranges.into_iter().map(|range| self.line(&bidi, paragraph, range, style)).collect();
        }
        ranges.truncate(text_box.lines_max.max(1));
        let end = ranges.last().map_or(0, |range| range.end);
        // The last line makes room for the ellipsis.
        let mut shortened = text.get(..end).unwrap_or_default().trim_end().to_owned();
        let start = ranges.last().map_or(0, |range| range.start);
        loop {
            let last = format!("{}…", shortened.get(start..).unwrap_or_default());
            if self.width(&last, style) <= text_box.width || shortened.len() <= start {
                break;
            }
            shortened.pop();
        }
        shortened.push('…');
        let bidi = BidiInfo::new(&shortened, None);
        let Some(paragraph) = bidi.paragraphs.first() else { return vec![Line::default()] };
        if let Some(last) = ranges.last_mut() {
            last.end = shortened.len();
        }
        ranges.into_iter().map(|range| self.line(&bidi, paragraph, range, style)).collect()
    }

    /// Returns the width of a text in one line, without spaces at its end, in points.
    pub(crate) fn width(&self, text: &str, style: TextStyle) -> f32 {
        let bidi = BidiInfo::new(text, None);
        let Some(paragraph) = bidi.paragraphs.first() else { return 0.0 };
        self.line(&bidi, paragraph, 0..text.len(), style).width
    }

    fn line(
        &self,
        bidi: &BidiInfo<'_>,
        paragraph: &ParagraphInfo,
        range: Range<usize>,
        style: TextStyle,
    ) -> Line {
        let text = bidi.text.get(range.clone()).unwrap_or_default();
        // Spaces at the end of a line take no room.
        let range = range.start..range.start + text.trim_end().len();
        if range.is_empty() {
            return Line::default();
        }
        let (levels, pieces) = bidi.visual_runs(paragraph, range);
        let runs: Vec<GlyphRun> = pieces
            .into_iter()
            .flat_map(|piece| {
                let is_rtl = levels.get(piece.start).is_some_and(|level| level.is_rtl());
                bidi.text.get(piece).map(|text| self.shape(text, is_rtl, style)).unwrap_or_default()
            })
            .collect();
        let width = runs.iter().map(|run| run.width).sum::<f32>() * style.size;
        Line { runs, width }
    }

    /// Returns the lines as ranges: greedily, at spaces and after hyphens and slashes, between ideographs, and inside a
    /// word only if it is wider than a line.
    fn break_lines(&self, text: &str, style: TextStyle, width: f32) -> Vec<Range<usize>> {
        let mut lines = Vec::new();
        let mut line = 0..0;
        let mut used = 0.0;
        let space: f32 = self.shape(" ", false, style).iter().map(|run| run.width * style.size).sum();
        for unit in self.whole_quotes(text, style, width) {
            let unit_text = text.get(unit.clone()).unwrap_or_default();
            let visible = self.width(unit_text, style);
            // A unit ends with one space at most.
            let full = if unit_text.ends_with(' ') { visible + space } else { visible };
            if used + visible <= width && self.fits(text, line.start..unit.end, used + visible, style, width)
            {
                line.end = unit.end;
                used += full;
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::replace(&mut line, unit.start..unit.start));
            }
            if visible <= width {
                line = unit;
                used = full;
                continue;
            }
            let mut parts = self.split(text, unit, style, width);
            let last = parts.pop().unwrap_or_default();
            lines.extend(parts);
            used = self.width(text.get(last.clone()).unwrap_or_default(), style);
            line = last;
        }
        lines.push(line);
        lines
    }

    /// Returns the units of a text, in which quotes that are shorter than half of a line are whole.
    fn whole_quotes(&self, text: &str, style: TextStyle, width: f32) -> Vec<Range<usize>> {
        let quotes: Vec<Range<usize>> = quotes(text)
            .filter(|quote| self.width(text.get(quote.clone()).unwrap_or_default(), style) <= width / 2.0)
            .collect();
        let mut whole: Vec<Range<usize>> = Vec::new();
        for unit in units(text) {
            let is_inside = quotes.iter().any(|quote| quote.start < unit.start && unit.start < quote.end);
            match whole.last_mut().filter(|_| is_inside) {
                Some(last) => last.end = unit.end,
                None => whole.push(unit),
            }
        }
        whole
    }

    /// Returns true if a line fits. A sum of widths ignores kerning between units, so a line that is nearly full is
    /// measured.
    fn fits(&self, text: &str, line: Range<usize>, sum: f32, style: TextStyle, width: f32) -> bool {
        sum < width * 0.95 || self.width(text.get(line).unwrap_or_default(), style) <= width
    }

    /// Splits a word that is wider than a line. At least one character is in each part.
    fn split(&self, text: &str, word: Range<usize>, style: TextStyle, width: f32) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut part = word.start..word.start;
        let mut used = 0.0;
        for cluster in clusters(text, word) {
            // Letters that join are narrower together, so this estimate never makes a part too wide by much.
            let cluster_width = self.width(text.get(cluster.clone()).unwrap_or_default(), style);
            if used + cluster_width > width && !part.is_empty() {
                parts.push(std::mem::replace(&mut part, cluster.start..cluster.start));
                used = 0.0;
            }
            part.end = cluster.end;
            used += cluster_width;
        }
        parts.push(part);
        parts
    }
}

/// Splits a text into units that stay together, with the spaces after them.
fn units(text: &str) -> Vec<Range<usize>> {
    let mut units = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let Some(&(next_at, next)) = chars.peek() else { break };
        let after_mark = matches!(c, '-' | '/' | '_' | ',' | '·' | '–' | ':') && at > start && next != ' ';
        let is_number = |c: char| c.is_ascii_digit();
        let in_number = after_mark && is_number(next) && matches!(c, ',' | ':' | '-' | '–');
        let between_ideographs = (is_ideograph(c) || is_ideograph(next)) && !is_closing(next);
        let may_break = c == ' ' && next != ' ' || after_mark && !in_number || between_ideographs;
        if may_break && !is_attached(next) && !attaches(c) {
            units.push(start..next_at);
            start = next_at;
        }
    }
    if start < text.len() {
        units.push(start..text.len());
    }
    units
}

/// Returns the parts of a text in quotation marks, with the marks.
fn quotes(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = None;
    text.char_indices().filter_map(move |(at, c)| match c {
        '“' => {
            start = Some(at);
            None
        }
        '”' => start.take().map(|start| start..at + c.len_utf8()),
        _ => None,
    })
}

/// Splits a word into characters with what is attached to them.
fn clusters(text: &str, word: Range<usize>) -> Vec<Range<usize>> {
    let mut clusters: Vec<Range<usize>> = Vec::new();
    let mut joins = false;
    for (at, c) in text.get(word.clone()).unwrap_or_default().char_indices() {
        let (start, end) = (word.start + at, word.start + at + c.len_utf8());
        match clusters.last_mut() {
            Some(last) if joins || is_attached(c) => last.end = end,
            _ => clusters.push(start..end),
        }
        joins = attaches(c);
    }
    clusters
}

/// Returns true for characters between which a line may break: ideographs, kana, Hangul syllables, and emoji.
const fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{1f000}'..='\u{3ffff}')
}

/// Returns true for marks that don't begin a line.
const fn is_closing(c: char) -> bool {
    matches!(
        c,
        '、' | '。'
            | '〉'
            | '》'
            | '」'
            | '』'
            | '】'
            | '〕'
            | '，'
            | '．'
            | '！'
            | '？'
            | '）'
            | '：'
            | '；'
            | ')'
            | ','
            | '.'
            | ':'
            | ';'
            | '!'
            | '?'
            | '…'
            | ']'
    )
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::path::Path;

    use super::*;
    use crate::fonts::Fonts;
    use crate::style::BODY;

    fn units_of(text: &str) -> Vec<&str> {
        units(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn lines_break_at_spaces_marks_and_ideographs() {
        assert_eq!(units_of("two words"), ["two ", "words"]);
        assert_eq!(units_of("openai/gpt-oss 20b"), ["openai/", "gpt-", "oss ", "20b"]);
        assert_eq!(units_of("1,234 of 12:30"), ["1,234 ", "of ", "12:30"]);
        assert_eq!(units_of("模型。名"), ["模", "型。", "名"]);
        assert_eq!(units_of("-1"), ["-1"]);
        assert_eq!(units_of(""), [] as [&str; 0]);
    }

    #[test]
    fn what_is_attached_stays() {
        let family = "👩\u{200d}🚀";
        assert_eq!(units_of(family), [family]);
        assert_eq!(clusters(family, 0..family.len()).len(), 1);
        assert_eq!(clusters("e\u{301}x", 0..4), [0..3, 3..4]);
    }

    fn fonts() -> Fonts {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/fonts");
        Fonts::read(|name| std::fs::read(folder.join(name)).map(Cow::Owned)).unwrap()
    }

    #[test]
    fn no_line_is_wider_than_its_box() {
        let fonts = fonts();
        let typesetter = Typesetter::new(&fonts).unwrap();
        for text in [
            "acme/نموذج اللغة 7B · 模型-語言모델 · แบบจำลองภาษา · भाषा मॉडल · מודל שפה · Модель 🚀",
            "a b c d e f g h i j k l m n o p q r s t u v w x y z ".repeat(4).as_str(),
            "openai-compatible/some-organization/some-model-with-a-long-name-20b-instruct-2026",
            &"x".repeat(200),
            &"บ".repeat(100),
        ] {
            for width in [20.0, 60.0, 133.0, 468.0] {
                let all = TextBox { width, lines_max: usize::MAX, chars_max: 1_000 };
                let lines = typesetter.lines(text, BODY, all);
                let widest = lines.iter().map(|line| line.width).fold(0.0, f32::max);
                assert!(widest <= width + 1.0, "{widest} in {width}: {text}");
                let set: String =
                    lines.iter().flat_map(|line| &line.runs).map(|run| run.text.as_str()).collect();
                let letters = |text: &str| text.chars().filter(|c| *c != ' ').count();
                assert_eq!(letters(&set), letters(text), "{text}");
                let few = TextBox { lines_max: 2, ..all };
                let cut = typesetter.lines(text, BODY, few);
                assert!(
                    cut.len() <= 2 && cut.iter().all(|line| line.width <= width + 1.0),
                    "{width}: {text}"
                );
            }
        }
    }

    #[test]
    fn short_quotes_stay_on_a_line() {
        let fonts = fonts();
        let typesetter = Typesetter::new(&fonts).unwrap();
        let whole = |text: &str, width| {
            let units = typesetter.whole_quotes(text, BODY, width);
            units.into_iter().map(|range| text[range].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(whole("needs “--omit temperature” or", 400.0), ["needs ", "“--omit temperature” ", "or"]);
        assert_eq!(whole("“a b” “c", 400.0), ["“a b” ", "“c"]);
        assert!(whole("needs “--omit temperature” or", 100.0).len() > 3);
    }

    #[test]
    fn right_to_left_text_is_set_from_the_right() {
        let fonts = fonts();
        let typesetter = Typesetter::new(&fonts).unwrap();
        let one = TextBox { width: 400.0, lines_max: 1, chars_max: 100 };
        let line = typesetter.lines("שלום abc", BODY, one).remove(0);
        let runs: Vec<&str> = line.runs.iter().map(|run| run.text.trim()).collect();
        assert_eq!(runs.iter().filter(|text| !text.is_empty()).collect::<Vec<_>>(), [&"abc", &"שלום"]);
        // The first glyph from the left is the last letter.
        let hebrew = line.runs.iter().find(|run| run.text.contains('ש')).unwrap();
        let mut letters = hebrew.glyphs.iter().map(|glyph| &hebrew.text[glyph.text_range.clone()]);
        assert_eq!(letters.find(|letter| *letter != " "), Some("ם"), "{hebrew:?}");
    }
}
