//! The four grades, and how the judge's replies and empty answers map to them.

use bench_domain::{Answer, Finish, Outcome, Verdict};
use serde_json::json;

use crate::grading::shorten;
use crate::python;
use crate::scorers::judged::{note_truncation, strip_thoughts};

/// Maximum number of characters of an answer that are kept with the verdict.
const EXTRACTED_CHARS_MAX: usize = 300;
/// Maximum number of wrappings, such as quotes or emphasis, to remove around a letter.
const WRAPPINGS_MAX: usize = 4;

/// Grade of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grade {
    Correct,
    Incorrect,
    /// Accurate, but at another level of detail than requested.
    Partial,
    /// The answer claims nothing.
    NotAttempted,
}

impl Grade {
    pub(super) const fn letter(self) -> char {
        match self {
            Self::Correct => 'A',
            Self::Incorrect => 'B',
            Self::Partial => 'C',
            Self::NotAttempted => 'D',
        }
    }

    pub(super) fn from_letter(letter: &str) -> Option<Self> {
        match letter {
            "A" | "a" => Some(Self::Correct),
            "B" | "b" => Some(Self::Incorrect),
            "C" | "c" => Some(Self::Partial),
            "D" | "d" => Some(Self::NotAttempted),
            _ => None,
        }
    }

    /// Reads the grade from a reply: one letter, optionally in quotes, emphasized or with a period, after closed
    /// reasoning blocks are removed. Returns `None` if there are other words.
    pub(super) fn read(reply: &str) -> Option<Self> {
        let reply = strip_thoughts(reply);
        let mut letter = python::strip(&reply);
        for _ in 0..WRAPPINGS_MAX {
            letter = unwrap_once(letter);
        }
        Self::from_letter(letter)
    }

    /// Returns the verdict. The Omniscience Index is 100 times the mean of the scores.
    pub(super) fn verdict(self, answer: &Answer) -> Verdict {
        let extracted = Some(shorten(answer.text.trim(), EXTRACTED_CHARS_MAX));
        let (outcome, score, reason) = match self {
            Self::Correct => (Outcome::Correct, 1.0, ""),
            Self::Incorrect => (Outcome::Incorrect, -1.0, "The judge found that the answer is wrong."),
            Self::Partial => (
                Outcome::Partial,
                0.0,
                "The judge found that the answer is right at another level of detail.",
            ),
            Self::NotAttempted => (Outcome::NoAnswer, 0.0, "The judge found that no answer was attempted."),
        };
        let mut verdict = Verdict { extracted, score: Some(score), ..Verdict::wrong(outcome, reason) };
        verdict.detail.insert("grade".into(), json!(self.letter()));
        note_truncation(&mut verdict.detail, answer);
        verdict
    }
}

/// Returns the verdict for an empty answer, which needs no judge: not attempted.
pub(super) fn not_attempted_verdict(answer: &Answer) -> Verdict {
    let (outcome, reason) = match answer.finish {
        Finish::Length => (Outcome::Truncated, "The token limit was reached before an answer was given."),
        Finish::Refused => (Outcome::Refused, "The model or its provider refused to answer."),
        _ => (Outcome::NoAnswer, "The answer is empty."),
    };
    let mut verdict = Verdict::wrong(outcome, reason);
    verdict.detail.insert("grade".into(), json!(Grade::NotAttempted.letter()));
    note_truncation(&mut verdict.detail, answer);
    verdict
}

/// Removes a trailing period and one pair of quotes or emphasis marks.
fn unwrap_once(text: &str) -> &str {
    const PAIRS: [(char, char); 7] =
        [('"', '"'), ('\'', '\''), ('`', '`'), ('*', '*'), ('_', '_'), ('“', '”'), ('‘', '’')];
    let text = python::strip(text.strip_suffix('.').unwrap_or(text));
    let inner = PAIRS.iter().find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close));
    python::strip(inner.unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_single_letter_is_a_grade() {
        for (reply, expected) in [
            ("A", "A"),
            ("b", "B"),
            (" \"C\" ", "C"),
            ("D.", "D"),
            ("**A**", "A"),
            ("A: CORRECT", ""),
            ("Grade: B", ""),
            ("INCORRECT", ""),
            ("CORRECT", ""),
            ("PARTIAL_ANSWER", ""),
            ("NOT_ATTEMPTED", ""),
            ("NOT ATTEMPTED", ""),
            ("B. This is a wrong answer", ""),
            ("<think>A or B</think>B", "B"),
            ("<think>A or B", ""),
            ("I choose B over A", ""),
            ("AB", ""),
            ("", ""),
            // More cases.
            ("**\"A\".**", "A"),
            ("`d`", "D"),
            ("‘c’", "C"),
            ("\"A", ""),
            ("A B", ""),
            ("A\nB", ""),
            ("E", ""),
            ("А", ""),
            (".", ""),
            ("''", ""),
            ("(A)", ""),
            ("{\"grade\":\"A\"}", ""),
        ] {
            let read = Grade::read(reply).map(|grade| grade.letter().to_string()).unwrap_or_default();
            assert_eq!(read, expected, "{reply:?}");
        }
    }

    #[test]
    fn the_mean_of_the_scores_is_the_index() {
        let answer = Answer::local("x");
        let scores = [Grade::Correct, Grade::Incorrect, Grade::Partial, Grade::NotAttempted]
            .map(|grade| grade.verdict(&answer).score.unwrap());
        assert_eq!(scores, [1.0, -1.0, 0.0, 0.0]);
        assert_eq!(Grade::Partial.verdict(&answer).outcome, Outcome::Partial);
    }

    #[test]
    fn an_empty_answer_is_not_attempted_for_any_finish_reason() {
        for (finish, outcome) in [
            (Finish::Stop, Outcome::NoAnswer),
            (Finish::Unknown, Outcome::NoAnswer),
            (Finish::Length, Outcome::Truncated),
            (Finish::Refused, Outcome::Refused),
        ] {
            let verdict = not_attempted_verdict(&Answer { finish, ..Answer::local("") });
            assert_eq!((verdict.outcome, verdict.score), (outcome, Some(0.0)));
            assert_eq!(verdict.detail["grade"], "D");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_replies_are_read(reply in any::<String>()) {
            if let Some(grade) = Grade::read(&reply) {
                prop_assert!(reply.to_uppercase().contains(grade.letter()));
            }
        }

        #[test]
        fn words_are_not_grades(reply in "[a-zA-Z]{2,9}( [a-zA-Z]{1,9}){0,20}") {
            prop_assert_eq!(Grade::read(&reply), None);
        }
    }
}
