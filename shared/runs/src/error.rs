//! Errors of orders.

use std::time::Duration;

use bench_domain::run::RunStatus;
use bench_domain::{Agent, BenchmarkName, Code, ModelRole, RunId};
use bench_inference::settings::SettingProblem;
use bench_inference::{EndpointError, ModelNameError, Provider};
use bench_state::StateError;

use crate::AccessDenied;
use crate::agent_problem::CustomAgentProblem;
use crate::choice::{Choice, UnknownChoice};

/// Suggested wait before the next try after a limit of open runs is reached.
const OPEN_RUNS_WAIT: Duration = Duration::from_secs(60);

/// Reason why an order was rejected. The text is for the caller; the [`code`](RunError::code) is for programs.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model doesn't exist.
    #[error("Model not found")]
    ModelNotFound,
    /// The model doesn't exist, and the caller's own key allows further names from the provider's list.
    #[error("Model not found. Provide a bench runner model UUID, Chutes chute_id, or model slug.")]
    ModelNotFoundWithKey,
    /// The model belongs to another provider than the order names.
    #[error("Model does not match selected provider")]
    ProviderMismatch,
    /// A provider of the compatible system that doesn't exist here.
    #[error("Gremium provider is not enabled.")]
    ProviderNotEnabled,
    /// The provider doesn't exist.
    #[error("Unsupported provider")]
    ProviderUnknown,
    /// The model's name can't be parsed.
    #[error(transparent)]
    ModelName(ModelNameError),
    /// The order's custom agent can't be used.
    #[error(transparent)]
    CustomAgent(#[from] CustomAgentProblem),
    /// An agent was chosen by an option, and the model is an agent itself.
    #[error(
        "`{agent}` is an agent itself, which asks no model: leave the option `{option}` of {benchmark} out"
    )]
    AgentOption {
        /// The model.
        agent: Agent,
        /// Benchmark of the option.
        benchmark: BenchmarkName,
        /// Name of the option.
        option: String,
    },
    /// Stored responses were given for a model that would be called.
    #[error("stored responses were given for a model that isn't `replay:FILE`")]
    ResponsesMisplaced,
    /// The provider of the model isn't configured.
    #[error(transparent)]
    ProviderNotSetUp(EndpointError),
    /// The model is known, but its provider isn't configured.
    #[error("this model can't be used: {0}")]
    ModelCannotBeAsked(EndpointError),
    /// The provider refuses the key for this model.
    #[error(
        "{} {} not authorized for this model.",
        provider.display_name,
        if *.own { "API key is" } else { "credentials are" }
    )]
    KeyNotAuthorized {
        /// Provider of the model.
        provider: &'static Provider,
        /// True if it's the caller's own key.
        own: bool,
    },
    /// The provider doesn't offer the model.
    #[error("Model not available for inference on {}.", provider.display_name)]
    ModelNotOffered {
        /// Provider of the model.
        provider: &'static Provider,
    },
    /// The budget is in dollars, but the model has no price.
    #[error(
        "the price of this model is not known; set `budget_tokens` instead of `budget_usd` (on the command line, \
         `--price IN,OUT` gives the price)"
    )]
    PriceUnknown,
    /// The budget is in dollars, but the judge has no price.
    #[error("the price of the judge is not known; set `budget_tokens` instead of `budget_usd`")]
    JudgePriceUnknown,
    /// The benchmark needs a judge, but the order has none.
    #[error(
        "answers to `{benchmark}` are judged by a model, and none was named; set `judge.model_id` (on the command line \
         `--judge-model PROVIDER/MODEL`) or the variable `BENCH_JUDGE_MODEL`{}",
        .official.map_or_else(String::new, |official| format!("; the benchmark's authors use {official}"))
    )]
    NoJudge {
        /// Name of the benchmark.
        benchmark: BenchmarkName,
        /// Judge that the benchmark's authors use.
        official: Option<&'static str>,
    },
    /// A benchmark simulates users, and the order names no model for them.
    #[error(
        "{benchmark} simulates users by a model of its own, and the order names none{}",
        official_user(official)
    )]
    NoUserModel {
        /// Name of the benchmark.
        benchmark: BenchmarkName,
        /// User simulator that the benchmark's authors use.
        official: Option<&'static str>,
    },
    /// The source of answers isn't a model that can simulate users.
    #[error("`{0}` can't simulate users; name a model at a provider")]
    NotAUserModel(String),
    /// The operator doesn't pay for this user simulator.
    #[error(
        "the user model `{0}` needs a key of your own; give one for the user model, or name one of the provider that \
         your key is for"
    )]
    UserNeedsKey(String),
    /// The error is about the user simulator.
    #[error("user model: {0}")]
    User(Box<RunError>),
    /// The operator doesn't pay for this judge.
    #[error("the judge `{0}` needs a key of your own; give one for the judge, or leave `judge.model_id` out")]
    JudgeNeedsKey(String),
    /// The error is about the judge.
    #[error("judge: {0}")]
    Judge(Box<RunError>),
    /// None of the names is a benchmark.
    #[error("No matching benchmarks found for selected_benchmarks")]
    NoBenchmarks,
    /// The order makes a choice for a benchmark that it doesn't include.
    #[error("{}", not_ordered_text(*.what, .benchmark, .ordered))]
    NotOrdered {
        /// Kind of choice.
        what: Choice,
        /// Name of the benchmark.
        benchmark: BenchmarkName,
        /// Benchmarks of the order.
        ordered: Vec<BenchmarkName>,
    },
    /// The protocol, or the benchmark it was chosen for, doesn't exist.
    #[error("protocols: {0}")]
    Protocol(UnknownChoice),
    /// The option, or the benchmark it was chosen for, doesn't exist.
    #[error("benchmark_options.{name}: {problem}")]
    Options {
        /// Name of the benchmark as given.
        name: String,
        /// Problem with the option.
        problem: UnknownChoice,
    },
    /// A generation setting can't be sent to the provider as ordered.
    #[error("{}: {}", .0.setting, .0.problem)]
    Setting(#[from] SettingProblem),
    /// A generation setting doesn't fit those of a benchmark.
    #[error("{}: for `{benchmark}`, {}", .problem.setting, .problem.problem)]
    SettingOfBenchmark {
        /// Name of the benchmark.
        benchmark: BenchmarkName,
        /// The problem.
        problem: SettingProblem,
    },
    /// A generation setting contains a key.
    #[error(
        "{0}: it contains a key of the provider, and settings are part of the results; leave the key out"
    )]
    SettingHasKey(&'static str),
    /// The benchmark's dataset doesn't have the named items.
    #[error("items: {0}")]
    UnknownItems(String),
    /// The dataset isn't available, because its terms weren't accepted.
    #[error("{0}")]
    DatasetNotAvailable(String),
    /// The access policy doesn't let the caller order this.
    #[error(transparent)]
    AccessDenied(#[from] AccessDenied),
    /// The order has more samples than allowed.
    #[error(
        "this order has {planned} samples, and the maximum is {limit}; choose fewer benchmarks, fewer items \
         (`subset_count`, `subset_pct`) or fewer samples per item (`samples`)"
    )]
    TooManySamples {
        /// Number of samples of the order.
        planned: u64,
        /// Maximum number of samples per order.
        limit: u64,
    },
    /// The owner placed too many orders in this minute.
    #[error("you placed {} in this minute, the maximum for one caller; try again when it is over", count_text(*limit, "order"))]
    TooManyOrders {
        /// Maximum number of orders of one owner per minute.
        limit: u64,
        /// Time until the minute is over.
        wait: Duration,
    },
    /// All owners together placed too many orders in this minute.
    #[error("this server took {} in this minute, its maximum; try again when it is over", count_text(*limit, "order"))]
    TooManyOrdersInAll {
        /// Maximum number of orders per minute on this server.
        limit: u64,
        /// Time until the minute is over.
        wait: Duration,
    },
    /// The owner has too many open runs.
    #[error(
        "you have {}, the maximum for one caller; wait until one is over, or cancel one",
        count_text(*limit, "open run")
    )]
    TooManyOpenRuns {
        /// Maximum number of open runs of one owner.
        limit: u64,
    },
    /// All owners together have too many open runs.
    #[error("this server has {}, its maximum; try again later", count_text(*limit, "open run"))]
    TooManyOpenRunsInAll {
        /// Maximum number of open runs on this server.
        limit: u64,
    },
    /// The idempotency key was used for another order.
    #[error("this idempotency key was used for another order")]
    KeyReused,
    /// The run of the idempotency key was deleted.
    #[error("the run ordered with this idempotency key was deleted")]
    EarlierRunDeleted,
    /// Two identical orders arrived concurrently, and the run of the other one can't be found.
    #[error("the run was not created; send the order again")]
    NotCreated,
    /// The run doesn't exist.
    #[error("Run not found")]
    RunNotFound,
    /// The run whose answers should be judged again is still open.
    #[error("run `{run}` is {status}; its answers can be judged again when it is over")]
    RunOpen {
        /// Id of the run.
        run: RunId,
        /// Status of the run.
        status: RunStatus,
    },
    /// The run has no benchmark that needs a judge.
    #[error("none of the run's benchmarks is judged by a model, so there is nothing to judge again")]
    NothingJudged,
    /// The run has no answer that can be judged.
    #[error("the run ended before it had any answer that could be judged")]
    NoAnswers,
    /// The run whose answers should be judged again is gone.
    #[error("the run whose answers would be judged again was deleted, and its answers with it")]
    AnswersDeleted,
    /// Reading or writing the state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// Stored or configured data is invalid.
    #[error("{0}")]
    Internal(String),
}

impl RunError {
    /// Returns the stable code of the error, for programs.
    pub fn code(&self) -> Code {
        match self {
            Self::ModelNotFound | Self::ModelNotFoundWithKey | Self::ModelNotOffered { .. } => {
                Code::ModelNotFound
            }
            Self::ProviderMismatch | Self::ModelName(_) | Self::ResponsesMisplaced => Code::InvalidModel,
            Self::CustomAgent(problem) => problem.code(),
            Self::ProviderNotEnabled | Self::ProviderUnknown => Code::UnsupportedProvider,
            Self::ProviderNotSetUp(_) | Self::ModelCannotBeAsked(_) => Code::ProviderNotConfigured,
            Self::KeyNotAuthorized { .. } => Code::InvalidKey,
            Self::PriceUnknown | Self::JudgePriceUnknown => Code::PriceUnknown,
            Self::NoJudge { .. } => Code::JudgeMissing,
            Self::NoUserModel { .. } | Self::NotAUserModel(_) => Code::InvalidRequest,
            Self::UserNeedsKey(_) => Code::UserKeyRequired,
            Self::JudgeNeedsKey(_) => Code::JudgeKeyRequired,
            Self::Judge(error) | Self::User(error) => error.code(),
            Self::NoBenchmarks => Code::NoBenchmarks,
            Self::NotOrdered { .. } => Code::BenchmarkNotOrdered,
            Self::Protocol(_)
            | Self::Options { .. }
            | Self::AgentOption { .. }
            | Self::Setting(_)
            | Self::SettingOfBenchmark { .. }
            | Self::SettingHasKey(_)
            | Self::UnknownItems(_) => Code::InvalidRequest,
            Self::DatasetNotAvailable(_) => Code::DatasetUnavailable,
            Self::AccessDenied(refused) => refused.code(),
            Self::TooManySamples { .. } => Code::SamplesLimit,
            Self::TooManyOrders { .. } | Self::TooManyOrdersInAll { .. } => Code::OrderRateLimit,
            Self::TooManyOpenRuns { .. } | Self::TooManyOpenRunsInAll { .. } => Code::OpenRunsLimit,
            Self::KeyReused => Code::IdempotencyKeyReused,
            Self::EarlierRunDeleted | Self::AnswersDeleted => Code::RunDeleted,
            Self::NotCreated => Code::ConcurrentChange,
            Self::RunNotFound => Code::RunNotFound,
            Self::RunOpen { .. } => Code::RunNotOver,
            Self::NothingJudged | Self::NoAnswers => Code::NothingToJudge,
            Self::State(_) | Self::Internal(_) => Code::InternalError,
        }
    }

    /// Returns the time after which the same order may be accepted; `None` if only a changed order can be.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyOrders { wait, .. } | Self::TooManyOrdersInAll { wait, .. } => Some(*wait),
            Self::TooManyOpenRuns { .. } | Self::TooManyOpenRunsInAll { .. } => Some(OPEN_RUNS_WAIT),
            Self::Judge(error) | Self::User(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Returns the error as one about the model in this role. Errors that aren't caused by the order stay unchanged.
    pub(crate) fn about(self, role: ModelRole) -> Self {
        match (role, self) {
            (ModelRole::Model, error) | (_, error @ (Self::State(_) | Self::Internal(_))) => error,
            (ModelRole::Judge, Self::PriceUnknown) => Self::JudgePriceUnknown,
            (ModelRole::Judge, error) => Self::Judge(Box::new(error)),
            (ModelRole::UserModel, error) => Self::User(Box::new(error)),
        }
    }
}

/// Returns the end of the sentence about a missing user simulator.
fn official_user(official: &Option<&'static str>) -> String {
    let hint = "; name it with --user-model PROVIDER/MODEL, or in the field user_model";
    match official {
        Some(model) => format!("{hint}; its authors use {model}"),
        None => hint.to_owned(),
    }
}

fn not_ordered_text(what: Choice, benchmark: &BenchmarkName, ordered: &[BenchmarkName]) -> String {
    let what = match what {
        Choice::Dataset => return format!("a dataset was given for `{benchmark}`, which isn't ordered"),
        Choice::Protocol => "a protocol was",
        Choice::Options => "options were",
    };
    let names: Vec<String> = ordered.iter().map(|name| format!("`{name}`")).collect();
    format!("{what} given for `{benchmark}`, which isn't ordered; the order includes {}", names.join(", "))
}

fn count_text(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
