//! Prompts of both protocols.

use bench_domain::{ChatMessage, Prompt, Role};
use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec};

use super::row::DisplayedQuestion;
use crate::material::Templates;
use crate::metadata::{Template, TemplateSource};
use crate::prompts::fill;

/// Name of the message of simple-evals.
const MULTIPLE_CHOICE: &str = "multiple-choice";

/// Official texts, loaded at run time.
pub(super) static TEMPLATES: [TemplateSpec; 1] = [TemplateSpec {
    name: MULTIPLE_CHOICE,
    role: TemplateRole::Wording,
    origin: TemplateOrigin::GitHub {
        repository: "openai/simple-evals",
        commit: "ee3b0318d8d1d9d72755a4120879be65f7c07e9e",
        path: "common.py",
    },
    part: TemplatePart::PythonConstant("QUERY_TEMPLATE_MULTICHOICE"),
    sha256: Some("d4d85337bbd54659d12c8da7edc8b854d151b7327cf7574dc1062d753b03c8a6"),
}];

/// Own wording, which asks for the same form of answer as the official text. Used if that could not be loaded.
const OWN_MULTIPLE_CHOICE: &str = "\
Choose the one right option for the question below. Reason step by step first, and then end with a line of its own in \
the form 'Answer: $LETTER', without the quotes, where $LETTER is A, B, C or D.

{Question}

A) {A}
B) {B}
C) {C}
D) {D}";

fn multiple_choice(templates: &Templates) -> (TemplateSource, &str) {
    match templates.get(MULTIPLE_CHOICE) {
        Some(official) => (TemplateSource::Official, official),
        None => (TemplateSource::Own, OWN_MULTIPLE_CHOICE),
    }
}

pub(super) fn simple_evals_template(templates: &Templates) -> Template {
    let (source, text) = multiple_choice(templates);
    Template::new(source, &[text])
}

/// Builds the prompt of simple-evals: a single user message.
pub(super) fn simple_evals(shown: &DisplayedQuestion<'_>, templates: &Templates) -> Prompt {
    let [a, b, c, d] = &shown.options;
    let slots = [("Question", &*shown.question), ("A", a), ("B", b), ("C", c), ("D", d)];
    Prompt::user(fill(multiple_choice(templates).1, &slots))
}

const SYSTEM: &str = "You are a very intelligent assistant, who follows instructions directly.";
const QUESTION: &str = "What is the correct answer to this question: ";
const CHOICES: &str = "\n\nChoices:";
const OPTIONS: [&str; 4] = ["\n(A) ", "\n(B) ", "\n(C) ", "\n(D) "];
/// The form is the authors'; the sentence around it is this program's.
const REQUEST: &str = "\n\nGive your answer in this form: \"The correct answer is (insert answer here)\"";

pub(super) fn authors_template() -> Template {
    let [a, b, c, d] = OPTIONS;
    Template::new(TemplateSource::Own, &[SYSTEM, QUESTION, CHOICES, a, b, c, d, REQUEST])
}

/// Builds the authors' prompt: their system message and their question without few-shot examples.
pub(super) fn authors(shown: &DisplayedQuestion<'_>) -> Prompt {
    let mut message = String::from(QUESTION);
    message.push_str(&shown.question);
    message.push_str(CHOICES);
    for (before, option) in OPTIONS.iter().zip(&shown.options) {
        message.push_str(before);
        message.push_str(option);
    }
    message.push_str(REQUEST);
    Prompt { messages: vec![ChatMessage::new(Role::System, SYSTEM), ChatMessage::new(Role::User, message)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_filled_again() {
        let slots = [("A", "{B}"), ("B", "{A}{")];
        assert_eq!(fill("{A}, {B} {C} {", &slots), "{B}, {A}{ {C} {");
        assert_eq!(fill("{{A}}", &slots), "{{B}}");
        assert_eq!(fill("", &slots), "");
    }

    #[test]
    fn our_own_wording_has_every_slot_once_and_asks_for_the_same_form() {
        for place in ["{Question}", "{A}", "{B}", "{C}", "{D}", "'Answer: $LETTER'"] {
            assert_eq!(OWN_MULTIPLE_CHOICE.matches(place).count(), 1, "{place}");
        }
    }
}
