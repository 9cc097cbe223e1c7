//! Counts the syllables of a word as the Python package `syllapy` 0.8.0 does.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::python;

/// Words for which the package's word list differs from its rule. The file names its source.
const EXCEPTIONS: &str = include_str!("../../../../data/syllables.txt");

static SYLLABLES: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let counted = EXCEPTIONS.lines().filter_map(|line| {
        let (count, words) = line.split_once(' ').filter(|(count, _)| *count != "#")?;
        Some(words.split(' ').zip(std::iter::repeat(count.parse().ok()?)))
    });
    counted.flatten().collect()
});

fn is_vowel(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

/// Returns the number of syllables of a lowercase word without punctuation; zero if it contains a digit.
pub(super) fn count(word: &str) -> usize {
    if word.chars().any(|c| python::digit_value(c).is_some()) {
        return 0;
    }
    SYLLABLES.get(word).copied().unwrap_or_else(|| count_by_rule(word))
}

/// Counts groups of vowels, except a final `e` that isn't part of a final `le` after a consonant; at least one.
fn count_by_rule(word: &str) -> usize {
    let mut groups = 0;
    let mut in_group = false;
    for c in word.chars() {
        groups += usize::from(is_vowel(c) && !in_group);
        in_group = is_vowel(c);
    }
    if let Some(stem) = word.strip_suffix('e') {
        groups -= 1;
        let before = stem.strip_suffix('l').and_then(|stem| stem.chars().next_back());
        groups += usize::from(before.is_some_and(|c| !is_vowel(c)));
    }
    groups.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_and_its_exceptions() {
        for (word, expected) in [
            ("banana", 3),
            ("table", 2),
            ("tale", 1),
            ("le", 1),
            ("whale", 1),
            ("ale", 1),
            ("e", 1),
            ("the", 1),
            ("rhythm", 1),
            ("queue", 1),
            ("strength", 1),
            ("changed", 1),
            ("日本", 1),
            ("b2b", 0),
            ("٣", 0),
        ] {
            assert_eq!(count(word), expected, "{word:?}");
        }
    }

    #[test]
    fn the_list_holds_exceptions_only() {
        assert_eq!(SYLLABLES.len(), 825);
        for (word, &count) in SYLLABLES.iter() {
            assert_ne!(count_by_rule(word), count, "{word}");
        }
    }
}
