//! Terminal tasks: uploads, executions, and the clients of the earlier runner.

mod agents;
mod attacks;
mod execution;
mod keys;
mod load;
mod orders;
mod permissions;
mod results;
mod schedules;
mod shapes;
pub(crate) mod support;
mod uploads;
