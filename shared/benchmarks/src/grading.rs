//! Result of grading an answer, and the conversion of a parser's finding to a verdict.

use bench_domain::{Answer, Code, Finish, Outcome, Stage, Verdict};
use serde_json::{Map, Value, json};

use crate::python;

/// Result of grading an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Grading {
    /// The answer is graded.
    Done(Verdict),
    /// Another stage has to grade the answer: a judge or a sandbox.
    NeedsTurn(Stage),
}

impl Grading {
    /// Returns the verdict; `None` if another stage is needed.
    pub fn done(self) -> Option<Verdict> {
        match self {
            Self::Done(verdict) => Some(verdict),
            Self::NeedsTurn(_) => None,
        }
    }
}

impl From<Verdict> for Grading {
    fn from(verdict: Verdict) -> Self {
        Self::Done(verdict)
    }
}

/// Result of running an official parser on an answer.
pub(crate) struct ParserResult {
    /// Extracted answer.
    pub(crate) extracted: Option<String>,
    /// True if the extracted answer is right.
    pub(crate) correct: bool,
    /// Explanation in one sentence, used if an answer was extracted and is wrong.
    pub(crate) reason: String,
    /// Additional values to record.
    pub(crate) detail: Map<String, Value>,
}

/// Returns the verdict for a finding. The official program decides what is right; this function distinguishes the
/// reasons why an answer isn't.
pub(crate) fn verdict_for(answer: &Answer, finding: ParserResult) -> Verdict {
    let ParserResult { extracted, correct, reason, mut detail } = finding;
    let truncated = answer.finish == Finish::Length;
    if truncated {
        detail.insert("truncated".into(), json!(true));
    }
    if correct {
        return Verdict { detail, ..Verdict::correct(extracted.unwrap_or_default()) };
    }
    let blank = python::strip(&answer.text).is_empty();
    let reasoned = answer.reasoning.as_deref().is_some_and(|reasoning| !python::strip(reasoning).is_empty());
    let (outcome, reason) = if truncated {
        (Outcome::Truncated, "The token limit cut the answer off before a right answer was given.".to_owned())
    } else if answer.finish == Finish::Refused {
        (Outcome::Refused, "The model or its provider refused to answer.".to_owned())
    } else if blank && reasoned {
        (Outcome::NoAnswer, "The model reasoned but gave no answer.".to_owned())
    } else if blank {
        (Outcome::NoAnswer, "The answer is empty.".to_owned())
    } else if extracted.is_none() {
        (Outcome::Unparsed, "No answer was found in the text.".to_owned())
    } else {
        (Outcome::Incorrect, reason)
    };
    Verdict { extracted, detail, ..Verdict::wrong(outcome, reason) }
}

/// Returns the verdict for an item that has no gold answer to compare with.
pub(crate) fn missing_gold_verdict() -> Verdict {
    Verdict::ungraded(Code::InvalidItem, "The item has no gold answer to compare with.")
}

/// Returns at most the first `chars_max` characters of a text, followed by `…` if it is longer.
pub(crate) fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, finish: Finish, extracted: Option<&str>, correct: bool) -> Verdict {
        let answer = Answer { finish, ..Answer::local(text) };
        let finding = ParserResult {
            extracted: extracted.map(Into::into),
            correct,
            reason: "Expected B.".into(),
            detail: Map::new(),
        };
        verdict_for(&answer, finding)
    }

    #[test]
    fn a_right_answer_stays_right_when_it_was_cut_off() {
        let verdict = verdict("B and", Finish::Length, Some("B"), true);
        assert_eq!((verdict.outcome, verdict.score), (Outcome::Correct, Some(1.0)));
        assert_eq!(verdict.detail.get("truncated"), Some(&json!(true)));
        assert_eq!(verdict.reason, "");
    }

    #[test]
    fn verdicts_distinguish_why_an_answer_is_wrong() {
        for (text, finish, extracted, expected) in [
            ("C", Finish::Stop, Some("C"), Outcome::Incorrect),
            ("C", Finish::Length, Some("C"), Outcome::Truncated),
            ("", Finish::Length, None, Outcome::Truncated),
            ("I cannot help.", Finish::Refused, None, Outcome::Refused),
            ("hm", Finish::Stop, None, Outcome::Unparsed),
            (" \n", Finish::Stop, None, Outcome::NoAnswer),
            ("", Finish::Unknown, None, Outcome::NoAnswer),
        ] {
            let verdict = verdict(text, finish, extracted, false);
            assert_eq!(verdict.outcome, expected, "{text:?}");
            assert_eq!(verdict.score, Some(0.0));
            assert_eq!(verdict.extracted.as_deref(), extracted);
            assert!(verdict.reason.ends_with('.'), "{:?}", verdict.reason);
        }
    }

    #[test]
    fn reasoning_alone_is_not_an_answer() {
        let answer = Answer { reasoning: Some("So it is B.".into()), ..Answer::local("") };
        let finding =
            ParserResult { extracted: None, correct: false, reason: String::new(), detail: Map::new() };
        let verdict = verdict_for(&answer, finding);
        assert_eq!(verdict.outcome, Outcome::NoAnswer);
        assert!(verdict.reason.contains("reasoned"));
    }
}
