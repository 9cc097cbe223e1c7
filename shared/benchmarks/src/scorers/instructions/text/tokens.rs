//! Word tokens as produced by NLTK's `word_tokenize`: splits the text into sentences, then applies the rules of the
//! Penn Treebank with NLTK's additions one after the other.

use std::ops::Range;

use super::punkt;
use crate::python;

/// Returns the tokens of a text. Quotes become double backticks or double apostrophes.
pub(crate) fn word_tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for_each_word_token(text, |token| tokens.push(token.to_owned()));
    tokens
}

/// Calls a function with each token.
pub(crate) fn for_each_word_token(text: &str, mut each: impl FnMut(&str)) {
    let mut buffer = Buffer::default();
    for sentence in punkt::sentences(text) {
        buffer.start(sentence);
        buffer.opening_quotes();
        buffer.punctuation();
        buffer.brackets_and_dashes();
        buffer.closing_quotes();
        buffer.contractions();
        python::split(&buffer.text).for_each(&mut each);
    }
}

/// Change made by a rule at a match.
struct Edit {
    /// Range that is replaced by `before`, the text in the range `kept`, and `after`.
    replaced: Range<usize>,
    before: &'static str,
    kept: Range<usize>,
    after: &'static str,
    /// End of the match. The next match starts there or later.
    end: usize,
}

impl Edit {
    /// Surrounds a piece with blanks.
    fn padded(piece: Range<usize>) -> Self {
        Self { before: " ", kept: piece.clone(), after: " ", end: piece.end, replaced: piece }
    }

    /// Replaces a piece by a fixed text.
    fn fixed(piece: Range<usize>, text: &'static str) -> Self {
        Self { before: text, kept: 0..0, after: "", end: piece.end, replaced: piece }
    }

    /// Inserts a blank inside a match that ends at `end`.
    fn blank(at: usize, end: usize) -> Self {
        Self { before: " ", kept: 0..0, after: "", end, replaced: at..at }
    }
}

/// Current text of a sentence, and space for its next version.
#[derive(Debug, Default)]
struct Buffer {
    text: String,
    spare: String,
}

/// Returns the bytes from an offset on.
fn bytes_at(text: &str, at: usize) -> &[u8] {
    text.as_bytes().get(at..).unwrap_or_default()
}

fn byte_before(text: &str, at: usize, limit: usize) -> Option<u8> {
    at.checked_sub(1)
        .filter(|&before| before >= limit)
        .and_then(|before| text.as_bytes().get(before))
        .copied()
}

/// Returns the length of a run of one byte at an offset.
fn run(text: &str, at: usize, byte: u8) -> usize {
    bytes_at(text, at).iter().take_while(|&&b| b == byte).count()
}

impl Buffer {
    fn start(&mut self, sentence: &str) {
        self.text.clear();
        self.text.push_str(sentence);
    }

    /// Replaces pieces from left to right. Calls `edit` at each trigger byte, with the text, the offset, and the end of
    /// the last replaced piece, which the next match must not overlap.
    fn pass(&mut self, is_trigger: impl Fn(u8) -> bool, edit: impl Fn(&str, usize, usize) -> Option<Edit>) {
        let text = self.text.as_str();
        let (mut copied, mut done) = (0, 0);
        self.spare.clear();
        for (at, byte) in text.bytes().enumerate() {
            if at < done || !is_trigger(byte) {
                continue;
            }
            let Some(edit) = edit(text, at, done) else { continue };
            self.spare.push_str(text.get(copied..edit.replaced.start).unwrap_or_default());
            self.spare.push_str(edit.before);
            self.spare.push_str(text.get(edit.kept).unwrap_or_default());
            self.spare.push_str(edit.after);
            (copied, done) = (edit.replaced.end, edit.end);
        }
        if done > 0 {
            self.spare.push_str(text.get(copied..).unwrap_or_default());
            std::mem::swap(&mut self.text, &mut self.spare);
        }
    }

    fn has(&self, byte: u8) -> bool {
        memchr::memchr(byte, self.text.as_bytes()).is_some()
    }

    fn opening_quotes(&mut self) {
        let is_ascii = self.text.is_ascii();
        let has_tick = self.has(b'`');
        if has_tick || !is_ascii {
            self.pass(
                |b| b == b'`' || matches!(b, 0xc2 | 0xe2),
                |text, at, _| match run(text, at, b'`') {
                    0 => pad_one_of(text, at, &['«', '“', '‘', '„']),
                    length => Some(Edit::padded(at..at + length)),
                },
            );
        }
        let has_quote = self.has(b'"');
        let is_quoted = self.text.starts_with('"');
        if is_quoted {
            self.text.replace_range(..1, "``");
        }
        if has_tick || is_quoted {
            self.pass(
                |b| b == b'`',
                |text, at, _| bytes_at(text, at).starts_with(b"``").then(|| Edit::padded(at..at + 2)),
            );
        }
        let has_apostrophe = self.has(b'\'');
        if has_quote || has_apostrophe {
            self.pass(
                |b| matches!(b, b'"' | b'\''),
                |text, at, done| {
                    let opens = matches!(byte_before(text, at, done), Some(b' ' | b'(' | b'[' | b'{' | b'<'));
                    let length = if bytes_at(text, at).starts_with(b"\"") { 1 } else { 2 };
                    let is_quote = length == 1 || bytes_at(text, at).starts_with(b"''");
                    (opens && is_quote).then(|| Edit::fixed(at..at + length, " `` "))
                },
            );
        }
        if has_apostrophe {
            self.pass(|b| b == b'\'', |text, at, _| before_letter(text, at));
        }
    }

    fn punctuation(&mut self) {
        let has_dot = self.has(b'.');
        if has_dot {
            self.final_dot(|c| matches!(c, ']' | ')' | '}' | '>' | '"' | '\'' | '»' | '”' | '’' | ' '), " ");
        }
        self.pass(
            |b| matches!(b, b':' | b','),
            |text, at, _| {
                let next = text.get(at + 1..)?.chars().next()?;
                let end = at + 1 + next.len_utf8();
                let is_digit = python::digit_value(next).is_some();
                // The match includes the character after the mark, so a mark in that position is left alone.
                (!is_digit).then_some(Edit { end, ..Edit::padded(at..at + 1) })
            },
        );
        self.pass(
            |b| matches!(b, b':' | b','),
            |text, at, _| matches!(bytes_at(text, at + 1), b"" | b"\n").then(|| Edit::padded(at..at + 1)),
        );
        self.pass(
            |b| matches!(b, b'.' | b';' | b'@' | b'#' | b'$' | b'%' | b'&' | b'?' | b'!'),
            |text, at, _| match run(text, at, b'.') {
                0 => Some(Edit::padded(at..at + 1)),
                1 => None,
                length => Some(Edit::padded(at..at + length)),
            },
        );
        if has_dot {
            self.final_dot(|c| matches!(c, ']' | ')' | '}' | '>' | '"' | '\''), "");
        }
        self.pass(
            |b| b == b'\'',
            |text, at, done| {
                let before = text.get(done..at)?.chars().next_back()?;
                let is_end = before != '\'' && bytes_at(text, at).starts_with(b"' ");
                is_end.then(|| Edit::blank(at, at + 2))
            },
        );
    }

    /// Separates the final dot of the sentence, and closing marks after it.
    fn final_dot(&mut self, closes: impl Fn(char) -> bool, between: &str) {
        let Some(dot) = memchr::memrchr(b'.', self.text.as_bytes()) else { return };
        let Some((before, after)) = self.text.split_at_checked(dot) else { return };
        let after = after.get(1..).unwrap_or_default();
        let blanks = after.trim_start_matches(&closes);
        let is_final = blanks.chars().all(python::is_space);
        if before.is_empty() || before.ends_with('.') || !is_final {
            return;
        }
        let closing = after.get(..after.len() - blanks.len()).unwrap_or_default();
        self.spare.clear();
        for piece in [before, " .", between, closing, " "] {
            self.spare.push_str(piece);
        }
        std::mem::swap(&mut self.text, &mut self.spare);
    }

    fn brackets_and_dashes(&mut self) {
        self.pass(
            |b| matches!(b, b'*' | b'[' | b']' | b'(' | b')' | b'{' | b'}' | b'<' | b'>' | b'-'),
            |text, at, _| {
                let length = if bytes_at(text, at).starts_with(b"--") { 2 } else { 1 };
                (length == 2 || !bytes_at(text, at).starts_with(b"-")).then(|| Edit::padded(at..at + length))
            },
        );
    }

    fn closing_quotes(&mut self) {
        let mut has_apostrophe = false;
        let out = &mut self.spare;
        out.clear();
        out.push(' ');
        let mut characters = self.text.chars();
        while let Some(c) = characters.next() {
            let quote = match c {
                '»' | '”' | '’' => {
                    push_blank(out);
                    out.push(c);
                    push_blank(out);
                    continue;
                }
                '\'' if characters.as_str().starts_with('\'') => {
                    characters.next();
                    true
                }
                '"' => true,
                _ => false,
            };
            if quote {
                push_blank(out);
                out.push_str("''");
                push_blank(out);
            } else if python::is_space(c) {
                push_blank(out);
            } else {
                has_apostrophe |= c == '\'';
                out.push(c);
            }
        }
        push_blank(out);
        std::mem::swap(&mut self.text, &mut self.spare);
        if has_apostrophe {
            self.pass(|b| b == b'\'', short_clitic);
            self.pass(|b| b == b'\'', long_clitic);
        }
    }

    fn contractions(&mut self) {
        for (word, length) in CONTRACTIONS {
            let text = self.text.as_str();
            let first = word.as_bytes().first().copied().unwrap_or_default();
            let mut done = 0;
            self.spare.clear();
            for at in memchr::memchr2_iter(first, first.to_ascii_uppercase(), text.as_bytes()) {
                if at < done || !is_contraction(text, at, word) {
                    continue;
                }
                let (second, end) = (at + length, at + word.len());
                for piece in [done..at, at..second, second..end] {
                    self.spare.push_str(text.get(piece).unwrap_or_default());
                    self.spare.push(' ');
                }
                done = end;
            }
            if done > 0 {
                self.spare.push_str(text.get(done..).unwrap_or_default());
                std::mem::swap(&mut self.text, &mut self.spare);
            }
        }
    }
}

/// Contractions of two words, with the length of the first word.
const CONTRACTIONS: [(&str, usize); 10] = [
    ("cannot", 3),
    ("d'ye", 1),
    ("gimme", 3),
    ("gonna", 3),
    ("gotta", 3),
    ("lemme", 3),
    ("more'n", 4),
    ("wanna", 3),
    (" 'tis", 3),
    (" 'twas", 3),
];

fn push_blank(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Surrounds one of some characters with blanks.
fn pad_one_of(text: &str, at: usize, characters: &[char]) -> Option<Edit> {
    let c = text.get(at..)?.chars().next()?;
    characters.contains(&c).then(|| Edit::padded(at..at + c.len_utf8()))
}

/// Separates an apostrophe from a single letter that isn't a clitic.
fn before_letter(text: &str, at: usize) -> Option<Edit> {
    let mut after = text.get(at + 1..)?.chars();
    let letter = after.next().filter(|&c| python::is_word(c))?;
    let is_clitic = matches!(letter, 'm' | 't' | 's' | 'd' | 'n' | 'M' | 'T' | 'S' | 'D' | 'N' | '\u{17f}');
    let is_alone = !after.next().is_some_and(python::is_word);
    (is_alone && !is_clitic).then(|| Edit::blank(at + 1, at + 1))
}

/// Returns true if a clitic can follow the character before an offset.
fn is_host(text: &str, done: usize, at: usize) -> bool {
    text.get(done..at).and_then(|before| before.chars().next_back()).is_some_and(|c| c != '\'' && c != ' ')
}

/// Separates `'s`, `'m`, `'d` or a lone apostrophe before a blank.
fn short_clitic(text: &str, at: usize, done: usize) -> Option<Edit> {
    let length = match bytes_at(text, at) {
        [b'\'', b's' | b'S' | b'm' | b'M' | b'd' | b'D', b' ', ..] => 2,
        [b'\'', b' ', ..] => 1,
        _ => return None,
    };
    is_host(text, done, at).then(|| Edit::blank(at, at + length + 1))
}

/// Separates `'ll`, `'re`, `'ve` or `n't` before a blank, entirely in lowercase or uppercase.
fn long_clitic(text: &str, at: usize, done: usize) -> Option<Edit> {
    let after = bytes_at(text, at);
    let before = byte_before(text, at, done);
    let (start, length) =
        if [b"'ll ", b"'LL ", b"'re ", b"'RE ", b"'ve ", b"'VE "].iter().any(|c| after.starts_with(*c)) {
            (at, 3)
        } else if (before == Some(b'n') && after.starts_with(b"'t "))
            || (before == Some(b'N') && after.starts_with(b"'T "))
        {
            (at - 1, 3)
        } else {
            return None;
        };
    is_host(text, done, start).then(|| Edit::blank(start, start + length + 1))
}

/// Returns true if there is a contraction at an offset, in any case.
fn is_contraction(text: &str, at: usize, word: &str) -> bool {
    let end = at + word.len();
    if !text.as_bytes().get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes())) {
        return false;
    }
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    let after = text.get(end..).and_then(|after| after.chars().next());
    let is_start = word.starts_with(' ') || !before.is_some_and(python::is_word);
    let is_end = if word == "wanna" {
        after.is_some_and(python::is_space)
    } else {
        !after.is_some_and(python::is_word)
    };
    is_start && is_end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_are_those_of_nltk() {
        for (text, expected) in [
            ("DON'T SHOUT.", "DO|N'T|SHOUT|."),
            ("HELLO-WORLD AND/OR U.S.A. COVID-19", "HELLO-WORLD|AND/OR|U.S.A.|COVID-19"),
            ("#TAG A&B", "#|TAG|A|&|B"),
            ("\"Hi,\" she said: 3,500.", "``|Hi|,|''|she|said|:|3,500|."),
            ("I'll cannot wanna go, 'tis it's", "I|'ll|can|not|wan|na|go|,|'t|is|it|'s"),
            ("wait... a--b (x) *y*", "wait|...|a|--|b|(|x|)|*|y|*"),
        ] {
            assert_eq!(word_tokens(text).join("|"), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_letters_are_kept(text in "\\PC{0,80}") {
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            prop_assert_eq!(letters(&word_tokens(&text).concat()), letters(&text));
        }
    }
}
