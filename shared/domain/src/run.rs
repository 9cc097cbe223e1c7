//! Runs and their benchmarks: settings and states.

mod benchmark_state;
mod choices;
mod plan;
mod state;

pub use benchmark_state::{BenchmarkState, BenchmarkStatus};
pub use choices::{
    AuthMode, DatasetChoice, ItemNaming, JudgeSpec, ModelRef, Owner, RejudgedRun, UserSpec, name_with_host,
};
pub use plan::{DatasetUse, JudgeUse, OwnTimeout, Plan};
pub use state::{FailureReason, RunState, RunStatus};

/// Default of the minimum coverage. Benchmarks with less have no score.
pub const COVERAGE_MIN_DEFAULT: f64 = 0.9;
/// Maximum number of samples per item.
pub const SAMPLES_PER_ITEM_MAX: u32 = 1_000;
