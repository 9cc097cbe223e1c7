//! Selection of the items that a run evaluates, and their order.
//!
//! The selection depends only on the seed text, the size of the dataset, and the share or count of the order. It's the
//! selection that Python's `random` module makes. Two systems that follow the same rules therefore select the same
//! items in the same order, and with the same seed, a smaller sample is the start of a larger one. The test vectors in
//! `tests/data/vectors/subset.json` pin the rules.

mod item_hash;
mod mt19937;
mod range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::item_hash::{item_hash, item_hash_of_text, python_json};
pub use self::mt19937::PythonRandom;
pub use self::range::{environment_seed, sample_range};

/// Maximum length of a seed in characters.
pub const MAX_SEED_CHARS: usize = 128;

/// Maximum count of items that an order may request.
pub const MAX_COUNT_ITEMS: u64 = i32::MAX as u64;

/// Part of every benchmark that a run evaluates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subset {
    /// Share of the items in percent, 1 to 100.
    pub pct: u32,
    /// Number of items; takes precedence over `pct`.
    pub count: Option<u64>,
    /// Seed of the selection; the run's id by default.
    pub seed: Option<String>,
}

/// Error for an invalid [`Subset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubsetError {
    /// The share isn't a whole percentage from 1 to 100.
    #[error("the share of items must be from 1 to 100 percent, not {0}")]
    Pct(u32),
    /// The count is zero or above [`MAX_COUNT_ITEMS`].
    #[error("the count of items must be from 1 to {MAX_COUNT_ITEMS}, not {0}")]
    Count(u64),
    /// The seed is longer than [`MAX_SEED_CHARS`].
    #[error("the seed must have at most {MAX_SEED_CHARS} characters, not {0}")]
    SeedChars(usize),
    /// The seed, trimmed, has a control character. People read seeds at a terminal, on one line.
    #[error("the seed must not have control characters")]
    SeedControl,
}

impl Default for Subset {
    fn default() -> Self {
        Self { pct: 100, count: None, seed: None }
    }
}

impl Subset {
    /// Creates a checked subset. The seed is trimmed, and dropped if it's empty after that.
    ///
    /// # Errors
    ///
    /// [`SubsetError`] names the first invalid part.
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
        if seed.iter().any(|seed| seed.contains(char::is_control)) {
            return Err(SubsetError::SeedControl);
        }
        Ok(Self { pct, count, seed })
    }

    /// Returns the text that seeds the selection for one benchmark: `<seed or run id>:<benchmark>`.
    ///
    /// `run_id` is the 36-character lowercase form.
    #[must_use]
    pub fn seed_string(&self, run_id: &str, benchmark: &str) -> String {
        let seed = self.seed.as_deref().map(trimmed).filter(|seed| !seed.is_empty());
        format!("{}:{benchmark}", seed.unwrap_or(run_id))
    }

    /// Returns the number of selected items out of `n`: the count or, without one, the share, rounded down but at least
    /// one. Never more than `n`.
    #[must_use]
    pub fn size(&self, n: usize) -> usize {
        size_of(n, self.pct, self.count)
    }

    /// Returns the selected positions of the dataset `0..n` for one benchmark of a run, in the order of evaluation.
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

/// Evaluation order of a benchmark's selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Items are evaluated in the order of selection.
    #[default]
    Selected,
    /// The selected items are sorted into dataset order.
    Numerical,
    /// The whole benchmark is always evaluated, in dataset order.
    Everything,
}

impl Order {
    /// Returns the order that compatibility requires for a benchmark name.
    #[must_use]
    pub fn of_benchmark(name: &str) -> Self {
        match name {
            "livecodebench" => Self::Numerical,
            "critpt" => Self::Everything,
            _ => Self::Selected,
        }
    }
}

/// Returns the selected positions out of `0..n`, in the order of selection.
///
/// Returns all positions in dataset order if `count` covers them or, without a count, if `pct` is 100; otherwise the
/// first [`Subset::size`] of the shuffled positions. `seed` is a [`Subset::seed_string`].
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

/// Like [`select_indices`], but sorted into dataset order.
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

/// Returns `pct` percent of `total`, rounded down, but at least one and at most the total; zero if the total is zero.
pub(crate) fn share_of(total: u64, pct: u32) -> u64 {
    let share = u128::from(total) * u128::from(pct.min(100)) / 100;
    // The value is at most the total, so it fits.
    (share as u64).max(total.min(1))
}

/// Trims the same characters as Python's `str.strip`: Unicode white space and the four ASCII separators.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

#[cfg(test)]
pub(crate) mod test_vectors {
    use serde_json::Value;
    use sha2::{Digest, Sha256};

    /// Returns the cases of one group of the sampling vectors.
    pub(crate) fn vectors(group: &str) -> Vec<Value> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/subset.json");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        all[group].as_array().unwrap().clone()
    }

    pub(crate) fn numbers(values: &Value) -> Vec<u64> {
        values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
    }

    /// Compares a selection with the ids of a case, by hash and, for listed ids, one by one.
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
        for seed in ["a\u{1b}]0;title\u{7}", "a\nstatus: succeeded"] {
            assert_eq!(Subset::new(1, None, Some(seed)), Err(SubsetError::SeedControl));
        }
        assert_eq!(Subset::new(1, None, Some("demo\n")).unwrap().seed.as_deref(), Some("demo"));
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
}
