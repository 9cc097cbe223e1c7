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
        let seed = seed.map(trim_like_python).filter(|seed| !seed.is_empty()).map(str::to_owned);
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
        let seed = self.seed.as_deref().map(trim_like_python).filter(|seed| !seed.is_empty());
        format!("{}:{benchmark}", seed.unwrap_or(run_id))
    }

    /// Returns the number of selected items out of `n`: the count or, without one, the share, rounded down but at least
    /// one. Never more than `n`.
    #[must_use]
    pub fn size(&self, n: usize) -> usize {
        selection_size(n, self.pct, self.count)
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
    pub fn for_benchmark(name: &str) -> Self {
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
        indices.truncate(selection_size(n, pct, count));
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

fn selection_size(n: usize, pct: u32, count: Option<u64>) -> usize {
    let n_items = n as u64;
    count.unwrap_or_else(|| percent_of(n_items, pct)).min(n_items) as usize
}

/// Returns `pct` percent of `total`, rounded down, but at least one and at most the total; zero if the total is zero.
pub fn percent_of(total: u64, pct: u32) -> u64 {
    let share = u128::from(total) * u128::from(pct.min(100)) / 100;
    // The value is at most the total, so it fits.
    (share as u64).max(total.min(1))
}

/// Trims the same characters as Python's `str.strip`: Unicode white space and the four ASCII separators.
fn trim_like_python(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

#[cfg(test)]
mod tests;
