//! Judges of both versions, which check whether two answers are equal.

use bench_domain::{Answer, ChatMessage, Generation, Prompt, Role, Verdict};
use bench_items::Item;
use serde_json::{Map, Value, json};

use super::card::{self, JudgeTexts};
use super::{Version, verdict};
use crate::columns::{number, text, text_or_number};
use crate::grading::shorten;
use crate::item_problem::ItemProblem;
use crate::material::Templates;
use crate::metadata::Template;
use crate::prompts::fill;
use crate::scorers::judge::{Judge, JudgeMetadata, NoVerdict};
use crate::scorers::judged::{contains_gold, note_truncation};

/// Maximum number of characters of an answer that are kept with the verdict.
const EXTRACTED_CHARS_MAX: usize = 300;

/// Judge of one version.
#[derive(Debug, Clone, Copy)]
pub(super) struct LcrJudge(pub(super) Version);

static METADATA_1_0: JudgeMetadata = JudgeMetadata {
    official_model: "Qwen3 235B A22B 2507, without reasoning",
    generation: || Generation { temperature: Some(0.0), ..Generation::default() },
    replies_max: 5,
    verdict: "The word CORRECT or INCORRECT in any case of letters; both of them, a denied one or none is no verdict.",
};

static METADATA_1_1: JudgeMetadata = JudgeMetadata {
    official_model: "GPT-5.6 Luna, reasoning effort medium",
    generation: Generation::default,
    replies_max: 10,
    verdict: "A JSON object with the one key verdict, CORRECT or INCORRECT in any case of letters; anything else is no \
              verdict.",
};

impl LcrJudge {
    fn texts(self, templates: &Templates) -> JudgeTexts<'_> {
        match self.0 {
            Version::V1_0 => card::judge_1_0(templates),
            Version::V1_1 => card::judge_1_1(templates),
        }
    }
}

impl Judge for LcrJudge {
    fn metadata(&self) -> &'static JudgeMetadata {
        match self.0 {
            Version::V1_0 => &METADATA_1_0,
            Version::V1_1 => &METADATA_1_1,
        }
    }

    fn template(&self, templates: &Templates) -> Template {
        self.texts(templates).template()
    }

    fn reply_schema(&self) -> Option<Value> {
        let schema = || {
            json!({
                "type": "object",
                "properties": { "verdict": { "type": "string", "enum": ["CORRECT", "INCORRECT"] } },
                "required": ["verdict"],
                "additionalProperties": false,
            })
        };
        (self.0 == Version::V1_1).then(schema)
    }

    fn prompt(&self, item: &Item, answer: &Answer, templates: &Templates) -> Result<Prompt, ItemProblem> {
        let texts = self.texts(templates);
        let slots = [
            (card::QUESTION, text(&item.row, "question")?),
            (card::OFFICIAL_ANSWER, &text_or_number(&item.row, "answer")?),
            (card::CANDIDATE_ANSWER, &answer.text),
        ];
        let user = ChatMessage::new(Role::User, fill(texts.user, &slots));
        let system = texts.system.map(|system| ChatMessage::new(Role::System, system));
        Ok(Prompt { messages: system.into_iter().chain([user]).collect() })
    }

    fn read(&self, item: &Item, answer: &Answer, reply: &Answer) -> Result<Verdict, NoVerdict> {
        let correct = match self.0 {
            Version::V1_0 => verdict::read_1_0(&reply.text),
            Version::V1_1 => verdict::read_1_1(&reply.text),
        }
        .map_err(NoVerdict)?;
        let extracted = shorten(answer.text.trim(), EXTRACTED_CHARS_MAX);
        let mut verdict = match correct {
            true => Verdict::correct(extracted),
            false => {
                let reason = "The judge found that the answer does not agree with the official one.";
                Verdict::incorrect(extracted, reason)
            }
        };
        verdict.detail = detail(item, self.0);
        note_truncation(&mut verdict.detail, answer);
        Ok(verdict)
    }

    fn oracle(&self, item: &Item, answer: &Answer) -> String {
        let gold = text_or_number(&item.row, "answer").unwrap_or_default();
        let verdict = if contains_gold(&answer.text, &gold) { "CORRECT" } else { "INCORRECT" };
        match self.0 {
            Version::V1_0 => verdict.to_owned(),
            Version::V1_1 => json!({ "verdict": verdict }).to_string(),
        }
    }
}

/// Returns the details that every verdict records. Answer keys and rules differ between versions, and long prompts fail
/// more often.
pub(super) fn detail(item: &Item, version: Version) -> Map<String, Value> {
    let mut detail = Map::new();
    detail.insert("version".into(), json!(version.as_str()));
    if let Ok(Some(tokens)) = number(&item.row, super::INPUT_TOKENS) {
        detail.insert(super::INPUT_TOKENS.into(), json!(tokens));
    }
    detail
}
