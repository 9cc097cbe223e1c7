//! Mean score and its uncertainty, for items with one or more samples.

use serde::{Deserialize, Serialize};

use super::{Interval, standard_error};

/// Mean over samples with its uncertainty over items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusteredMean {
    /// Mean over all samples.
    pub mean: f64,
    /// Standard error, clustered by item; `None` with a single item.
    pub standard_error: Option<f64>,
    /// 95% interval by Student's t with (items − 1) degrees of freedom; `None` with a single item. It isn't limited to
    /// the range of scores here, but in reports of shares. If all scores are equal, it has no width: for shares of
    /// right answers with one sample per item, prefer [`wilson`](super::wilson).
    pub interval: Option<Interval>,
    /// Number of items with at least one sample.
    pub items: u64,
    /// Number of samples of all items.
    pub samples: u64,
}

/// Returns the mean of all scores and its standard error, clustered by item. Each element holds the scores of one
/// item's graded samples; items without any don't count. `None` without a sample.
///
/// With G items, n samples in all, s̄ their mean and uᵢ = Σⱼ (sᵢⱼ − s̄) the sum over the samples of item i:
///
/// ```text
/// SE = √( G/(G−1) · Σᵢ uᵢ² ) / n
/// ```
///
/// This is the cluster-robust standard error of a mean: Σᵢ uᵢ² holds the squares of the deviations and the
/// products between samples of one item, as in Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640),
/// on clustered standard errors. The correction for finite numbers differs. There the squares are divided by
/// n (n − 1) and the products by n²; here everything is divided by n² and multiplied by G/(G−1), the usual
/// correction of a regression on a constant (CR1; Cameron and Miller 2015, "A Practitioner's Guide to
/// Cluster-Robust Inference"), because the number of items is the small one. The two agree as G grows. Here, with
/// one sample per item the result is the classical √(s²/n), and with equally many per item it is the classical
/// standard error of the items' means. The interval uses Student's t for the same reason, where Miller uses 1.96:
/// the quantile is 2.05 with 30 items, 1.97 with 198.
#[must_use]
pub fn clustered_mean<S: AsRef<[f64]>>(items: &[S]) -> Option<ClusteredMean> {
    let sampled = || items.iter().map(AsRef::as_ref).filter(|scores| !scores.is_empty());
    let item_count = sampled().count() as u64;
    let samples: u64 = sampled().map(|scores| scores.len() as u64).sum();
    if samples == 0 {
        return None;
    }
    let n = samples as f64;
    let mean = sampled().flatten().sum::<f64>() / n;
    // Deviations are taken per sample: a difference of sums would lose the digits of a small spread.
    let deviations = sampled().map(|scores| scores.iter().map(|score| score - mean).sum::<f64>());
    let sum_of_squares: f64 = deviations.map(|deviation| deviation * deviation).sum();
    // SE of G values uᵢ/(n/G): the formula above, arranged as the classical one.
    let per_item = n / item_count as f64;
    let standard_error = standard_error(sum_of_squares, item_count).map(|error| error / per_item);
    let interval = standard_error.and_then(|error| Interval::from_standard_error(mean, error, item_count));
    Some(ClusteredMean { mean, standard_error, interval, items: item_count, samples })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_close;
    use super::*;

    /// From statsmodels: `OLS(y, 1).fit(cov_type="cluster", cov_kwds={"groups": g}, use_t=True)`.
    #[test]
    fn estimates_match_a_cluster_robust_regression() {
        let cases: [(&[&[f64]], [f64; 4]); 3] = [
            (
                &[&[1.0, 1.0, 0.0], &[0.0, 0.0, 0.0], &[1.0, 1.0, 1.0], &[0.0, 1.0, 0.0]],
                [0.5, 0.2151657414559677, -0.18475341892017383, 1.184753418920174],
            ),
            (
                &[&[1.0], &[0.0], &[1.0], &[1.0], &[0.0], &[1.0]],
                [2.0 / 3.0, 0.2108185106778921, 0.12474043250217715, 1.2085929008311567],
            ),
            (
                &[&[1.0, 1.0], &[0.0], &[0.5, 0.25, 1.0, 0.0], &[1.0, 1.0, 1.0], &[0.0, 0.0]],
                [0.5625, 0.19365617127685641, 0.024824271167026568, 1.1001757288329737],
            ),
        ];
        for (items, [mean, standard_error, low, high]) in cases {
            let estimate = clustered_mean(items).unwrap();
            let interval = estimate.interval.unwrap();
            assert_close(estimate.mean, mean, 1e-12);
            assert_close(estimate.standard_error.unwrap(), standard_error, 1e-12);
            assert_close(interval.low, low, 1e-10);
            assert_close(interval.high, high, 1e-12);
        }
    }

    #[test]
    fn items_without_samples_do_not_count_and_one_item_has_no_error() {
        let empty: [Vec<f64>; 2] = [vec![], vec![]];
        assert_eq!(clustered_mean(&empty), None);
        let single = clustered_mean(&[vec![], vec![1.0, 0.0]]).unwrap();
        assert_eq!((single.mean, single.items, single.samples), (0.5, 1, 2));
        assert_eq!((single.standard_error, single.interval), (None, None));
    }

    /// A repeated answer adds no certainty.
    #[test]
    fn repeating_every_sample_adds_no_certainty() {
        let once = [vec![1.0], vec![0.0], vec![1.0], vec![0.5]];
        let thrice: Vec<Vec<f64>> = once.iter().map(|scores| scores.repeat(3)).collect();
        let (once, thrice) = (clustered_mean(&once).unwrap(), clustered_mean(&thrice).unwrap());
        assert_close(thrice.standard_error.unwrap(), once.standard_error.unwrap(), 1e-14);
    }

    fn scores() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), Just(1.0), -1.0f64..=1.0]
    }

    proptest! {
        #[test]
        fn with_one_sample_per_item_it_is_the_classical_error(scores in prop::collection::vec(scores(), 2..60)) {
            let items: Vec<[f64; 1]> = scores.iter().map(|&score| [score]).collect();
            let estimate = clustered_mean(&items).unwrap();
            let n = scores.len() as f64;
            let mean = scores.iter().sum::<f64>() / n;
            let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((estimate.standard_error.unwrap() - (variance / n).sqrt()).abs() < 1e-12);
        }

        #[test]
        fn the_interval_holds_the_mean_and_shifts_and_scales_with_the_scores(
            items in prop::collection::vec(prop::collection::vec(scores(), 0..5), 0..30),
            shift in -1.0f64..1.0, scale in 0.1f64..10.0,
        ) {
            let Some(estimate) = clustered_mean(&items) else {
                prop_assert!(items.iter().all(Vec::is_empty));
                return Ok(());
            };
            let moved: Vec<Vec<f64>> =
                items.iter().map(|item| item.iter().map(|score| score * scale + shift).collect()).collect();
            let moved = clustered_mean(&moved).unwrap();
            prop_assert!((moved.mean - (estimate.mean * scale + shift)).abs() < 1e-11);
            prop_assert_eq!(estimate.interval.is_some(), estimate.items >= 2);
            if let (Some(interval), Some(error)) = (estimate.interval, estimate.standard_error) {
                prop_assert!(interval.low <= estimate.mean && estimate.mean <= interval.high);
                prop_assert!((moved.standard_error.unwrap() - error * scale).abs() < 1e-11);
            }
            let mut reversed = items.clone();
            reversed.reverse();
            let reversed = clustered_mean(&reversed).unwrap();
            prop_assert!((reversed.mean - estimate.mean).abs() < 1e-12);
        }
    }
}
