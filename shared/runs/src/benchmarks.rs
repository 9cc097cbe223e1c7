//! Benchmarks of an order, and the sources of their items.

use std::collections::{BTreeMap, HashSet};

use bench_domain::BenchmarkName;
use bench_domain::run::DatasetChoice;
use bench_items::{NameError, NameProblems, ROW_SIGN, Row, source_id};

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
            if matches!(choice, DatasetChoice::Hub | DatasetChoice::Demo) {
                check_items(name, &order.items)?;
            }
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

/// Rejects items that a benchmark doesn't have whose whole dataset is in the program. Those of other datasets are known when
/// their runs are planned.
fn check_items(name: &BenchmarkName, items: &[String]) -> Result<(), RunError> {
    let Some(benchmark) = bench_benchmarks::find(name.as_str()).filter(|one| one.spec().is_bundled()) else {
        return Ok(());
    };
    if items.is_empty() {
        return Ok(());
    }
    let rows = benchmark.spec().demo.items.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
    let known: HashSet<String> = rows.filter_map(|row| source_id(benchmark, &row)).collect();
    let unknown = |item: &&String| !known.contains(item.as_str()) && !item.starts_with(ROW_SIGN);
    let mut problems = NameProblems::default();
    for item in items.iter().filter(unknown) {
        problems.add(item, 1, &NameError::Unknown { is_row: false });
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(RunError::UnknownItems(problems.describe_items(items.len() as u64, benchmark.name()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_a_bundled_dataset_lacks_are_refused() {
        let check = |name: &str, items: &[&str]| {
            check_items(&name.parse().unwrap(), &names(items))
                .map_err(|error| (error.code(), error.to_string()))
        };
        let own = &bench_benchmarks::find("code_lab").unwrap().code_tasks()[0].id;
        assert_eq!(check("code_lab", &[]), Ok(()));
        assert_eq!(check("code_lab", &[own, "#3"]), Ok(()));
        assert_eq!(check("expert_questions", &["1"]), Ok(()));
        assert_eq!(check("mmlu_pro", &["nope"]), Ok(()), "its items aren't known yet");
        let refused = check("code_lab", &["nope", own]).unwrap_err();
        assert_eq!(
            refused,
            (
                bench_domain::Code::InvalidRequest,
                "items: code_lab has no item nope (1 of 2 named)".to_owned()
            )
        );
    }

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
