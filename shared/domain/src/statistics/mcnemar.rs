//! Exact test on the items that only one of two runs got right.

/// Exponent above which the product is scaled down by the same power of two, so that it never overflows.
const SCALE_EXPONENT: i64 = 512;

/// Returns the exact two-sided p-value of McNemar's test, from the number of items that only the first run got right
/// and the number that only the second got right.
///
/// If neither run is better, each of these n items is a fair coin toss, so the p-value is min(1, 2 · P(X ≤ min)) with X
/// binomial (n, ½): small if one run wins far more of them. It is 1 if the numbers are equal, and 0 only if the true
/// value is below the smallest `f64`. Time grows with the smaller number.
#[must_use]
pub fn mcnemar_exact_p(only_first: u64, only_second: u64) -> f64 {
    let (fewer, more) = (only_first.min(only_second), only_first.max(only_second));
    if fewer == more {
        return 1.0;
    }
    // C(n, fewer) = Π (more + i) / i. Powers of two are kept separately: dividing by 2ⁿ at once would underflow.
    let limit = power_of_two(SCALE_EXPONENT);
    let mut binomial = 1.0;
    let mut exponent: i64 = 0;
    for i in 1..=fewer {
        binomial *= (more as f64 + i as f64) / i as f64;
        if binomial >= limit {
            binomial /= limit;
            exponent += SCALE_EXPONENT;
        }
    }
    // The tail below, relative to its largest term: C(n, j−1) / C(n, j) = j / (n − j + 1).
    let total = fewer as f64 + more as f64;
    let (mut tail, mut term) = (1.0, 1.0);
    for j in (1..=fewer).rev() {
        term *= j as f64 / (total - j as f64 + 1.0);
        tail += term;
        if term < tail * f64::EPSILON / 1024.0 {
            break;
        }
    }
    // One power more than −n, for the two sides.
    let halvings = i64::try_from(fewer.saturating_add(more)).unwrap_or(i64::MAX);
    scale_by_power_of_two(binomial * tail, exponent.saturating_sub(halvings).saturating_add(1)).min(1.0)
}

/// Returns `value` · 2^`exponent`; 0 if that is too small.
fn scale_by_power_of_two(mut value: f64, mut exponent: i64) -> f64 {
    while exponent < 0 && value > 0.0 {
        let step = exponent.max(-SCALE_EXPONENT);
        value *= power_of_two(step);
        exponent -= step;
    }
    value * power_of_two(exponent.min(SCALE_EXPONENT))
}

/// Returns 2^`exponent` exactly, for exponents of normal numbers.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent.clamp(-1022, 1023)) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_close;
    use super::*;

    /// From Python's `fractions.Fraction`, which agrees with scipy's `binomtest(b, b + c).pvalue`.
    #[test]
    fn p_values_match_exact_fractions() {
        let cases = [
            (0, 0, 1.0),
            (0, 1, 1.0),
            (0, 6, 0.03125),
            (3, 9, 0.14599609375),
            (10, 2, 0.03857421875),
            (5, 5, 1.0),
            (6, 7, 1.0),
            (25, 40, 0.08168153394154005),
            (120, 180, 0.0006342200069283569),
            (0, 100, 1.5777218104420236e-30),
            (500, 700, 8.535366081034334e-9),
            (1000, 3000, 2.4915145386299067e-229),
            (5000, 5200, 0.04878796312682245),
            (40_000, 41_000, 0.000447821823137557),
        ];
        for (only_first, only_second, p) in cases {
            assert_close(mcnemar_exact_p(only_first, only_second), p, 1e-11);
        }
    }

    #[test]
    fn the_ends_of_the_range_neither_overflow_nor_hang() {
        assert_eq!(mcnemar_exact_p(0, 1074), 1e-323);
        assert_eq!(mcnemar_exact_p(0, 1076), 0.0);
        assert_eq!(mcnemar_exact_p(3, 1_000_000_000_000), 0.0);
        assert_eq!(mcnemar_exact_p(0, u64::MAX), 0.0);
        assert_eq!(mcnemar_exact_p(u64::MAX, u64::MAX), 1.0);
        assert!((mcnemar_exact_p(1_000_000, 1_000_001) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_p_value_is_symmetric_and_decreases_with_the_gap(fewer in 0u64..3000, gap in 0u64..500) {
            let p = mcnemar_exact_p(fewer, fewer + gap);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert_eq!(p, mcnemar_exact_p(fewer + gap, fewer));
            prop_assert!(mcnemar_exact_p(fewer, fewer + gap + 1) <= p);
        }

        #[test]
        fn the_p_value_matches_enumeration(b in 0u32..8, c in 0u32..8) {
            let tosses = b + c;
            let at_most = (0u32..1 << tosses).filter(|toss| toss.count_ones() <= b.min(c)).count();
            let expected = (2.0 * at_most as f64 / f64::from(1u32 << tosses)).min(1.0);
            prop_assert!((mcnemar_exact_p(u64::from(b), u64::from(c)) - expected).abs() < 1e-14);
        }
    }
}
