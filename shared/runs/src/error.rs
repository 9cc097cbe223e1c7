//! Why an order led to no run.

use std::time::Duration;

use bench_domain::run::RunStatus;
use bench_domain::{BenchmarkName, Code, RunId};
use bench_inference::{EndpointError, ModelNameError, Provider};
use bench_state::StateError;

use crate::NotAllowed;
use crate::choice::{Choice, UnknownChoice};

/// Time after which to try again when a limit of open runs is reached.
const OPEN_RUNS_WAIT: Duration = Duration::from_secs(60);

/// Why an order led to no run. Its text is for the caller; its [`code`](RunError::code) is for programs.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No such model.
    #[error("Model not found")]
    ModelNotFound,
    /// The same, for a caller whose own key makes the provider's list count.
    #[error("Model not found. Provide a bench runner model UUID, Chutes chute_id, or model slug.")]
    ModelNotFoundWithKey,
    /// The model is another provider's than the one that was named.
    #[error("Model does not match selected provider")]
    ProviderMismatch,
    /// A provider of the compatible system that is not one here.
    #[error("Gremium provider is not enabled.")]
    ProviderNotEnabled,
    /// No such provider.
    #[error("Unsupported provider")]
    ProviderUnknown,
    /// The model's name cannot be read.
    #[error(transparent)]
    ModelName(ModelNameError),
    /// Stored responses for a model that would be asked.
    #[error("Stored responses were given for a model that is not replay:FILE.")]
    ResponsesMisplaced,
    /// The provider of the model is not set up.
    #[error(transparent)]
    ProviderNotSetUp(EndpointError),
    /// The provider of a model that is known is not set up.
    #[error("This model cannot be asked: {0}.")]
    ModelCannotBeAsked(EndpointError),
    /// The provider refuses the key for this model.
    #[error(
        "{} {} not authorized for this model.",
        provider.display_name,
        if *.own { "API key is" } else { "credentials are" }
    )]
    KeyNotAuthorized {
        /// Which provider.
        provider: &'static Provider,
        /// Whether it is the caller's own key.
        own: bool,
    },
    /// The provider does not offer the model.
    #[error("Model not available for inference on {}.", provider.display_name)]
    ModelNotOffered {
        /// Which provider.
        provider: &'static Provider,
    },
    /// A budget in dollars without a price.
    #[error(
        "The price of this model is not known: use budget_tokens instead of budget_usd, or on the command line \
         --price IN,OUT"
    )]
    PriceUnknown,
    /// A budget in dollars without a price of the judge.
    #[error("The price of the judge is not known: use budget_tokens instead of budget_usd")]
    JudgePriceUnknown,
    /// A judged benchmark without a judge.
    #[error(
        "Answers to {benchmark} are judged by a model, and none was named: set judge.model_id (on the command line \
         --judge-model PROVIDER/MODEL) or the variable BENCH_JUDGE_MODEL.{}",
        .official.map_or_else(String::new, |official| format!(" Its authors use {official}."))
    )]
    NoJudge {
        /// The benchmark.
        benchmark: BenchmarkName,
        /// The judge that its authors use.
        official: Option<&'static str>,
    },
    /// A judge that the operator does not pay for.
    #[error("The judge {0} needs a key of your own: give one for the judge, or leave judge.model_id out.")]
    JudgeNeedsKey(String),
    /// What is wrong is wrong with the judge.
    #[error("The judge: {0}")]
    Judge(Box<RunError>),
    /// None of the names is a benchmark.
    #[error("No matching benchmarks found for selected_benchmarks")]
    NoBenchmarks,
    /// A choice for a benchmark that the order does not have.
    #[error("{}", not_ordered(*.what, .benchmark, .ordered))]
    NotOrdered {
        /// What was chosen for it.
        what: Choice,
        /// The benchmark.
        benchmark: BenchmarkName,
        /// Those that are to be run.
        ordered: Vec<BenchmarkName>,
    },
    /// A protocol that there is not, or for a benchmark that there is not.
    #[error("protocols: {0}")]
    Protocol(UnknownChoice),
    /// An option that there is not, or for a benchmark that there is not.
    #[error("benchmark_options.{name}: {problem}")]
    Options {
        /// The benchmark as it was named.
        name: String,
        /// What is wrong with it.
        problem: UnknownChoice,
    },
    /// The dataset cannot be had: its terms were not accepted.
    #[error("{0}")]
    DatasetNotAvailable(String),
    /// The access policy does not let the caller order this.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// More samples than one order may have.
    #[error(
        "This order has {planned} samples, and the server takes {limit} in one order: choose fewer benchmarks, fewer \
         items (subset_count, subset_pct) or fewer samples of each (samples)."
    )]
    TooManySamples {
        /// Those of the order.
        planned: u64,
        /// Those that one order may have.
        limit: u64,
    },
    /// The owner has ordered too often.
    #[error("You placed {limit} orders in this minute, as many as one caller may place.")]
    TooManyOrders {
        /// Orders that one owner may place in a minute.
        limit: u64,
        /// Until the minute is over.
        wait: Duration,
    },
    /// All owners together have ordered too often.
    #[error("This server took {limit} orders in this minute, as many as it takes.")]
    TooManyOrdersInAll {
        /// Orders that the server takes in a minute.
        limit: u64,
        /// Until the minute is over.
        wait: Duration,
    },
    /// The owner has too many open runs.
    #[error(
        "You have {limit} open runs, as many as one caller may have: wait until one is over, or cancel one."
    )]
    TooManyOpenRuns {
        /// Open runs that one owner may have.
        limit: u64,
    },
    /// All owners together have too many open runs.
    #[error("This server has {limit} open runs, as many as it takes; try again later.")]
    TooManyOpenRunsInAll {
        /// Open runs that the server takes.
        limit: u64,
    },
    /// The idempotency key stands for another order.
    #[error("This idempotency key was used for another order.")]
    KeyReused,
    /// The run that the idempotency key stands for was deleted.
    #[error("The run made under this idempotency key was deleted.")]
    EarlierRunDeleted,
    /// The same order came twice at a time, and what the other one made cannot be found.
    #[error("The run was not created; send the order again.")]
    NotCreated,
    /// No such run.
    #[error("Run not found")]
    RunNotFound,
    /// The run whose answers are to be judged again is not over.
    #[error("Run {run} is {status}: its answers can be judged again when it is over")]
    RunOpen {
        /// The run.
        run: RunId,
        /// Where it stands.
        status: RunStatus,
    },
    /// No benchmark of the run is judged.
    #[error("None of the run's benchmarks is judged by a model: there is nothing to judge again")]
    NothingJudged,
    /// The run has no answer that could be judged.
    #[error("The run ended before it had any answer that could be judged")]
    NoAnswers,
    /// The run whose answers are to be judged again is gone.
    #[error("The run that asked the model was deleted, and its answers with it")]
    AnswersDeleted,
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// What was stored or configured makes no sense.
    #[error("{0}")]
    Internal(String),
}

impl RunError {
    /// The stable code of the reason, for programs.
    pub fn code(&self) -> Code {
        match self {
            Self::ModelNotFound | Self::ModelNotFoundWithKey | Self::ModelNotOffered { .. } => {
                Code::ModelNotFound
            }
            Self::ProviderMismatch | Self::ModelName(_) | Self::ResponsesMisplaced => Code::InvalidModel,
            Self::ProviderNotEnabled | Self::ProviderUnknown => Code::UnsupportedProvider,
            Self::ProviderNotSetUp(_) | Self::ModelCannotBeAsked(_) => Code::ProviderNotConfigured,
            Self::KeyNotAuthorized { .. } => Code::InvalidKey,
            Self::PriceUnknown | Self::JudgePriceUnknown => Code::PriceUnknown,
            Self::NoJudge { .. } => Code::JudgeMissing,
            Self::JudgeNeedsKey(_) => Code::JudgeKeyRequired,
            Self::Judge(error) => error.code(),
            Self::NoBenchmarks => Code::NoBenchmarks,
            Self::NotOrdered { .. } => Code::BenchmarkNotOrdered,
            Self::Protocol(_) | Self::Options { .. } => Code::InvalidRequest,
            Self::DatasetNotAvailable(_) => Code::DatasetUnavailable,
            Self::NotAllowed(refused) => refused.code(),
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

    /// Time after which the same order may be taken; `None` if only another order helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyOrders { wait, .. } | Self::TooManyOrdersInAll { wait, .. } => Some(*wait),
            Self::TooManyOpenRuns { .. } | Self::TooManyOpenRunsInAll { .. } => Some(OPEN_RUNS_WAIT),
            Self::Judge(error) => error.retry_after(),
            _ => None,
        }
    }

    /// The same error about the judge. What is not the order's fault stays as it is.
    pub(crate) fn about_judge(self) -> Self {
        match self {
            Self::State(_) | Self::Internal(_) => self,
            _ => Self::Judge(Box::new(self)),
        }
    }
}

fn not_ordered(what: Choice, benchmark: &BenchmarkName, ordered: &[BenchmarkName]) -> String {
    let names = || ordered.iter().map(BenchmarkName::as_str).collect::<Vec<_>>().join(", ");
    match what {
        Choice::Dataset => format!("A dataset was given for {benchmark}, which is not to be run."),
        Choice::Protocol => {
            format!("A protocol was given for {benchmark}, which is not to be run; to be run are {}", names())
        }
        Choice::Options => {
            format!("Options were given for {benchmark}, which is not to be run; to be run are {}", names())
        }
    }
}
