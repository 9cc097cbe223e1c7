//! Numbers and times for people.

use bench_domain::Timestamp;
use bench_domain::budget::grouped;
use serde_json::Number;

/// Metrics that official programs state in percent.
const PERCENTAGES: [&str; 4] =
    ["accuracy_official", "half_width", "calibration_error", "calibration_error_all_bins"];
/// Metrics that are neither shares nor percentages.
const POINTS: [&str; 1] = ["omniscience_index"];

/// Formats a share in percent with two decimals.
pub(in crate::file) fn percent(share: f64) -> String {
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

/// Formats a time as seconds, or as milliseconds below a second.
#[allow(clippy::cast_precision_loss)] // times are far below 2^53
pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1_000.0),
    }
}

/// Formats a number of tokens.
pub(super) fn tokens(count: u64) -> String {
    match count {
        0 => "no tokens".to_owned(),
        1 => "1 token".to_owned(),
        several => format!("{} tokens", grouped(several)),
    }
}

/// Formats a metric of a benchmark's protocol with its unit: a count, a share in percent, points, or dollars.
pub(super) fn metric(name: &str, number: &Number) -> Option<String> {
    if let Some(count) = number.as_u64() {
        return Some(if name.ends_with("_usd") { format!("${count}.00") } else { grouped(count) });
    }
    let value = number.as_f64()?;
    Some(match name {
        _ if PERCENTAGES.contains(&name) => percent(value / 100.0),
        _ if POINTS.contains(&name) => format!("{value:.2} points, from -100 to 100"),
        _ if name.ends_with("_usd") => dollars(value),
        _ => percent(value),
    })
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
        assert_eq!([0, 850, 1_000, 12_345].map(duration), ["0 ms", "850 ms", "1.0 s", "12.3 s"]);
        assert_eq!([0, 1, 12_345].map(tokens), ["no tokens", "1 token", "12,345 tokens"]);
        let moment = "2026-01-02T03:04:05.999999Z".parse().unwrap();
        assert_eq!(time(moment), "2026-01-02 03:04:05 UTC");
    }

    #[test]
    fn metrics_have_their_unit() {
        let shown = |name: &str, value: serde_json::Value| match value {
            serde_json::Value::Number(number) => metric(name, &number).unwrap(),
            other => panic!("{other} is not a number"),
        };
        assert_eq!(shown("prompt_level_strict", 0.25.into()), "25.00%");
        assert_eq!(shown("prompt_level_strict", 1.0.into()), "100.00%");
        assert_eq!(shown("judged", 1_200.into()), "1,200");
        assert_eq!(shown("half_width", 42.44.into()), "42.44%");
        assert_eq!(shown("omniscience_index", (-12.5).into()), "-12.50 points, from -100 to 100");
        assert_eq!(shown("user_cost_usd", 0.25.into()), "$0.2500");
        assert_eq!(shown("accuracy_chance_adjusted", (-0.05).into()), "-5.00%");
    }
}
