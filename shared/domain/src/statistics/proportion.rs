//! Interval of a share of successes.

use super::{Interval, NORMAL_QUANTILE_95};

/// Returns Wilson's score interval (Wilson 1927, without continuity correction) of `successes` out of `trials`.
///
/// It's valid for independent trials, that is, for one sample per item; with several samples per item, use
/// [`clustered_mean`](super::clustered_mean). It stays within 0 and 1 and has a width even if all trials agree. `None`
/// without trials or with more successes than trials.
#[must_use]
pub fn wilson(successes: u64, trials: u64) -> Option<Interval> {
    if trials == 0 || successes > trials {
        return None;
    }
    let (n, share) = (trials as f64, successes as f64 / trials as f64);
    let z_squared = NORMAL_QUANTILE_95 * NORMAL_QUANTILE_95;
    let scale = 1.0 + z_squared / n;
    let center = (share + z_squared / (2.0 * n)) / scale;
    let reach = NORMAL_QUANTILE_95 * (share * (1.0 - share) / n + z_squared / (4.0 * n * n)).sqrt() / scale;
    // At the ends, the bound is the share itself; rounding must not move it.
    let low = if successes == 0 { 0.0 } else { (center - reach).clamp(0.0, share) };
    let high = if successes == trials { 1.0 } else { (center + reach).clamp(share, 1.0) };
    Some(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_close;
    use super::*;

    /// From scipy 1.17: `binomtest(s, n).proportion_ci(0.95, "wilson")`.
    #[test]
    fn bounds_match_scipy() {
        let cases = [
            (0, 1, 0.0, 0.793_450_685_622_762_6),
            (1, 1, 0.206_549_314_377_237_45, 1.0),
            (0, 10, 0.0, 0.277_532_799_862_889_26),
            (10, 10, 0.722_467_200_137_110_9, 1.0),
            (1, 10, 0.017_876_213_095_072_896, 0.404_150_026_795_238_5),
            (7, 10, 0.396_778_147_461_145_26, 0.892_208_732_593_699),
            (85, 100, 0.767_164_404_091_676_3, 0.906_940_147_163_433_7),
            (120, 198, 0.536_603_187_073_395_9, 0.671_480_921_342_163_6),
            (9012, 12032, 0.741_176_624_594_489_7, 0.756_669_747_053_140_3),
            (1, 12032, 1.467_140_688_637_903_7e-5, 4.706_672_244_574_823_4e-4),
        ];
        for (successes, trials, low, high) in cases {
            let interval = wilson(successes, trials).unwrap();
            assert_close(interval.low, low, 1e-11);
            assert_close(interval.high, high, 1e-12);
        }
    }

    #[test]
    fn values_that_are_not_shares_have_no_interval() {
        assert_eq!(wilson(0, 0), None);
        assert_eq!(wilson(2, 1), None);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_share_and_mirrors(trials in 1u64..1_000_000, part in 0.0f64..=1.0) {
            let successes = ((trials as f64 * part) as u64).min(trials);
            let share = successes as f64 / trials as f64;
            let interval = wilson(successes, trials).unwrap();
            prop_assert!(0.0 <= interval.low && interval.low <= share);
            prop_assert!(share <= interval.high && interval.high <= 1.0);
            prop_assert!(interval.low < interval.high);
            let mirrored = wilson(trials - successes, trials).unwrap();
            prop_assert!((interval.low - (1.0 - mirrored.high)).abs() < 1e-12);
            let doubled = wilson(successes * 2, trials * 2).unwrap();
            prop_assert!(doubled.high - doubled.low < interval.high - interval.low);
        }
    }
}
