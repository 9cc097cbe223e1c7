//! The sandbox host: Sandy's HTTP API on this machine.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`SandboxHost`] | creates, uses and ends sandboxes |
//! | [`HostConfig`] | limits of the host, each with its default |
//! | `slot_pool` | assigns slots by priority, and chooses which sandboxes to preempt; knows neither time nor processes |
//! | `machine` | capacity and usage of this machine |
//! | `engine` | container engine for sandboxes that ask for one |
//! | [`router`] | the HTTP API: keys, bodies, answers |
//!
//! Invariants:
//! - At most [`HostConfig::slots`] sandboxes work at once, by default as many as the machine has processors: graders
//!   measure wall-clock time, and a program that has to share a processor would fail tests that it passes alone. A
//!   sandbox has its slot from the beginning. One that neither runs a command nor uses a processor for a while lends
//!   its slot to a waiting request, and waits for another slot when it is used again.
//! - Waiting requests are served by priority, then in the order of arrival. A request takes the slot of a preemptable
//!   sandbox of lower priority; the youngest is chosen, since it has the least work to lose.
//! - Every sandbox ends: when it is unused, when it is older than its lease, and when its caller went away before it
//!   received the sandbox's id.
//! - What a sandbox makes in a container engine ends with the sandbox, and what a killed host left behind, when another
//!   one with the same folder starts.
//! - Commands and their output are logged at debug level at most, and keys never.

mod commands;
mod config;
mod create;
mod end_reason;
mod engine;
mod entry;
mod error;
mod http;
mod lifecycle;
mod machine;
mod metric;
mod metric_history;
mod priority;
mod reservation;
mod resources;
mod slot_pool;
mod unavailable;
mod view;

#[cfg(test)]
mod tests;

pub use commands::{ExecRequest, ExecView};
pub use config::{ApiKey, HostConfig};
pub use create::NewSandbox;
pub use engine::{EngineConfig, EngineView};
pub use error::HostError;
pub use http::router;
pub use lifecycle::SandboxHost;
pub use metric::Metric;
pub use priority::Priority;
pub use resources::{IsolationView, ResourcesView, StatsView};
pub use unavailable::unavailable_isolation;
pub use view::SandboxView;
