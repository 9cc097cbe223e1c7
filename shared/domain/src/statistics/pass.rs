//! Estimates for k samples of an item from n ≥ k: at least one is right (pass@k), or all are right (pass^k).

use serde::{Deserialize, Serialize};

/// Mean of a per-item estimate over the items that have enough samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassEstimate {
    /// Mean over `items`.
    pub value: f64,
    /// Number of items with at least k graded samples.
    pub items: u64,
    /// Number of items with fewer, which the estimate leaves out.
    pub left_out: u64,
}

/// Returns pass@k of an item with `correct` right samples out of `samples`: the probability that at least one of `k`
/// samples drawn without replacement is right, 1 − C(n−c, k) / C(n, k). It is unbiased (Chen et al. 2021, "Evaluating
/// Large Language Models Trained on Code").
///
/// `None` if `k` is 0, there are fewer than `k` samples, or more right ones than samples.
#[must_use]
pub fn pass_at_k(samples: u64, correct: u64, k: u64) -> Option<f64> {
    if k == 0 || k > samples || correct > samples {
        return None;
    }
    if k == 1 {
        return Some(correct as f64 / samples as f64);
    }
    let wrong = samples - correct;
    if k > wrong {
        return Some(1.0);
    }
    // C(n−c, k) / C(n, k) is symmetric in c and k, so the product can run over the smaller one. Every factor is from 0
    // to 1, so nothing overflows.
    let (shorter, longer) = (correct.min(k), correct.max(k));
    Some(1.0 - ratio_product(samples - longer, samples, shorter))
}

/// Returns pass^k of an item with `correct` right samples out of `samples`: the probability that all of `k` samples
/// drawn without replacement are right, C(c, k) / C(n, k). It is unbiased (Yao et al. 2024, "τ-bench").
///
/// `None` if `k` is 0, there are fewer than `k` samples, or more right ones than samples.
#[must_use]
pub fn pass_hat_k(samples: u64, correct: u64, k: u64) -> Option<f64> {
    if k == 0 || k > samples || correct > samples {
        return None;
    }
    if k > correct {
        return Some(0.0);
    }
    // C(c, k) / C(n, k) is also C(n−k, n−c) / C(n, n−c).
    let wrong = samples - correct;
    let (shorter, longer) = (wrong.min(k), wrong.max(k));
    Some(ratio_product(samples - longer, samples, shorter))
}

/// Returns the mean of [`pass_at_k`] over items given as (samples, correct). `None` if no item has `k` samples.
#[must_use]
pub fn mean_pass_at_k(items: &[(u64, u64)], k: u64) -> Option<PassEstimate> {
    mean_estimate(items, |samples, correct| pass_at_k(samples, correct, k))
}

/// Returns the mean of [`pass_hat_k`] over items given as (samples, correct). `None` if no item has `k` samples.
#[must_use]
pub fn mean_pass_hat_k(items: &[(u64, u64)], k: u64) -> Option<PassEstimate> {
    mean_estimate(items, |samples, correct| pass_hat_k(samples, correct, k))
}

/// Returns Π (top − j) / (bottom − j) for j in 0..count.
fn ratio_product(top: u64, bottom: u64, count: u64) -> f64 {
    (0..count).map(|j| (top - j) as f64 / (bottom - j) as f64).product()
}

fn mean_estimate(items: &[(u64, u64)], estimate: impl Fn(u64, u64) -> Option<f64>) -> Option<PassEstimate> {
    let estimates: Vec<f64> =
        items.iter().filter_map(|&(samples, correct)| estimate(samples, correct)).collect();
    let count = estimates.len();
    (count > 0).then(|| PassEstimate {
        value: estimates.iter().sum::<f64>() / count as f64,
        items: count as u64,
        left_out: (items.len() - count) as u64,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_close;
    use super::*;

    /// From Python's `math.comb` and `fractions.Fraction`.
    #[test]
    fn estimates_match_exact_fractions() {
        let cases = [
            (10, 3, 1, 0.3, 0.3),
            (10, 3, 5, 0.9166666666666666, 0.0),
            (10, 3, 8, 1.0, 0.0),
            (200, 1, 100, 0.5, 0.0),
            (200, 37, 10, 0.8773745673794602, 1.5515124900677956e-8),
            (1000, 2, 500, 0.7502502502502503, 0.0),
            (5, 5, 5, 1.0, 1.0),
            (5, 0, 3, 0.0, 0.0),
            (100_000, 321, 250, 0.5528203119740915, 0.0),
        ];
        for (samples, correct, k, at, hat) in cases {
            assert_close(pass_at_k(samples, correct, k).unwrap(), at, 1e-12);
            assert_close(pass_hat_k(samples, correct, k).unwrap(), hat, 1e-12);
        }
    }

    #[test]
    fn too_few_samples_give_no_estimate() {
        assert_eq!(pass_at_k(3, 1, 4), None);
        assert_eq!(pass_at_k(3, 1, 0), None);
        assert_eq!(pass_hat_k(3, 4, 2), None);
        assert_eq!(mean_pass_at_k(&[(1, 1), (0, 0)], 2), None);
        let mean = mean_pass_at_k(&[(2, 1), (1, 1), (4, 0)], 2).unwrap();
        assert_eq!(mean, PassEstimate { value: 0.5, items: 2, left_out: 1 });
        assert_eq!(mean_pass_hat_k(&[(2, 2), (4, 0)], 2).unwrap().value, 0.5);
    }

    /// Computes both estimates from every choice of `k` out of `samples`, as bit masks; the lowest `correct` samples
    /// are right.
    fn counted(samples: u32, correct: u32, k: u32) -> (f64, f64) {
        let right = (1u32 << correct) - 1;
        let draws: Vec<u32> = (0u32..1 << samples).filter(|draw| draw.count_ones() == k).collect();
        let share = |test: &dyn Fn(u32) -> bool| {
            draws.iter().filter(|&&draw| test(draw)).count() as f64 / draws.len() as f64
        };
        (share(&|draw| draw & right != 0), share(&|draw| draw & right == draw))
    }

    proptest! {
        #[test]
        fn the_product_is_the_counted_chance(samples in 1u32..10, correct in 0u32..10, k in 1u32..10) {
            let (correct, k) = (correct.min(samples), k.min(samples));
            let (at, hat) = counted(samples, correct, k);
            let (samples, correct, k) = (u64::from(samples), u64::from(correct), u64::from(k));
            prop_assert!((pass_at_k(samples, correct, k).unwrap() - at).abs() < 1e-12);
            prop_assert!((pass_hat_k(samples, correct, k).unwrap() - hat).abs() < 1e-12);
        }

        #[test]
        fn more_samples_pass_more_often_and_all_right_less_often(
            samples in 2u64..5000, correct in 0u64..5000, k in 1u64..5000,
        ) {
            let (correct, k) = (correct.min(samples), k.min(samples - 1));
            let (at, hat) = (pass_at_k(samples, correct, k).unwrap(), pass_hat_k(samples, correct, k).unwrap());
            prop_assert!((0.0..=1.0).contains(&at) && (0.0..=1.0).contains(&hat) && hat <= at + 1e-12);
            prop_assert!(pass_at_k(samples, correct, k + 1).unwrap() >= at - 1e-12);
            prop_assert!(pass_hat_k(samples, correct, k + 1).unwrap() <= hat + 1e-12);
        }
    }
}
