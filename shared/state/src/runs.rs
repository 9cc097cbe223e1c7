//! Runs and their benchmarks.

mod benchmarks;
mod change;
mod create;
mod delete;
mod labels;
mod owned;
mod provider_wait;
mod read;
mod record;

pub use change::{Renewal, Transition};
pub use create::Creation;
pub(crate) use create::new_run_limit;
pub use labels::SearchedLabels;
pub use provider_wait::{ProviderWait, WaitKind, WaitNoted};
pub use read::{RunFilter, RunPage};
pub use record::{
    BenchmarkRecord, ItemIndex, Results, Resumption, RunRecord, RunWithBenchmarks, SampleChoice,
};
