//! Client of the sandbox service Sandy: its configuration, the endpoints that we use, and jobs on top of them.
//!
//! Answers are checked field by field, and unknown fields are dropped. An answer of another shape is an error with one
//! sentence, never a panic. The client repeats calls only if that is harmless; callers repeat the rest from their saved
//! state. [`job`] is for work that takes longer than one call.

mod client;
mod config;
mod error;
mod id;
pub mod job;
mod read;
mod sandboxes;
#[cfg(feature = "testing")]
pub mod testing;
mod timing;
mod views;

pub use client::Sandy;
pub use config::SandyConfig;
pub use error::{SandyError, SandyErrorKind};
pub use sandboxes::{ExecOutput, ExecRequest, NewSandbox};
pub use timing::Timing;
pub use views::{HostMetric, Resources, SandboxStats};
