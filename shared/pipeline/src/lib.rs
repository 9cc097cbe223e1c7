//! A sample from message to score.
//!
//! A [`Pipeline`] receives batches of messages and takes each sample through the same steps:
//!
//! 1. [`claim`]: the sample becomes this attempt's, with its run and its benchmark.
//! 2. [`load`]: the run, its sources and keys are loaded once for all samples; the item once for the attempt.
//! 3. The sample's stage, chosen in [`pipeline`]: [`answer`] asks one of the sources and grades, [`judge`] asks a model
//!    what the answer is worth, [`job`] runs the answer in a sandbox. Another kind of work is another module.
//! 4. [`commit`]: what was received is stored before anything else is done with it; the verdict ends the sample.
//!
//! [`provider`] asks model providers and says what their failures mean for sample and run, [`budget`] counts what a run
//! has spent, [`end_run`] stops a run whose next request would fail as well.

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
mod pipeline;
mod provider;
mod responses;
mod services;

pub use activity::WorkerIdentity;
pub use budget::ledger::Ledgers;
pub use config::PipelineConfig;
pub use job::SandboxHost;
pub use load::material::{MaterialLoader, SUPPORT_BYTES_MAX};
pub use pipeline::Pipeline;
pub use provider::refusals::REFUSED_SAMPLES;
pub use responses::{NamedItem, RecordedResponses, ResponsesError};
pub use services::Services;
