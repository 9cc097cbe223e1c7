//! Code that all functions share: batches, deadlines, configuration and the Lambda runtime.
//!
//! A function is a library with a handler, and a `main` of a few lines. The handler doesn't depend on the runtime: the
//! embedded host calls the same handler with the same events.

mod batch;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "deployed")]
mod init;
#[cfg(feature = "deployed")]
mod kms;
pub mod metrics;
#[cfg(feature = "deployed")]
mod resources;
#[cfg(feature = "deployed")]
mod runtime;
#[cfg(feature = "deployed")]
mod vars;

pub use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
pub use batch::{HandleResult, UnreadableMessage, forward, handle_batch, handle_dead_batch};
#[cfg(feature = "http")]
pub use http::{ResponseMode, run_http};
#[cfg(feature = "deployed")]
pub use init::{Init, WarmService};
#[cfg(feature = "deployed")]
pub use kms::{CONTEXT_NAME, KmsKey};
#[cfg(feature = "deployed")]
pub use runtime::{run_scheduled, run_sqs};
#[cfg(feature = "deployed")]
pub use vars::Vars;

use bench_domain::Timestamp;
use std::time::Duration;

/// Time at which an invocation is ended, finished or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Timestamp);

impl Deadline {
    /// Returns a deadline that is `duration` from now.
    pub fn after(duration: Duration) -> Self {
        Self(bench_clock::now().plus(duration))
    }

    /// Returns the time left until `reserve` before the deadline, or zero if that has passed.
    pub fn remaining(self, reserve: Duration) -> Duration {
        self.0.since(bench_clock::now()).saturating_sub(reserve)
    }
}

/// Extracts the message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a text").to_owned()
}
