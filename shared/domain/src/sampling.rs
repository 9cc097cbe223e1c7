//! Which items of a dataset a run evaluates, and in which order.
//!
//! The selection is a function of the seed text, the size of the dataset and the asked share or count alone,
//! and it is the one that Python's `random` module would make. So two systems that follow the same rules
//! select the same items in the same order, and with one seed a smaller sample is the start of a larger one.
//! `tests/data/vectors/subset.json` fixes the rules by example.

mod item_hash;
mod mt19937;
mod range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::item_hash::{item_hash, item_hash_of_text, python_json};
pub use self::mt19937::PythonRandom;
pub use self::range::{environment_seed, sample_range};

/// The longest seed a caller may set, in characters.
pub const MAX_SEED_CHARS: usize = 128;

/// The greatest count a caller may ask for, in items.
pub const MAX_COUNT_ITEMS: u64 = i32::MAX as u64;

/// The part of every benchmark that a run evaluates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subset {
    /// Share of the items in percent, 1 to 100.
    pub pct: u32,
    /// Number of items; wins over `pct` when set.
    pub count: Option<u64>,
    /// What the selection depends on besides the benchmark; the run's id when not set.
    pub seed: Option<String>,
}

/// Why a [`Subset`] is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubsetError {
    /// The share is not a whole percentage of 1 to 100.
    #[error("the share of items must be from 1 to 100 percent, not {0}")]
    Pct(u32),
    /// The count is zero or above [`MAX_COUNT_ITEMS`].
    #[error("the count of items must be from 1 to {MAX_COUNT_ITEMS}, not {0}")]
    Count(u64),
    /// The seed is longer than [`MAX_SEED_CHARS`].
    #[error("the seed must have at most {MAX_SEED_CHARS} characters, not {0}")]
    SeedChars(usize),
}

impl Default for Subset {
    fn default() -> Self {
        Self { pct: 100, count: None, seed: None }
    }
}

impl Subset {
    /// A checked subset; the seed is trimmed and dropped when nothing is left of it.
    ///
    /// # Errors
    ///
    /// [`SubsetError`] names the first part that is out of its bounds.
    pub fn new(pct: u32, count: Option<u64>, seed: Option<&str>) -> Result<Self, SubsetError> {
        if !(1..=100).contains(&pct) {
            return Err(SubsetError::Pct(pct));
        }
        if let Some(count) = count.filter(|count| !(1..=MAX_COUNT_ITEMS).contains(count)) {
            return Err(SubsetError::Count(count));
        }
        let chars = seed.map_or(0, |seed| seed.chars().count());
        if chars > MAX_SEED_CHARS {
            return Err(SubsetError::SeedChars(chars));
        }
        let seed = seed.map(trimmed).filter(|seed| !seed.is_empty()).map(str::to_owned);
        Ok(Self { pct, count, seed })
    }

    /// The text that seeds the selection for one benchmark: `<seed or run id>:<benchmark>`.
    ///
    /// `run_id` is the 36-character lowercase form.
    #[must_use]
    pub fn seed_string(&self, run_id: &str, benchmark: &str) -> String {
        let seed = self.seed.as_deref().map(trimmed).filter(|seed| !seed.is_empty());
        format!("{}:{benchmark}", seed.unwrap_or(run_id))
    }

    /// How many of `n` items are selected: the count, else the rounded-down share but at least one, and
    /// never more than there are.
    #[must_use]
    pub fn size(&self, n: usize) -> usize {
        size_of(n, self.pct, self.count)
    }

    /// The selected positions in dataset order `0..n` for one benchmark of a run, in the order of evaluation.
    #[must_use]
    pub fn select(&self, n: usize, run_id: &str, benchmark: &str, order: Order) -> Vec<usize> {
        let seed = self.seed_string(run_id, benchmark);
        match order {
            Order::Selected => select_indices(n, &seed, self.pct, self.count),
            Order::Numerical => select_indices_sorted(n, &seed, self.pct, self.count),
            Order::Everything => (0..n).collect(),
        }
    }
}

/// What a benchmark does with its selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Items are evaluated in the order in which they were selected.
    #[default]
    Selected,
    /// The selected items are put back into dataset order.
    Numerical,
    /// The benchmark is always evaluated whole, in dataset order.
    Everything,
}

impl Order {
    /// The order that compatibility asks of a benchmark name.
    #[must_use]
    pub fn of_benchmark(name: &str) -> Self {
        match name {
            "livecodebench" => Self::Numerical,
            "critpt" => Self::Everything,
            _ => Self::Selected,
        }
    }
}

/// The selected positions out of `0..n`, in the order of selection.
///
/// All of them, in dataset order, when `count` covers them or, without a count, `pct` is 100; else the first
/// [`Subset::size`] of the shuffled positions. `seed` is a [`Subset::seed_string`].
#[must_use]
pub fn select_indices(n: usize, seed: &str, pct: u32, count: Option<u64>) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..n).collect();
    let everything = match count {
        Some(count) => count >= n as u64,
        None => pct >= 100,
    };
    if !everything {
        PythonRandom::from_text(seed).shuffle(&mut indices);
        indices.truncate(size_of(n, pct, count));
    }
    indices
}

/// As [`select_indices`], put back into dataset order.
#[must_use]
pub fn select_indices_sorted(n: usize, seed: &str, pct: u32, count: Option<u64>) -> Vec<usize> {
    let mut indices = select_indices(n, seed, pct, count);
    indices.sort_unstable();
    indices
}

fn size_of(n: usize, pct: u32, count: Option<u64>) -> usize {
    let n_items = n as u64;
    count.unwrap_or_else(|| share_of(n_items, pct)).min(n_items) as usize
}

/// `pct` percent of `total`, rounded down, but at least one and at most the total; zero of zero.
pub(crate) fn share_of(total: u64, pct: u32) -> u64 {
    let share = u128::from(total) * u128::from(pct.min(100)) / 100;
    // At most the total, so it fits.
    (share as u64).max(total.min(1))
}

/// Trims what Python's `str.strip` trims: Unicode white space and the four ASCII separators.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

#[cfg(test)]
pub(crate) mod test_vectors {
    use serde_json::Value;
    use sha2::{Digest, Sha256};

    /// The cases of one group of the sampling vectors.
    pub(crate) fn vectors(group: &str) -> Vec<Value> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/subset.json");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        all[group].as_array().unwrap().clone()
    }

    pub(crate) fn numbers(values: &Value) -> Vec<u64> {
        values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
    }

    /// Compares a selection with the ids of a case, by hash and, as far as listed, one by one.
    pub(crate) fn assert_selected(case: &Value, selected: &[u64]) {
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::test_vectors::{assert_selected, vectors};
    use super::*;

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
            let order = Order::of_benchmark(benchmark);
            assert_eq!(order == Order::Numerical, case["sorted_numerically"] == true, "{case}");
            assert_eq!(subset.size(n) as u64, case["k"].as_u64().unwrap());
            // The seed of the subset gives the same text as a run id of that value.
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
        assert_eq!(
            Subset { seed: Some("  ".into()), ..Subset::default() }.seed_string("id", "hle"),
            "id:hle"
        );
    }

    #[test]
    fn bounds_are_checked() {
        assert_eq!(Subset::new(0, None, None), Err(SubsetError::Pct(0)));
        assert_eq!(Subset::new(101, None, None), Err(SubsetError::Pct(101)));
        assert_eq!(Subset::new(1, Some(0), None), Err(SubsetError::Count(0)));
        assert_eq!(Subset::new(1, Some(1 << 31), None), Err(SubsetError::Count(1 << 31)));
        assert_eq!(Subset::new(1, None, Some(&"ß".repeat(129))), Err(SubsetError::SeedChars(129)));
        assert!(Subset::new(100, Some(MAX_COUNT_ITEMS), Some(&"ß".repeat(128))).is_ok());
    }

    #[test]
    fn a_benchmark_that_is_always_whole_ignores_the_subset() {
        let subset = Subset::new(1, Some(2), None).unwrap();
        assert_eq!(subset.select(4, "id", "critpt", Order::of_benchmark("critpt")), [0, 1, 2, 3]);
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
            // The whole dataset stays in its own order, so the larger sample must leave something out.
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
}
