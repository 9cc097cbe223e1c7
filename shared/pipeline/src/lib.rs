//! Takes samples from message to score.
//!
//! A [`Pipeline`] receives batches of messages and takes each sample through the same steps:
//!
//! 1. [`claim`]: claims the sample for this attempt. [`context`] has its run and its benchmark, read once for all
//!    samples of the run.
//! 2. [`pipeline`] chooses the sample's stage: [`answer`] asks the run's answer source and grades, [`judge`]
//!    asks a model to grade the answer, [`job`] runs the answer in a sandbox, [`episode`] lets an agent work on a
//!    terminal task. A new kind of work becomes a new module.
//! 3. [`commit`]: stores what was received before anything else is done with it; the verdict ends the sample.
//!    A stage without a verdict hands the sample over ([`hand_over`]) or puts it off ([`claim`]).
//!
//! [`model`] asks models and handles the failures of their providers, [`budget`] counts what a run has spent,
//! [`failures`] how many samples failed, and [`end_run`] stops a run whose next request would fail as well. `ARCHITECTURE.md` lists the files in the
//! order that a sample passes through them.

mod activity;
mod answer;
mod budget;
mod claim;
mod commit;
mod config;
mod context;
mod end_run;
mod episode;
mod error;
mod failures;
mod hand_over;
mod job;
mod judge;
mod model;
mod pipeline;
mod responses;
mod sandbox_host;
mod services;

pub use activity::WorkerIdentity;
pub use config::PipelineConfig;
pub use context::{Ledgers, MaterialLoader, REFUSED_SAMPLES, SUPPORT_BYTES_MAX};
pub use pipeline::Pipeline;
pub use responses::{ExcessResponses, NamedItem, RecordedResponses, ResponsesError};
pub use sandbox_host::SandboxHost;
pub use services::Services;
