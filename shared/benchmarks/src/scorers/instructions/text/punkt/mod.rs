//! Sentences as NLTK's Punkt tokenizer finds them, with its English model.
//!
//! Kiss and Strunk, "Unsupervised Multilingual Sentence Boundary Detection", Computational Linguistics 32(4), 2006.
//! What decides is the program of NLTK 3.9.1, whose surprises are kept.

mod model;
mod token;

use crate::python;
use model::{ANY_LOWER, ANY_UPPER, BEGIN_LOWER, ENGLISH, MID_UPPER};
use token::{NUMBER, Token};

/// The sentences of a text. Blanks between them belong to none; a text without content has none.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    realigned(text, &slices(text))
}

/// A mark that may end a sentence.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Where the word before it starts, after merging with words that belong to it.
    word: usize,
    /// Where the mark is.
    at: usize,
    /// Where the text ends that is looked at: the next token or mark included.
    context_end: usize,
    /// Where the next sentence starts if one ends here.
    next: usize,
}

/// Other marks after which a token ends.
fn is_after_mark(c: char) -> bool {
    matches!(c, '?' | '!' | ')' | '"' | ';' | '}' | ']' | '*' | ':' | '@' | '\'' | '(' | '{' | '[')
}

/// The mark at an offset, if what follows makes it a candidate.
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

/// Candidates in which none is part of the word before the next one.
fn candidates(text: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let (mut previous_word, mut previous_at) = (0, 0);
    for at in memchr::memchr3_iter(b'.', b'?', b'!', text.as_bytes()) {
        let Some(mark) = candidate(text, at) else { continue };
        let before = text.as_bytes().get(previous_at..at).unwrap_or_default();
        let blank = before.iter().rposition(|b| matches!(b, b'\t'..=b'\r' | b' '));
        // A blank right at the start counts as none.
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

/// Where sentences start and end, before marks that close something go to the sentence before them.
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

/// Closing quotes and brackets at the start of a sentence belong to the one before.
fn realigned<'t>(text: &'t str, slices: &[(usize, usize)]) -> Vec<&'t str> {
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

/// The length of the marks that close something at the start of a sentence, without and with blanks after them.
fn closing(sentence: &str) -> Option<(usize, usize)> {
    let rest = sentence.trim_start_matches(['"', '\'', ')', ']', '}']);
    let marks = sentence.len() - rest.len();
    let after = rest.trim_start_matches(python::is_space);
    let is_end = rest.is_empty() || after.len() < rest.len() || rest.starts_with("--");
    (marks > 0 && is_end).then_some((marks, sentence.len() - after.len()))
}

/// Whether a sentence ends inside the text around a mark: the last token cannot end one there.
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

/// What a token says by itself.
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

/// Whether a sentence ends after a token, with the next one in view.
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

/// Whether the case of a token says that a sentence starts with it; `None` when it says nothing.
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
