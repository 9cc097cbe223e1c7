//! The body of a sample: what was asked and what came back.

use serde::{Deserialize, Serialize};

use crate::{Answer, Prompt};

/// Stored compressed in the blob store, before anything else is done with the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleBody {
    /// The item.
    pub item_id: String,
    /// What the model was shown.
    pub prompt: Prompt,
    /// What it answered.
    pub answer: Answer,
    /// The answer that the dataset holds for right.
    pub expected: String,
}
