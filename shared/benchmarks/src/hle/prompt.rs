//! Prompts for model and judge: the official texts if they could be loaded, or this program's own with the same
//! contract.

use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec};

use crate::material::Templates;
use crate::metadata::{Template, TemplateSource};
use crate::prompts::has_slots;

const REPOSITORY: &str = "centerforaisafety/hle";
const COMMIT: &str = "87c92ead95bdd49d0598a3e16e926932bb0d12cc";

const SYSTEM: &str = "system";
const JUDGE: &str = "judge";

pub(super) const QUESTION: &str = "question";
pub(super) const RESPONSE: &str = "response";
pub(super) const CORRECT_ANSWER: &str = "correct_answer";

pub(super) static TEMPLATES: [TemplateSpec; 2] = [
    TemplateSpec {
        name: SYSTEM,
        role: TemplateRole::Wording,
        origin: TemplateOrigin::GitHub {
            repository: REPOSITORY,
            commit: COMMIT,
            path: "hle_eval/run_model_predictions.py",
        },
        part: TemplatePart::PythonConstant("SYSTEM_PROMPT"),
        sha256: Some("40f399fe8c277e2cb98ad8ca663461141d1abbf01a18da3c4129eccc706b4326"),
    },
    TemplateSpec {
        name: JUDGE,
        role: TemplateRole::Wording,
        origin: TemplateOrigin::GitHub {
            repository: REPOSITORY,
            commit: COMMIT,
            path: "hle_eval/run_judge_results.py",
        },
        part: TemplatePart::PythonConstant("JUDGE_PROMPT"),
        sha256: Some("0f0023ee579b8c134f1834ed8952778b9e01460e31d47c242ee3629da9d44835"),
    },
];

/// The labels are the protocol's; the wording is this program's.
const OWN_SYSTEM: &str = "\
Reply in three labelled lines and nothing else:
Explanation: why you chose your answer
Answer: the answer that you chose
Confidence: how sure you are of it, as a percentage from 0% to 100%";

/// Fields and rules are the protocol's; the wording is this program's.
const OWN_JUDGE: &str = "\
A response to a question is to be compared with the answer that is known to be right.

Question:
{question}

Response:
{response}

Right answer:
{correct_answer}

Reply with one JSON object of these fields:
- extracted_final_answer: the final answer that the response commits to, as it stands there; the text None when it \
commits to none.
- reasoning: whether the extracted answer and the right answer mean the same, and where they differ. Do not solve the \
question, do not discuss its background and do not defend any answer but the right one.
- correct: the text yes when the extracted answer is the right one, or a number within a small margin of it; the text \
no in every other case, also when it is ambiguous or only partly the same.
- confidence: the percentage from 0 to 100 that the response gives for its confidence, as a whole number; 100 when it \
gives none.
- strict: always true.";

/// Returns the system message with its origin.
pub(super) fn system(templates: &Templates) -> (TemplateSource, &str) {
    match templates.get(SYSTEM) {
        Some(text) if !text.trim().is_empty() => (TemplateSource::Official, text),
        _ => (TemplateSource::Own, OWN_SYSTEM),
    }
}

/// Returns the judge's message, which has three slots, with its origin.
pub(super) fn judge(templates: &Templates) -> (TemplateSource, &str) {
    match templates.get(JUDGE) {
        Some(text) if has_slots(text, &[QUESTION, RESPONSE, CORRECT_ANSWER]) => {
            (TemplateSource::Official, text)
        }
        _ => (TemplateSource::Own, OWN_JUDGE),
    }
}

pub(super) fn template((source, text): (TemplateSource, &str)) -> Template {
    Template::new(source, &[text])
}
