//! Sandboxes for whoever asks over HTTP: Sandy's API on this machine.
//!
//! | module | what for |
//! | --- | --- |
//! | [`SandboxHost`] | the sandboxes that there are: made, used, ended |
//! | [`HostConfig`] | its bounds, each with its default |
//! | `room` | who gets a place, in which order, and who has to leave for it; no clock, no processes |
//! | `machine` | what this machine has and uses |
//! | [`router`] | the HTTP API: keys, bodies, answers |
//!
//! What holds here:
//! - At most [`HostConfig::slots`] sandboxes work at once, by default as many as the machine has processors: graders measure
//!   time by the clock on the wall, and a program that has to share a processor would fail tests that it passes alone. A
//!   sandbox has its slot from the beginning. One that neither runs a command nor uses a processor for a while lends its
//!   slot to who waits for one, and waits for another when it is used again.
//! - Whoever waits is served by priority, then in the order of coming. Who has a higher priority than a preemptable sandbox
//!   takes its place; the youngest has the least to lose.
//! - No sandbox lives forever: not one that nobody uses, not one that is older than a lease, not one whose maker went away
//!   before it heard of it.
//! - Nothing that runs in a sandbox is logged above debug level, and no key ever.

mod config;
mod entry;
mod error;
mod http;
mod life;
mod machine;
mod making;
mod metric;
mod place;
mod priority;
mod refusing;
mod resources;
mod room;
mod series;
mod use_of;
mod view;
mod why;

#[cfg(test)]
mod tests;

pub use config::{ApiKey, HostConfig};
pub use error::HostError;
pub use http::router;
pub use life::SandboxHost;
pub use making::NewSandbox;
pub use metric::Metric;
pub use priority::Priority;
pub use refusing::refusing;
pub use resources::{IsolationView, ResourcesView, StatsView};
pub use use_of::{ExecAsk, ExecView};
pub use view::SandboxView;
