//! Causes of errors: error texts without the parts that differ only by location, such as an item's id or a sample's
//! number.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Code, code};

/// Words that are followed by a location.
const PLACES: [&str; 8] = ["item", "items", "sample", "step", "attempt", "sandbox", "test", "waiting"];
/// Words that follow a number of tries.
const TRIES: [&str; 5] = ["sandboxes", "attempts", "replies", "rounds", "s"];
/// Placeholder for locations that differ.
const DIFFERS: &str = "…";
/// Maximum number of causes that are counted separately.
const CAUSES_MAX: usize = 100;
/// Maximum length of a cause in characters.
const CHARS_MAX: usize = 300;
/// Label of the causes that aren't listed.
pub const OTHER_CAUSES: &str = "other causes";

/// A cause of errors and the number of samples that ended with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCause {
    /// Error text; `…` replaces the parts that differ between samples.
    pub message: String,
    /// Code of the error, if known.
    #[serde(default, deserialize_with = "code::deserialize_known", skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Number of samples.
    pub count: u64,
}

/// Groups error texts by code and cause.
#[derive(Debug, Clone, Default)]
pub struct CauseCounts {
    groups: Vec<Group>,
    by_cause: HashMap<(Option<Code>, Vec<String>), usize>,
    other: u64,
}

#[derive(Debug, Clone)]
struct Group {
    code: Option<Code>,
    first: String,
    words: Vec<String>,
    /// True if all texts are identical to the first one.
    same: bool,
    count: u64,
}

impl CauseCounts {
    /// Counts an error text that occurred `count` times.
    pub fn add(&mut self, code: Option<Code>, message: &str, count: u64) {
        let words = words(message);
        let cause = (code, cause_of(&words));
        if let Some(group) = self.by_cause.get(&cause).and_then(|at| self.groups.get_mut(*at)) {
            group.count += count;
            group.merge(message, &words);
            return;
        }
        if self.groups.len() >= CAUSES_MAX {
            self.other += count;
            return;
        }
        self.by_cause.insert(cause, self.groups.len());
        self.groups.push(Group { code, first: message.to_owned(), words, same: true, count });
    }

    /// Returns the causes, most frequent first. If there are more than `max`, the rest are counted as [`OTHER_CAUSES`].
    pub fn finish(mut self, max: usize) -> Vec<ErrorCause> {
        // Equal counts are ordered by text, since samples come in any order.
        let mut causes: Vec<ErrorCause> = self.groups.drain(..).map(Group::finish).collect();
        causes.sort_by(|a, b| {
            b.count.cmp(&a.count).then_with(|| (&a.message, a.code).cmp(&(&b.message, b.code)))
        });
        let rest = causes.split_off(max.min(causes.len()));
        let other = self.other + rest.iter().map(|cause| cause.count).sum::<u64>();
        if other > 0 {
            causes.push(ErrorCause { message: OTHER_CAUSES.to_owned(), code: None, count: other });
        }
        causes
    }
}

impl Group {
    fn merge(&mut self, message: &str, words: &[String]) {
        if self.same && message == self.first {
            return;
        }
        self.same = false;
        for (at, word) in self.words.iter_mut().enumerate() {
            if words.get(at) != Some(word) {
                *word = format!("{DIFFERS}{}", punctuation(word));
            }
        }
    }

    fn finish(self) -> ErrorCause {
        let text = if self.same { self.first } else { self.words.join(" ") };
        ErrorCause { message: one_line(&text), code: self.code, count: self.count }
    }
}

/// Returns the text as one line of at most 300 characters that can't move the cursor or fill the screen.
pub fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect();
    if line.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the words that an error text shares with other texts of the same cause.
pub fn cause(message: &str) -> Vec<String> {
    cause_of(&words(message))
}

fn cause_of(words: &[String]) -> Vec<String> {
    (0..words.len())
        .map(|at| match is_place(words, at) {
            true => format!("{DIFFERS}{}", punctuation(words.get(at).map_or("", |word| word))),
            false => words.get(at).map_or("", |word| word).to_owned(),
        })
        .collect()
}

/// Splits a text into words; text in back-ticks is one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split_whitespace() {
        match words.last_mut().filter(|_| open) {
            Some(last) => *last = format!("{last} {word}"),
            None => words.push(word.to_owned()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    words
}

fn is_place(words: &[String], at: usize) -> bool {
    let Some(word) = words.get(at) else { return false };
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    let is_named = word.starts_with('`') || word.contains(|c: char| c.is_ascii_digit());
    let after_place = before.is_some_and(|before| PLACES.contains(&before.to_ascii_lowercase().as_str()));
    let next = words.get(at + 1).map(|next| next.trim_end_matches(|c: char| c.is_ascii_punctuation()));
    let is_number = word.trim_start_matches('(').bytes().all(|byte| byte.is_ascii_digit());
    (after_place && is_named)
        || (is_number && next.is_some_and(|next| TRIES.contains(&next)))
        || word.contains("request_id=")
}

/// Returns the punctuation at the end of a word that isn't part of a name.
fn punctuation(word: &str) -> &str {
    let name = word.trim_end_matches([',', ':', ';', '.', ')']);
    word.get(name.len()..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(messages: &[&str]) -> Vec<ErrorCause> {
        let mut counts = CauseCounts::default();
        messages.iter().for_each(|message| counts.add(None, message, 1));
        counts.finish(10)
    }

    #[test]
    fn only_places_make_no_difference() {
        let same = |a: &str, b: &str| cause(a) == cause(b);
        assert!(same(
            "no stored response for item `a b`, sample 0, step `1.1`",
            "no stored response for item `c`, sample 12, step `76.10`"
        ));
        assert!(same(
            "run in 2 sandboxes: no h5py, the last in sandbox 2",
            "run in 3 sandboxes: no h5py, the last in sandbox 3"
        ));
        assert!(same(
            "HTTP 500: down (request_id=a-1) (after 6 attempts)",
            "HTTP 500: down (request_id=b-2) (after 5 attempts)"
        ));
        assert!(!same("HTTP 500: down", "HTTP 404: down"));
        assert!(!same("no module `numpy`", "no module `scipy`"));
        assert!(!same(
            "no stored response for item `a`, sample 0",
            "no stored response for item `a`, sample 0, step `1`"
        ));
        assert!(!same("exit code 1", "exit code 137"));
        assert_eq!(cause(""), Vec::<String>::new());
    }

    #[test]
    fn what_differs_is_left_out() {
        let missing = |item: &str, sample| format!("no stored response for item `{item}`, sample {sample}");
        let one = |messages: &[&str]| {
            let causes = causes(messages);
            assert_eq!((causes.len(), causes[0].count), (1, messages.len() as u64));
            causes[0].message.clone()
        };
        let (a, b) = (missing("q 1", 0), missing("q 1", 1));
        assert_eq!(one(&[&a, &b]), "no stored response for item `q 1`, sample …");
        assert_eq!(one(&[&a, &missing("q2", 1), &b]), "no stored response for item …, sample …");
        assert_eq!(one(&[&a]), a);
        assert_eq!(one(&["a  b\n", "a  b\n"]), "a b");
        assert_eq!(causes(&[]), []);
        assert_eq!(words("an `open end of"), ["an", "`open end of"]);
    }

    #[test]
    fn one_text_with_two_codes_is_two_causes() {
        let mut counts = CauseCounts::default();
        counts.add(Some(Code::InvalidKey), "HTTP 403 from X: no", 1);
        counts.add(Some(Code::QuotaExhausted), "HTTP 403 from X: no", 2);
        counts.add(Some(Code::InvalidKey), "HTTP 403 from X: no", 2);
        let causes = counts.finish(10);
        let found: Vec<_> = causes.iter().map(|cause| (cause.code, cause.count)).collect();
        assert_eq!(found, [(Some(Code::InvalidKey), 3), (Some(Code::QuotaExhausted), 2)]);
    }

    #[test]
    fn causes_are_bounded_and_the_rest_is_counted() {
        let mut counts = CauseCounts::default();
        counts.add(None, "rare", 1);
        counts.add(None, &"x".repeat(5_000), 2);
        counts.add(Some(Code::ProviderError), "a\u{1b}[2J\n b", 1_200);
        for n in 0..500 {
            counts.add(None, &format!("code {n}"), 1);
        }
        let causes = counts.finish(2);
        assert_eq!(
            causes[0],
            ErrorCause { message: "a[2J b".into(), code: Some(Code::ProviderError), count: 1_200 }
        );
        assert_eq!((causes[1].message.chars().count(), causes[1].count), (CHARS_MAX + 1, 2));
        assert_eq!(causes[2], ErrorCause { message: OTHER_CAUSES.into(), code: None, count: 501 });
        assert_eq!(causes.len(), 3);
    }
}
