//! The judge.

use bench_domain::RunId;
use bench_domain::run::{JudgeSpec, JudgeUse, RejudgedRun};
use serde::Serialize;
use utoipa::ToSchema;

/// The judge that a benchmark of a run used, exactly.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JudgeView {
    /// The judge, with its provider.
    pub model: String,
    /// Host of the judge's base URL, with the port unless it is the scheme's default; null for the oracle and in runs
    /// of older versions.
    pub endpoint_host: Option<String>,
    /// Version of the judging: 1 unless answers were judged again.
    pub version: u32,
    /// Digest of the judge's prompt template.
    pub prompt_digest: String,
    /// Where that template came from: `official` or `own`.
    pub prompt_source: String,
    /// Randomness of its replies; null leaves it to the provider, like the next two.
    pub temperature: Option<f64>,
    /// Seed of the provider's sampler.
    pub seed: Option<i64>,
    /// Upper bound of a reply in tokens.
    pub max_tokens: Option<u32>,
}

impl From<&JudgeUse> for JudgeView {
    fn from(judge: &JudgeUse) -> Self {
        Self {
            model: judge.model.clone(),
            endpoint_host: judge.endpoint_host.clone(),
            version: judge.version,
            prompt_digest: judge.prompt_digest.clone(),
            prompt_source: judge.prompt_source.clone(),
            temperature: judge.generation.temperature,
            seed: judge.generation.seed,
            max_tokens: judge.generation.max_tokens,
        }
    }
}

/// The judge of a run as it was ordered.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JudgeOrderView {
    /// The judge, with its provider.
    pub model: String,
    /// Randomness of its replies; null leaves it to the benchmark, like the next two.
    pub temperature: Option<f64>,
    /// Seed of the provider's sampler.
    pub seed: Option<i64>,
    /// Upper bound of a reply in tokens.
    pub max_tokens: Option<u32>,
}

impl From<&JudgeSpec> for JudgeOrderView {
    fn from(judge: &JudgeSpec) -> Self {
        Self {
            model: judge.model.qualified(),
            temperature: judge.generation.temperature,
            seed: judge.generation.seed,
            max_tokens: judge.generation.max_tokens,
        }
    }
}

/// Whose answers were judged again, and which time that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejudgesView {
    /// The run that asked the model.
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    /// Version of the judging, from 2.
    pub version: u32,
}

impl From<RejudgedRun> for RejudgesView {
    fn from(RejudgedRun { run, version }: RejudgedRun) -> Self {
        Self { run, version }
    }
}
