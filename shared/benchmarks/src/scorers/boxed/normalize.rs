//! Cleans up replies and contents of boxes, step by step in the official order.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::python;

/// Compiles a pattern of this module. An invalid pattern matches nothing; a test compiles all of them.
fn pattern(source: &str) -> Option<Regex> {
    Regex::new(source).ok()
}

/// Replaces all matches of a pattern.
pub(super) fn substitute(text: &str, pattern: &Option<Regex>, replacement: &str) -> String {
    match pattern {
        Some(pattern) => pattern.replace_all(text, replacement).into_owned(),
        None => text.to_owned(),
    }
}

macro_rules! patterns {
    ($($name:ident = $source:expr;)*) => {
        $(pub(super) static $name: LazyLock<Option<Regex>> = LazyLock::new(|| pattern($source));)*
        #[cfg(test)]
        pub(super) fn all_patterns() -> Vec<(&'static str, bool)> {
            vec![$((stringify!($name), $name.is_some())),*]
        }
    };
}

patterns! {
    ALIGNED = r"(?s)\\begin\{align[^}]*\}(.*?)\\end\{align[^}]*\}";
    BARE_ROOT = r"\\sqrt[\s\x1c-\x1f]*([^\s\x1c-\x1f{}]*)";
    TEXT = r"\\text\{.*?\}";
    UPRIGHT = r"\\mathrm\{(.*?)\}";
    ROOT_OF_DIGITS = r"sqrt(\d+)";
    FRACTION_OF_DIGIT = r"frac(\d)";
    SUBSCRIPT = r"_([0-9]+)";
    FRACTION = r"\\*(?:dfrac|tfrac|frac)\{([^{}]*)\}\{([^{}]*)\}";
    BINOMIAL = r"\\*binom\{([^{}]*)\}\{([^{}]*)\}";
    NTH_ROOT = r"\\*sqrt\[(.*?)\]\{(.*?)\}";
    NTH_ROOT_IN_PARENTHESES = r"\\*sqrt\((\d+)\)\{([^{}]*)\}";
    ROOT = r"\\*sqrt\{(.*?)\}";
    LONE_I = r"\bi\b";
    BRACED_DIGITS = r"\{(\d+)\}";
    BRACED = r"\{([^{}]*)\}";
    LAST_INTEGER = r"\b\d+\b";
}

/// Replaces special characters that some models use to draw boxes, and symbols that have a LaTeX name. Returns whether
/// a box was drawn.
pub(super) fn replace_glyphs(text: &str) -> (String, bool) {
    let drawn = [
        ("\u{23a7}", "\\boxed{"),
        ("\u{23ab}", "}"),
        ("\n\u{2502}", "\\boxed{"),
        ("\u{2502}", "}"),
        ("\n\u{2503}", "\\boxed{"),
        ("\u{2503}", "}"),
        ("\n\u{f8f0}", "\\boxed{"),
        ("\u{f8fb}", "}"),
    ];
    let signs = [
        ("\u{221a}", "\\sqrt"),
        ("\u{d7}", "\\cdot"),
        ("\u{202f}", " "),
        ("\u{2212}", "-"),
        ("\u{3c0}", "\\pi"),
    ];
    let with_boxes = replace_each(text.to_owned(), &drawn);
    let changed = with_boxes != text;
    (replace_each(with_boxes, &signs), changed)
}

fn replace_each(text: String, pairs: &[(&str, &str)]) -> String {
    pairs
        .iter()
        .fold(text, |text, (from, to)| if text.contains(from) { text.replace(from, to) } else { text })
}

/// Cleans up the content of a box before it is split and evaluated.
pub(super) fn normalize(content: &str) -> String {
    let spaces = [("\\;", ""), ("\\:", ""), ("\\,", ""), ("\\!", "")];
    let sizes = [
        ("\\left", ""),
        ("\\right", ""),
        ("\\Bigl", ""),
        ("\\Bigr", ""),
        ("\\bigl", ""),
        ("\\bigr", ""),
        ("\\Big", ""),
        ("\\big", ""),
        ("\\Large", ""),
        ("\\large", ""),
    ];
    let marks = [
        ("[", "("),
        ("]", ")"),
        ("\\{", "("),
        ("\\}", ")"),
        ("$", ""),
        ("\\ ", " "),
        ("\\hline", ""),
        ("\\vline", ""),
        ("\\quad", " "),
        ("\u{2212}", "-"),
        ("\u{2013}", "-"),
        ("\u{b7}", " \\cdot "),
        ("^\\circ", " "),
        ("^{\\circ}", " "),
        ("\\displaystyle", ""),
        ("\\(", "("),
        ("\\)", ")"),
        ("{,}", ""),
    ];
    let text = replace_each(replace_each(content.to_owned(), &spaces), &sizes);
    let text = match &*ALIGNED {
        Some(pattern) => pattern
            .replace_all(&text, |found: &Captures<'_>| {
                found.get(1).map_or("", |m| m.as_str()).replace('&', "").replace("\\\\", "")
            })
            .into_owned(),
        None => text,
    };
    let text = replace_each(text, &marks);
    let text = remove_digit_commas(text.strip_suffix('.').unwrap_or(&text));
    let text = text.replace("{,}", "");
    let text = if text.contains("\\sqrt ") { substitute(&text, &BARE_ROOT, r"\sqrt{$1}") } else { text };
    let text = substitute(&substitute(&text, &TEXT, ""), &UPRIGHT, " $1 ");
    // The official parser replaces this one Fibonacci number by its value.
    let text = text.replace("F_{30}", "832040");
    let text = text.rsplit('=').next().unwrap_or_default();
    let text = match text.split_once("\\approx") {
        Some((kept, _)) => kept.strip_suffix('(').unwrap_or(kept),
        None => text,
    };
    strip(text).to_owned()
}

/// Removes each comma between two digits.
fn remove_digit_commas(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut after_digit = false;
    while let Some(c) = characters.next() {
        let is_digit = python::digit_value(c).is_some();
        let before_digit = characters.peek().is_some_and(|&next| python::digit_value(next).is_some());
        if !(c == ',' && after_digit && before_digit) {
            result.push(c);
        }
        after_digit = is_digit;
    }
    result
}

/// Strips whitespace, the two characters `
/// ` at both ends, and LaTeX line breaks before a leading parenthesis.
pub(super) fn strip(text: &str) -> &str {
    let mut text = python::strip(text);
    while let Some(rest) = text.strip_prefix("\\n") {
        text = rest;
    }
    while let Some(rest) = text.strip_suffix("\\n") {
        text = rest;
    }
    while let Some(rest) = text.strip_prefix("\\ ") {
        text = rest;
    }
    loop {
        let backslashes = text.bytes().take_while(|&byte| byte == b'\\').count();
        let after = text.get(backslashes..).unwrap_or_default();
        let after = after.strip_prefix('\n').unwrap_or(after);
        if backslashes < 2 || !after.starts_with('(') {
            return text;
        }
        // The official parser removes three characters at a time while the text starts with two backslashes.
        let rounds = if backslashes % 3 == 2 { backslashes / 3 + 1 } else { backslashes / 3 };
        text = text.get(rounds * 3..).unwrap_or_default();
    }
}

/// Removes all pairs of parentheses that enclose the whole text.
pub(super) fn strip_outer_parentheses(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut closing = vec![usize::MAX; bytes.len()];
    let mut open = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => open.push(at),
            b')' => {
                if let Some(slot) = open.pop().and_then(|opened: usize| closing.get_mut(opened)) {
                    *slot = at;
                }
            }
            _ => {}
        }
    }
    let (mut start, mut end) = (0, bytes.len());
    // A parenthesis that is never closed counts as enclosing everything.
    while start + 1 < end
        && bytes.get(start) == Some(&b'(')
        && bytes.get(end - 1) == Some(&b')')
        && closing.get(start).is_some_and(|&close| close >= end - 1)
    {
        start += 1;
        end -= 1;
    }
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (name, compiles) in all_patterns() {
            assert!(compiles, "{name}");
        }
    }

    #[test]
    fn contents_are_cleaned_up() {
        for (content, expected) in [
            ("70^\\circ", "70"),
            ("70\\text{ degrees}", "70"),
            ("\\text{70}", ""),
            ("m+n=70", "70"),
            ("1{,}070", "1070"),
            ("1,070", "1070"),
            ("70, 16", "70, 16"),
            ("70.", "70"),
            ("x\\approx 70", "x"),
            ("(\\approx 70)", ""),
            ("\\left[7\\right]", "(7)"),
            ("\\begin{align*}7&0\\\\\\end{align*}", "70"),
            ("\\sqrt 49", "\\sqrt{49}"),
            ("\\mathrm{70}", "70"),
            ("70–1", "70-1"),
        ] {
            assert_eq!(normalize(content), expected, "{content:?}");
        }
    }

    #[test]
    fn outer_parentheses_are_removed_in_pairs() {
        for (text, expected) in
            [("((70))", "70"), ("(7)(10)", "(7)(10)"), ("((7)", "(7"), ("()", ""), ("(", "(")]
        {
            assert_eq!(strip_outer_parentheses(text), expected, "{text:?}");
        }
        let deep = format!("{}7{}", "(".repeat(200_000), ")".repeat(200_000));
        assert_eq!(strip_outer_parentheses(&deep), "7");
    }

    #[test]
    fn line_breaks_before_a_parenthesis_are_removed() {
        for (text, expected) in [
            ("\\\\(7)", "7)"),
            ("\\\\\n(7)", "(7)"),
            ("\\\\\\(7)", "(7)"),
            ("\\\\\\\\(7)", "\\(7)"),
            ("\\n7\\n", "7"),
        ] {
            assert_eq!(strip(text), expected, "{text:?}");
        }
    }
}
