//! Uncertainty of scores: intervals, standard errors, pass@k, percentiles, and the comparison of two runs.
//!
//! All functions use only operations that IEEE 754 rounds exactly, so the same input gives the same bits on every
//! machine. A statistic that its input doesn't determine is `None`, never a misleading number.

mod mcnemar;
mod mean;
mod paired;
mod pass;
mod percentile;
mod proportion;
mod ranks;
mod student;

use serde::{Deserialize, Serialize};

pub use self::mcnemar::mcnemar_exact_p;
pub use self::mean::{ClusteredMean, clustered_mean};
pub use self::paired::{PairedComparison, PairedSample, compare_paired};
pub use self::pass::{PassEstimate, mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k};
pub use self::percentile::{Percentiles, percentile, percentiles};
pub use self::proportion::wilson;
pub use self::ranks::{RankRange, RankedMean, rank_ranges};

/// 0.975 quantile of the standard normal distribution: two-sided 95%.
const NORMAL_QUANTILE_95: f64 = 1.959_963_984_540_054;

/// Two-sided 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound, at least the lower one.
    pub high: f64,
}

impl Interval {
    /// Computes the interval of an estimate from its standard error over independent clusters: Student's t with one
    /// degree of freedom fewer than clusters. `None` for fewer than two clusters.
    fn from_standard_error(estimate: f64, standard_error: f64, clusters: u64) -> Option<Self> {
        let reach = student::quantile_95(clusters.checked_sub(1)?)? * standard_error;
        Some(Self { low: estimate - reach, high: estimate + reach })
    }
}

/// Computes the standard error of a mean of independent values: the square root of `sum_of_squares` (squared deviations
/// from the mean) divided by `count · (count − 1)`. `None` for fewer than two values.
fn standard_error(sum_of_squares: f64, count: u64) -> Option<f64> {
    let count = (count >= 2).then_some(count as f64)?;
    Some((sum_of_squares / (count * (count - 1.0))).sqrt())
}

#[cfg(test)]
fn assert_close(actual: f64, expected: f64, relative: f64) {
    let error = (actual - expected).abs();
    assert!(error <= relative * expected.abs().max(f64::MIN_POSITIVE), "{actual} is not {expected}");
}
