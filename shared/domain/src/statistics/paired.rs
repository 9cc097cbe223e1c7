//! Comparison of two runs on the same items: their difference, and whether it may be chance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Interval, mcnemar_exact_p, standard_error};

/// Fields of a graded sample that a comparison needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedSample<'a> {
    /// Id of the item in both runs.
    pub item: &'a str,
    /// Score, a finite number.
    pub score: f64,
    /// True if the sample counts as right.
    pub correct: bool,
}

/// Comparison of run A with run B over the items that are graded in both.
///
/// Every item has the same weight, whatever the number of its samples, so the means may differ from the runs' own
/// scores, which are means over all samples of all items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairedComparison {
    /// Number of items graded in both runs. Everything below except the `only_in` counts is over these items.
    pub items: u64,
    /// Number of items graded only in run A.
    pub only_in_a: u64,
    /// Number of items graded only in run B.
    pub only_in_b: u64,
    /// Mean over items of run A's mean score; `None` without common items.
    pub mean_a: Option<f64>,
    /// Mean over items of run B's mean score; `None` without common items.
    pub mean_b: Option<f64>,
    /// Mean over items of B's score minus A's: positive if B is better. `None` without common items.
    pub difference: Option<f64>,
    /// Standard error of the difference; `None` with fewer than two common items.
    pub standard_error: Option<f64>,
    /// 95% interval of the difference by Student's t with (items − 1) degrees of freedom; `None` with fewer than two
    /// common items, and if all items differ by the same: then nothing is known about the spread, and the interval would have
    /// no width.
    pub interval: Option<Interval>,
    /// Number of items that both runs got right. An item is right if more than half of its samples are.
    pub both_right: u64,
    /// Number of items that only run A got right.
    pub only_a_right: u64,
    /// Number of items that only run B got right.
    pub only_b_right: u64,
    /// Number of items that neither run got right.
    pub both_wrong: u64,
    /// Exact two-sided p-value of McNemar's test on the two counts above; `None` without common items.
    pub mcnemar_p: Option<f64>,
}

impl PairedComparison {
    /// Returns true if run B is worse by more than chance explains: by the interval of the difference, or by McNemar's test
    /// where there is no interval.
    pub fn is_worse(&self) -> bool {
        match self.interval {
            Some(interval) => interval.high < 0.0,
            None => {
                self.difference.is_some_and(|difference| difference < 0.0)
                    && self.mcnemar_p.is_some_and(|p| p < SIGNIFICANT_P)
            }
        }
    }

    /// Limits the interval of the difference to what scores from 0 to 1 allow.
    #[must_use]
    pub const fn with_clamped_interval(mut self) -> Self {
        if let Some(interval) = &mut self.interval {
            interval.low = interval.low.clamp(-1.0, 1.0);
            interval.high = interval.high.clamp(-1.0, 1.0);
        }
        self
    }
}

/// Compares two runs by their graded samples, each given in any order.
///
/// With dᵢ the difference of the mean scores of item i and G common items, the standard error is that of the mean of
/// the dᵢ, √( Σ (dᵢ − d̄)² / (G (G−1)) ). It's clustered by item, since the samples of an item contribute only through
/// its one difference, and paired, since what makes an item hard for both runs cancels out (Miller 2024, "Adding Error
/// Bars to Evals", on paired differences).
#[must_use]
pub fn compare_paired<'a>(
    a: impl IntoIterator<Item = PairedSample<'a>>,
    b: impl IntoIterator<Item = PairedSample<'a>>,
) -> PairedComparison {
    let (a, b) = (by_item(a), by_item(b));
    let pairs: Vec<(ItemResult, ItemResult)> =
        a.iter().filter_map(|(item, a)| Some((a.result(), b.get(item)?.result()))).collect();
    let items = pairs.len() as u64;
    let mut comparison = PairedComparison {
        items,
        only_in_a: a.len() as u64 - items,
        only_in_b: b.len() as u64 - items,
        ..PairedComparison::default()
    };
    if pairs.is_empty() {
        return comparison;
    }
    for (a, b) in &pairs {
        *match (a.right, b.right) {
            (true, true) => &mut comparison.both_right,
            (true, false) => &mut comparison.only_a_right,
            (false, true) => &mut comparison.only_b_right,
            (false, false) => &mut comparison.both_wrong,
        } += 1;
    }
    comparison.mcnemar_p = Some(mcnemar_exact_p(comparison.only_a_right, comparison.only_b_right));
    let count = items as f64;
    comparison.mean_a = Some(pairs.iter().map(|(a, _)| a.mean).sum::<f64>() / count);
    comparison.mean_b = Some(pairs.iter().map(|(_, b)| b.mean).sum::<f64>() / count);
    let differences = || pairs.iter().map(|(a, b)| b.mean - a.mean);
    let difference = differences().sum::<f64>() / count;
    let sum_of_squares = differences().map(|each| (each - difference) * (each - difference)).sum();
    comparison.difference = Some(difference);
    comparison.standard_error = standard_error(sum_of_squares, items);
    let error = comparison.standard_error.filter(|error| *error > SPREAD_MIN);
    comparison.interval = error.and_then(|error| Interval::from_standard_error(difference, error, items));
    comparison
}

/// Standard error below which differences are equal except for rounding.
const SPREAD_MIN: f64 = 1e-12;
/// p-value below which a difference is not chance, as for a 95% interval.
const SIGNIFICANT_P: f64 = 0.05;

#[derive(Default)]
struct ItemSamples {
    scores: Vec<f64>,
    correct: usize,
}

struct ItemResult {
    mean: f64,
    right: bool,
}

impl ItemSamples {
    fn result(&self) -> ItemResult {
        // Scores are summed in a fixed order, so that the last digits don't depend on the order of the samples.
        let mut scores = self.scores.clone();
        scores.sort_unstable_by(f64::total_cmp);
        ItemResult {
            mean: scores.iter().sum::<f64>() / scores.len() as f64,
            right: self.correct * 2 > scores.len(),
        }
    }
}

fn by_item<'a>(samples: impl IntoIterator<Item = PairedSample<'a>>) -> BTreeMap<&'a str, ItemSamples> {
    let mut items: BTreeMap<&str, ItemSamples> = BTreeMap::new();
    for sample in samples {
        let item = items.entry(sample.item).or_default();
        item.scores.push(sample.score);
        item.correct += usize::from(sample.correct);
    }
    items
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{assert_close, clustered_mean};
    use super::*;

    fn run<'a>(items: &[(&'a str, &[f64])]) -> Vec<PairedSample<'a>> {
        items
            .iter()
            .flat_map(|&(item, scores)| {
                scores.iter().map(move |&score| PairedSample { item, score, correct: score >= 1.0 })
            })
            .collect()
    }

    /// From scipy 1.17: `ttest_rel(b, a)` on the items' means, its `confidence_interval()`, and `sem`.
    #[test]
    fn estimates_match_scipy() {
        let single = compare_paired(
            run(&[("1", &[1.0]), ("2", &[0.0]), ("3", &[1.0]), ("4", &[1.0]), ("5", &[0.0]), ("6", &[1.0])]),
            run(&[("1", &[1.0]), ("2", &[1.0]), ("3", &[0.0]), ("4", &[0.0]), ("5", &[0.0]), ("6", &[0.0])]),
        );
        let several = compare_paired(
            run(&[
                ("q1", &[1.0, 0.0, 1.0]),
                ("q2", &[0.5, 0.25]),
                ("q3", &[0.0]),
                ("q4", &[1.0, 1.0]),
                ("x", &[1.0]),
            ]),
            run(&[
                ("q1", &[0.0, 0.0, 1.0]),
                ("q2", &[0.75]),
                ("q3", &[0.0, 1.0]),
                ("q4", &[0.0, 0.5, 0.0]),
                ("y", &[1.0]),
            ]),
        );
        for (comparison, [difference, error, low, high]) in [
            (single, [-1.0 / 3.0, 0.33333333333333337, -1.1901939452121049, 0.5235272785454383]),
            (several, [-0.07291666666666666, 0.3129048303723839, -1.0687194879906852, 0.9228861546573519]),
        ] {
            let interval = comparison.interval.unwrap();
            assert_close(comparison.difference.unwrap(), difference, 1e-12);
            assert_close(comparison.standard_error.unwrap(), error, 1e-12);
            assert_close(interval.low, low, 1e-12);
            assert_close(interval.high, high, 1e-12);
        }
        assert_eq!(
            [single.both_right, single.only_a_right, single.only_b_right, single.both_wrong],
            [1, 3, 1, 1]
        );
        assert_eq!(single.mcnemar_p, Some(0.625));
        let clamped = single.with_clamped_interval();
        assert_eq!(clamped.interval.map(|interval| interval.low), Some(-1.0));
        assert_eq!(
            (clamped.interval.unwrap().high, clamped.difference),
            (single.interval.unwrap().high, single.difference)
        );
        assert_eq!([several.items, several.only_in_a, several.only_in_b], [4, 1, 1]);
        // An item with half of its samples right isn't right: q3 of run B.
        assert_eq!(
            [several.both_right, several.only_a_right, several.only_b_right, several.both_wrong],
            [0, 2, 0, 2]
        );
    }

    #[test]
    fn without_common_items_nothing_is_estimated() {
        let apart = compare_paired(run(&[("a", &[1.0])]), run(&[("b", &[1.0]), ("c", &[0.0])]));
        assert_eq!(apart, PairedComparison { only_in_a: 1, only_in_b: 2, ..PairedComparison::default() });
        let one = compare_paired(run(&[("a", &[1.0])]), run(&[("a", &[0.0])]));
        assert_eq!((one.difference, one.standard_error, one.interval), (Some(-1.0), None, None));
        assert_eq!(one.mcnemar_p, Some(1.0));
    }

    #[test]
    fn equal_differences_have_no_interval() {
        for (items, p, is_worse) in [(3, 0.25, false), (5, 0.0625, false), (6, 0.03125, true)] {
            let all = |score: f64| run_of(NAMES[..items].iter().map(|name| (*name, score)));
            let worse = compare_paired(all(1.0), all(0.0));
            assert_eq!(
                (worse.difference, worse.standard_error, worse.interval),
                (Some(-1.0), Some(0.0), None)
            );
            assert_close(worse.mcnemar_p.unwrap(), p, 1e-12);
            assert_eq!(worse.is_worse(), is_worse, "{items}");
            assert!(
                !compare_paired(all(0.0), all(1.0)).is_worse()
                    && !compare_paired(all(1.0), all(1.0)).is_worse()
            );
            assert_eq!(compare_paired(all(0.1), all(0.7)).interval, None);
        }
    }

    fn run_of<'a>(scores: impl Iterator<Item = (&'a str, f64)>) -> Vec<PairedSample<'a>> {
        scores.map(|(item, score)| PairedSample { item, score, correct: score > 0.5 }).collect()
    }

    /// Generates samples of up to 12 items, named by their numbers.
    fn samples() -> impl Strategy<Value = Vec<(u8, f64)>> {
        prop::collection::vec((0u8..12, prop_oneof![Just(0.0), Just(1.0), 0.0f64..1.0]), 0..60)
    }

    const NAMES: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];

    fn named(samples: &[(u8, f64)]) -> Vec<PairedSample<'static>> {
        samples
            .iter()
            .map(|&(item, score)| PairedSample {
                item: NAMES[usize::from(item)],
                score,
                correct: score > 0.5,
            })
            .collect()
    }

    proptest! {
        #[test]
        fn swapping_the_runs_turns_the_sign(a in samples(), b in samples()) {
            let forth = compare_paired(named(&a), named(&b));
            let back = compare_paired(named(&b), named(&a));
            prop_assert_eq!(back.difference, forth.difference.map(|difference| -difference));
            prop_assert_eq!(back.standard_error, forth.standard_error);
            prop_assert_eq!(back.interval.map(|i| (-i.high, -i.low)), forth.interval.map(|i| (i.low, i.high)));
            prop_assert_eq!(back.mcnemar_p, forth.mcnemar_p);
            prop_assert_eq!((back.only_a_right, back.only_in_b), (forth.only_b_right, forth.only_in_a));
            prop_assert_eq!((back.mean_a, back.mean_b), (forth.mean_b, forth.mean_a));
        }

        #[test]
        fn counts_add_up_and_the_interval_holds_the_difference(a in samples(), b in samples()) {
            let comparison = compare_paired(named(&a), named(&b));
            let PairedComparison { both_right, only_a_right, only_b_right, both_wrong, items, .. } = comparison;
            prop_assert_eq!(both_right + only_a_right + only_b_right + both_wrong, items);
            if let (Some(interval), Some(difference)) = (comparison.interval, comparison.difference) {
                prop_assert!(interval.low <= difference && difference <= interval.high);
                let means = comparison.mean_b.unwrap() - comparison.mean_a.unwrap();
                prop_assert!((means - difference).abs() < 1e-12);
            }
        }

        #[test]
        fn the_order_of_samples_does_not_matter(a in samples(), b in samples()) {
            let (mut a_reversed, mut b_reversed) = (a.clone(), b.clone());
            a_reversed.reverse();
            b_reversed.reverse();
            prop_assert_eq!(
                compare_paired(named(&a_reversed), named(&b_reversed)),
                compare_paired(named(&a), named(&b))
            );
        }

        #[test]
        fn against_a_run_of_zeros_it_is_the_error_of_the_mean(scores in prop::collection::vec(0.0f64..1.0, 2..12)) {
            let a: Vec<(u8, f64)> = (0u8..).zip(scores.iter().copied()).collect();
            let zeros: Vec<(u8, f64)> = a.iter().map(|&(item, _)| (item, 0.0)).collect();
            let comparison = compare_paired(named(&zeros), named(&a));
            let items: Vec<[f64; 1]> = scores.iter().map(|&score| [score]).collect();
            let alone = clustered_mean(&items).unwrap();
            prop_assert!((comparison.difference.unwrap() - alone.mean).abs() < 1e-12);
            prop_assert!((comparison.standard_error.unwrap() - alone.standard_error.unwrap()).abs() < 1e-12);
        }
    }
}
