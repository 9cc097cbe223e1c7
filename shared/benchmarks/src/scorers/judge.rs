//! What a judge is asked about an answer, and what its reply says.

use bench_domain::{Answer, Generation, Prompt, Verdict};
use bench_items::Item;
use serde::Serialize;
use serde_json::Value;

use crate::facts::{Template, serialize_generation};
use crate::item_problem::ItemProblem;
use crate::material::Templates;

/// What does not change about the judging of a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct JudgeFacts {
    /// The judge of the official protocol, as its authors name it.
    pub official_model: &'static str,
    /// Settings of its replies unless a run says otherwise.
    #[serde(serialize_with = "serialize_generation")]
    pub generation: fn() -> Generation,
    /// How often a reply that holds no verdict is asked for again before the sample ends without one.
    pub replies_max: u32,
    /// What a verdict is, in one sentence.
    pub verdict: &'static str,
}

/// A reply that holds no verdict: nothing can be said about the answer yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no verdict: {0}")]
pub struct NoVerdict(pub String);

/// How answers to a benchmark are judged. Pure functions: who asks the judge is not known here.
pub trait Judge: Send + Sync {
    /// What it is.
    fn facts(&self) -> &'static JudgeFacts;

    /// The text around question and answer in the judge's prompt.
    fn template(&self, templates: &Templates) -> Template;

    /// JSON schema of the reply, for judges that can be bound to one.
    fn reply_schema(&self) -> Option<Value> {
        None
    }

    /// What the judge is shown.
    ///
    /// # Errors
    /// When the item is not as its dataset promises.
    fn prompt(&self, item: &Item, answer: &Answer, templates: &Templates) -> Result<Prompt, ItemProblem>;

    /// The verdict in a reply.
    ///
    /// # Errors
    /// [`NoVerdict`] for every reply that is not one in the form of the protocol.
    fn read(&self, item: &Item, answer: &Answer, reply: &Answer) -> Result<Verdict, NoVerdict>;

    /// The reply of a judge without a model: it compares with the gold answer, in the form of the protocol.
    fn oracle(&self, item: &Item, answer: &Answer) -> String;
}
