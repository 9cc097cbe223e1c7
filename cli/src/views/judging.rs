//! Who judged, and how often.

use bench_domain::RunStatus;
use serde::{Deserialize, Serialize};

/// The judge of a run as it was ordered.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OrderedJudge {
    pub(crate) model: String,
}

/// Whose answers were judged again, and which time that is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rejudges {
    pub(crate) run: String,
    pub(crate) version: u32,
}

/// The judge that a benchmark of a run used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Judge {
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) endpoint_host: Option<String>,
    pub(crate) version: u32,
    pub(crate) prompt_digest: String,
    pub(crate) prompt_source: String,
    #[serde(default)]
    pub(crate) temperature: Option<f64>,
    #[serde(default)]
    pub(crate) seed: Option<i64>,
    #[serde(default)]
    pub(crate) max_tokens: Option<u32>,
}

/// The versions of a run's judging, as `/api/runs/{id}/judgings` answers them.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Judgings {
    pub(crate) judgings: Vec<Judging>,
}

/// One version.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Judging {
    pub(crate) version: u32,
    pub(crate) run_id: String,
    #[serde(default)]
    pub(crate) judge: Option<OrderedJudge>,
    #[serde(default)]
    pub(crate) status: Option<RunStatus>,
    #[serde(default)]
    pub(crate) benchmarks: Vec<JudgedBenchmark>,
}

/// One benchmark of one version.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct JudgedBenchmark {
    pub(crate) benchmark_name: String,
    #[serde(default)]
    pub(crate) score: Option<f64>,
    #[serde(default)]
    pub(crate) coverage: Option<f64>,
    #[serde(default)]
    pub(crate) judge: Option<Judge>,
}
