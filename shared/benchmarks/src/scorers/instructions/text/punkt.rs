//! Splits text into sentences like NLTK's Punkt tokenizer with its English model.
//!
//! Kiss and Strunk, "Unsupervised Multilingual Sentence Boundary Detection", Computational Linguistics 32(4), 2006.
//! This module follows the code of NLTK 3.9.1, including its quirks.

mod model;
mod token;

use crate::python;
use model::{ANY_LOWER, ANY_UPPER, BEGIN_LOWER, ENGLISH, MID_UPPER};
use token::{NUMBER, Token};

/// Returns the sentences of a text. Whitespace between them belongs to none. A blank text has no sentences.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    realign(text, &slices(text))
}

/// Mark that may end a sentence.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Start of the word before the mark, after merging words that belong together.
    word: usize,
    /// Position of the mark.
    at: usize,
    /// End of the context to examine, which includes the next token or mark.
    context_end: usize,
    /// Start of the next sentence, if one ends here.
    next: usize,
}

/// Returns true for other marks that end a token.
fn is_after_mark(c: char) -> bool {
    matches!(c, '?' | '!' | ')' | '"' | ';' | '}' | ']' | '*' | ':' | '@' | '\'' | '(' | '{' | '[')
}

/// Returns the mark at an offset, if the text after it makes it a candidate.
fn candidate(text: &str, at: usize) -> Option<Mark> {
    let after = text.get(at + 1..)?;
    let first = after.chars().next()?;
    if is_after_mark(first) {
        return Some(Mark { word: 0, at, context_end: at + 1 + first.len_utf8(), next: at + 1 });
    }
    let token = after.trim_start_matches(python::is_space);
    if token.is_empty() || token.len() == after.len() {
        return None;
    }
    let next = text.len() - token.len();
    let length = token.find(python::is_space).unwrap_or(token.len());
    Some(Mark { word: 0, at, context_end: next + length, next })
}

/// Returns the candidates, without those that are part of the word before the next candidate.
fn candidates(text: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let (mut previous_word, mut previous_at) = (0, 0);
    for at in memchr::memchr3_iter(b'.', b'?', b'!', text.as_bytes()) {
        let Some(mark) = candidate(text, at) else { continue };
        let before = text.as_bytes().get(previous_at..at).unwrap_or_default();
        let blank = before.iter().rposition(|b| matches!(b, b'\t'..=b'\r' | b' '));
        // As in NLTK, a blank at the very start doesn't count.
        let word = match blank.unwrap_or(0) {
            0 => previous_word,
            blank => previous_at + blank + 1,
        };
        if marks.last().is_some_and(|last| last.at > word) {
            marks.pop();
        }
        marks.push(Mark { word, ..mark });
        (previous_word, previous_at) = (word, at);
    }
    marks
}

/// Returns the start and end of each sentence, before closing marks are moved to the sentence before them.
fn slices(text: &str) -> Vec<(usize, usize)> {
    let mut slices = Vec::new();
    let mut start = 0;
    for mark in candidates(text) {
        if text.get(mark.word..mark.context_end).is_some_and(has_break) {
            slices.push((start, mark.at + 1));
            start = mark.next;
        }
    }
    slices.push((start, text.trim_end_matches(python::is_space).len()));
    slices
}

/// Moves closing quotes and brackets from the start of a sentence to the end of the one before.
fn realign<'t>(text: &'t str, slices: &[(usize, usize)]) -> Vec<&'t str> {
    let mut sentences = Vec::with_capacity(slices.len());
    let mut moved = 0;
    for (index, &(start, end)) in slices.iter().enumerate() {
        let start = start + moved;
        moved = 0;
        let next = slices.get(index + 1);
        let closing = next.and_then(|&(next, next_end)| Some((next, closing(text.get(next..next_end)?)?)));
        let end = match closing {
            Some((next, (marks, with_blanks))) => {
                moved = with_blanks;
                next + marks
            }
            None => end,
        };
        sentences.extend(text.get(start..end).filter(|sentence| !sentence.is_empty()));
    }
    sentences
}

/// Returns the length of closing marks at the start of a sentence, without and with the whitespace after them.
fn closing(sentence: &str) -> Option<(usize, usize)> {
    let rest = sentence.trim_start_matches(['"', '\'', ')', ']', '}']);
    let marks = sentence.len() - rest.len();
    let after = rest.trim_start_matches(python::is_space);
    let is_end = rest.is_empty() || after.len() < rest.len() || rest.starts_with("--");
    (marks > 0 && is_end).then_some((marks, sentence.len() - after.len()))
}

/// Returns true if a sentence ends inside the context of a mark. The last token can't end it.
fn has_break(context: &str) -> bool {
    let mut tokens = token::tokens(context).map(first_pass);
    let Some(mut token) = tokens.next() else { return false };
    for next in tokens {
        if is_break(&token, &next) {
            return true;
        }
        token = next;
    }
    false
}

/// Annotates a token without looking at its neighbors.
fn first_pass(mut token: Token<'_>) -> Token<'_> {
    let text = token.text;
    if matches!(text, "." | "?" | "!") {
        token.is_break = true;
    } else if text.len() >= 2 && text.bytes().all(|b| b == b'.') {
        token.is_ellipsis = true;
    } else if let Some(word) = text.strip_suffix('.').filter(|word| !word.ends_with('.')) {
        let word = token::lower(word);
        let is_known = |word: &str| ENGLISH.abbreviations.contains(word);
        if is_known(&word) || word.rsplit('-').next().is_some_and(is_known) {
            token.is_abbreviation = true;
        } else {
            token.is_break = true;
        }
    }
    token
}

/// Returns true if a sentence ends after a token, given the next one.
fn is_break(token: &Token<'_>, next: &Token<'_>) -> bool {
    if !token.text.ends_with('.') {
        return token.is_break;
    }
    let kind = token.kind_without_dot();
    let next_kind = next.kind_in_sentence();
    if ENGLISH.collocations.contains(&(&*kind, &*next_kind)) {
        return false;
    }
    let is_initial = token.is_initial();
    let is_start = starts_sentence(next, &next_kind);
    if (token.is_abbreviation || token.is_ellipsis) && !is_initial {
        let is_starter = next.starts_upper() && ENGLISH.starters.contains(&*next_kind);
        if is_start == Some(true) || is_starter {
            return true;
        }
    }
    if is_initial || kind == NUMBER {
        let never_lower = || ENGLISH.context(&next_kind) & ANY_LOWER == 0;
        let is_name = is_start.is_none() && is_initial && next.starts_upper() && never_lower();
        if is_start == Some(false) || is_name {
            return false;
        }
    }
    token.is_break
}

/// Decides from the case of a token whether a sentence starts with it; `None` if the case doesn't tell.
fn starts_sentence(token: &Token<'_>, kind: &str) -> Option<bool> {
    if matches!(token.text, ";" | ":" | "," | "." | "!" | "?") {
        return Some(false);
    }
    let context = ENGLISH.context(kind);
    if token.starts_upper() && context & ANY_LOWER != 0 && context & MID_UPPER == 0 {
        return Some(true);
    }
    if token.starts_lower() && (context & ANY_UPPER != 0 || context & BEGIN_LOWER == 0) {
        return Some(false);
    }
    None
}

#[cfg(test)]
mod tests;
