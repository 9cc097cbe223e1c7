//! Formatting of durations and percentages.

/// Formats a duration in its two largest units: `1h 30m`, `1m 30s`, `5s` or, below a second, `999ms`. `None` becomes
/// `-`. Negative durations count as 0.
#[must_use]
pub fn format_duration_ms(duration_ms: Option<f64>) -> String {
    let Some(ms) = duration_ms.filter(|ms| ms.is_finite()).map(|ms| ms.max(0.0)) else {
        return "-".to_owned();
    };
    let seconds = (ms / 1000.0).floor();
    if ms < 1000.0 {
        format!("{:.0}ms", ms.round())
    } else if seconds < 60.0 {
        format!("{seconds:.0}s")
    } else if seconds < 3600.0 {
        format!("{:.0}m {:.0}s", (seconds / 60.0).floor(), seconds % 60.0)
    } else {
        format!("{:.0}h {:.0}m", (seconds / 3600.0).floor(), (seconds % 3600.0 / 60.0).floor())
    }
}

/// Formats seconds, rounded to milliseconds, like [`format_duration_ms`].
#[must_use]
pub fn format_duration_seconds(seconds: Option<f64>) -> String {
    format_duration_ms(seconds.map(|seconds| (seconds * 1000.0).round()))
}

/// Formats a fraction as a percentage with one decimal, such as `85.6%`. `None` becomes `-`. Halves are rounded away
/// from zero.
#[must_use]
pub fn format_percent(fraction: Option<f64>) -> String {
    let Some(percent) = fraction.map(|fraction| fraction * 100.0).filter(|percent| percent.is_finite())
    else {
        return "-".to_owned();
    };
    // Formatting rounds halves to even. Only quarters lie exactly between two decimals.
    let quarters = percent * 4.0;
    let halfway = quarters % 2.0 == 1.0 || quarters % 2.0 == -1.0;
    let nudge = if halfway { 0.01 * percent.signum() } else { 0.0 };
    // Adding positive zero turns negative zero into positive zero.
    format!("{:.1}%", percent + nudge + 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::vectors;
    use super::*;

    #[test]
    fn texts_match_the_vectors() {
        let all = vectors();
        type Format = fn(Option<f64>) -> String;
        let groups: [(&str, &str, Format, usize); 3] = [
            ("durations", "ms", format_duration_ms, 13),
            ("duration_seconds", "seconds", format_duration_seconds, 9),
            ("percents", "value", format_percent, 8),
        ];
        for (group, key, format, count) in groups {
            let cases = all[group].as_array().unwrap();
            assert_eq!(cases.len(), count);
            for case in cases {
                assert_eq!(format(case[key].as_f64()), case["text"].as_str().unwrap(), "{case}");
            }
        }
    }

    /// Expected texts are those of `(fraction * 100).toFixed(1)` in a browser.
    #[test]
    fn percents_halfway_round_away_from_zero() {
        for (fraction, text) in [
            (0.0025, "0.3%"),
            (0.1225, "12.3%"),
            (0.5075, "50.7%"),
            (-0.1225, "-12.3%"),
            (-0.0, "0.0%"),
            (0.999_96, "100.0%"),
        ] {
            assert_eq!(format_percent(Some(fraction)), text);
        }
    }

    #[test]
    fn missing_values_are_shown_as_a_dash() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(format_percent(Some(value)), "-");
            assert_eq!(format_duration_ms(Some(value)), "-");
            assert_eq!(format_duration_seconds(Some(value)), "-");
        }
    }
}
