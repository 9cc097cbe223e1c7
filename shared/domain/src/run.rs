//! A run and its benchmarks: what was ordered, and the states they go through.

mod benchmark_state;
mod choices;
mod plan;
mod state;

pub use benchmark_state::{BenchmarkState, BenchmarkStatus};
pub use choices::{AuthMode, DatasetChoice, ItemNaming, JudgeSpec, ModelRef, Owner, Rejudges, located};
pub use plan::{DatasetUse, JudgeUse, Plan};
pub use state::{FailureReason, RunState, RunStatus};

/// A benchmark whose coverage is below this has no score, unless the run says otherwise.
pub const COVERAGE_MIN_DEFAULT: f64 = 0.9;
/// Upper bound of samples per item.
pub const SAMPLES_PER_ITEM_MAX: u32 = 1_000;
