//! What went wrong, without what differs only by place: the id of an item, the number of a sample.

use crate::format;

/// Words after which a place is named.
const PLACES: [&str; 8] = ["item", "items", "sample", "step", "attempt", "sandbox", "test", "waiting"];
/// Words before which a number tells how often something was tried.
const TRIES: [&str; 5] = ["sandboxes", "attempts", "replies", "rounds", "s"];
/// What stands for places that differ.
const DIFFERS: &str = "…";

/// What samples with the same cause have in common; equal for two of them.
pub(crate) fn cause(message: &str) -> Vec<String> {
    let words = words(message);
    (0..words.len())
        .map(|at| match is_place(&words, at) {
            true => format!("{DIFFERS}{}", punctuation(words.get(at).map_or("", |word| word))),
            false => words.get(at).map_or("", |word| word).to_owned(),
        })
        .collect()
}

/// One text for messages with the same cause: `…` stands where they differ.
pub(crate) fn common(messages: &[&str]) -> String {
    let Some((first, others)) = messages.split_first() else { return String::new() };
    if others.iter().all(|other| other == first) {
        return (*first).to_owned();
    }
    let others: Vec<Vec<String>> = others.iter().map(|other| words(other)).collect();
    let shown = words(first).into_iter().enumerate().map(|(at, word)| {
        let same = others.iter().all(|other| other.get(at) == Some(&word));
        if same { word } else { format!("{DIFFERS}{}", punctuation(&word)) }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The words of a text; what stands in backticks is one.
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

/// What ends a word without being part of a name.
fn punctuation(word: &str) -> &str {
    let name = word.trim_end_matches([',', ':', ';', '.', ')']);
    word.get(name.len()..).unwrap_or_default()
}

/// How often something occurred, and what.
pub(crate) fn times(count: u64, text: &str) -> String {
    format!("{} × {text}", format::count(count))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (a, b) = (missing("q 1", 0), missing("q 1", 1));
        assert_eq!(common(&[&a, &b]), "no stored response for item `q 1`, sample …");
        assert_eq!(common(&[&a, &missing("q2", 1), &b]), "no stored response for item …, sample …");
        assert_eq!(common(&[&a]), a);
        assert_eq!(common(&["a  b\n", "a  b\n"]), "a  b\n");
        assert_eq!(common(&[]), "");
        assert_eq!(words("an `open end of"), ["an", "`open end of"]);
    }
}
