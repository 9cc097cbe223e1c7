//! Prompts for model and judge: the constants on the dataset's card, or this program's own texts with the same
//! contract.

use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec};

use crate::material::Templates;
use crate::metadata::{Template, TemplateSource};
use crate::prompts::has_slots;

pub(super) const DATASET: &str = "ArtificialAnalysis/AA-Omniscience-Public";
pub(super) const REVISION: &str = "4a8ffc87c4650054825fb767fe0da4a4fc97ff32";

const ANSWER: &str = "answer";
const GRADER: &str = "grader";

pub(super) const DOMAIN: &str = "domain";
pub(super) const TOPIC: &str = "topic";
pub(super) const QUESTION: &str = "question";
pub(super) const TARGET: &str = "target";
pub(super) const PREDICTED_ANSWER: &str = "predicted_answer";

pub(super) static TEMPLATES: [TemplateSpec; 2] =
    [constant(ANSWER, "OMNISCIENCE_ANSWER_PROMPT"), constant(GRADER, "OMNISCIENCE_GRADER_TEMPLATE")];

const fn constant(name: &'static str, constant: &'static str) -> TemplateSpec {
    TemplateSpec {
        name,
        role: TemplateRole::Wording,
        origin: TemplateOrigin::Hub { id: DATASET, commit: REVISION, path: "README.md" },
        part: TemplatePart::PythonConstant(constant),
        sha256: None,
    }
}

const OWN_ANSWER: &str = "\
The questions are about {domain}, in particular about {topic}.
Reply with the answer alone, without an explanation.
If you do not know it, or would need more context or a tool to find it, say so plainly: that is better than a wrong \
answer.";

const OWN_GRADER: &str = "\
Compare a predicted answer with the right one and grade it with one letter:

A (CORRECT): it says what the right answer says, or something equivalent.
B (INCORRECT): it contradicts the right answer or means something else, also when it is less than was asked for.
C (PARTIAL_ANSWER): it does not contradict the right answer, but is at another level of detail than was asked for, \
such as more digits than the right answer has.
D (NOT_ATTEMPTED): it is empty, declines, says that it does not know, or asks for context or tools, even if it names \
candidates.

Rules:
- A number must agree to the last significant figure of the right answer. Numbers that are names, such as a version or \
a section, must agree exactly.
- The right answer may hold more than the question asks for; only what was asked for is needed.
- What the question makes plain may be left out: a unit that it names, the rest of a name, the word award.
- Misspelt names are fine while it is clear who is meant.
- Code is correct when it does the same under other names.

Question: {question}
Right answer: {target}
Predicted answer: {predicted_answer}

Reply with the letter A, B, C or D and nothing else.";

/// Returns the system message, which has slots for domain and topic, with its origin.
pub(super) fn answer(templates: &Templates) -> (TemplateSource, &str) {
    let official = templates.get(ANSWER).map(|text| text.trim());
    let fits = |text: &&str| has_slots(text, &[DOMAIN, TOPIC]);
    official.filter(fits).map_or((TemplateSource::Own, OWN_ANSWER), |text| (TemplateSource::Official, text))
}

/// Returns the judge's message, which has three slots, with its origin.
pub(super) fn grader(templates: &Templates) -> (TemplateSource, &str) {
    let official = templates.get(GRADER).map(|text| text.trim());
    let fits = |text: &&str| has_slots(text, &[QUESTION, TARGET, PREDICTED_ANSWER]);
    official.filter(fits).map_or((TemplateSource::Own, OWN_GRADER), |text| (TemplateSource::Official, text))
}

pub(super) fn template((source, text): (TemplateSource, &str)) -> Template {
    Template::new(source, &[text])
}
