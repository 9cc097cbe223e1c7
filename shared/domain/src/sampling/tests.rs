//! Tests of subsets and selections, and the vectors that all tests of this module read.

use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::*;

/// Returns the cases of one group of the sampling vectors.
pub(super) fn vectors(group: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/subset.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[group].as_array().unwrap().clone()
}

pub(super) fn numbers(values: &Value) -> Vec<u64> {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
}

/// Compares a selection with the ids of a case, by hash and, for listed ids, one by one.
pub(super) fn assert_selected(case: &Value, selected: &[u64]) {
    let name = format!("{} n={} {}", case["seed"], case["n"], case["subset_pct"]);
    let ids: Vec<String> = selected.iter().map(u64::to_string).collect();
    let listed = |key: &str| -> Option<Vec<&str>> {
        Some(case.get(key)?.as_array()?.iter().map(|id| id.as_str().unwrap()).collect())
    };
    assert_eq!(ids.len() as u64, case["k"].as_u64().unwrap(), "{name}");
    let mut compared = 0;
    for (key, part) in [
        ("selected", &ids[..]),
        ("selected_head", &ids[..ids.len().min(40)]),
        ("selected_tail", &ids[ids.len().saturating_sub(10)..]),
    ] {
        if let Some(expected) = listed(key) {
            assert_eq!(part, expected, "{name} {key}");
            compared += 1;
        }
    }
    assert!(compared > 0, "{name} lists no ids");
    let hash = hex::encode(Sha256::digest(ids.join(",").as_bytes()));
    assert_eq!(hash, case["selected_sha256"].as_str().unwrap(), "{name}");
}

#[test]
fn selections_match_the_vectors() {
    let cases = vectors("shuffle");
    assert_eq!(cases.len(), 29);
    for case in &cases {
        let n = case["n"].as_u64().unwrap() as usize;
        let seed = case["seed"].as_str().unwrap();
        let (base, benchmark) = seed.rsplit_once(':').unwrap();
        let pct = case["subset_pct"].as_u64().unwrap() as u32;
        let subset = Subset::new(pct, case["subset_count"].as_u64(), Some(base)).unwrap();
        let order = Order::for_benchmark(benchmark);
        assert_eq!(order == Order::Numerical, case["sorted_numerically"] == true, "{case}");
        assert_eq!(subset.size(n) as u64, case["k"].as_u64().unwrap());
        // A subset's seed gives the same text as a run id with that value.
        let by_run_id = Subset { seed: None, ..subset.clone() };
        for selected in
            [subset.select(n, "no-id", benchmark, order), by_run_id.select(n, base, benchmark, order)]
        {
            let selected: Vec<u64> = selected.into_iter().map(|index| index as u64).collect();
            assert_selected(case, &selected);
        }
    }
}

#[test]
fn a_seed_is_trimmed_and_an_empty_one_is_none() {
    let subset = |seed| Subset::new(10, None, Some(seed)).unwrap();
    assert_eq!(subset(" \u{1f}compat-1\u{a0}\n").seed_string("id", "hle"), "compat-1:hle");
    assert_eq!(subset(" \t ").seed, None);
    assert_eq!(Subset { seed: Some("  ".into()), ..Subset::default() }.seed_string("id", "hle"), "id:hle");
}

#[test]
fn bounds_are_checked() {
    assert_eq!(Subset::new(0, None, None), Err(SubsetError::Pct(0)));
    assert_eq!(Subset::new(101, None, None), Err(SubsetError::Pct(101)));
    assert_eq!(Subset::new(1, Some(0), None), Err(SubsetError::Count(0)));
    assert_eq!(Subset::new(1, Some(1 << 31), None), Err(SubsetError::Count(1 << 31)));
    assert_eq!(Subset::new(1, None, Some(&"ß".repeat(129))), Err(SubsetError::SeedChars(129)));
    for seed in ["a\u{1b}]0;title\u{7}", "a\nstatus: succeeded"] {
        assert_eq!(Subset::new(1, None, Some(seed)), Err(SubsetError::SeedControl));
    }
    assert_eq!(Subset::new(1, None, Some("demo\n")).unwrap().seed.as_deref(), Some("demo"));
    assert!(Subset::new(100, Some(MAX_COUNT_ITEMS), Some(&"ß".repeat(128))).is_ok());
}

#[test]
fn a_benchmark_that_is_always_whole_ignores_the_subset() {
    let subset = Subset::new(1, Some(2), None).unwrap();
    assert_eq!(subset.select(4, "id", "critpt", Order::for_benchmark("critpt")), [0, 1, 2, 3]);
}

fn any_subset() -> impl Strategy<Value = (usize, String, u32, Option<u64>)> {
    (0usize..400, ".{0,16}", 0u32..=150, prop::option::of(0u64..500))
}

proptest! {
    #[test]
    fn a_selection_is_distinct_positions_of_the_stated_number((n, seed, pct, count) in any_subset()) {
        let selected = select_indices(n, &seed, pct, count);
        prop_assert_eq!(selected.len(), Subset { pct, count, seed: None }.size(n));
        let mut sorted = selected.clone();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), selected.len());
        prop_assert!(sorted.last().is_none_or(|&last| last < n));
        prop_assert_eq!(sorted, select_indices_sorted(n, &seed, pct, count));
    }

    #[test]
    fn a_smaller_sample_is_the_start_of_a_larger_one(
        n in 1usize..400, seed in ".{0,16}", a in 1u64..400, b in 1u64..400, pct in 1u32..100,
    ) {
        // A whole dataset stays in its own order, so the larger sample must leave out at least one item.
        let larger = select_indices(n, &seed, 100, Some(a.max(b).min(n as u64 - 1)));
        let smaller = select_indices(n, &seed, 100, Some(a.min(b).min(n as u64 - 1)));
        prop_assert!(larger.starts_with(&smaller));
        let share = select_indices(n, &seed, pct, None);
        let by_count = select_indices(n, &seed, 100, Some(share.len() as u64));
        prop_assert!(share.len() == n || share == by_count);
    }

    #[test]
    fn nothing_is_selected_of_nothing(seed in ".{0,16}", pct in any::<u32>(), count in any::<Option<u64>>()) {
        prop_assert!(select_indices(0, &seed, pct, count).is_empty());
    }

    #[test]
    fn the_size_never_exceeds_the_items(n in any::<usize>(), pct in any::<u32>(), count in any::<Option<u64>>()) {
        let subset = Subset { pct, count, seed: None };
        prop_assert!(subset.size(n) <= n);
    }
}
