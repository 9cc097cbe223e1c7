//! Which items of a dataset a run asks.

use std::collections::HashSet;

use bench_benchmarks::Options;
use bench_datasets::{Index, IndexEntry};
use bench_domain::sampling::Order;
use bench_state::PlannedSample;

use crate::{Obstacle, Selection};

/// The items of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) items: Vec<PlannedSample>,
    /// How many there were to choose from.
    pub(crate) of: u64,
}

/// The items of the run's subset in the order of the sample, or those that it names in dataset order. What the
/// benchmark's options leave out is not there to be chosen.
pub(crate) fn items(selection: &Selection<'_>, index: &Index) -> Result<Chosen, Obstacle> {
    let Selection { benchmark, options, .. } = *selection;
    let name = benchmark.name();
    let selected: Vec<&IndexEntry> =
        index.items.iter().filter(|entry| benchmark.selects(options, entry)).collect();
    if selected.is_empty() && !index.items.is_empty() {
        return Err(Obstacle::Failed(format!(
            "none of the {} items of {name} is left by its options: {}",
            index.items.len(),
            listed(options)
        )));
    }
    let chosen: Vec<&IndexEntry> = if selection.items.is_empty() {
        let order = Order::of_benchmark(name);
        let places = selection.subset.select(selected.len(), &selection.run.to_string(), name, order);
        places.into_iter().filter_map(|place| selected.get(place).copied()).collect()
    } else {
        named(selection.items, name, index, &selected, options)?
    };
    let items: Vec<PlannedSample> = chosen
        .into_iter()
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
    Ok(Chosen { items, of: selected.len() as u64 })
}

fn named<'a>(
    wanted: &[String],
    name: &str,
    index: &Index,
    selected: &[&'a IndexEntry],
    options: &Options,
) -> Result<Vec<&'a IndexEntry>, Obstacle> {
    let mut missing: HashSet<&str> = wanted.iter().map(String::as_str).collect();
    let found = selected.iter().copied().filter(|entry| missing.remove(entry.id.as_str())).collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let left_out = index.items.iter().any(|entry| missing.contains(entry.id.as_str()));
    let mut names: Vec<&str> = missing.into_iter().take(5).collect();
    names.sort_unstable();
    let names = names.join(", ");
    Err(Obstacle::Failed(match left_out {
        false => format!("{name} has no item {names}"),
        true => format!("{name} has no item {names} under its options: {}", listed(options)),
    }))
}

fn listed(options: &Options) -> String {
    if options.is_empty() {
        return "the default ones".to_owned();
    }
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}
