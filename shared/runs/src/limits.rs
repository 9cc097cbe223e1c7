//! Limits of orders: samples of one order, orders per minute, open runs.

use std::time::Duration;

use bench_benchmarks::Benchmark;
use bench_domain::run::{DatasetChoice, Owner};
use bench_domain::{BenchmarkName, RunTemplate};
use bench_state::access::LimitScope;

use crate::{RunCreator, RunError};

impl RunCreator {
    /// Counts an order in this minute.
    ///
    /// # Errors
    /// If its owner, or all owners together, placed too many orders.
    pub async fn count_order(&self, owner: &Owner) -> Result<(), RunError> {
        let (limits, now) = (self.limits(owner), bench_clock::now());
        let second = now.as_seconds().rem_euclid(60);
        let wait = Duration::from_secs(u64::try_from(60 - second).unwrap_or(60));
        match self.state.count_order(owner, &limits, now).await? {
            None => Ok(()),
            Some(LimitScope::Owner) => {
                Err(RunError::TooManyOrders { limit: limits.orders_per_minute_per_owner, wait })
            }
            Some(LimitScope::Total) => {
                Err(RunError::TooManyOrdersInAll { limit: limits.orders_per_minute, wait })
            }
        }
    }

    /// Returns the error for an order of this owner that reached a limit of open runs.
    pub fn too_many_open(&self, owner: &Owner, reached: LimitScope) -> RunError {
        let limits = self.limits(owner);
        match reached {
            LimitScope::Owner => RunError::TooManyOpenRuns { limit: limits.open_runs_per_owner },
            LimitScope::Total => RunError::TooManyOpenRunsInAll { limit: limits.open_runs },
        }
    }

    /// Rejects an order with more samples than its owner may plan in one order, as far as the sizes of its datasets are
    /// known. The planner checks again when it has loaded them.
    ///
    /// # Errors
    /// [`RunError::TooManySamples`] with both numbers.
    pub fn check_samples(&self, owner: &Owner, template: &RunTemplate) -> Result<(), RunError> {
        let planned = template.benchmarks.iter().map(|name| known_samples(template, name));
        let planned = planned.fold(0_u64, u64::saturating_add);
        check_sample_limit(planned, self.limits(owner).samples_per_order)
    }
}

/// Rejects `planned` samples if they exceed `limit`.
///
/// # Errors
/// [`RunError::TooManySamples`] with both numbers.
pub(crate) fn check_sample_limit(planned: u64, limit: u64) -> Result<(), RunError> {
    if planned <= limit { Ok(()) } else { Err(RunError::TooManySamples { planned, limit }) }
}

/// Returns the number of samples of a benchmark; 0 if the size of its dataset isn't known.
fn known_samples(template: &RunTemplate, name: &BenchmarkName) -> u64 {
    let Some(benchmark) = bench_benchmarks::find(name.as_str()) else { return 0 };
    let protocol = template.protocols.get(name).map(String::as_str);
    let benchmark = bench_benchmarks::with_protocol(benchmark, protocol).unwrap_or(benchmark);
    let each = u64::from(template.samples.unwrap_or(benchmark.metadata().samples_per_item));
    let items = if template.items.is_empty() {
        let size = usize::try_from(dataset_items(benchmark, template, name)).unwrap_or(usize::MAX);
        template.subset.size(size) as u64
    } else {
        template.items.len() as u64
    };
    items.saturating_mul(each)
}

fn dataset_items(benchmark: &dyn Benchmark, template: &RunTemplate, name: &BenchmarkName) -> u64 {
    // Options may exclude a part of the dataset.
    if template.options.contains_key(name) {
        return 0;
    }
    match template.datasets.get(name) {
        None | Some(DatasetChoice::Hub) => benchmark.spec().items,
        Some(DatasetChoice::Demo) => demo_items(benchmark),
        Some(DatasetChoice::Local { .. }) => 0,
    }
}

fn demo_items(benchmark: &dyn Benchmark) -> u64 {
    benchmark.spec().demo.items.lines().filter(|line| !line.trim().is_empty()).count() as u64
}
