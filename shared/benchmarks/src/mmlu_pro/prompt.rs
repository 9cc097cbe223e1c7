//! Prompt of the official API script.
//!
//! The literal texts are part of the protocol: parsers look for the sentence that the header requests, and scores are
//! comparable only if the message is exactly the same.

use super::LETTERS;

const HEADER_START: &str = "The following are multiple choice questions (with answers) about ";
const HEADER_END: &str =
    ". Think step by step and then output the answer in the format of \"The answer is (X)\" at the end.\n\n";
const QUESTION: &str = "Question: ";
const OPTIONS: &str = "\nOptions: ";
const AFTER_LETTER: &str = ". ";
const ANSWER: &str = "Answer: ";
const NO_WORK_YET: &str = "Let's think step by step.";
const END: &str = "\n\n";

/// Prefix that few-shot examples may have in the dataset. The message already contains it.
const WORK_PREFIX: &str = "A: ";

/// Texts that make up a message, in order of appearance.
pub(super) const PARTS: [&str; 10] = [
    HEADER_START,
    HEADER_END,
    QUESTION,
    OPTIONS,
    LETTERS,
    AFTER_LETTER,
    ANSWER,
    NO_WORK_YET,
    END,
    WORK_PREFIX,
];

pub(super) fn header(category: &str) -> String {
    format!("{HEADER_START}{category}{HEADER_END}")
}

/// Appends one question. If `worked` is empty, the model has to answer it.
pub(super) fn push_question(message: &mut String, question: &str, options: &[&str], worked: &str) {
    let worked = if worked.is_empty() { NO_WORK_YET } else { worked };
    let worked = worked.strip_prefix(WORK_PREFIX).unwrap_or(worked);
    message.push_str(QUESTION);
    message.push_str(question);
    message.push_str(OPTIONS);
    for (letter, option) in LETTERS.chars().zip(options) {
        message.push(letter);
        message.push_str(AFTER_LETTER);
        message.push_str(option);
        message.push('\n');
    }
    message.push_str(ANSWER);
    // The official script adds neither answer nor blank lines if the example was only the prefix.
    if !worked.is_empty() {
        message.push_str(worked);
        message.push_str(END);
    }
}
