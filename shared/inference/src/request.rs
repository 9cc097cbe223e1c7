//! A question to a model.

use bench_domain::{Generation, Prompt};
use serde_json::Value;

/// A question to a model, with settings for the answer.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The provider's own id of the model.
    pub model: &'a str,
    /// Messages.
    pub prompt: &'a Prompt,
    /// Generation settings.
    pub generation: &'a Generation,
    /// JSON schema that the answer must follow. Left out for servers that don't support schemas, so callers must
    /// check the answer.
    pub reply_schema: Option<&'a Value>,
    /// Tools that the model may call, as a list of OpenAI's function schemas; the model chooses whether it calls any. An empty
    /// list or `None` offers none.
    pub tools: Option<&'a Value>,
    /// True if the next question continues this one, so that its beginning is worth caching.
    pub is_continued: bool,
}
