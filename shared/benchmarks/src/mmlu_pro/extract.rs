//! The official extraction: three patterns, tried one after the other.
//!
//! Written as scans instead of regular expressions: the third pattern looks ahead over the rest of the
//! text at every letter, and its word boundary is Python's.

use crate::python;

/// The letters of the options, by position.
pub(super) const LETTERS: &str = "ABCDEFGHIJ";

/// A letter that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extraction {
    /// `A` to `J`.
    pub(super) letter: char,
    /// Which of the three patterns found it, from 1.
    pub(super) stage: u8,
}

/// The answer of a reply. Bold marks are removed first, as the official API script does.
pub(super) fn extract(reply: &str) -> Option<Extraction> {
    let text = reply.replace("**", "");
    let stages = [after_answer_is, after_answer_colon, last_lone_letter];
    stages.iter().zip(1..).find_map(|(find, stage)| find(&text).map(|letter| Extraction { letter, stage }))
}

fn leading_letter(text: &str) -> Option<char> {
    text.chars().next().filter(|c| LETTERS.contains(*c))
}

/// The first `answer is X` or `answer is (X`. Nothing is required after the letter.
fn after_answer_is(text: &str) -> Option<char> {
    const WORDS: &str = "answer is ";
    text.match_indices(WORDS).find_map(|(at, _)| {
        let after = text.get(at + WORDS.len()..)?;
        leading_letter(after.strip_prefix('(').unwrap_or(after))
    })
}

/// On the first line that has an `Answer: X` or `answer: X`, the last one. The letter may stand on a later line.
fn after_answer_colon(text: &str) -> Option<char> {
    const WORD: &str = "nswer:";
    let mut found = None;
    for (at, _) in text.match_indices(WORD) {
        let (before, after) = (text.get(..at)?, text.get(at + WORD.len()..)?);
        let Some(start) = before.strip_suffix(['a', 'A']) else { continue };
        if let Some((line_end, _)) = found
            && start.len() > line_end
        {
            break;
        }
        if let Some(letter) = leading_letter(after.trim_start_matches(python::is_space)) {
            let line_end = match found {
                Some((line_end, _)) => line_end,
                None => after.find('\n').map_or(text.len(), |length| at + WORD.len() + length),
            };
            found = Some((line_end, letter));
        }
    }
    found.map(|(_, letter)| letter)
}

/// The last letter that stands alone.
fn last_lone_letter(text: &str) -> Option<char> {
    let mut after = None;
    let mut characters = text.chars().rev().peekable();
    while let Some(c) = characters.next() {
        let is_alone = |neighbour: Option<&char>| neighbour.is_none_or(|&c| !python::is_word(c));
        if LETTERS.contains(c) && is_alone(after.as_ref()) && is_alone(characters.peek()) {
            return Some(c);
        }
        after = Some(c);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letter(reply: &str) -> Option<char> {
        extract(reply).map(|found| found.letter)
    }

    #[test]
    fn the_vectors_agree() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/mmlu_pro_extract.jsonl");
        let lines = std::fs::read_to_string(path).unwrap();
        let mut seen = 0;
        for line in lines.lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let found = extract(vector["response"].as_str().unwrap());
            let text = found.map(|found| found.letter.to_string());
            assert_eq!(text.as_deref(), vector["official"].as_str(), "{}", vector["id"]);
            seen += 1;
        }
        assert_eq!(seen, 170);
    }

    #[test]
    fn the_cases_of_the_protocol() {
        for (reply, expected, stage) in [
            ("The answer is **(C)**. Option B is a trap.", 'C', 1),
            ("The answer is Apple.", 'A', 1),
            ("The answer is (B). Wait, the answer is (C).", 'B', 1),
            ("<think>The answer is (B)</think>Answer: C", 'B', 1),
            ("Answer: Because nothing fits", 'B', 2),
            ("answer:\n\nC", 'C', 2),
            ("Answer: B\nAnswer: C", 'B', 2),
            ("x Answer: B, Answer: C", 'C', 2),
            ("Answer: x Answer:\nD\nAnswer: E", 'D', 2),
            ("The Answer Is C", 'C', 3),
            ("ANSWER: C", 'C', 3),
            ("The answer is not (B), it is (C).", 'C', 3),
            ("F_1 is J", 'J', 3),
            ("C\u{301} mark", 'C', 3),
            ("\\boxed{C}", 'C', 3),
        ] {
            assert_eq!(extract(reply), Some(Extraction { letter: expected, stage }), "{reply:?}");
        }
        for reply in
            ["", "c", "None of them.", "The answer is (K).", "C日本 is right", "Answer: Ａ", "Ａ", "A1 B_ ²C"]
        {
            assert_eq!(letter(reply), None, "{reply:?}");
        }
    }

    #[test]
    fn large_replies_are_no_burden() {
        let megabyte = 1 << 20;
        for reply in [
            "answer is ".repeat(megabyte / 10),
            "Answer: ".repeat(megabyte / 8),
            format!("Answer:{}", " ".repeat(megabyte)),
            "Answer:\n".repeat(megabyte / 8),
            "AB ".repeat(megabyte / 3),
            "*".repeat(megabyte),
        ] {
            extract(&reply);
        }
    }

    proptest! {
        #[test]
        fn no_reply_panics(reply in "\\PC{0,200}") {
            extract(&reply);
        }

        #[test]
        fn what_the_prompt_asks_for_is_found(before in "[a-z ]{0,40}", letter in "[A-J]") {
            let found = extract(&format!("{before}The answer is ({letter})."));
            prop_assert_eq!(found.map(|found| found.letter.to_string()), Some(letter));
        }
    }
}
