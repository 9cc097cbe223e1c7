//! Instructions that count something.

use std::collections::HashSet;

use super::super::by::by;
use super::super::text;
use super::Made;
use super::marks;
use super::parameters::{Parameters, amount};
use crate::python;

/// Coordinating conjunctions.
const CONJUNCTIONS: [&str; 7] = ["and", "but", "for", "nor", "or", "so", "yet"];

/// First names that the instruction names.
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

/// How often each of the five keywords has to occur.
const KEYWORD_COUNTS: [usize; 5] = [1, 2, 3, 5, 7];

/// The instruction of that name in the family `count`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<Made> {
    Some(match name {
        "word_count_range" => word_count_range(parameters),
        "unique_word_count" => {
            parameters.number("N").map(|least| by(move |text| amount(unique_words(text)) >= least))
        }
        "conjunctions" => {
            parameters.number("small_n").map(|least| by(move |text| amount(conjunctions(text)) >= least))
        }
        "person_names" => parameters.number("N").map(|least| by(move |text| amount(names(text)) >= least)),
        "numbers" => parameters.number("N").map(|exact| by(move |text| amount(numbers(text)) == exact)),
        "punctuation" => Ok(by(has_every_mark)),
        "words_japanese" => {
            parameters.positive("N").map(|cycle| by(move |text| is_japanese_every(text, cycle)))
        }
        "pronouns" => parameters.number("N").map(|least| by(move |text| amount(pronouns(text)) >= least)),
        "keywords_multiple" => keywords_multiple(parameters),
        _ => return None,
    })
}

fn word_count_range(parameters: &Parameters<'_>) -> Made {
    let (least, most) = (parameters.number("min_words")?, parameters.number("max_words")?);
    Ok(by(move |text| (least..=most).contains(&amount(text::words(text).count()))))
}

/// Different words in lower case, without outer marks; what is left of a lone mark is one of them.
fn unique_words(text: &str) -> usize {
    let text = python::lower(text);
    python::split(&text).map(marks::trim).collect::<HashSet<_>>().len()
}

/// Different spellings of conjunctions: `And`, `and` and `and,` are three.
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

/// Runs of digits of any script, marks within them removed first.
fn numbers(text: &str) -> usize {
    let text = marks::without_marks(text);
    let mut runs = 0;
    let mut in_run = false;
    for c in text.chars() {
        let is_digit = python::digit_value(c).is_some();
        runs += usize::from(is_digit && !in_run);
        in_run = is_digit;
    }
    runs
}

/// An interrobang, and each of the six marks somewhere beside the first interrobang.
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

fn keywords_multiple(parameters: &Parameters<'_>) -> Made {
    let names = ["keyword1", "keyword2", "keyword3", "keyword4", "keyword5"];
    let mut keywords = Vec::with_capacity(names.len());
    for (name, count) in names.into_iter().zip(KEYWORD_COUNTS) {
        keywords.push((python::lower(python::strip(parameters.text(name)?)), count));
    }
    Ok(by(move |text| {
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
    fn pronouns_are_found_wherever_they_are_in_the_list() {
        assert!(PRONOUNS.is_sorted_by(|before, after| before < after));
        assert_eq!(pronouns(&PRONOUNS.join("/")), PRONOUNS.len());
        assert_eq!(pronouns("She's mine, not YOURS. Ones, onto, theirs!"), 4);
    }
}
