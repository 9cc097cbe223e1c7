//! Tokens of the context of a mark that may end a sentence.

use std::borrow::Cow;

use super::is_after_mark;
use crate::python;

/// Token type of all numbers.
pub(super) const NUMBER: &str = "##number##";

/// Returns the tokens of a text, line by line.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    text.split('\n').flat_map(|line| Tokens { rest: line }).map(Token::new)
}

/// Token with the annotations of the first pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) is_break: bool,
    pub(super) is_abbreviation: bool,
    pub(super) is_ellipsis: bool,
}

impl<'t> Token<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, is_break: false, is_abbreviation: false, is_ellipsis: false }
    }

    /// Returns the token type: the lowercase form, or [`NUMBER`].
    pub(super) fn kind(&self) -> Cow<'t, str> {
        let lower = lower(self.text);
        if is_number(&lower) { Cow::Borrowed(NUMBER) } else { lower }
    }

    /// Returns [`Self::kind`] without a final dot.
    pub(super) fn kind_without_dot(&self) -> Cow<'t, str> {
        match self.kind() {
            Cow::Borrowed(kind) => Cow::Borrowed(without_dot(kind)),
            Cow::Owned(mut kind) => {
                kind.truncate(without_dot(&kind).len());
                Cow::Owned(kind)
            }
        }
    }

    /// Returns [`Self::kind`], without the dot if the first pass classified it as the end of a sentence.
    pub(super) fn kind_in_sentence(&self) -> Cow<'t, str> {
        if self.is_break { self.kind_without_dot() } else { self.kind() }
    }

    /// Returns true for a single letter with a dot.
    pub(super) fn is_initial(&self) -> bool {
        let mut characters = self.text.chars();
        let first = characters.next();
        first.is_some_and(|c| python::is_word(c) && python::digit_value(c).is_none())
            && characters.as_str() == "."
    }

    pub(super) fn starts_upper(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }

    pub(super) fn starts_lower(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_lowercase)
    }
}

/// `str.lower()`, without a copy if the text is already lowercase.
pub(super) fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(python::lower(text))
    }
}

fn without_dot(kind: &str) -> &str {
    kind.strip_suffix('.').filter(|rest| !rest.is_empty()).unwrap_or(kind)
}

/// Returns true for an optional sign, at most one mark, a digit, then digits and marks.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let text = text.strip_prefix(['.', ',']).unwrap_or(text);
    let mut characters = text.chars();
    let is_digit = |c: char| python::digit_value(c).is_some();
    characters.next().is_some_and(is_digit) && characters.all(|c| is_digit(c) || matches!(c, ',' | '.' | '-'))
}

/// Iterator over the tokens of a line.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let text = self.rest.trim_start_matches(python::is_space);
        let first = text.chars().next()?;
        let length = match marks(text) {
            0 if starts_word(first) => word(text),
            0 => first.len_utf8(),
            length => length,
        };
        let (token, rest) = text.split_at_checked(length)?;
        self.rest = rest;
        Some(token)
    }
}

fn starts_word(c: char) -> bool {
    !matches!(
        c,
        '(' | '"' | '`' | '{' | '[' | ':' | ';' | '&' | '#' | '*' | '@' | ')' | '}' | ']' | '-' | ','
    )
}

/// Returns the length of a mark of several characters at the start: hyphens, dots, or dots separated by whitespace.
fn marks(text: &str) -> usize {
    for mark in ['-', '.'] {
        let length = text.len() - text.trim_start_matches(mark).len();
        if length >= 2 {
            return length;
        }
    }
    let (mut dots, mut end) = (0, 0);
    let mut characters = text.char_indices();
    while let Some((at, '.')) = characters.next() {
        dots += 1;
        end = at + 1;
        if !characters.next().is_some_and(|(_, c)| python::is_space(c)) {
            break;
        }
    }
    if dots >= 3 { end } else { 0 }
}

/// Returns true if a mark of several characters is at the start. Examines five characters.
fn has_marks(text: &str) -> bool {
    if text.starts_with("--") || text.starts_with("..") {
        return true;
    }
    let mut characters = text.chars();
    let dots_and_blanks = [true, false, true, false, true];
    dots_and_blanks
        .into_iter()
        .all(|is_dot| characters.next().is_some_and(|c| if is_dot { c == '.' } else { python::is_space(c) }))
}

/// Returns the length of the word at the start.
fn word(text: &str) -> usize {
    let mut characters = text.char_indices();
    characters.next();
    for (at, c) in characters {
        let rest = text.get(at..).unwrap_or_default();
        if ends_word(c, rest) {
            return at;
        }
        if c == ',' {
            let after = rest.get(1..).unwrap_or_default();
            if after.chars().next().is_none_or(|next| ends_word(next, after)) {
                return at;
            }
        }
    }
    text.len()
}

fn ends_word(c: char, rest: &str) -> bool {
    python::is_space(c) || is_after_mark(c) || (matches!(c, '-' | '.') && has_marks(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_tokens() {
        for (text, expected) in [
            ("Mr. Smith, here.", &["Mr.", "Smith", ",", "here."][..]),
            ("wait... no--yes", &["wait", "...", "no", "--", "yes"]),
            ("a . . . b . . c", &["a", ". . .", "b", ".", ".", "c"]),
            ("(\"x\") 3,500 a,b", &["(", "\"", "x", "\"", ")", "3,500", "a,b"]),
            ("-5 don't\nend?!", &["-", "5", "don", "'t", "end", "?", "!"]),
            (". . . .x", &[". . . .", "x"]),
            ("a,", &["a", ","]),
            ("x,--y", &["x", ",", "--", "y"]),
            ("", &[]),
        ] {
            let found: Vec<_> = tokens(text).map(|token| token.text).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_one_kind() {
        let kind = |text| Token::new(text).kind_without_dot().into_owned();
        for text in ["3", "3.", "-3.5", ".5", ",5,", "1-2-3", "٣"] {
            assert_eq!(kind(text), NUMBER, "{text:?}");
        }
        for (text, expected) in
            [("Dr.", "dr"), (".", "."), ("..", "."), ("-.", "-"), ("3a.", "3a"), ("--5", "--5")]
        {
            assert_eq!(kind(text), expected);
        }
        assert!(Token::new("J.").is_initial() && Token::new("É.").is_initial());
        assert!(
            !Token::new("3.").is_initial()
                && !Token::new("J").is_initial()
                && !Token::new("J..").is_initial()
        );
    }
}
