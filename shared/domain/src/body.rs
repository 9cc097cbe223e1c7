//! Body of a sample: prompts, answers, and the results of grading.

use serde::{Deserialize, Serialize};

use crate::{Answer, EpisodeReport, JobReport, Prompt, VerificationReport};

/// Body of a sample, stored compressed in the blob store before the answer is processed further.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleBody {
    /// Id of the item.
    pub item_id: String,
    /// Prompt of the question; for an item with several steps, of the last one.
    pub prompt: Prompt,
    /// Answer to that prompt.
    pub answer: Answer,
    /// Correct answer according to the dataset.
    pub expected: String,
    /// The judge's prompt and reply; `None` before judging, and if the benchmark needs no judge.
    #[serde(default, rename = "judgement", skip_serializing_if = "Option::is_none")]
    pub judge_reply: Option<JudgeReply>,
    /// All questions and answers of an item with several steps, in order, the last one included. Empty for other items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Result of running the answer in a sandbox; `None` before that, and if the benchmark runs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// Result of an agent's work on a terminal task; `None` before its end, and for other benchmarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<EpisodeReport>,
    /// Result of verifying the answer in a container; `None` before that, and for other benchmarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationReport>,
}

impl SampleBody {
    /// Creates a body with an answer to one question, before any grading.
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
            judge_reply: None,
            steps: Vec::new(),
            execution: None,
            episode: None,
            verification: None,
        }
    }
}

/// One question of an item with several steps, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the step in the dataset.
    pub name: String,
    /// Prompt of the question.
    pub prompt: Prompt,
    /// The model's answer.
    pub answer: Answer,
}

/// Result of running an answer in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// Number of the sample's sandbox, from 1.
    pub round: u32,
    /// Output of the job.
    pub report: JobReport,
}

/// A judge's reply to one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeReply {
    /// Name of the judge, with its provider.
    pub model: String,
    /// Prompt of the judge.
    pub prompt: Prompt,
    /// The judge's reply.
    pub reply: Answer,
}
