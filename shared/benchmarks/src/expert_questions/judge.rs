//! Judge that decides whether a reply gives the right answer.

use bench_domain::{Answer, Generation, Prompt, Verdict};
use bench_items::Item;
use serde_json::{Map, Value, json};

use crate::columns::{text, text_or_number};
use crate::grading::{self, ParserResult, shorten};
use crate::item_problem::ItemProblem;
use crate::material::Templates;
use crate::metadata::{Template, TemplateSource};
use crate::scorers::judge::{Judge, JudgeMetadata, NoVerdict};
use crate::scorers::judged::{contains_gold, json_object, note_truncation, strip_fence, strip_thoughts};

/// Maximum numbers of characters of an answer, a rationale and a reply that are kept or quoted.
const EXTRACTED_CHARS_MAX: usize = 300;
const RATIONALE_CHARS_MAX: usize = 1_000;
const QUOTED_CHARS_MAX: usize = 60;

const INSTRUCTION: &str = "Decide whether a reply to a question gives the right answer. PASS if it says the same as the right answer, whatever its wording, case or punctuation. FAIL if it says something else, several answers, or none. Judge the final answer only, not the way to it. Reply with one JSON object: {\"decision\": \"PASS\" or \"FAIL\", \"reason\": one sentence}.";

/// Judge of the expert questions.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpertJudge;

static METADATA: JudgeMetadata = JudgeMetadata {
    official_model: "none is named",
    generation: || Generation { temperature: Some(0.0), max_tokens: Some(4_096), ..Generation::default() },
    replies_max: 3,
    verdict: "PASS or FAIL, in JSON or as the first word.",
};

impl Judge for ExpertJudge {
    fn metadata(&self) -> &'static JudgeMetadata {
        &METADATA
    }

    fn template(&self, _templates: &Templates) -> Template {
        Template::new(TemplateSource::Own, &[INSTRUCTION])
    }

    fn prompt(&self, item: &Item, answer: &Answer, _templates: &Templates) -> Result<Prompt, ItemProblem> {
        let (question, right) = (text(&item.row, "prompt")?, text_or_number(&item.row, "answer")?);
        Ok(Prompt::user(format!(
            "{INSTRUCTION}\n\nQuestion:\n{question}\n\nRight answer:\n{right}\n\nReply:\n{}",
            answer.text
        )))
    }

    fn read(&self, _item: &Item, answer: &Answer, reply: &Answer) -> Result<Verdict, NoVerdict> {
        let text = strip_thoughts(&reply.text);
        let (decision, rationale) = read_decision(&text).ok_or_else(|| {
            let quoted = shorten(text.trim(), QUOTED_CHARS_MAX);
            NoVerdict(format!("it has neither PASS nor FAIL but {quoted:?}"))
        })?;
        let mut detail = Map::new();
        detail.insert("decision".into(), json!(if decision { "PASS" } else { "FAIL" }));
        detail.insert("rationale".into(), json!(shorten(&rationale, RATIONALE_CHARS_MAX)));
        note_truncation(&mut detail, answer);
        let extracted = Some(shorten(answer.text.trim(), EXTRACTED_CHARS_MAX));
        let reason = "The judge found that the answer is wrong.".to_owned();
        Ok(grading::verdict_for(answer, ParserResult { extracted, correct: decision, reason, detail }))
    }

    fn oracle(&self, item: &Item, answer: &Answer) -> String {
        let gold = text_or_number(&item.row, "answer").unwrap_or_default();
        let decision = if contains_gold(&answer.text, &gold) { "PASS" } else { "FAIL" };
        json!({ "decision": decision, "reason": "compared as words" }).to_string()
    }
}

/// Returns the decision and its rationale.
fn read_decision(reply: &str) -> Option<(bool, String)> {
    if let Ok(object) = json_object(strip_fence(reply)) {
        let text =
            |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        return decision(&text("decision")).map(|decision| (decision, text("reason")));
    }
    let line = reply.trim().lines().next().unwrap_or_default();
    let word = line.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    decision(word).map(|decision| (decision, line.trim().to_owned()))
}

fn decision(word: &str) -> Option<bool> {
    match word.to_ascii_uppercase().as_str() {
        "PASS" => Some(true),
        "FAIL" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_read_from_json_or_the_first_line() {
        for (reply, expected) in [
            (r#"{"decision": "PASS", "reason": "same"}"#, Some(true)),
            ("```json\n{\"decision\": \"fail\"}\n```", Some(false)),
            ("PASS: the same name\nmore", Some(true)),
            ("FAIL", Some(false)),
            (r#"{"decision": "maybe"}"#, None),
            ("The answer should PASS", None),
            ("PASSED", None),
            ("", None),
        ] {
            assert_eq!(read_decision(reply).map(|read| read.0), expected, "{reply:?}");
        }
    }
}
