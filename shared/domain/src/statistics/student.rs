//! Quantiles that turn a standard error over few clusters into an interval.

use super::NORMAL_QUANTILE_95;

/// 0.975 quantiles of Student's t for 1 to 30 degrees of freedom.
const QUANTILES_95: [f64; 30] = [
    12.706204736174694,
    4.302652729749462,
    3.1824463052837078,
    2.7764451051977934,
    2.5705818356363146,
    2.4469118511449786,
    2.364624251592784,
    2.306004135204166,
    2.262157162798205,
    2.228138851986274,
    2.200985160091639,
    2.1788128296672284,
    2.1603686564627913,
    2.144786687917804,
    2.131449545559776,
    2.1199052992212546,
    2.1098155778333156,
    2.1009220402410382,
    2.0930240544083087,
    2.085963447265864,
    2.0796138447276795,
    2.0738730679040254,
    2.0686576104190486,
    2.0638985616280245,
    2.0595385527532972,
    2.0555294386428735,
    2.0518305164802846,
    2.0484071417952454,
    2.045229642132703,
    2.0422724563012378,
];

/// Returns the 0.975 quantile of Student's t; `None` for zero degrees of freedom.
///
/// Uses a table up to 30, and beyond it the expansion of Abramowitz and Stegun 26.7.5 around the normal quantile, which
/// is within 10⁻⁷ of the true value there and approaches the normal quantile.
pub(super) fn quantile_95(degrees_of_freedom: u64) -> Option<f64> {
    let index = degrees_of_freedom.checked_sub(1)?;
    let listed = usize::try_from(index).ok().and_then(|index| QUANTILES_95.get(index));
    Some(listed.copied().unwrap_or_else(|| expansion(degrees_of_freedom as f64)))
}

fn expansion(v: f64) -> f64 {
    let x = NORMAL_QUANTILE_95;
    let s = x * x;
    let g1 = x * (s + 1.0) / 4.0;
    let g2 = x * ((5.0 * s + 16.0) * s + 3.0) / 96.0;
    let g3 = x * (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0;
    let g4 = x * ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0;
    x + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    /// From scipy 1.17: `t.ppf(0.975, df)`.
    #[test]
    fn quantiles_match_scipy() {
        let cases = [
            (1, 12.706204736174694),
            (30, 2.0422724563012378),
            (31, 2.039513446396408),
            (32, 2.0369333434601016),
            (35, 2.030107928250343),
            (50, 2.008559112100761),
            (100, 1.9839715185235518),
            (197, 1.9720790337785026),
            (1000, 1.9623390808264083),
            (12031, 1.9601611839291417),
        ];
        for (degrees_of_freedom, quantile) in cases {
            assert_close(quantile_95(degrees_of_freedom).unwrap(), quantile, 1e-7);
        }
        assert_eq!(quantile_95(0), None);
        assert_close(quantile_95(u64::MAX).unwrap(), NORMAL_QUANTILE_95, 1e-12);
    }

    #[test]
    fn the_table_goes_over_into_the_expansion_and_falls() {
        assert_close(expansion(30.0), QUANTILES_95[29], 1e-7);
        let quantiles: Vec<f64> = (1..2000).map(|v| quantile_95(v).unwrap()).collect();
        assert!(quantiles.is_sorted_by(|earlier, later| earlier > later));
    }
}
