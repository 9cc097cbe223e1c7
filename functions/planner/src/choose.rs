//! Chooses the items of a dataset that a run asks.

use std::collections::{BTreeSet, HashSet};

use bench_benchmarks::{Benchmark, Options};
use bench_datasets::Index;
use bench_domain::Code;
use bench_domain::run::ItemNaming;
use bench_domain::sampling::Order;
use bench_items::{IndexEntry, ItemNames, NameProblems};
use bench_state::PlannedSample;

use crate::{Obstacle, Selection};

/// Maximum number of items that a message names.
const NAMES_SHOWN_MAX: usize = 5;

/// Items of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) items: Vec<PlannedSample>,
    /// Number of items to choose from.
    pub(crate) of: u64,
}

/// Returns the items of the run's subset in the order of the random sample, or those that the order names in the
/// dataset's order. Items excluded by the benchmark's options can't be chosen.
pub(crate) fn items(selection: &Selection<'_>, index: &Index) -> Result<Chosen, Obstacle> {
    let Selection { benchmark, options, .. } = *selection;
    let name = benchmark.name();
    let missing = benchmark.missing_names(options, &index.items);
    if !missing.is_empty() {
        let names = missing.iter().take(NAMES_SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let why = format!("the dataset has no item {names}, which its options name: {}", listed(options));
        return Err(Obstacle::Failed(Code::ItemNotFound, why));
    }
    let selected: Vec<&IndexEntry> =
        index.items.iter().filter(|entry| benchmark.selects(options, entry)).collect();
    if selected.is_empty() && !index.items.is_empty() {
        return Err(Obstacle::Failed(
            Code::NoItems,
            format!(
                "none of the {} items of {name} is left by its options: {}",
                index.items.len(),
                listed(options)
            ),
        ));
    }
    let chosen: Vec<&IndexEntry> = if selection.items.is_empty() {
        let order = Order::for_benchmark(name);
        let places = selection.subset.select(selected.len(), &selection.run.to_string(), name, order);
        places.into_iter().filter_map(|place| selected.get(place).copied()).collect()
    } else {
        named(selection, index, &selected)?
    };
    let items: Vec<PlannedSample> = chosen
        .into_iter()
        .map(|entry| PlannedSample {
            item_id: entry.id.clone(),
            source_id: entry.source_id.clone(),
            group: entry.group.clone(),
            offset: entry.offset,
            length: entry.length,
        })
        .collect();
    if items.is_empty() {
        return Err(Obstacle::NeedsSetup(
            Code::NoItems,
            "No items found - dataset may require setup".to_owned(),
        ));
    }
    Ok(Chosen { items, of: selected.len() as u64 })
}

fn named<'a>(
    selection: &Selection<'_>,
    index: &Index,
    selected: &[&'a IndexEntry],
) -> Result<Vec<&'a IndexEntry>, Obstacle> {
    let Selection { benchmark, options, items: wanted, .. } = *selection;
    let wanted = match selection.item_naming {
        ItemNaming::SourceId => found(wanted, benchmark, index),
        ItemNaming::RowIndex => rows(wanted, index),
    };
    let wanted = wanted.map_err(|why| Obstacle::Failed(Code::ItemNotFound, why))?;
    let chosen: Vec<&IndexEntry> =
        selected.iter().copied().filter(|entry| wanted.contains(entry.id.as_str())).collect();
    if chosen.len() == wanted.len() {
        return Ok(chosen);
    }
    let chosen: HashSet<&str> = chosen.iter().map(|entry| entry.id.as_str()).collect();
    let left_out = index
        .items
        .iter()
        .filter(|entry| wanted.contains(entry.id.as_str()) && !chosen.contains(entry.id.as_str()));
    let names = left_out.take(NAMES_SHOWN_MAX).map(IndexEntry::display_id).collect::<Vec<_>>().join(", ");
    let why = format!("the dataset has no item {names} under its options: {}", listed(options));
    Err(Obstacle::Failed(Code::ItemNotFound, why))
}

/// Resolves the items that an order names to their ids in the index.
fn found<'a>(
    wanted: &[String],
    benchmark: &dyn Benchmark,
    index: &'a Index,
) -> Result<BTreeSet<&'a str>, String> {
    let names = ItemNames::new(&index.items);
    let mut problems = NameProblems::default();
    let mut found = BTreeSet::new();
    for item in wanted {
        match names.find(item) {
            Ok(at) => found.extend(index.items.get(at).map(|entry| entry.id.as_str())),
            Err(error) => problems.add(item, 1, &error),
        }
    }
    if problems.is_empty() {
        return Ok(found);
    }
    let sentence = problems.describe_items(wanted.len() as u64, "the dataset");
    Err(match problems.hint(benchmark) {
        Some(hint) => format!("{sentence}; {hint}"),
        None => sentence,
    })
}

/// Resolves items of an order that was stored when items were named only by the indices of their rows.
fn rows<'a>(wanted: &[String], index: &'a Index) -> Result<BTreeSet<&'a str>, String> {
    let mut missing: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    let ids = index.items.iter().map(|entry| entry.id.as_str());
    let found = ids.filter(|id| missing.remove(id)).collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let names: Vec<&str> = missing.into_iter().take(NAMES_SHOWN_MAX).collect();
    Err(format!("the dataset has no item {}", names.join(", ")))
}

fn listed(options: &Options) -> String {
    if options.is_empty() {
        return "the default ones".to_owned();
    }
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}
