//! Numbers and times for people.

use bench_domain::Timestamp;

/// Formats a share in percent with two decimals.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// Formats US dollars, with four decimals below a dollar.
pub(super) fn dollars(usd: f64) -> String {
    if usd != 0.0 && usd.abs() < 1.0 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

/// Formats a time in UTC with whole seconds.
pub(super) fn time(time: Timestamp) -> String {
    let text = time.whole_seconds().to_string();
    format!("{} UTC", text.trim_end_matches('Z').replace('T', " "))
}

/// Formats milliseconds as seconds.
#[allow(clippy::cast_precision_loss)] // times are far below 2^53
pub(super) fn seconds(milliseconds: u64) -> String {
    format!("{:.1} s", milliseconds as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact() {
        assert_eq!(
            [0.0, 0.00012, 0.5, 1.0, 1234.5].map(dollars),
            ["$0.00", "$0.0001", "$0.5000", "$1.00", "$1234.50"]
        );
        assert_eq!(
            (percent(0.666_67), percent(1.0), percent(-0.5)),
            ("66.67%".into(), "100.00%".into(), "-50.00%".into())
        );
        assert_eq!(seconds(12_345), "12.3 s");
        let moment = "2026-01-02T03:04:05.999999Z".parse().unwrap();
        assert_eq!(time(moment), "2026-01-02 03:04:05 UTC");
    }
}
