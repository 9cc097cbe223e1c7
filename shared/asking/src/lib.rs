//! Asking a model about a sample: what worker and turns have in common.
//!
//! A [`Desk`] takes messages of one [`Stage`], claims their samples and hands them to an [`Attempt`], which asks,
//! stores and commits with what is here: run contexts, shared waits, the look whether a run is still open, what
//! failures mean for sample and run, the budget, and the signs of life.

mod budget;
mod commit;
mod config;
mod context;
mod desk;
mod failed;
mod ledger;
mod original;
mod provider;
mod refusals;
mod run_end;
mod supplies;
mod vitals;

pub use bench_domain::sample::Stage;
pub use commit::StoredBody;
pub use config::AskingConfig;
pub use context::{BenchmarkContext, Contexts, Party, RunContext};
pub use desk::{AskError, Attempt, Desk, InHand, Services};
pub use ledger::{Ledgers, Receipt};
pub use original::{Original, Replayed};
pub use provider::{Question, Reached};
pub use refusals::REFUSED_SAMPLES;
pub use supplies::{SUPPORT_BYTES_MAX, Supplies};
pub use vitals::WorkerIdentity;
