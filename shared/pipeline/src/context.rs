//! What an attempt works with: the claimed sample, its run, its benchmark, the run's models and its spending. Loaded
//! once for all samples of a run.

mod benchmark;
mod claimed;
mod ledger;
mod model_client;
mod refusals;
mod runs;
mod source;

pub use self::benchmark::{MaterialLoader, SUPPORT_BYTES_MAX};
pub(crate) use self::claimed::ClaimedSample;
pub use self::ledger::Ledgers;
pub(crate) use self::model_client::{ModelClient, ModelClients, Role, Unavailable};
pub(crate) use self::refusals::Conclusion;
pub use self::refusals::REFUSED_SAMPLES;
pub(crate) use self::runs::RunCache;
pub(crate) use self::source::{AnswerSource, EarlierRun, JudgeSource, ORACLE, Plans, ResponsesFile};
