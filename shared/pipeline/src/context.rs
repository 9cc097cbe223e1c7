//! Context of an attempt: the claimed sample, and its run's benchmarks, models and spending, which are loaded once for
//! all samples of the run.

mod agent_cache;
mod benchmark;
mod claimed;
mod ledger;
mod model_client;
mod pace;
mod provider_wait;
mod refusals;
mod runs;
mod source;
mod task_cache;

pub(crate) use self::agent_cache::AgentCache;
pub use self::benchmark::{MaterialLoader, SUPPORT_BYTES_MAX};
pub(crate) use self::claimed::ClaimedSample;
pub use self::ledger::Ledgers;
pub(crate) use self::model_client::{KnownWait, ModelClient, ModelClients, Unavailable};
pub(crate) use self::refusals::Conclusion;
pub use self::refusals::REFUSED_SAMPLES;
pub(crate) use self::runs::RunCache;
pub(crate) use self::source::{
    AnswerSource, EarlierRun, JudgeSource, ORACLE, Plans, ResponsesFile, UserSource,
};
pub(crate) use self::task_cache::TaskCache;
