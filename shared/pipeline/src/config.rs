//! Limits on attempts and time.

use std::time::Duration;

use bench_benchmarks::AnswerTime;
use bench_domain::Secret;
use bench_inference::Keys;
use bench_sign_in::SignInConfig;

use crate::WorkerIdentity;

/// Limits on attempts and time for a function that asks models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineConfig {
    /// Failed attempts of a sample before it ends as infrastructure-error. `WORKER_ITEM_ATTEMPTS`.
    pub attempts_max: u32,
    /// Maximum time for which a sample waits for a busy provider. `BENCH_RATE_LIMIT_PATIENCE_SECONDS`.
    pub patience: Duration,
    /// Time limit for one answer.
    pub answer_time: AnswerTime,
    /// Time at the end of an invocation that is reserved for storing and committing late answers.
    pub reserve: Duration,
    /// If true, samples that end at about the same time share a transaction. For the stack in one process: few
    /// samples of a function end together, and a shared transaction would conflict with more of the other workers'.
    pub groups_commits: bool,
    /// Name and capacity of this worker, shown to operators.
    pub identity: WorkerIdentity,
    /// The sign-in, which renews access tokens of users; `None` if the server has none.
    pub sign_in: Option<SignInConfig>,
    /// The operator's keys other than those of providers, as far as this process has them. They are removed
    /// from every stored text.
    pub keys: Keys,
}

/// Variables that hold keys and passwords other than those of providers.
const KEY_VARIABLES: [&str; 11] = [
    "CHUTES_CLIENT_SECRET",
    "HF_TOKEN",
    "SANDY_API_KEY",
    "ADMIN_SECRET",
    "BENCH_ADMIN_SECRET",
    "BENCH_API_KEY",
    "BENCH_JUDGE_API_KEY",
    "BENCH_USER_API_KEY",
    "BENCH_MASTER_KEY",
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
            groups_commits: false,
            identity: WorkerIdentity::default(),
            sign_in: None,
            keys: Keys::default(),
        }
    }
}

/// Maximum number of failed attempts that an operator may allow.
const ATTEMPTS_MAX: u32 = 100;
/// Minimum for the number of lost attempts allowed.
const LOST_MIN: u32 = 20;
/// Lost attempts allowed for each failed attempt that is allowed.
const LOST_FACTOR: u32 = 4;

impl PipelineConfig {
    /// Returns the number of lost attempts of a sample before it ends as infrastructure-error: four times the
    /// number of failed ones, and at least 20.
    ///
    /// A lost attempt was cut off with its process, which usually says nothing about the sample. But a sample
    /// that kills or hangs its process each time must not cost money forever.
    pub fn lost_max(&self) -> u32 {
        self.attempts_max.saturating_mul(LOST_FACTOR).max(LOST_MIN)
    }

    /// Reads the variables named in the field docs. Unset variables get their default.
    ///
    /// # Errors
    /// Returns one sentence that names the variable that isn't a number.
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
        let attempts_max =
            u32::try_from(attempts).ok().filter(|attempts| (1..=ATTEMPTS_MAX).contains(attempts));
        Ok(Self {
            attempts_max: attempts_max.ok_or_else(|| {
                anyhow::anyhow!("WORKER_ITEM_ATTEMPTS: `{attempts}` is not from 1 to {ATTEMPTS_MAX}")
            })?,
            patience: Duration::from_secs(number(
                "BENCH_RATE_LIMIT_PATIENCE_SECONDS",
                default.patience.as_secs(),
            )?),
            answer_time: AnswerTime::from_vars(&var).map_err(anyhow::Error::msg)?,
            reserve: default.reserve,
            groups_commits: default.groups_commits,
            identity: WorkerIdentity::from_vars(&var)?,
            sign_in: SignInConfig::from_vars(&var).map_err(anyhow::Error::msg)?,
            keys: Keys::new(
                &KEY_VARIABLES.iter().filter_map(|name| Secret::new(var(name)?)).collect::<Vec<_>>(),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<PipelineConfig, String> {
        let var = |asked: &str| (asked == name).then(|| value.to_owned());
        PipelineConfig::from_vars(var).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_taken_as_they_are_or_refused() {
        assert_eq!(read("WORKER_ITEM_ATTEMPTS", " 100 ").unwrap().attempts_max, 100);
        let config = read("BENCH_RATE_LIMIT_PATIENCE_SECONDS", "90").unwrap();
        assert_eq!((config.patience, config.attempts_max), (Duration::from_secs(90), 5));
        for bad in ["0", "101", "18446744073709551615"] {
            let error = read("WORKER_ITEM_ATTEMPTS", bad).unwrap_err();
            assert_eq!(error, format!("WORKER_ITEM_ATTEMPTS: `{bad}` is not from 1 to 100"));
        }
        for name in ["WORKER_ITEM_ATTEMPTS", "BENCH_RATE_LIMIT_PATIENCE_SECONDS"] {
            assert_eq!(read(name, "-1").unwrap_err(), format!("{name}: `-1` is not a whole number"));
        }
    }
}
