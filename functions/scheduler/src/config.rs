//! Settings of the scheduler.

use std::sync::Arc;

use bench_inference::{ChatClient, ConfigError, InferenceConfig};
use bench_runs::RunCreatorConfig;
use bench_sandy::SandyConfig;
use bench_state::access::{AccessPolicy, OrderLimits};

use crate::topic::Topic;

/// Settings of the scheduler.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | `MAINTENANCE_MODE` | false | new runs of schedules wait, for an hour at most; open runs continue |
/// | `MAINTENANCE_MESSAGE` | – | reason shown |
/// | `SKIP_MODEL_SYNC` | false | don't fetch the provider's list of models |
/// | `SANDY_BASE_URL`, `SANDY_API_KEY` | – | sandbox service on which left-over sandboxes are ended |
/// | `BENCH_ACCESS`, `BENCH_LIMIT_…` | see [`AccessPolicy`], [`OrderLimits`] | same as for the API |
/// | `BENCH_JUDGE_MODEL` | – | judge whose use the operator pays for, same as for the API |
///
/// The scheduler also reads all variables of [`InferenceConfig`].
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Limits on orders, and the known providers. A schedule makes no run that its owner could not order. If `local`
    /// is set, the server runs on this machine: webhooks may use plain HTTP and addresses of this machine.
    pub runs: RunCreatorConfig,
    /// Reason why no runs can be made now, if any.
    pub maintenance: Option<String>,
    /// If true, the provider's list of models is fetched.
    pub sync_models: bool,
    /// The sandbox service whose left-over sandboxes are ended.
    pub sandy: SandyConfig,
    pub(crate) chat: Arc<ChatClient>,
    /// Topic for notices that operators must see.
    pub topic: Option<Arc<dyn Topic>>,
}

impl SchedulerConfig {
    /// Reads the variables through `var`, which returns `None` for an unset one.
    ///
    /// # Errors
    /// Names the first invalid variable.
    pub fn from_vars(
        var: impl Fn(&str) -> Option<String>,
        local: bool,
        software: &str,
    ) -> Result<Self, ConfigError> {
        let text =
            |name: &str| var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let flag = |name: &'static str| match text(name).map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("0" | "false" | "no" | "off") => Ok(false),
            Some("1" | "true" | "yes" | "on") => Ok(true),
            Some(_) => Err(ConfigError { variable: name, problem: "must be true or false".to_owned() }),
        };
        let inference = InferenceConfig::from_vars(&var)?;
        let message =
            || text("MAINTENANCE_MESSAGE").unwrap_or_else(|| "The server is in maintenance.".to_owned());
        Ok(Self {
            maintenance: flag("MAINTENANCE_MODE")?.then(message),
            sync_models: !flag("SKIP_MODEL_SYNC")?,
            chat: Arc::new(ChatClient::new(inference.http_options())),
            topic: None,
            sandy: SandyConfig::from_vars(&var).map_err(|problem| unusable("SANDY_BASE_URL", &problem))?,
            runs: RunCreatorConfig {
                software: software.to_owned(),
                local,
                policy: AccessPolicy::from_vars(text, local)
                    .map_err(|problem| unusable("BENCH_ACCESS", &problem))?,
                limits: OrderLimits::from_vars(text, local)
                    .map_err(|problem| unusable("BENCH_LIMIT", &problem))?,
                inference,
                judge_model: RunCreatorConfig::judge_model_from_vars(text)
                    .map_err(|problem| unusable("BENCH_JUDGE_MODEL", &problem))?,
            },
        })
    }
}

/// Variables whose names begin error messages of other crates.
const NAMES: [&str; 9] = [
    "BENCH_ACCESS",
    "BENCH_JUDGE_MODEL",
    "BENCH_LIMIT_SAMPLES_PER_ORDER",
    "BENCH_LIMIT_OPEN_RUNS_PER_OWNER",
    "BENCH_LIMIT_OPEN_RUNS",
    "BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER",
    "BENCH_LIMIT_ORDERS_PER_MINUTE",
    "SANDY_BASE_URL",
    "SANDY_API_KEY",
];

/// Parses an error message of the form `VARIABLE: problem`.
fn unusable(variable: &'static str, problem: &str) -> ConfigError {
    let (name, problem) = problem.split_once(": ").unwrap_or((variable, problem));
    let variable = NAMES.into_iter().find(|known| *known == name).unwrap_or(variable);
    ConfigError { variable, problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_variable_once() {
        for variable in NAMES {
            let error = unusable("BENCH_LIMIT", &format!("{variable}: it is wrong"));
            assert_eq!(error.to_string(), format!("{variable}: it is wrong"));
        }
    }
}
