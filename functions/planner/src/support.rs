//! Checks before asking that the dataset has everything that the prompts of the chosen items need.

use std::collections::BTreeMap;

use bench_benchmarks::Benchmark;
use bench_datasets::{DatasetError, Index, Library};
use bench_domain::Code;
use bench_state::PlannedSample;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::Obstacle;

/// Number of support values looked up concurrently.
const AT_ONCE: usize = 16;
/// Maximum number of missing values that an error names.
const SHOWN_MAX: usize = 5;

/// Rejects a benchmark if prompts of its chosen items need few-shot examples or documents that the dataset lacks.
/// Those items would end as errors after the others were paid for.
pub(crate) async fn check(
    library: &Library,
    benchmark: &dyn Benchmark,
    index: &Index,
    items: &[PlannedSample],
) -> Result<Result<(), Obstacle>, DatasetError> {
    let Some(needed) = benchmark.metadata().support else { return Ok(Ok(())) };
    let mut users: BTreeMap<String, u64> = BTreeMap::new();
    for (planned, count) in representatives(benchmark, items) {
        for name in needs(library, benchmark, index, planned).await? {
            *users.entry(name).or_default() += count;
        }
    }
    let lookups = stream::iter(users).map(|(name, count)| async move {
        let found = library.has_support(index, &name).await?;
        Ok::<_, DatasetError>((!found).then_some((name, count)))
    });
    let missing: Vec<(String, u64)> =
        lookups.buffered(AT_ONCE).try_filter_map(|missing| async move { Ok(missing) }).try_collect().await?;
    if missing.is_empty() {
        return Ok(Ok(()));
    }
    let mut names: Vec<String> = missing
        .iter()
        .take(SHOWN_MAX)
        .map(|(name, count)| format!("`{name}` ({count} item{})", if *count == 1 { "" } else { "s" }))
        .collect();
    if missing.len() > SHOWN_MAX {
        names.push(format!("and {} more", missing.len() - SHOWN_MAX));
    }
    Ok(Err(Obstacle::Failed(
        Code::DatasetRowsMissing,
        format!(
            "the dataset of {} lacks {needed}: {}; add those rows to the dataset or choose other items",
            benchmark.name(),
            names.join(", ")
        ),
    )))
}

/// Returns the items to check, each with the number of items that it represents.
fn representatives<'a>(
    benchmark: &dyn Benchmark,
    items: &'a [PlannedSample],
) -> Vec<(&'a PlannedSample, u64)> {
    if !benchmark.support_follows_group() {
        return items.iter().map(|item| (item, 1)).collect();
    }
    let mut groups: BTreeMap<Option<&str>, (&PlannedSample, u64)> = BTreeMap::new();
    for item in items {
        groups.entry(item.group.as_deref()).or_insert((item, 0)).1 += 1;
    }
    groups.into_values().collect()
}

async fn needs(
    library: &Library,
    benchmark: &dyn Benchmark,
    index: &Index,
    planned: &PlannedSample,
) -> Result<Vec<String>, DatasetError> {
    let item = library.item(index, planned.offset, planned.length).await?;
    let mut names = benchmark.support_names(&item);
    names.sort_unstable();
    names.dedup();
    Ok(names)
}
