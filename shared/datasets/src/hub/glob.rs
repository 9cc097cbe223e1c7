//! File name patterns as used in dataset cards: `*`, `**`, `?` and `[…]`.
//!
//! Patterns are compiled to regular expressions, so matching takes time linear in the path. The crates for glob
//! patterns follow other rules: `globset` works on bytes instead of characters and supports braces; `glob` rejects
//! `***` and unclosed brackets.

use std::fmt::Write as _;

use regex::Regex;

/// A compiled pattern. A pattern that is too large to compile matches nothing.
pub(super) struct Pattern(Option<Regex>);

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        // Each component of the path is preceded by a slash.
        let mut expression = String::from("^");
        for name in pattern.trim_start_matches("./").split('/') {
            if name == "**" {
                expression.push_str("(?:/[^/]*)*");
            } else {
                expression.push('/');
                push_name(&mut expression, name);
            }
        }
        expression.push('$');
        Self(Regex::new(&expression).ok())
    }

    /// Returns true if a path within a repository matches.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.0.as_ref().is_some_and(|expression| expression.is_match(&format!("/{path}")))
    }
}

fn push_name(expression: &mut String, name: &str) {
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '*' => expression.push_str("[^/]*"),
            '?' => expression.push_str("[^/]"),
            '[' => match class(rest) {
                Some((class, after)) => {
                    expression.push_str(&class);
                    rest = after;
                }
                None => expression.push_str(r"\["),
            },
            c => expression.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
}

/// Parses a character class from the text after an opening bracket; returns the class and the rest.
fn class(rest: &str) -> Option<(String, &str)> {
    let negated = rest.starts_with(['!', '^']);
    let body = if negated { rest.get(1..)? } else { rest };
    // A closing bracket right after the opening one is part of the class.
    let end = body.char_indices().skip(1).find(|(_, c)| *c == ']')?.0;
    let (members, after) = (body.get(..end)?, body.get(end + 1..)?);
    let members: Vec<char> = members.chars().collect();
    let mut class = String::new();
    let mut members = members.as_slice();
    loop {
        let (first, last);
        (first, last, members) = match members {
            [] => break,
            [first, '-', last, rest @ ..] => (*first, *last, rest),
            [only, rest @ ..] => (*only, *only, rest),
        };
        if first <= last {
            write!(class, r"\x{{{:x}}}-\x{{{:x}}}", u32::from(first), u32::from(last)).ok()?;
        }
    }
    Some((if negated { format!("[^/{class}]") } else { format!("[{NOTHING}{class}&&[^/]]") }, after))
}

/// Empty class, so that a class without members is valid too.
const NOTHING: &str = r"[^\x{0}-\x{10ffff}]";

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_of_dataset_cards() {
        for (pattern, path, expected) in [
            ("data/test-*", "data/test-00000-of-00001.parquet", true),
            ("data/test-*", "data/test/0.parquet", false),
            ("data/**", "data/a/b.parquet", true),
            ("**/test.jsonl", "test.jsonl", true),
            ("**/test.jsonl", "a/b/test.jsonl", true),
            ("**/test.jsonl", "a/b/contest.jsonl", false),
            ("./a.jsonl", "a.jsonl", true),
            ("aime2025-I.jsonl", "aime2025-II.jsonl", false),
            ("*.jsonl", "x.jsonl", true),
            ("*.jsonl", "d/x.jsonl", false),
            ("part-[0-9]?.json", "part-07.json", true),
            ("part-[!0-9].json", "part-7.json", false),
            ("a[b", "a[b", true),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("part-[!0-9]x", "part-/x", false),
            ("part-[+-9]x", "part-/x", false),
            ("[b-a]", "a", false),
            ("a/**", "a", true),
            ("a**", "abc", true),
            ("a**", "a/c", false),
            ("?.{a,b}", "\u{fc}.{a,b}", true),
            ("", "", true),
            ("**", "a/b/c", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(path), expected, "{pattern} {path}");
        }
    }
}
