//! A sample from message to score.
//!
//! A [`Pipeline`] receives batches of messages and takes each sample through the same steps:
//!
//! 1. [`claim`]: the sample becomes this attempt's, with its run and its benchmark, which [`load`] reads once for all
//!    samples of the run.
//! 2. The sample's stage, chosen in [`pipeline`]: [`answer`] asks one of the sources and grades, [`judge`] asks a model
//!    what the answer is worth, [`job`] runs the answer in a sandbox. Another kind of work is another module.
//! 3. [`commit`]: what was received is stored before anything else is done with it; the verdict ends the sample. A stage
//!    that has no verdict hands the sample over ([`hand_over`]) or puts it off ([`claim`]).
//!
//! [`model`] asks models and says what the failures of their providers mean for sample and run, [`budget`] counts what
//! a run has spent, [`end_run`] stops a run whose next request would fail as well. `ARCHITECTURE.md` lists the files in the
//! order in which a sample passes them.

mod activity;
mod answer;
mod budget;
mod claim;
mod commit;
mod config;
mod end_run;
mod error;
mod hand_over;
mod job;
mod judge;
mod load;
mod model;
mod pipeline;
mod responses;
mod services;

pub use activity::WorkerIdentity;
pub use budget::ledger::Ledgers;
pub use config::PipelineConfig;
pub use job::SandboxHost;
pub use load::{MaterialLoader, SUPPORT_BYTES_MAX};
pub use model::refusals::REFUSED_SAMPLES;
pub use pipeline::Pipeline;
pub use responses::{NamedItem, RecordedResponses, ResponsesError};
pub use services::Services;
