//! Official texts, taken from fenced blocks on the dataset's card.
//!
//! Names and order of the blocks have changed between revisions. So this module identifies a block by the slots that it
//! must have, and uses this program's own wording if no block has them.

use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec};

use crate::material::Templates;
use crate::metadata::{Template, TemplateSource};
use crate::prompts::has_slots;

const CARD: &str = "card";
const DATASET: &str = "ArtificialAnalysis/AA-LCR";
const PATH: &str = "README.md";

/// Commits of the dataset. Each one pins answer keys and card together.
pub(super) const REVISION_1_0: &str = "bdae010bbce259820c0e34c1d7cce210d966fb75";
pub(super) const REVISION_1_1: &str = "9a77ef56b717057ade24ceab4d273712a0b4f19e";

pub(super) const DOCUMENTS: &str = "documents_text";
pub(super) const QUESTION: &str = "question";
pub(super) const OFFICIAL_ANSWER: &str = "official_answer";
pub(super) const CANDIDATE_ANSWER: &str = "candidate_answer";

const JUDGE_SLOTS: [&str; 3] = [QUESTION, OFFICIAL_ANSWER, CANDIDATE_ANSWER];

pub(super) static TEMPLATES_1_0: [TemplateSpec; 1] = [card(REVISION_1_0)];
pub(super) static TEMPLATES_1_1: [TemplateSpec; 1] = [card(REVISION_1_1)];

const fn card(commit: &'static str) -> TemplateSpec {
    TemplateSpec {
        name: CARD,
        role: TemplateRole::Wording,
        origin: TemplateOrigin::Hub { id: DATASET, commit, path: PATH },
        part: TemplatePart::Whole,
        sha256: None,
    }
}

/// The markers are the protocol's; the sentence is this program's.
const OWN_PROMPT: &str = "\
BEGIN INPUT DOCUMENTS

{documents_text}

END INPUT DOCUMENTS

The question below is about these documents. Find its answer in them.

START QUESTION

{question}

END QUESTION
";

const OWN_JUDGE_1_0: &str = "\
Decide whether a candidate's answer to a question is CORRECT or INCORRECT. It is correct when it agrees with the \
official answer.

The question, only so that you know what is being answered: {question}
The OFFICIAL ANSWER: {official_answer}
CANDIDATE ANSWER TO ASSESS: {candidate_answer}

Your whole reply is one word, CORRECT or INCORRECT.";

const OWN_JUDGE_SYSTEM: &str = "\
You compare a candidate's answer to a question with the official answer. Four rules:

- A value in another notation is the same value: a percentage and its fraction, percentage points, thousands and \
millions, separators, currency signs, LaTeX, numbers in words.
- Where the question demands a form (a unit, a number of places, a rounding, an order), the candidate's answer must \
have it. Where it demands none, any equal form will do.
- Where a sorted list is asked for, titles, honorifics and articles that the candidate adds may move an entry. A list \
that is sorted with them or without them is right.
- What counts is the value that the candidate finally settles on, and there must be one. Values on the way to it do \
not count, and several values without a choice are wrong even if one of them is right. Doubts do no harm when the \
answer is clear.";

const OWN_JUDGE_1_1: &str = "\
Decide whether the candidate's answer is CORRECT or INCORRECT. It is correct when it agrees with the official answer.

START QUESTION

{question}

END QUESTION

The official answer: {official_answer}

END OFFICIAL ANSWER

BEGIN CANDIDATE ANSWER TO ASSESS

{candidate_answer}

END CANDIDATE ANSWER TO ASSESS

Reply with a JSON object whose only key is verdict and whose value is CORRECT or INCORRECT.";

/// Texts for a judge: an optional system message and the user message.
pub(super) struct JudgeTexts<'a> {
    source: TemplateSource,
    pub(super) system: Option<&'a str>,
    pub(super) user: &'a str,
}

impl JudgeTexts<'_> {
    pub(super) fn template(&self) -> Template {
        let parts: Vec<&str> = self.system.into_iter().chain([self.user]).collect();
        Template::new(self.source, &parts)
    }
}

/// Returns the prompt around documents and question, with its origin.
pub(super) fn prompt(templates: &Templates) -> (TemplateSource, &str) {
    let official = templates.get(CARD).and_then(|card| official_prompt(card));
    official.map_or((TemplateSource::Own, OWN_PROMPT), |text| (TemplateSource::Official, text))
}

/// Returns the judge's texts of version 1.0, which has no system message.
pub(super) fn judge_1_0(templates: &Templates) -> JudgeTexts<'_> {
    let blocks = templates.get(CARD).map(|card| blocks(card)).unwrap_or_default();
    let user = blocks.into_iter().find(|block| has_slots(block, &JUDGE_SLOTS) && !asks_for_json(block));
    match user {
        Some(user) => JudgeTexts { source: TemplateSource::Official, system: None, user },
        None => JudgeTexts { source: TemplateSource::Own, system: None, user: OWN_JUDGE_1_0 },
    }
}

/// Returns the judge's texts of version 1.1. Either both messages are official or neither is, because they depend on
/// each other.
pub(super) fn judge_1_1(templates: &Templates) -> JudgeTexts<'_> {
    let blocks = templates.get(CARD).map(|card| blocks(card)).unwrap_or_default();
    let user = blocks.iter().position(|block| has_slots(block, &JUDGE_SLOTS) && asks_for_json(block));
    // The rules are in the nearest block, before or after, that mentions both answers and has no slots.
    let is_rules = |block: &&&str| {
        let text = block.to_uppercase();
        text.contains("OFFICIAL ANSWER") && text.contains("CANDIDATE ANSWER") && !block.contains('{')
    };
    let rules = user.and_then(|at| {
        let (before, rest) = blocks.split_at(at);
        before.iter().rev().find(is_rules).or_else(|| rest.iter().find(is_rules))
    });
    match (rules, user.and_then(|at| blocks.get(at))) {
        (Some(system), Some(user)) => {
            JudgeTexts { source: TemplateSource::Official, system: Some(system), user }
        }
        _ => JudgeTexts { source: TemplateSource::Own, system: Some(OWN_JUDGE_SYSTEM), user: OWN_JUDGE_1_1 },
    }
}

/// Returns true if a message asks for JSON. The reply format is the one certain difference between the versions'
/// messages.
fn asks_for_json(message: &str) -> bool {
    message.to_uppercase().contains("JSON")
}

/// Returns the string literal of a Python block that has the slots for documents and question.
fn official_prompt(card: &str) -> Option<&str> {
    blocks(card).into_iter().find_map(|block| {
        // Every second part of a split at `"""` is inside a literal.
        let mut literals = block.split("\"\"\"").skip(1).step_by(2);
        literals.find(|text| has_slots(text, &[DOCUMENTS, QUESTION]))
    })
}

/// Returns the fenced blocks of a Markdown text, trimmed.
fn blocks(markdown: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut start = None;
    let mut at = 0;
    for line in markdown.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        match start {
            None if is_fence => start = Some(at + line.len()),
            Some(from) if is_fence && line.trim().chars().all(|c| c == '`') => {
                blocks.extend(markdown.get(from..at).map(str::trim));
                start = None;
            }
            _ => {}
        }
        at += line.len();
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates_with(card: &str) -> Templates {
        Templates::from([(CARD.to_owned(), card.to_owned())])
    }

    const PYTHON: &str =
        "```python\ntext = 1\nprompt = \"\"\"DOCS\n{documents_text}\nASK {question}\n\"\"\"\n```\n";

    #[test]
    fn a_card_of_version_1_0_has_prompt_and_judge() {
        let card = format!(
            "# Card\n\n```json\n{{\"a\": 1}}\n```\n{PYTHON}## Scoring\n\n```\nIs it? {{question}} {{official_answer}} {{candidate_answer}}\n\n```\nend"
        );
        let templates = templates_with(&card);
        assert_eq!(
            prompt(&templates),
            (TemplateSource::Official, "DOCS\n{documents_text}\nASK {question}\n")
        );
        let judge = judge_1_0(&templates);
        assert_eq!(judge.user, "Is it? {question} {official_answer} {candidate_answer}");
        assert_eq!((judge.source, judge.system), (TemplateSource::Official, None));
        // Version 1.1 also needs rules, which this card doesn't have.
        assert_eq!(judge_1_1(&templates).source, TemplateSource::Own);
    }

    #[test]
    fn the_rules_of_version_1_1_are_found_before_or_after_the_message() {
        let rules = "```text\nCompare the CANDIDATE ANSWER with the OFFICIAL ANSWER.\n- one\n```\n";
        let message = "```\n{question} {official_answer} {candidate_answer} as JSON\n```\n";
        let old = "```\n{question} {official_answer} {candidate_answer}\n```\n";
        for card in [
            format!("System prompt:\n\n{rules}\nUser prompt:\n\n{message}"),
            format!("{message}and before it\n{rules}"),
            format!("{PYTHON}```\n- unrelated\n```\n{old}{rules}{message}"),
        ] {
            let templates = templates_with(&card);
            let judge = judge_1_1(&templates);
            assert_eq!(
                judge.system,
                Some("Compare the CANDIDATE ANSWER with the OFFICIAL ANSWER.\n- one"),
                "{card}"
            );
            assert_eq!(judge.user, "{question} {official_answer} {candidate_answer} as JSON");
        }
    }

    #[test]
    fn without_the_blocks_our_own_texts_are_used() {
        for card in
            ["", "```\n{question} {official_answer}\n```", "```\n{documents_text} never closed {question}"]
        {
            let templates = templates_with(card);
            assert_eq!(prompt(&templates).0, TemplateSource::Own);
            assert_eq!(judge_1_0(&templates).source, TemplateSource::Own);
            assert_eq!(judge_1_1(&templates).source, TemplateSource::Own);
        }
        assert!(has_slots(OWN_PROMPT, &[DOCUMENTS, QUESTION]));
        for own in [OWN_JUDGE_1_0, OWN_JUDGE_1_1] {
            assert!(has_slots(own, &JUDGE_SLOTS));
        }
    }
}
