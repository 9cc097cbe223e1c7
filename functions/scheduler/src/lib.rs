//! EventBridge: schedules, reconciliation, model sync, reaping of keys and sandboxes.
//!
//! Every task can be run at any time and by several at once, and goes on where another one stopped.

mod config;
mod counts;
mod fire;
mod notify;
mod reap;
mod reconcile;
mod sandboxes;
mod scheduler;
mod task;
mod tick;
mod watch;
mod webhook;

pub use config::SchedulerConfig;
pub use counts::Ticked;
pub use reap::Reaped;
pub use reconcile::{GRACE, ReconcileError, Resent};
pub use scheduler::Scheduler;
pub use task::{Done, SchedulerError, Task, UnknownTask};
pub use webhook::{Refused, refuse_address};
