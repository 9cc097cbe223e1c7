//! A question to a model.

use bench_domain::{Generation, Prompt};
use serde_json::Value;

/// What a model is asked, and how it should answer.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The provider's own id of the model.
    pub model: &'a str,
    /// What it is shown.
    pub prompt: &'a Prompt,
    /// How it should answer.
    pub generation: &'a Generation,
    /// JSON schema that the answer must follow; left out for servers that know no such thing, so whoever reads
    /// the answer checks it all the same.
    pub reply_schema: Option<&'a Value>,
}
