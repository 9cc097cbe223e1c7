//! Benchmarks of an order, and the sources of their items.

use std::collections::BTreeMap;

use bench_domain::BenchmarkName;
use bench_domain::run::DatasetChoice;

use crate::{Choice, Order, Orders, RunError};

/// Returns the benchmarks of an order, in its order and without duplicates, and the names that aren't benchmarks.
pub(crate) fn select(names: Option<&[String]>) -> Result<(Vec<BenchmarkName>, Vec<String>), RunError> {
    let named: Vec<&str> =
        names.unwrap_or_default().iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    let (mut known, mut ignored) = (Vec::new(), Vec::new());
    let all = || bench_benchmarks::all().iter().map(|benchmark| benchmark.name());
    let requested: Vec<&str> = if named.is_empty() { all().collect() } else { named };
    for text in requested {
        let named = text.parse::<BenchmarkName>().ok().and_then(|name| bench_benchmarks::find_named(&name));
        match named.and_then(|benchmark| benchmark.name().parse::<BenchmarkName>().ok()) {
            Some(name) if known.contains(&name) => {}
            Some(name) => known.push(name),
            None => ignored.push(text.chars().take(80).collect()),
        }
    }
    if known.is_empty() {
        return Err(RunError::NoBenchmarks);
    }
    Ok((known, ignored))
}

/// Returns the known names of the request's list, or `None` if it named none.
pub(crate) fn filter_known(names: Option<&[String]>, known: &[BenchmarkName]) -> Option<Vec<String>> {
    let named = names.unwrap_or_default().iter().any(|name| !name.trim().is_empty());
    named.then(|| known.iter().map(ToString::to_string).collect())
}

impl Orders {
    /// Returns the sources of items that differ from the hub. Rejects datasets that aren't available.
    pub(crate) fn dataset_choices(
        &self,
        order: &Order,
        benchmarks: &[BenchmarkName],
    ) -> Result<BTreeMap<BenchmarkName, DatasetChoice>, RunError> {
        let given = &order.trusted.datasets;
        if let Some(other) = given.keys().find(|name| !benchmarks.contains(name)) {
            let (benchmark, ordered) = (other.clone(), benchmarks.to_vec());
            return Err(RunError::NotOrdered { what: Choice::Dataset, benchmark, ordered });
        }
        let mut datasets = BTreeMap::new();
        for name in benchmarks {
            let choice = self.check_dataset(order, name)?;
            if choice != DatasetChoice::Hub {
                datasets.insert(name.clone(), choice);
            }
        }
        Ok(datasets)
    }

    /// Returns the source of a benchmark's items. Rejects a dataset that isn't available.
    pub(crate) fn check_dataset(
        &self,
        order: &Order,
        name: &BenchmarkName,
    ) -> Result<DatasetChoice, RunError> {
        let choice = match order.trusted.datasets.get(name) {
            Some(choice) => choice.clone(),
            None if order.demo => DatasetChoice::Demo,
            None => DatasetChoice::Hub,
        };
        if let Some(benchmark) = bench_benchmarks::find(name.as_str()) {
            (self.datasets)(benchmark, &choice).map_err(RunError::DatasetNotAvailable)?;
        }
        Ok(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn unknown_benchmarks_are_left_out_and_reported() {
        let list = names(&[" MMLU_Pro ", "nope", "mmlu_pro", "", "a/b", "aime_2025"]);
        let (known, ignored) = select(Some(&list)).unwrap();
        assert_eq!(known.iter().map(BenchmarkName::as_str).collect::<Vec<_>>(), ["mmlu_pro", "aime_2025"]);
        assert_eq!(ignored, ["nope", "a/b"]);
        assert_eq!(filter_known(Some(&list), &known), Some(names(&["mmlu_pro", "aime_2025"])));
        assert!(matches!(select(Some(&names(&["nope"]))), Err(RunError::NoBenchmarks)));
        let (known, ignored) = select(Some(&names(&["IFEval", "ifbench", "ifbench_allenai"]))).unwrap();
        assert_eq!(
            known.iter().map(BenchmarkName::as_str).collect::<Vec<_>>(),
            ["ifbench", "ifbench_allenai"]
        );
        assert!(ignored.is_empty());
    }

    #[test]
    fn no_choice_is_all() {
        for list in [None, Some(names(&[])), Some(names(&["", "  "]))] {
            let (known, ignored) = select(list.as_deref()).unwrap();
            assert_eq!((known.len(), ignored.len()), (bench_benchmarks::all().len(), 0));
            assert_eq!(filter_known(list.as_deref(), &known), None);
        }
    }
}
