//! Settings of the API, read from the environment once.

use std::time::Duration;

use bench_benchmarks::AnswerTime;
use bench_domain::run::COVERAGE_MIN_DEFAULT;
use bench_inference::{InferenceConfig, ModelName, ModelSource};
use bench_runs::{OrdersConfig, RunCreatorConfig};
use bench_sandy::SandyConfig;
use bench_state::access::{AccessPolicy, OrderLimits};
use bench_tasks::TaskLimits;
use bench_web::auth::origin_of;
use bench_web::{SecretLimits, ServerConfig};

use crate::sign_in::SignInSettings;

const MAINTENANCE_MESSAGE: &str = "the server is under maintenance and takes no new runs; try again later";
/// Default number of runs that the queue estimate assumes to be evaluated at a time.
const QUEUE_SLOTS_DEFAULT: usize = 3;
const QUEUE_SLOTS_MAX: usize = 10_000;
/// Default number of samples that a worker processes concurrently.
const ITEM_CONCURRENCY_DEFAULT: u64 = 4;

/// Settings of the API.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | `MAINTENANCE_MODE`, `MAINTENANCE_MESSAGE` | false, a sentence | new runs are refused with 503 |
/// | `ADMIN_SECRET` | none | the operator's secret; without it no caller is admin |
/// | `ADMIN_SUBJECTS` | none | subjects of signed-in users who are admins, comma-separated |
/// | `FRONTEND_URL` | none | address of the page; its origin is that of this server's own pages |
/// | `CHUTES_CLIENT_ID`, `CHUTES_CLIENT_SECRET`, `CHUTES_IDP_URL` | none, none, `https://idp.chutes.ai` | sign-in; without the id there is none |
/// | `BENCH_ACCESS` | `admin,token,provider-key`, and `session` with a client id | rows of the access policy, see [`AccessPolicy`]; no effect on loopback |
/// | `BENCH_SESSION_PAYER` | `user` | `operator-allowed` if the operator's keys pay for what a user's account can't |
/// | `BENCH_LIMIT_…` | see [`OrderLimits`] | limits of orders |
/// | `BENCH_ALLOWED_ORIGINS` | none | origins whose pages may use the API, comma-separated |
/// | `DEFAULT_MODEL`, `BENCH_MODELS` | none | models listed in addition to the catalog, `provider/model`, comma-separated |
/// | `WORKER_MAX_CONCURRENT` | 3 | runs evaluated at a time, for the queue estimate |
/// | `WORKER_ITEM_CONCURRENCY` | 4 | samples that a worker processes concurrently, as shown to operators |
/// | `WORKER_ITEM_TIMEOUT_SECONDS` | none | time limit for one answer, as shown to callers |
/// | `BENCH_COVERAGE_MIN` | 0.9 | coverage below which a benchmark has no score |
/// | `BENCH_JUDGE_MODEL` | none | judge of runs that name none, `provider/model` or `oracle` |
/// | `BENCH_QUERY_KEYS` | true on loopback | accepts keys in the query string of requests for tasks |
/// | `SKIP_MODEL_SYNC` | false | if true, the provider's list of models is never fetched |
///
/// The variables of [`InferenceConfig`], [`TaskLimits`] and [`SandyConfig`] apply too.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// If true, new runs are refused.
    pub maintenance_mode: bool,
    /// Message of these refusals.
    pub maintenance_message: String,
    /// The operator's secret.
    pub admin_secret: Option<String>,
    /// Origin of this server's own pages, such as `https://bench.example`.
    pub own_origin: Option<String>,
    /// The sign-in; `None` if the server has none.
    pub sign_in: Option<SignInSettings>,
    /// Access policy, limits of orders, and available providers.
    pub runs: RunCreatorConfig,
    /// Defaults for fields that orders leave out.
    pub orders: OrdersConfig,
    /// Delays and limits for wrong admin secrets.
    pub secret_limits: SecretLimits,
    /// True for a function that may not write to the table.
    pub reads_only: bool,
    /// Host and origin checks. With `server.local`, callers without a key count as the person at this machine.
    pub server: ServerConfig,
    /// Runs evaluated at a time.
    pub queue_slots: usize,
    /// Samples that a worker processes concurrently.
    pub item_concurrency: u64,
    /// Connection to the sandbox service.
    pub sandy: SandyConfig,
    /// Time limit for one answer.
    pub answer_time: AnswerTime,
    /// If true, event streams stay open. If false, as where waiting costs money, a stream ends after the events so far.
    pub streaming: bool,
    /// Time after which an open event stream ends and the client reconnects. `None` keeps it open until the run is over.
    pub stream_time: Option<Duration>,
    /// Interval at which an open event stream checks for new events.
    pub poll_every: Duration,
    /// Maximum time that an open event stream stays silent.
    pub keep_alive_every: Duration,
    /// Maximum time that an order waits for a provider to confirm a key.
    pub confirmation_wait: Duration,
    /// Limits of uploaded tasks.
    pub tasks: TaskLimits,
    /// True if keys in the query string of requests for tasks are accepted.
    pub query_keys: bool,
    /// True if callers can reach the bucket, so that large archives can be sent there through presigned addresses.
    pub direct_uploads: bool,
}

impl ApiConfig {
    /// Reads the settings from environment variables. `var` returns `None` for a variable that isn't set;
    /// `local` is true if the server is bound to loopback.
    ///
    /// # Errors
    /// One sentence that names the variable and the problem.
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
            own_origin: var("FRONTEND_URL").as_deref().and_then(origin_of),
            sign_in: SignInSettings::from_vars(var, local)?,
            runs: RunCreatorConfig {
                software: software.into(),
                local,
                policy: AccessPolicy::from_vars(var, local)?,
                limits: OrderLimits::from_vars(var, local)?,
                inference: InferenceConfig::from_vars(var).map_err(|error| error.to_string())?,
                judge_model: RunCreatorConfig::judge_model_from_vars(var)?,
            },
            orders: OrdersConfig {
                models: models(var)?,
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
            tasks: TaskLimits::from_vars(var)?,
            query_keys: if var("BENCH_QUERY_KEYS").is_some() { flag("BENCH_QUERY_KEYS")? } else { local },
            direct_uploads: false,
        })
    }
}

/// Reads `BENCH_COVERAGE_MIN`: the coverage below which a benchmark has no score.
///
/// # Errors
/// One sentence that names the variable if its value isn't from 0 to 1.
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
            // Stored responses are a file on one machine, not a model that can be ordered.
            if model.source != ModelSource::Replay && !models.contains(&model) {
                models.push(model);
            }
        }
    }
    Ok(models)
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
                && config.runs.judge_model.is_none()
                && config.maintenance_message.contains("maintenance")
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
            ("BENCH_QUERY_KEYS", "maybe"),
            ("BENCH_TASK_CPUS_MAX", "0"),
            ("WORKER_MAX_CONCURRENT", "0"),
            ("WORKER_ITEM_CONCURRENCY", "0"),
            ("SANDY_BASE_URL", "sandy"),
            ("BENCH_COVERAGE_MIN", "90"),
            ("BENCH_COVERAGE_MIN", "NaN"),
            ("BENCH_MODELS", "gpt"),
            ("BENCH_JUDGE_MODEL", "gpt"),
            ("BENCH_JUDGE_MODEL", "replay:x.jsonl"),
            ("BENCH_ALLOWED_ORIGINS", "*"),
            ("BENCH_ACCESS", "nobody"),
            ("BENCH_LIMIT_OPEN_RUNS", "0"),
            ("CHUTES_API_BASE_URL", "x"),
        ] {
            assert!(read(&[(name, value)]).unwrap_err().starts_with(name), "{name}={value}");
        }
    }
}
