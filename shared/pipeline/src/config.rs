//! What may be tried, and how long.

use std::time::Duration;

use bench_benchmarks::AnswerTime;
use bench_domain::Secret;
use bench_inference::Keys;

use crate::WorkerIdentity;

/// What a function that asks models may try, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineConfig {
    /// Failed attempts of a sample before it ends as infrastructure-error. `WORKER_ITEM_ATTEMPTS`.
    pub attempts_max: u32,
    /// How long a sample waits for a provider that says it is busy. `BENCH_RATE_LIMIT_PATIENCE_SECONDS`.
    pub patience: Duration,
    /// How long one answer may take.
    pub answer_time: AnswerTime,
    /// Part of an invocation that is kept for storing and committing what came late.
    pub reserve: Duration,
    /// Who works, as operators see it.
    pub identity: WorkerIdentity,
    /// The operator's keys besides those of providers, as far as this process has them: they are removed from every text
    /// that is stored.
    pub keys: Keys,
}

/// Variables that hold keys and passwords other than those of providers.
const KEY_VARIABLES: [&str; 8] = [
    "HF_TOKEN",
    "SANDY_API_KEY",
    "ADMIN_SECRET",
    "BENCH_ADMIN_SECRET",
    "BENCH_API_KEY",
    "BENCH_JUDGE_API_KEY",
    "BENCH_OWNER_KEY",
    "BENCH_SIGNING_PRIVATE_KEY",
];

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            patience: Duration::from_secs(6 * 3_600),
            answer_time: AnswerTime::default(),
            reserve: Duration::from_secs(60),
            identity: WorkerIdentity::default(),
            keys: Keys::default(),
        }
    }
}

/// Lowest bound of lost attempts.
const LOST_MIN: u32 = 20;
/// Lost attempts for each failed one that is allowed.
const LOST_FACTOR: u32 = 4;

impl PipelineConfig {
    /// Lost attempts of a sample before it ends as infrastructure-error: four times as many as failed ones, and at least
    /// 20. A lost attempt was cut off with its process, which usually says nothing about the sample; but one that kills
    /// or hangs its process each time must not be paid for without end.
    pub fn lost_max(&self) -> u32 {
        self.attempts_max.saturating_mul(LOST_FACTOR).max(LOST_MIN)
    }

    /// Reads the variables named at the fields; what is not set has the default.
    ///
    /// # Errors
    /// One sentence that names the variable which is no number.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let default = Self::default();
        let number = |name: &str, default: u64| match var(name) {
            None => Ok(default),
            Some(text) => text
                .trim()
                .parse::<u64>()
                .map_err(|_| anyhow::anyhow!("{name}: `{text}` is not a whole number")),
        };
        let attempts = number("WORKER_ITEM_ATTEMPTS", u64::from(default.attempts_max))?;
        Ok(Self {
            attempts_max: u32::try_from(attempts.clamp(1, 100)).unwrap_or(default.attempts_max),
            patience: Duration::from_secs(number(
                "BENCH_RATE_LIMIT_PATIENCE_SECONDS",
                default.patience.as_secs(),
            )?),
            answer_time: AnswerTime::from_vars(&var).map_err(anyhow::Error::msg)?,
            reserve: default.reserve,
            identity: WorkerIdentity::from_vars(&var)?,
            keys: Keys::new(
                &KEY_VARIABLES.iter().filter_map(|name| Secret::new(var(name)?)).collect::<Vec<_>>(),
            ),
        })
    }
}
