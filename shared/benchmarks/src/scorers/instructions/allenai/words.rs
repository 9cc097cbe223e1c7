//! Instructions about each word.

use std::collections::HashMap;

use super::super::fn_check::fn_check;
use super::super::text;
use super::CheckResult;
use super::NO_TAGGER;
use super::marks;
use super::parameters::{Parameters, amount};
use super::syllables;
use crate::python;

/// Maximum number of distinct vowels for `words:vowel`.
const VOWELS_MAX: usize = 3;
/// Minimum number of palindromes for `words:palindrome`, and their minimum length in characters.
const PALINDROMES_MIN: usize = 10;
const PALINDROME_CHARS_MIN: usize = 5;
/// End of the official list of primes. Longer words never have a prime length.
const PRIMES_END: usize = 100;

/// Creates the check of an instruction in the family `words`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<CheckResult> {
    Some(match name {
        "alphabet" => Ok(fn_check(follows_the_alphabet)),
        "vowel" => Ok(fn_check(has_few_vowels)),
        "consonants" => Ok(fn_check(|text| python::split(&python::lower(text)).all(has_consonant_pair))),
        "palindrome" => Ok(fn_check(has_palindromes)),
        "prime_lengths" => Ok(fn_check(|text| {
            python::split(&marks::remove_marks(text)).all(|word| is_small_prime(word.chars().count()))
        })),
        "start_verb" => Err(parameters.unavailable(NO_TAGGER)),
        "repeats" => {
            parameters.number("small_n").map(|most| fn_check(move |text| repeats_at_most(text, most)))
        }
        "odd_even_syllables" => Ok(fn_check(alternates_in_syllables)),
        "last_first" => Ok(fn_check(chains_sentences)),
        "paragraph_last_first" => Ok(fn_check(|text| text.split('\n').all(ends_as_it_starts))),
        "no_consecutive" => Ok(fn_check(changes_first_letters)),
        "keywords_specific_position" => keywords_specific_position(parameters),
        "words_position" => words_position(parameters),
        _ => return None,
    })
}

fn follows_the_alphabet(text: &str) -> bool {
    let text = marks::remove_marks(text);
    let mut words = python::split(&text);
    let Some(first) = words.next().and_then(|word| word.chars().next()) else { return false };
    let mut letter = match single_lower(first) {
        Some(letter @ 'a'..='z') => letter as u8,
        _ => return false,
    };
    words.all(|word| {
        letter = if letter == b'z' { b'a' } else { letter + 1 };
        python::lower(word).starts_with(char::from(letter))
    })
}

/// Returns the lowercase form of a character if it is a single character.
fn single_lower(c: char) -> Option<char> {
    let mut lower = c.to_lowercase();
    lower.next().filter(|_| lower.next().is_none())
}

fn has_few_vowels(text: &str) -> bool {
    let text = python::strip(text);
    if text.contains('\n') {
        return false;
    }
    let text = python::lower(text);
    ['a', 'e', 'i', 'o', 'u'].iter().filter(|&&vowel| text.contains(vowel)).count() <= VOWELS_MAX
}

fn has_consonant_pair(word: &str) -> bool {
    let is_consonant = |byte: &u8| byte.is_ascii_lowercase() && !b"aeiou".contains(byte);
    word.as_bytes().windows(2).any(|pair| pair.iter().all(is_consonant))
}

fn has_palindromes(text: &str) -> bool {
    let text = python::lower(&marks::remove_marks(text));
    let is_palindrome = |word: &&str| {
        word.chars().take(PALINDROME_CHARS_MIN).count() == PALINDROME_CHARS_MIN
            && word.chars().eq(word.chars().rev())
    };
    python::split(&text).filter(is_palindrome).take(PALINDROMES_MIN).count() == PALINDROMES_MIN
}

fn is_small_prime(length: usize) -> bool {
    (2..PRIMES_END).contains(&length) && (2..length).all(|divisor| !length.is_multiple_of(divisor))
}

fn repeats_at_most(text: &str, most: f64) -> bool {
    let text = marks::remove_marks(&python::lower(text));
    let mut counts: HashMap<&str, usize> = HashMap::new();
    python::split(&text).all(|word| {
        let count = counts.entry(word).or_default();
        *count += 1;
        amount(*count) <= most
    })
}

fn alternates_in_syllables(text: &str) -> bool {
    let text = python::lower(&marks::remove_marks(text));
    let odd: Vec<bool> = python::split(&text).map(|word| syllables::count(word) % 2 == 1).collect();
    odd.is_sorted_by(|before, after| before != after)
}

fn chains_sentences(text: &str) -> bool {
    let sentences = text::sentences(text);
    sentences.is_sorted_by(|before, after| {
        let last = python::split(marks::trim_end(before)).next_back().map(python::lower);
        let first = python::split(marks::trim_start(after)).next().map(python::lower);
        last.is_some() && last == first
    })
}

fn ends_as_it_starts(paragraph: &str) -> bool {
    let paragraph = python::lower(python::strip(paragraph));
    let paragraph = marks::trim(&paragraph);
    python::split(paragraph).next() == python::split(paragraph).next_back()
}

fn changes_first_letters(text: &str) -> bool {
    let text = marks::remove_marks(&python::lower(text));
    let firsts: Vec<char> = python::split(&text).filter_map(|word| word.chars().next()).collect();
    firsts.is_sorted_by(|before, after| before != after)
}

fn keywords_specific_position(parameters: &Parameters<'_>) -> CheckResult {
    let keyword = python::lower(python::strip(parameters.nonempty_text("keyword")?));
    let (sentence, word) = (parameters.position("n")?, parameters.position("m")?);
    Ok(fn_check(move |text| {
        let sentences = text::sentences(text);
        let tokens = sentences.get(sentence - 1).map(|sentence| text::word_tokens(sentence));
        let mut words = tokens.iter().flatten().filter(|token| token.chars().any(is_alphanumeric));
        words.nth(word - 1).is_some_and(|word| is_lower_form(word, &keyword))
    }))
}

/// `str.isalnum` of one character.
fn is_alphanumeric(c: char) -> bool {
    c != '_' && python::is_word(c)
}

fn words_position(parameters: &Parameters<'_>) -> CheckResult {
    let keyword = python::lower(python::strip(parameters.text("keyword")?));
    Ok(fn_check(move |text| {
        let mut count = 0_usize;
        let mut second_is_keyword = false;
        // The last three tokens, in reverse order.
        let mut last = [TokenKind::default(); 3];
        text::for_each_word_token(text, |token| {
            let is_keyword = is_lower_form(token, &keyword);
            count += 1;
            second_is_keyword = if count == 2 { is_keyword } else { second_is_keyword };
            // The official program tests whether the token is a substring of all marks, which is true for some pairs of
            // marks.
            last = [TokenKind { is_keyword, is_mark: marks::PUNCTUATION.contains(token) }, last[0], last[1]];
        });
        let from_end = if last[0].is_mark { 2 } else { 1 };
        second_is_keyword && count > from_end && last[from_end].is_keyword
    }))
}

/// Properties of a token that `words:words_position` uses.
#[derive(Clone, Copy, Default)]
struct TokenKind {
    is_keyword: bool,
    is_mark: bool,
}

/// Returns true if the lowercase form of a token is this word.
fn is_lower_form(token: &str, word: &str) -> bool {
    if token.is_ascii() {
        token.len() == word.len() && token.bytes().map(|byte| byte.to_ascii_lowercase()).eq(word.bytes())
    } else {
        python::lower(token) == word
    }
}
