//! The publisher's judge, which returns one of four grades.

use bench_domain::{Answer, Generation, Prompt, Verdict};
use bench_items::Item;

use super::grade::Grade;
use super::prompt;
use crate::columns::{text, text_or_number};
use crate::grading::shorten;
use crate::item_problem::ItemProblem;
use crate::material::Templates;
use crate::metadata::Template;
use crate::prompts::fill;
use crate::scorers::judge::{Judge, JudgeMetadata, NoVerdict};
use crate::scorers::judged::contains_gold;

/// Maximum number of characters of a reply that an error message quotes.
const QUOTED_CHARS_MAX: usize = 60;

/// Judge of AA-Omniscience.
#[derive(Debug, Clone, Copy)]
pub(super) struct OmniscienceJudge;

static METADATA: JudgeMetadata = JudgeMetadata {
    official_model: "Gemini 2.5 Flash Preview (09-2025), with reasoning",
    generation: Generation::default,
    replies_max: 3,
    verdict: "One of the letters A (correct), B (incorrect), C (partial) and D (not attempted), also in lower case, in \
              quotes, emphasized or followed by a period; anything else is no verdict.",
};

impl Judge for OmniscienceJudge {
    fn metadata(&self) -> &'static JudgeMetadata {
        &METADATA
    }

    fn template(&self, templates: &Templates) -> Template {
        prompt::template(prompt::grader(templates))
    }

    fn prompt(&self, item: &Item, answer: &Answer, templates: &Templates) -> Result<Prompt, ItemProblem> {
        let slots = [
            (prompt::QUESTION, text(&item.row, "question")?),
            (prompt::TARGET, &text_or_number(&item.row, "answer")?),
            (prompt::PREDICTED_ANSWER, &answer.text),
        ];
        Ok(Prompt::user(fill(prompt::grader(templates).1, &slots)))
    }

    fn read(&self, _item: &Item, answer: &Answer, reply: &Answer) -> Result<Verdict, NoVerdict> {
        let grade = Grade::read(&reply.text).ok_or_else(|| {
            let quoted = shorten(reply.text.trim(), QUOTED_CHARS_MAX);
            NoVerdict(format!("it is not one of the letters A to D but {quoted:?}"))
        })?;
        Ok(grade.verdict(answer))
    }

    fn oracle(&self, item: &Item, answer: &Answer) -> String {
        let gold = text_or_number(&item.row, "answer").unwrap_or_default();
        let grade = if contains_gold(&answer.text, &gold) { Grade::Correct } else { Grade::Incorrect };
        grade.letter().to_string()
    }
}
