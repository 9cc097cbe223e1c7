//! Judges and judgings of a run.

use bench_domain::RunStatus;
use serde::{Deserialize, Serialize};

/// Judge of a run, as ordered.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OrderedJudge {
    pub(crate) model: String,
}

/// Run whose answers a run judges again, with the number of the judging.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rejudges {
    pub(crate) run: String,
    pub(crate) version: u32,
}

/// Judge that a benchmark of a run used.
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

/// Judgings of a run, as returned by `/api/runs/{id}/judgings`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Judgings {
    pub(crate) judgings: Vec<Judging>,
}

/// A judging.
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

/// A benchmark of a judging.
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
