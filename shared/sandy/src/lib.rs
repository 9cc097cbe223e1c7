//! Client of the sandbox service Sandy: where it is, its endpoints that we use, and jobs on top of them.
//!
//! What comes back is checked field by field; only known fields go on. An answer of another shape is an error in
//! one sentence, never a panic. A call is repeated only where that does no harm: the durable steps above repeat the
//! rest. [`job`] is for work that takes longer than one call.

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
