//! What the API reads from the environment, read once.

use std::time::Duration;

use bench_benchmarks::AnswerTime;
use bench_domain::run::COVERAGE_MIN_DEFAULT;
use bench_inference::{InferenceConfig, ModelName, ModelSource};
use bench_runs::{OrdersConfig, RunCreatorConfig};
use bench_sandy::SandyConfig;
use bench_state::access::{AccessPolicy, OrderLimits};
use bench_web::{SecretLimits, ServerConfig};

const MAINTENANCE_MESSAGE: &str = "The server is under maintenance; runs cannot be created right now.";
/// Runs that the estimate of the queue takes to be evaluated at a time, unless said otherwise.
const QUEUE_SLOTS_DEFAULT: usize = 3;
const QUEUE_SLOTS_MAX: usize = 10_000;
/// Samples that a worker works on at once, unless said otherwise.
const ITEM_CONCURRENCY_DEFAULT: u64 = 4;

/// Settings of the API.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | `MAINTENANCE_MODE`, `MAINTENANCE_MESSAGE` | false, a sentence | creation of runs is refused with 503 |
/// | `ADMIN_SECRET` | none | the operator's secret; without it nobody is admin |
/// | `BENCH_ACCESS` | `admin,token,provider-key` | rows of the access policy, see [`AccessPolicy`]; without effect on loopback |
/// | `BENCH_LIMIT_…` | see [`OrderLimits`] | limits of orders |
/// | `BENCH_ALLOWED_ORIGINS` | none | origins whose pages may use the API, comma-separated |
/// | `DEFAULT_MODEL`, `BENCH_MODELS` | none | models that are listed besides the catalogue, `provider/model`, comma-separated |
/// | `WORKER_MAX_CONCURRENT` | 3 | runs evaluated at a time, for the estimate of the queue |
/// | `WORKER_ITEM_CONCURRENCY` | 4 | samples that a worker works on at once, as operators are told |
/// | `WORKER_ITEM_TIMEOUT_SECONDS` | none | most time for one answer, as callers are told |
/// | `BENCH_COVERAGE_MIN` | 0.9 | coverage below which a benchmark has no score |
/// | `BENCH_JUDGE_MODEL` | none | judge of runs that name none, `provider/model` or `oracle` |
/// | `SKIP_MODEL_SYNC` | false | the provider's list of models is never asked for |
///
/// The variables of [`InferenceConfig`] and [`SandyConfig`] apply besides.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// Whether creation of runs is refused.
    pub maintenance_mode: bool,
    /// What is told then.
    pub maintenance_message: String,
    /// The operator's secret.
    pub admin_secret: Option<String>,
    /// Who may order how much, and which providers there are.
    pub runs: RunCreatorConfig,
    /// What orders mean that leave something out.
    pub orders: OrdersConfig,
    /// Treatment of wrong admin secrets.
    pub secret_limits: SecretLimits,
    /// Set for a function that may not write to the table.
    pub reads_only: bool,
    /// How the server is reached. `server.local` says that whoever has no key sits at this machine.
    pub server: ServerConfig,
    /// Runs evaluated at a time.
    pub queue_slots: usize,
    /// Samples that a worker works on at once.
    pub item_concurrency: u64,
    /// The sandbox service.
    pub sandy: SandyConfig,
    /// How long one answer may take.
    pub answer_time: AnswerTime,
    /// Whether an event stream stays open; where waiting is paid for it ends with what there is.
    pub streaming: bool,
    /// Time after which an open event stream ends and the client reconnects. `None`: it stays open until the run is
    /// over.
    pub stream_time: Option<Duration>,
    /// How often an open event stream looks for events.
    pub poll_every: Duration,
    /// How long an open event stream is silent at most.
    pub keep_alive_every: Duration,
    /// How long an order waits for a provider to confirm a key.
    pub confirmation_wait: Duration,
}

impl ApiConfig {
    /// Reads the variables through `var`, which gives `None` for one that is not set. `local` says that the
    /// server is bound to loopback.
    ///
    /// # Errors
    /// One sentence that names the variable and what is wrong with it.
    pub fn from_vars(
        var: impl Fn(&str) -> Option<String>,
        local: bool,
        software: impl Into<String>,
    ) -> Result<Self, String> {
        let var =
            |name: &str| var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let flag = |name: &str| match var(name).map(|value| value.to_lowercase()).as_deref() {
            None | Some("0" | "false" | "no" | "off") => Ok(false),
            Some("1" | "true" | "yes" | "on") => Ok(true),
            Some(other) => Err(format!("{name}: `{other}` is neither true nor false")),
        };
        Ok(Self {
            maintenance_mode: flag("MAINTENANCE_MODE")?,
            maintenance_message: var("MAINTENANCE_MESSAGE").unwrap_or_else(|| MAINTENANCE_MESSAGE.to_owned()),
            admin_secret: var("ADMIN_SECRET"),
            runs: RunCreatorConfig {
                software: software.into(),
                local,
                policy: AccessPolicy::from_vars(var, local)?,
                limits: OrderLimits::from_vars(var, local)?,
                inference: InferenceConfig::from_vars(var).map_err(|error| error.to_string())?,
            },
            orders: OrdersConfig {
                models: models(var)?,
                judge_model: judge_model(var)?,
                coverage_min: coverage_min(var)?,
                sync_models: !flag("SKIP_MODEL_SYNC")?,
                availability_wait: Duration::from_secs(5),
            },
            secret_limits: SecretLimits::default(),
            reads_only: false,
            server: ServerConfig::from_vars(var, local)?,
            queue_slots: match var("WORKER_MAX_CONCURRENT") {
                None => QUEUE_SLOTS_DEFAULT,
                Some(text) => {
                    text.parse().ok().filter(|slots| (1..=QUEUE_SLOTS_MAX).contains(slots)).ok_or_else(
                        || format!("WORKER_MAX_CONCURRENT: `{text}` is not from 1 to {QUEUE_SLOTS_MAX}"),
                    )?
                }
            },
            item_concurrency: match var("WORKER_ITEM_CONCURRENCY") {
                None => ITEM_CONCURRENCY_DEFAULT,
                Some(text) => text.parse().ok().filter(|samples| *samples > 0).ok_or_else(|| {
                    format!("WORKER_ITEM_CONCURRENCY: `{text}` is not a whole number from 1")
                })?,
            },
            sandy: SandyConfig::from_vars(var)?,
            answer_time: AnswerTime::from_vars(var)?,
            streaming: true,
            stream_time: None,
            poll_every: Duration::from_millis(700),
            keep_alive_every: Duration::from_secs(15),
            confirmation_wait: Duration::from_secs(15),
        })
    }
}

/// Reads `BENCH_COVERAGE_MIN` through `var`: the coverage below which a benchmark has no score.
///
/// # Errors
/// One sentence that names the variable when it is not from 0 to 1.
pub fn coverage_min(var: impl Fn(&str) -> Option<String>) -> Result<f64, String> {
    let text = var("BENCH_COVERAGE_MIN").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok(COVERAGE_MIN_DEFAULT) };
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("BENCH_COVERAGE_MIN: `{text}` is not from 0 to 1"))
}

fn models(var: impl Fn(&str) -> Option<String>) -> Result<Vec<ModelName>, String> {
    let mut models = Vec::new();
    for variable in ["DEFAULT_MODEL", "BENCH_MODELS"] {
        let list = var(variable).unwrap_or_default();
        for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let model = ModelName::parse(text).map_err(|error| format!("{variable}: {error}"))?;
            // Stored responses are a file on one machine, no model that a run could be ordered for.
            if model.source != ModelSource::Replay && !models.contains(&model) {
                models.push(model);
            }
        }
    }
    Ok(models)
}

fn judge_model(var: impl Fn(&str) -> Option<String>) -> Result<Option<ModelName>, String> {
    let Some(text) = var("BENCH_JUDGE_MODEL") else { return Ok(None) };
    ModelName::parse_judge(&text).map(Some).map_err(|error| format!("BENCH_JUDGE_MODEL: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<ApiConfig, String> {
        let var =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        ApiConfig::from_vars(var, true, "1.2.3")
    }

    #[test]
    fn an_empty_environment_gives_the_documented_defaults() {
        let config = read(&[("ADMIN_SECRET", " ")]).unwrap();
        let orders = &config.orders;
        assert!(!config.maintenance_mode && orders.sync_models && config.streaming && config.server.local);
        assert_eq!((config.admin_secret, config.queue_slots, orders.coverage_min), (None, 3, 0.9));
        assert!(
            orders.models.is_empty()
                && orders.judge_model.is_none()
                && config.maintenance_message.ends_with('.')
        );
    }

    #[test]
    fn models_are_listed_once_and_files_never() {
        let config = read(&[
            ("DEFAULT_MODEL", "chutes/a/b"),
            ("BENCH_MODELS", "lmstudio/x, chutes/a/b ,replay:answers.jsonl,"),
        ]);
        let names: Vec<String> = config.unwrap().orders.models.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["chutes/a/b", "lmstudio/x"]);
    }

    #[test]
    fn a_bad_variable_is_named() {
        for (name, value) in [
            ("MAINTENANCE_MODE", "maybe"),
            ("WORKER_MAX_CONCURRENT", "0"),
            ("WORKER_ITEM_CONCURRENCY", "0"),
            ("SANDY_BASE_URL", "sandy"),
            ("BENCH_COVERAGE_MIN", "90"),
            ("BENCH_COVERAGE_MIN", "NaN"),
            ("BENCH_MODELS", "gpt"),
            ("BENCH_JUDGE_MODEL", "gpt"),
            ("BENCH_JUDGE_MODEL", "replay:x.jsonl"),
            ("BENCH_ALLOWED_ORIGINS", "*"),
            ("BENCH_ACCESS", "session"),
            ("BENCH_LIMIT_OPEN_RUNS", "0"),
            ("CHUTES_API_BASE_URL", "x"),
        ] {
            assert!(read(&[(name, value)]).unwrap_err().starts_with(name), "{name}={value}");
        }
    }
}
