//! A sample from message to score.
//!
//! A [`Desk`] takes messages of one [`Stage`], claims their samples and hands them to an [`Attempt`], which asks,
//! stores and commits with what is here: run contexts, shared waits, the look whether a run is still open, what
//! failures mean for sample and run, the budget, and the signs of life.

mod answer;
mod budget;
mod commit;
mod config;
mod end_run;
mod heartbeat;
mod job;
mod judge;
mod load;
mod pipeline;
mod provider;
mod turns;

pub use answer::Worker;
pub use answer::earlier_run::{Original, Replayed};
pub use answer::recorded::{NamedItem, Replay, ReplayError};
pub use bench_domain::sample::Stage;
pub use budget::ledger::{Ledgers, Receipt};
pub use commit::StoredBody;
pub use config::PipelineConfig;
pub use heartbeat::WorkerIdentity;
pub use job::SandboxHost;
pub use load::material::{SUPPORT_BYTES_MAX, Supplies};
pub use load::run::{BenchmarkContext, Contexts, Party, RunContext};
pub use pipeline::{AskError, Attempt, Desk, InHand, Services};
pub use provider::refusals::REFUSED_SAMPLES;
pub use provider::{Question, Reached};
pub use turns::Turns;
