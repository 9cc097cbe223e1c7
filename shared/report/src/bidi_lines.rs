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
        for unit in units(text) {
            let unit_text = text.get(unit.clone()).unwrap_or_default();
            let visible = self.width(unit_text, style);
            // A unit ends with one space at most.
            let full = if unit_text.ends_with(' ') { visible + space } else { visible };
            if used + visible <= width {
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
    use super::*;

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
}
