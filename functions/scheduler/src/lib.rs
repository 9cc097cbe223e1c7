//! Handles timed events from EventBridge: schedules, reconciliation, model sync, and removal of left-over keys and
//! sandboxes.
//!
//! Every task can run at any time and several times at once. Each continues where another one stopped.

mod config;
mod counts;
mod fire;
mod notify;
mod reap;
mod reconcile;
mod sandboxes;
mod scheduler;
#[cfg(feature = "deployed")]
mod sns;
mod task;
mod tick;
mod topic;
mod watch;
mod webhook;

pub use config::SchedulerConfig;
pub use counts::Ticked;
pub use reap::Reaped;
pub use reconcile::{GRACE, ReconcileError, Resent};
pub use scheduler::Scheduler;
#[cfg(feature = "deployed")]
pub use sns::SnsTopic;
pub use task::{Done, SchedulerError, Task, UnknownTask};
pub use topic::{Publishing, Topic};
pub use webhook::{Refused, refuse_address};
