//! Line breaking between words.

use console::measure_text_width;

/// Beginning of a command that users copy.
const COMMAND: &str = "bench ";

/// Places where a text may be broken, besides spaces and before wide characters such as Chinese ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// Nowhere else.
    Words,
    /// Nowhere else, and not within back-ticks or a command, which users copy.
    Sentences,
    /// After a slash, as in names of models and datasets.
    Slashes,
    /// After a slash and after a hyphen.
    Hyphens,
}

/// Returns the width of the widest part that can't be broken.
pub(crate) fn widest_part(text: &str, breaks: Breaks) -> usize {
    let words = text.lines().flat_map(|line| words(line, breaks));
    let parts = words.flat_map(|word| parts(word, breaks));
    parts.map(measure_text_width).max().unwrap_or(0)
}

/// Returns the width of the widest line.
pub(crate) fn widest_line(text: &str) -> usize {
    text.lines().map(measure_text_width).max().unwrap_or(0)
}

/// Breaks a text into lines of at most `width` columns. A part that is wider has a line of its own and exceeds it, since
/// words are never broken.
pub(crate) fn wrap(text: &str, width: usize, breaks: Breaks) -> Vec<String> {
    wrap_lines(text, width, breaks, |_| 0)
}

/// Breaks a text like [`wrap`], and indents what follows in a line by `hang` columns more than its beginning.
pub(crate) fn wrap_hanging(text: &str, width: usize, hang: usize, breaks: Breaks) -> Vec<String> {
    // With a deep indent on a narrow terminal, hardly any words would have room.
    wrap_lines(text, width, breaks, |line| {
        (line.len() - line.trim_start_matches(' ').len() + hang).min(width / 2)
    })
}

fn wrap_lines(text: &str, width: usize, breaks: Breaks, indent: impl Fn(&str) -> usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        wrap_line(line, width, breaks, indent(line), &mut lines);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn wrap_line(text: &str, width: usize, breaks: Breaks, indent: usize, lines: &mut Vec<String>) {
    if measure_text_width(text) <= width {
        lines.push(text.to_owned());
        return;
    }
    let (mut line, mut line_width, mut has_word) = (String::new(), 0, false);
    let mut is_first = true;
    for (index, word) in words(text, breaks).into_iter().enumerate() {
        for (part_index, part) in parts(word, breaks).into_iter().enumerate() {
            let gap = usize::from(index > 0 && part_index == 0);
            let part_width = measure_text_width(part);
            if has_word && line_width + gap + part_width > width {
                lines.push(line.trim_end().to_owned());
                (line, line_width, has_word) = (" ".repeat(indent), indent, false);
                is_first = false;
            } else if gap > 0 && (is_first || has_word) {
                line.push(' ');
                line_width += gap;
            }
            if !has_word && line_width + part_width > width && part_width <= width {
                // Only without the whole indent, it fits.
                (line, line_width) = (" ".repeat(width - part_width), width - part_width);
            }
            line.push_str(part);
            line_width += part_width;
            has_word |= !part.is_empty();
        }
    }
    lines.push(line.trim_end().to_owned());
}

/// Splits a line at its spaces. In sentences, a text in back-ticks and a command are one word.
fn words(line: &str, breaks: Breaks) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), line);
    loop {
        let length = match breaks {
            Breaks::Sentences if rest.starts_with(COMMAND) && may_start_command(&words) => {
                rest.find("  ").unwrap_or(rest.len())
            }
            Breaks::Sentences => quoted_word_length(rest),
            Breaks::Words | Breaks::Slashes | Breaks::Hyphens => rest.find(' ').unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        match after.strip_prefix(' ') {
            Some(after) => rest = after,
            None => return words,
        }
    }
}

/// Returns true if a command may follow these words: at the start of a line, and after a colon.
fn may_start_command(before: &[&str]) -> bool {
    before.iter().rev().find(|word| !word.is_empty()).is_none_or(|word| word.ends_with(':'))
}

/// Returns the length of the first word of a text, which may contain spaces between back-ticks.
fn quoted_word_length(text: &str) -> usize {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            ' ' if !is_quoted => return at,
            // A back-tick without another one quotes nothing.
            '`' => is_quoted = !is_quoted && text.get(at + 1..).is_some_and(|rest| rest.contains('`')),
            _ => {}
        }
    }
    text.len()
}

/// Splits a word where it may be broken. An empty word has one empty part.
fn parts(word: &str, breaks: Breaks) -> Vec<&str> {
    if breaks == Breaks::Sentences && word.contains(['`', ' ']) {
        return vec![word];
    }
    let (mut parts, mut start, mut is_end) = (Vec::new(), 0, false);
    for (at, c) in word.char_indices() {
        let is_wide = !c.is_ascii() && measure_text_width(c.encode_utf8(&mut [0; 4])) > 1;
        if at > start && (is_wide || is_end) {
            parts.extend(word.get(start..at));
            start = at;
        }
        is_end = match breaks {
            Breaks::Words | Breaks::Sentences => false,
            Breaks::Slashes => c == '/',
            Breaks::Hyphens => matches!(c, '/' | '-'),
        };
    }
    parts.extend(word.get(start..));
    parts
}

/// Cuts a line to `width` columns, after a word if that keeps most of it, and marks the cut by an ellipsis.
pub(crate) fn cut(line: &str, width: usize, ellipsis: &str) -> String {
    if measure_text_width(line) <= width {
        return line.to_owned();
    }
    let room = width.saturating_sub(measure_text_width(ellipsis));
    let (mut end, mut used, mut last_space) = (0, 0, None);
    for (at, c) in line.char_indices() {
        let char_width = measure_text_width(c.encode_utf8(&mut [0; 4]));
        if used + char_width > room {
            break;
        }
        if c == ' ' {
            last_space = Some((at, used));
        }
        used += char_width;
        end = at + c.len_utf8();
    }
    let is_word_end = line.get(end..).is_some_and(|rest| rest.starts_with(' '));
    let end = match last_space {
        Some((at, kept)) if !is_word_end && kept * 3 >= room * 2 => at,
        _ => end,
    };
    format!("{}{ellipsis}", line.get(..end).unwrap_or_default().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_only() {
        assert_eq!(wrap("one two three", 8, Breaks::Words), ["one two", "three"]);
        assert_eq!(wrap("interrupted 12/28", 11, Breaks::Words), ["interrupted", "12/28"]);
        assert_eq!(wrap("a unbreakable b", 5, Breaks::Words), ["a", "unbreakable", "b"]);
        assert_eq!(wrap("", 5, Breaks::Words), [""]);
        assert_eq!(wrap("a\nb c", 20, Breaks::Words), ["a", "b c"]);
        assert_eq!(
            wrap("chutes/deepseek-ai/DeepSeek-V3", 19, Breaks::Slashes),
            ["chutes/deepseek-ai/", "DeepSeek-V3"]
        );
        assert_eq!(widest_part("chutes/deepseek-ai/V3", Breaks::Slashes), "deepseek-ai/".len());
        assert_eq!(widest_part("chutes/deepseek-ai/V3 b", Breaks::Words), "chutes/deepseek-ai/V3".len());
    }

    #[test]
    fn commands_and_quoted_texts_stay_in_one_piece() {
        let lines = |text: &str, width| wrap_hanging(text, width, 2, Breaks::Sentences);
        assert_eq!(
            lines("hint: `bench runs latest` shows the run, and `a b`.", 20),
            ["hint:", " `bench runs latest`", "  shows the run, and", "  `a b`."]
        );
        assert_eq!(
            lines("Continue with: bench run --resume 3f2b8c1e", 30),
            ["Continue with:", "  bench run --resume 3f2b8c1e"]
        );
        assert_eq!(
            lines("  bench run --resume 3f2b8c1e   oracle, interrupted 2/9", 40),
            ["  bench run --resume 3f2b8c1e   oracle,", "    interrupted 2/9"]
        );
        assert_eq!(lines("the bench is long", 9), ["the bench", "  is long"]);
        assert_eq!(lines("a `lonely back-tick of others", 12), ["a `lonely", "  back-tick", "  of others"]);
        assert_eq!(widest_part("a `b c` d", Breaks::Sentences), 5);
    }

    #[test]
    fn lines_that_follow_are_indented_more() {
        let lines = |text: &str, width, hang| wrap_hanging(text, width, hang, Breaks::Sentences);
        assert_eq!(lines("one two three four", 9, 2), ["one two", "  three", "  four"]);
        assert_eq!(lines("  one two three", 9, 2), ["  one two", "    three"]);
        assert_eq!(lines("    one two three\n\nx", 12, 0), ["    one two", "    three", "", "x"]);
        assert_eq!(lines("one  two   three", 8, 2), ["one  two", "  three"], "gaps end with their line");
        assert_eq!(lines("  a/long/path/that/is/wide b", 12, 2), ["  a/long/path/that/is/wide", "    b"]);
    }

    #[test]
    fn wide_characters_need_no_space() {
        assert_eq!(wrap("漢字漢字", 4, Breaks::Words), ["漢字", "漢字"]);
        assert_eq!(widest_part("漢字ab", Breaks::Words), 4);
    }

    #[test]
    fn a_cut_keeps_whole_words_if_most_of_the_line_stays() {
        assert_eq!(cut("the answer is forty", 16, "…"), "the answer is…");
        assert_eq!(cut("short", 5, "…"), "short");
        assert_eq!(cut("x_unbreakable_name", 8, "…"), "x_unbre…");
        assert_eq!(cut("a unbreakable_name", 10, "..."), "a unbre...");
        assert_eq!(cut("漢字漢字", 5, "…"), "漢字…");
    }
}
