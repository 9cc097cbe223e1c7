//! Official judge: extracts answer and confidence, and compares the answer with the gold answer.

use bench_domain::{Answer, Generation, Prompt, Verdict};
use bench_items::Item;
use serde_json::{Map, Number, Value, json};

use super::prompt;
use crate::columns::{text, text_or_number};
use crate::grading::shorten;
use crate::item_problem::ItemProblem;
use crate::material::Templates;
use crate::metadata::Template;
use crate::prompts::fill;
use crate::scorers::judge::{Judge, JudgeMetadata, NoVerdict};
use crate::scorers::judged::{contains_gold, json_object, note_truncation, strip_fence};

/// Maximum number of characters of the judge's reasoning kept with the verdict. The stored reply has all of it.
const REASONING_CHARS_MAX: usize = 1000;
/// Maximum number of characters of the extracted answer kept with the verdict.
const EXTRACTED_CHARS_MAX: usize = 300;

/// Judge of Humanity's Last Exam. It doesn't see the images.
#[derive(Debug, Clone, Copy)]
pub(super) struct HleJudge;

static METADATA: JudgeMetadata = JudgeMetadata {
    official_model: "o3-mini-2025-01-31",
    generation: || Generation { max_tokens: Some(4096), ..Generation::default() },
    replies_max: 3,
    verdict: "A JSON object with extracted_final_answer, reasoning, correct (exactly yes or no) and confidence; \
              anything else is no verdict.",
};

impl Judge for HleJudge {
    fn metadata(&self) -> &'static JudgeMetadata {
        &METADATA
    }

    fn template(&self, templates: &Templates) -> Template {
        prompt::template(prompt::judge(templates))
    }

    fn reply_schema(&self) -> Option<Value> {
        Some(json!({
            "type": "object",
            "properties": {
                "extracted_final_answer": { "type": "string" },
                "reasoning": { "type": "string" },
                "correct": { "type": "string", "enum": ["yes", "no"] },
                "confidence": { "type": "integer" },
                "strict": { "type": "boolean", "const": true },
            },
            "required": ["extracted_final_answer", "reasoning", "correct", "confidence", "strict"],
            "additionalProperties": false,
        }))
    }

    fn prompt(&self, item: &Item, answer: &Answer, templates: &Templates) -> Result<Prompt, ItemProblem> {
        let slots = [
            (prompt::QUESTION, text(&item.row, "question")?),
            (prompt::RESPONSE, &answer.text),
            (prompt::CORRECT_ANSWER, &text_or_number(&item.row, "answer")?),
        ];
        Ok(Prompt::user(fill(prompt::judge(templates).1, &slots)))
    }

    fn read(&self, _item: &Item, answer: &Answer, reply: &Answer) -> Result<Verdict, NoVerdict> {
        let object = json_object(strip_fence(&reply.text)).map_err(NoVerdict)?;
        let extracted = shorten(member_text(&object, "extracted_final_answer")?, EXTRACTED_CHARS_MAX);
        let reasoning = shorten(member_text(&object, "reasoning")?, REASONING_CHARS_MAX);
        let confidence = object.get("confidence").and_then(percent);
        let confidence =
            confidence.ok_or_else(|| NoVerdict("`confidence` is not a whole number".to_owned()))?;
        // `strict` only confirms that the judge followed the schema. Judges that can't be bound to a schema leave it
        // out.
        if object.get("strict").is_some_and(|strict| *strict != Value::Bool(true)) {
            return Err(NoVerdict("`strict` is not true".to_owned()));
        }
        let mut verdict = match object.get("correct").and_then(Value::as_str) {
            Some("yes") => Verdict::correct(extracted.clone()),
            Some("no") => {
                Verdict::incorrect(extracted.clone(), "The judge found that the answer is not the right one.")
            }
            _ => return Err(NoVerdict("`correct` is neither yes nor no".to_owned())),
        };
        verdict.detail.insert("confidence".into(), json!(confidence));
        verdict.detail.insert("extracted_final_answer".into(), json!(extracted));
        verdict.detail.insert("reasoning".into(), json!(reasoning));
        note_truncation(&mut verdict.detail, answer);
        Ok(verdict)
    }

    fn oracle(&self, item: &Item, answer: &Answer) -> String {
        let gold = text_or_number(&item.row, "answer").unwrap_or_default();
        let correct = contains_gold(&answer.text, &gold);
        json!({
            "extracted_final_answer": if correct { gold.as_str() } else { "None" },
            "reasoning": "The words of the right answer were looked for in the response.",
            "correct": if correct { "yes" } else { "no" },
            "confidence": stated_confidence(&answer.text),
            "strict": true,
        })
        .to_string()
    }
}

fn member_text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, NoVerdict> {
    object.get(name).and_then(Value::as_str).ok_or_else(|| NoVerdict(format!("`{name}` is not a string")))
}

/// Reads a whole number as the official reader does, also in forms such as `85.0` and `"85"`, and clamps it to 0 to
/// 100.
fn percent(value: &Value) -> Option<u8> {
    let number = match value {
        Value::Number(number) => number.clone(),
        Value::String(text) => text.trim().parse::<Number>().ok()?,
        _ => return None,
    };
    let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
    Some(number.clamp(0.0, 100.0) as u8)
}

/// Returns the number after the last label `Confidence:`, or 100 if there is none.
fn stated_confidence(answer: &str) -> u8 {
    let stated = answer.rsplit_once("Confidence:").map(|(_, stated)| stated.trim_start());
    let digits = stated.map(|stated| stated.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    digits.and_then(|digits| digits.parse::<u8>().ok()).unwrap_or(100).min(100)
}
