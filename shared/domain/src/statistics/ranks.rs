//! Ranks of several means that chance allows.

use super::Interval;

/// Mean to rank, with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedMean {
    /// The mean.
    pub mean: f64,
    /// Its interval; `None` if it isn't known.
    pub interval: Option<Interval>,
}

/// Ranks that a mean may have, 1 for the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankRange {
    /// Best rank.
    pub low: usize,
    /// Worst rank.
    pub high: usize,
}

impl RankedMean {
    /// Returns true if this mean is higher than another by more than chance explains: the 95% interval of their difference,
    /// combined from both intervals by the method of variance estimates recovery, is above 0. The samples count as
    /// independent; for those of the same items, that makes more means tie than a paired comparison would.
    pub fn is_above(&self, other: &Self) -> bool {
        let (Some(own), Some(others)) = (self.interval, other.interval) else { return false };
        let difference = self.mean - other.mean;
        let (below, above) = (self.mean - own.low, others.high - other.mean);
        difference > 0.0 && difference * difference > below * below + above * above
    }
}

/// Returns the ranks that each mean may have. Means whose difference chance explains share ranks. A mean without an interval
/// shares ranks with all others.
pub fn rank_ranges(means: &[RankedMean]) -> Vec<RankRange> {
    let count =
        |is_counted: &dyn Fn(&RankedMean) -> bool| means.iter().filter(|mean| is_counted(mean)).count();
    let range = |mean: &RankedMean| RankRange {
        low: 1 + count(&|other| other.is_above(mean)),
        high: means.len() - count(&|other| mean.is_above(other)),
    };
    means.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(mean: f64, reach: f64) -> RankedMean {
        RankedMean { mean, interval: Some(Interval { low: mean - reach, high: mean + reach }) }
    }

    fn ranges(means: &[RankedMean]) -> Vec<(usize, usize)> {
        rank_ranges(means).iter().map(|range| (range.low, range.high)).collect()
    }

    #[test]
    fn differences_that_chance_explains_are_ties() {
        assert_eq!(ranges(&[mean(0.9, 0.02), mean(0.8, 0.02), mean(0.7, 0.02)]), [(1, 1), (2, 2), (3, 3)]);
        // The middle can't be told from either end, but the ends from each other.
        assert_eq!(ranges(&[mean(0.84, 0.04), mean(0.8, 0.04), mean(0.76, 0.04)]), [(1, 2), (1, 3), (2, 3)]);
        assert_eq!(ranges(&[mean(0.5, 0.1), mean(0.5, 0.1)]), [(1, 2), (1, 2)]);
        assert_eq!(ranges(&[mean(0.5, 0.1)]), [(1, 1)]);
        assert_eq!(ranges(&[]), []);
    }

    #[test]
    fn overlapping_intervals_can_be_told_apart() {
        // The difference is 0.05; its interval reaches 0.0424, although the intervals overlap.
        assert_eq!(ranges(&[mean(0.55, 0.03), mean(0.5, 0.03)]), [(1, 1), (2, 2)]);
        assert_eq!(ranges(&[mean(0.54, 0.03), mean(0.5, 0.03)]), [(1, 2), (1, 2)]);
    }

    #[test]
    fn a_mean_without_an_interval_ties_with_all() {
        let unknown = RankedMean { mean: 0.99, interval: None };
        assert_eq!(ranges(&[unknown, mean(0.9, 0.01), mean(0.5, 0.01)]), [(1, 3), (1, 2), (2, 3)]);
    }
}
