//! Characters that a terminal may not be able to show, or that would control it.

use std::borrow::Cow;
use std::fmt::Write as _;

use bench_domain::is_layout_control;

/// Sequences for colors that this program uses. None of them hides text or moves the cursor.
const COLORS: [&str; 9] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[7m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[36m",
    "\u{1b}[34m",
];

/// Escapes characters that change the layout ([`is_layout_control`]), other than line feeds and tabs: callers, providers and
/// datasets must not control the terminal. Escapes have JSON's form.
pub(crate) fn escape_controls(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// Like [`escape_controls`], but keeps the colors that this program uses.
pub(crate) fn escape_all_but_colors(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, sequence) = rest.split_at(at);
        escaped.push_str(&escape_controls(before));
        let kept = COLORS.iter().find(|color| sequence.starts_with(**color));
        let length = kept.map_or(1, |color| color.len());
        let (first, after) = sequence.split_at(length);
        match kept {
            Some(color) => escaped.push_str(color),
            None => escaped.push_str(&escape_controls(first)),
        }
        rest = after;
    }
    escaped.push_str(&escape_controls(rest));
    escaped
}

/// Escapes everything that isn't ASCII.
pub(crate) fn escape_foreign(text: &str) -> Cow<'_, str> {
    escape(text, |c| !c.is_ascii())
}

/// Replaces the typographic characters that this program writes by ASCII. Other characters stay.
pub(crate) fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut replaced = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '–' | '—' | '−' | '─' => replaced.push('-'),
            '…' => replaced.push_str("..."),
            '×' => replaced.push('x'),
            '±' => replaced.push_str("+-"),
            '≥' => replaced.push_str(">="),
            '≤' => replaced.push_str("<="),
            '→' => replaced.push_str("->"),
            '“' | '”' => replaced.push('"'),
            '‘' | '’' => replaced.push('\''),
            '·' | '•' => replaced.push('*'),
            '│' | '┆' => replaced.push('|'),
            '\u{a0}' => replaced.push(' '),
            c => replaced.push(c),
        }
    }
    replaced.into()
}

fn is_control(c: char) -> bool {
    is_layout_control(c) && !matches!(c, '\n' | '\t')
}

fn escape(text: &str, must_escape: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&must_escape) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match must_escape(c) {
            // Writing to a string can't fail.
            true => _ = write!(escaped, "\\u{:04x}", u32::from(c)),
            false => escaped.push(c),
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_do_not_control_the_terminal() {
        for (text, shown) in [
            ("plain, ä, 漢字\n\tindented", "plain, ä, 漢字\n\tindented"),
            ("a\u{1b}]0;title\u{7}b", "a\\u001b]0;title\\u0007b"),
            ("\u{9b}2J", "\\u009b2J"),
            ("evil\u{202e}txt.exe", "evil\\u202etxt.exe"),
            ("over\rwritten", "over\\u000dwritten"),
        ] {
            assert_eq!(escape_controls(text), shown);
            assert_eq!(escape_all_but_colors(text), shown);
        }
    }

    #[test]
    fn colors_are_kept_and_nothing_else() {
        let bold = console::style("bold").bold().red().force_styling(true).to_string();
        assert_eq!(escape_all_but_colors(&bold), bold);
        let banner = console::style("DEMO").yellow().reverse().bold().force_styling(true).to_string();
        assert_eq!(escape_all_but_colors(&banner), banner);
        // Hidden text, the cursor, and a sequence without its end.
        for (text, shown) in [
            ("\u{1b}[8mhidden", "\\u001b[8mhidden"),
            ("\u{1b}[30mblack", "\\u001b[30mblack"),
            ("\u{1b}[2Jgone", "\\u001b[2Jgone"),
            ("end\u{1b}", "end\\u001b"),
        ] {
            assert_eq!(escape_all_but_colors(text), shown);
        }
    }

    #[test]
    fn typography_becomes_ascii() {
        assert_eq!(ascii("48.8–80.8, 4 × 2, B − A, ≥ $1, ± 2…"), "48.8-80.8, 4 x 2, B - A, >= $1, +- 2...");
        assert_eq!(ascii("漢"), "漢");
        assert_eq!(escape_foreign("漢 ok"), "\\u6f22 ok");
    }
}
