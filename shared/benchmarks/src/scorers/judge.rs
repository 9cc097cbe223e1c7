//! Judges: prompts about an answer, and verdicts read from the replies.

use bench_domain::{Answer, Generation, Prompt, Verdict};
use bench_items::Item;
use serde::Serialize;
use serde_json::Value;

use crate::item_problem::ItemProblem;
use crate::material::Templates;
use crate::metadata::{Template, serialize_generation};

/// Constant properties of a benchmark's judge.
#[derive(Debug, Clone, Serialize)]
pub struct JudgeMetadata {
    /// Model of the official protocol's judge, as its authors name it.
    pub official_model: &'static str,
    /// Default generation settings of the judge.
    #[serde(serialize_with = "serialize_generation")]
    pub generation: fn() -> Generation,
    /// Maximum number of replies to request before the sample ends without a verdict.
    pub replies_max: u32,
    /// Description of a valid verdict, in one sentence.
    pub verdict: &'static str,
}

/// A reply without a verdict. The answer can't be graded yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no verdict: {0}")]
pub struct NoVerdict(pub String);

/// Protocol for judging a benchmark's answers. All functions are pure; callers send the prompts.
pub trait Judge: Send + Sync {
    /// Returns the description of the judge.
    fn metadata(&self) -> &'static JudgeMetadata;

    /// Returns the texts around question and answer in the judge's prompt.
    fn template(&self, templates: &Templates) -> Template;

    /// Returns the JSON schema of the reply, for judges that support structured output.
    fn reply_schema(&self) -> Option<Value> {
        None
    }

    /// Returns the judge's prompt.
    ///
    /// # Errors
    /// Returns an error if the item doesn't match the format of its dataset.
    fn prompt(&self, item: &Item, answer: &Answer, templates: &Templates) -> Result<Prompt, ItemProblem>;

    /// Reads the verdict from a reply.
    ///
    /// # Errors
    /// Returns [`NoVerdict`] for every reply that doesn't have the form of the protocol.
    fn read(&self, item: &Item, answer: &Answer, reply: &Answer) -> Result<Verdict, NoVerdict>;

    /// Returns the reply that a correct judge would give, made by comparing the answer with the gold answer.
    fn oracle(&self, item: &Item, answer: &Answer) -> String;
}
