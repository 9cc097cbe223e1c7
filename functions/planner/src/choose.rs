//! Which items of a dataset a run asks.

use std::collections::HashSet;

use bench_datasets::Index;
use bench_domain::sampling::Order;
use bench_domain::{BenchmarkName, RunSpec};
use bench_state::PlannedSample;

use crate::Obstacle;

/// The items of the run's subset in the order of the sample, or those that it names in dataset order.
pub(crate) fn items(
    spec: &RunSpec,
    benchmark: &BenchmarkName,
    index: &Index,
) -> Result<Vec<PlannedSample>, Obstacle> {
    let chosen: Vec<usize> = if spec.items.is_empty() {
        let order = Order::of_benchmark(benchmark.as_str());
        spec.subset.select(index.items.len(), &spec.id.to_string(), benchmark.as_str(), order)
    } else {
        named(&spec.items, benchmark, index)?
    };
    let items: Vec<PlannedSample> = chosen
        .into_iter()
        .filter_map(|place| index.items.get(place))
        .map(|entry| PlannedSample {
            item_id: entry.id.clone(),
            group: entry.group.clone(),
            offset: entry.offset,
            length: entry.length,
        })
        .collect();
    if items.is_empty() {
        return Err(Obstacle::NeedsSetup("No items found - dataset may require setup".to_owned()));
    }
    Ok(items)
}

fn named(wanted: &[String], benchmark: &BenchmarkName, index: &Index) -> Result<Vec<usize>, Obstacle> {
    let mut missing: HashSet<&str> = wanted.iter().map(String::as_str).collect();
    let found = index
        .items
        .iter()
        .enumerate()
        .filter(|(_, entry)| missing.remove(entry.id.as_str()))
        .map(|(place, _)| place)
        .collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let mut names: Vec<&str> = missing.into_iter().take(5).collect();
    names.sort_unstable();
    Err(Obstacle::Failed(format!("{benchmark} has no item {}", names.join(", "))))
}
