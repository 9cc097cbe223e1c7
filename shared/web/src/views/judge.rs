//! The judge.

use bench_domain::RunId;
use bench_domain::run::{JudgeSpec, JudgeUse, RejudgedRun};
use serde::Serialize;
use utoipa::ToSchema;

/// Judge of a benchmark in a run, with the settings that were used.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JudgeView {
    /// Model of the judge, with its provider.
    pub model: String,
    /// Host of the judge's base URL, with the port unless it is the scheme's default; null for the oracle and in runs
    /// of older versions.
    pub endpoint_host: Option<String>,
    /// Number of the judging: 1 unless the answers were judged again.
    pub version: u32,
    /// Digest of the judge's prompt template.
    pub prompt_digest: String,
    /// Source of that template: `official` or `own`.
    pub prompt_source: String,
    /// Temperature of its replies; null leaves it to the provider.
    pub temperature: Option<f64>,
    /// Seed of the provider's sampler; null leaves it to the provider.
    pub seed: Option<i64>,
    /// Maximum length of a reply in tokens; null leaves it to the provider.
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

/// Judge of a run, as ordered.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JudgeOrderView {
    /// Model of the judge, with its provider.
    pub model: String,
    /// Temperature of its replies; null uses the protocol's.
    pub temperature: Option<f64>,
    /// Seed of the provider's sampler; null uses the protocol's.
    pub seed: Option<i64>,
    /// Maximum length of a reply in tokens; null uses the protocol's.
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

/// Source of the answers that a run judges again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejudgesView {
    /// Run that asked the model.
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    /// Number of the judging, from 2.
    pub version: u32,
}

impl From<RejudgedRun> for RejudgesView {
    fn from(RejudgedRun { run, version }: RejudgedRun) -> Self {
        Self { run, version }
    }
}
