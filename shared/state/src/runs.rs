//! Runs and their benchmarks.

mod benchmarks;
mod change;
mod create;
mod delete;
mod read;
mod record;

pub use change::{Renewal, Transition};
pub use create::Creation;
pub(crate) use create::new_run_limit;
pub use read::{RunFilter, RunPage};
pub use record::{BenchmarkRecord, Resumption, RunRecord, RunWithBenchmarks};
