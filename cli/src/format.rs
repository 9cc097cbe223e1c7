//! Number formats for people.

use bench_domain::Timestamp;

/// Formats a share as `66.7%`, or `-` if there is none.
pub(crate) fn percent(share: Option<f64>) -> String {
    share
        .filter(|share| share.is_finite())
        .map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// Formats a score with its 95% interval: `66.7% (48.8–80.8)`, or `66.7% (–)` without one. Clips the interval of a
/// share to 0 and 1, since an interval around a mean can exceed them. Other intervals are shown unchanged.
pub(crate) fn percent_within(score: f64, interval: Option<(f64, f64)>, is_share: bool) -> String {
    let score_text = percent(Some(score));
    let Some((low, high)) = interval else { return format!("{score_text} (–)") };
    let is_share = is_share && score >= 0.0;
    let bound = |bound: f64| if is_share { bound.clamp(0.0, 1.0) } else { bound } * 100.0;
    // An en dash before a minus sign would look like two dashes.
    let to = if bound(high) < 0.0 { " to " } else { "–" };
    format!("{score_text} ({:.1}{to}{:.1})", bound(low), bound(high))
}

/// Formats a difference of two shares in percentage points, with its 95% interval: `+3.1 pp (-0.4 to +6.6)`.
pub(crate) fn points(difference: f64, interval: Option<(f64, f64)>) -> String {
    // Adding zero turns a negative zero into a positive one.
    let points = |share: f64| format!("{:+.1}", (share * 1_000.0).round() / 10.0 + 0.0);
    match interval {
        Some((low, high)) => format!("{} pp ({} to {})", points(difference), points(low), points(high)),
        None => format!("{} pp", points(difference)),
    }
}

/// Formats milliseconds as `850 ms`, `12.3 s` or `4 m 10 s`.
pub(crate) fn milliseconds(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() || ms < 0.0 => "-".to_owned(),
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 120_000.0 => format!("{:.1} s", ms / 1_000.0),
        ms => seconds(ms / 1_000.0),
    }
}

/// Formats seconds in their two largest units.
pub(crate) fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "-".to_owned();
    }
    let whole = seconds.round();
    let (days, hours, minutes) =
        ((whole / 86_400.0).floor(), (whole / 3_600.0).floor(), (whole / 60.0).floor());
    if minutes < 1.0 {
        format!("{whole:.0} s")
    } else if hours < 1.0 {
        format!("{minutes:.0} m {:.0} s", whole % 60.0)
    } else if days < 1.0 {
        format!("{hours:.0} h {:.0} m", (whole % 3_600.0 / 60.0).floor())
    } else {
        format!("{days:.0} d {:.0} h", (whole % 86_400.0 / 3_600.0).floor())
    }
}

/// Formats a count with a comma between groups of three digits: `12,032`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats bytes as `1.5 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // shown with one decimal
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1_000.0 {
            return if unit == "B" { format!("{value:.0} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1_000.0;
    }
    format!("{value:.1} TB")
}

/// Formats dollars: `$0.0123`, `$4.10`.
pub(crate) fn dollars(usd: f64) -> String {
    if usd != 0.0 && usd.abs() < 1.0 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

/// Formats a time to the minute, in UTC.
pub(crate) fn minute(time: Timestamp) -> String {
    time.to_string().get(..16).unwrap_or_default().replace('T', " ")
}

/// Returns the first 12 characters of an id or digest.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(12).collect()
}

/// Formats a number with a word, in the plural if needed.
pub(crate) fn plural(number: u64, word: &str) -> String {
    format!("{} {word}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(percent(Some(2.0 / 3.0)), "66.7%");
        assert_eq!(percent(None), "-");
        assert_eq!(percent_within(0.5, Some((0.25, 0.75)), true), "50.0% (25.0–75.0)");
        assert_eq!(percent_within(1.0, Some((0.9, 1.2)), true), "100.0% (90.0–100.0)");
        assert_eq!(percent_within(0.25, Some((-0.0353, 0.5353)), false), "25.0% (-3.5–53.5)");
        assert_eq!(percent_within(-0.5, Some((-0.7, -0.25)), false), "-50.0% (-70.0 to -25.0)");
        assert_eq!(percent_within(0.0, None, false), "0.0% (–)");
        assert_eq!(points(0.031, Some((-0.004, 0.066))), "+3.1 pp (-0.4 to +6.6)");
        assert_eq!(points(-0.0004, None), "+0.0 pp");
        assert_eq!([0, 7, 999, 12_032, 1_234_567].map(count), ["0", "7", "999", "12,032", "1,234,567"]);
        assert_eq!([0, 999, 1_500, 2_000_000].map(bytes), ["0 B", "999 B", "1.5 kB", "2.0 MB"]);
        assert_eq!([0.4, 61.0, 3_700.0, 90_000.0].map(seconds), ["0 s", "1 m 1 s", "1 h 1 m", "1 d 1 h"]);
        assert_eq!([850.0, 12_340.0, 250_000.0].map(milliseconds), ["850 ms", "12.3 s", "4 m 10 s"]);
        assert_eq!([0.0, 0.0123, 4.1].map(dollars), ["$0.00", "$0.0123", "$4.10"]);
        assert_eq!((plural(1, "run"), plural(2, "run")), ("1 run".to_owned(), "2 runs".to_owned()));
    }

    #[test]
    fn times_are_cut_to_the_minute() {
        assert_eq!(minute("2026-01-02T03:04:05.123Z".parse().unwrap()), "2026-01-02 03:04");
    }
}
