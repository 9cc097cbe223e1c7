//! The body of a sample: what was asked and what came back.

use serde::{Deserialize, Serialize};

use crate::{Answer, JobReport, Prompt};

/// Stored compressed in the blob store, before anything else is done with the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleBody {
    /// The item.
    pub item_id: String,
    /// What the model was shown; of an item that takes several questions, the last one.
    pub prompt: Prompt,
    /// What it answered, to that.
    pub answer: Answer,
    /// The answer that the dataset holds for right.
    pub expected: String,
    /// What a judge was asked about the answer and replied; `None` before that and where no judge is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
    /// All questions and answers of an item that takes several, in order, the last one included; empty for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What came of running the answer in a sandbox; `None` before that and where nothing is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

impl SampleBody {
    /// An answer to one question, nothing done with it yet.
    pub fn new(
        item_id: impl Into<String>,
        prompt: Prompt,
        answer: Answer,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            item_id: item_id.into(),
            prompt,
            answer,
            expected: expected.into(),
            judgement: None,
            steps: Vec::new(),
            execution: None,
        }
    }
}

/// One question of an item that takes several, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What the dataset calls it.
    pub name: String,
    /// What the model was shown.
    pub prompt: Prompt,
    /// What it answered.
    pub answer: Answer,
}

/// What came of running an answer in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// Which sandbox of the sample it was, from 1.
    pub round: u32,
    /// What the job left behind.
    pub report: JobReport,
}

/// A judge's reply to one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The judge, with its provider.
    pub model: String,
    /// What the judge was shown.
    pub prompt: Prompt,
    /// What it replied.
    pub reply: Answer,
}
