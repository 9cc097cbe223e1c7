//! Percentiles of observed values, such as latencies.

use serde::{Deserialize, Serialize};

/// Median and 95th percentile by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles<T> {
    /// Smallest value that at least half of the values don't exceed.
    pub p50: T,
    /// Smallest value that at least 95% of the values don't exceed.
    pub p95: T,
}

/// Returns the percentile by nearest rank: the value at rank ⌈percent · n / 100⌉ of the sorted values, rank 1 at least.
/// It is always one of the values, never an interpolation. Reorders `values`; a `percent` above 100 is treated as 100.
/// `None` without values.
pub fn percentile<T: Ord + Copy>(values: &mut [T], percent: u32) -> Option<T> {
    let count = values.len() as u128;
    let rank = (count * u128::from(percent.min(100))).div_ceil(100).max(1);
    let index = usize::try_from(rank - 1).ok().filter(|&index| index < values.len())?;
    Some(*values.select_nth_unstable(index).1)
}

/// Returns p50 and p95 by [`percentile`]. Reorders `values`. `None` without values.
pub fn percentiles<T: Ord + Copy>(values: &mut [T]) -> Option<Percentiles<T>> {
    Some(Percentiles { p50: percentile(values, 50)?, p95: percentile(values, 95)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranks_are_the_nearest_above() {
        let of = |values: &[u64]| percentiles(&mut values.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some(Percentiles { p50: 7, p95: 7 }));
        assert_eq!(of(&[9, 1]), Some(Percentiles { p50: 1, p95: 9 }));
        assert_eq!(of(&[3, 1, 2]), Some(Percentiles { p50: 2, p95: 3 }));
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(of(&hundred), Some(Percentiles { p50: 50, p95: 95 }));
        let twenty: Vec<u64> = (1..=20).collect();
        assert_eq!(of(&twenty), Some(Percentiles { p50: 10, p95: 19 }));
        assert_eq!(percentile(&mut [5, 4], 0), Some(4));
        assert_eq!(percentile(&mut [5, 4], 400), Some(5));
    }

    proptest! {
        #[test]
        fn enough_values_are_at_or_below_and_no_smaller_value_would_do(
            mut values in prop::collection::vec(0u64..50, 1..80), percent in 1u32..=100,
        ) {
            let found = percentile(&mut values, percent).unwrap();
            let at_most = |limit: u64| values.iter().filter(|&&value| value <= limit).count() * 100;
            let needed = values.len() * percent as usize;
            prop_assert!(values.contains(&found));
            prop_assert!(at_most(found) >= needed);
            prop_assert!(found == 0 || at_most(found - 1) < needed);
        }
    }
}
