//! Instructions that count words, names, numbers or marks.

use std::collections::HashSet;

use super::super::fn_check::fn_check;
use super::super::text;
use super::CheckResult;
use super::marks;
use super::parameters::{Parameters, amount};
use crate::python;

/// Coordinating conjunctions.
const CONJUNCTIONS: [&str; 7] = ["and", "but", "for", "nor", "or", "so", "yet"];

/// First names listed in the official program.
#[rustfmt::skip]
const NAMES: [&str; 50] = [
    "Abigail", "Alexander", "Amelia", "Andrew", "Aria", "Audrey", "Ava", "Benjamin", "Charlotte", "Chloe",
    "Christopher", "Claire", "Daniel", "David", "Elijah", "Ella", "Emma", "Ethan", "Gabriel", "Grace", "Hannah",
    "Harper", "Isabella", "Jackson", "Jacob", "Jonathan", "Joseph", "Layla", "Leo", "Liam", "Lily", "Lucas", "Mason",
    "Matthew", "Mia", "Nathan", "Nicholas", "Noah", "Nora", "Olivia", "Owen", "Penelope", "Ryan", "Samuel",
    "Scarlett", "Sophia", "Stella", "Thomas", "Victoria", "Zoe",
];

/// Words that count as pronouns, sorted.
#[rustfmt::skip]
const PRONOUNS: [&str; 63] = [
    "all", "any", "anybody", "anyone", "anything", "both", "each", "either", "everybody", "everyone",
    "everything", "he", "her", "hers", "herself", "him", "himself", "his", "i", "it", "its", "itself", "me",
    "mine", "my", "myself", "neither", "nobody", "none", "nothing", "our", "ours", "ourselves", "she", "some",
    "somebody", "someone", "something", "that", "their", "theirs", "them", "themselves", "these", "they",
    "this", "those", "us", "we", "what", "whatever", "which", "whichever", "who", "whoever", "whom", "whomever",
    "whose", "you", "your", "yours", "yourself", "yourselves",
];

/// Required number of occurrences of each of the five keywords.
const KEYWORD_COUNTS: [usize; 5] = [1, 2, 3, 5, 7];

/// Creates the check of an instruction in the family `count`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<CheckResult> {
    Some(match name {
        "word_count_range" => word_count_range(parameters),
        "unique_word_count" => {
            parameters.number("N").map(|least| fn_check(move |text| amount(unique_words(text)) >= least))
        }
        "conjunctions" => parameters
            .number("small_n")
            .map(|least| fn_check(move |text| amount(conjunctions(text)) >= least)),
        "person_names" => {
            parameters.number("N").map(|least| fn_check(move |text| amount(names(text)) >= least))
        }
        "numbers" => parameters.number("N").map(|exact| fn_check(move |text| amount(numbers(text)) == exact)),
        "punctuation" => Ok(fn_check(has_every_mark)),
        "words_japanese" => {
            parameters.positive("N").map(|cycle| fn_check(move |text| is_japanese_every(text, cycle)))
        }
        "pronouns" => {
            parameters.number("N").map(|least| fn_check(move |text| amount(pronouns(text)) >= least))
        }
        "keywords_multiple" => keywords_multiple(parameters),
        _ => return None,
    })
}

fn word_count_range(parameters: &Parameters<'_>) -> CheckResult {
    let (least, most) = (parameters.number("min_words")?, parameters.number("max_words")?);
    Ok(fn_check(move |text| (least..=most).contains(&amount(text::words(text).count()))))
}

/// Counts distinct lowercase words without outer punctuation. A lone mark, which becomes empty, counts as a word.
fn unique_words(text: &str) -> usize {
    let text = python::lower(text);
    python::split(&text).map(marks::trim).collect::<HashSet<_>>().len()
}

/// Counts distinct spellings of conjunctions: `And`, `and` and `and,` are three.
fn conjunctions(text: &str) -> usize {
    let is_conjunction = |token: &&str| {
        let word = marks::trim(token);
        CONJUNCTIONS.iter().any(|conjunction| conjunction.eq_ignore_ascii_case(word))
    };
    python::split(text).filter(is_conjunction).collect::<HashSet<_>>().len()
}

fn names(text: &str) -> usize {
    NAMES.iter().filter(|name| marks::has_word(text, name)).count()
}

/// Counts runs of digits of any script, after removing punctuation marks inside them.
fn numbers(text: &str) -> usize {
    let text = marks::remove_marks(text);
    let mut runs = 0;
    let mut in_run = false;
    for c in text.chars() {
        let is_digit = python::digit_value(c).is_some();
        runs += usize::from(is_digit && !in_run);
        in_run = is_digit;
    }
    runs
}

/// Returns true if the text has an interrobang and, outside the first interrobang, each of the six marks.
fn has_every_mark(text: &str) -> bool {
    let interrobang = text.find("?!").or_else(|| text.find("!?"));
    if interrobang.is_none() && !text.contains('‽') {
        return false;
    }
    let (before, after) = match interrobang {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 2..).unwrap_or_default()),
        None => (text, ""),
    };
    ['.', ',', '!', '?', ';', ':'].iter().all(|&mark| before.contains(mark) || after.contains(mark))
}

fn is_japanese_every(text: &str, cycle: f64) -> bool {
    let is_japanese = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}');
    (1..).zip(python::split(text)).all(|(place, token)| {
        let word = marks::trim(token);
        let is_exempt = amount(place) % cycle != 0.0 || word.chars().all(python::is_digit);
        is_exempt || word.contains(is_japanese)
    })
}

fn pronouns(text: &str) -> usize {
    let text = python::lower(&text.replace('/', " "));
    let mut count = 0;
    text::for_each_word_token(&text, |token| count += usize::from(PRONOUNS.binary_search(&token).is_ok()));
    count
}

fn keywords_multiple(parameters: &Parameters<'_>) -> CheckResult {
    let names = ["keyword1", "keyword2", "keyword3", "keyword4", "keyword5"];
    let mut keywords = Vec::with_capacity(names.len());
    for (name, count) in names.into_iter().zip(KEYWORD_COUNTS) {
        keywords.push((python::lower(python::strip(parameters.text(name)?)), count));
    }
    Ok(fn_check(move |text| {
        let text = python::lower(text);
        keywords
            .iter()
            .all(|(keyword, count)| text.matches(keyword.as_str()).take(count + 1).count() == *count)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pronoun_of_the_list_is_found() {
        assert!(PRONOUNS.is_sorted_by(|before, after| before < after));
        assert_eq!(pronouns(&PRONOUNS.join("/")), PRONOUNS.len());
        assert_eq!(pronouns("She's mine, not YOURS. Ones, onto, theirs!"), 4);
    }
}
