//! Parses the wait that a provider asks for (RFC 9110, section 10.2.3, and the nonstandard `retry-after-ms`).

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::{rfc2822, strtime};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Maximum wait that is accepted, in seconds: one day.
const WAIT_SECONDS_MAX: f64 = 86_400.0;

/// Returns the wait that a response asks for, at most a day. A date counts from the response's own `Date`, so that
/// clocks may differ.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return wait(millis / 1000.0);
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse::<f64>() {
        return wait(seconds);
    }
    let until = http_date(value)?;
    let from = text(DATE.as_str()).and_then(http_date).unwrap_or(now);
    wait(until.duration_since(from).as_secs_f64())
}

fn wait(seconds: f64) -> Option<Duration> {
    if seconds.is_nan() {
        return None;
    }
    Some(Duration::from_secs_f64(seconds.clamp(0.0, WAIT_SECONDS_MAX)))
}

/// Parses any of the three forms of an HTTP date.
fn http_date(text: &str) -> Option<Timestamp> {
    const PARSER: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    if let Ok(time) = PARSER.parse_timestamp(text) {
        return Some(time);
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"].into_iter().find_map(|format| {
        let civil = strtime::parse(format, text).ok()?.to_datetime().ok()?;
        jiff::tz::Offset::UTC.to_timestamp(civil).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(headers: &[(&'static str, &str)]) -> Option<f64> {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        retry_after(&map, now).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn seconds_and_milliseconds() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[("retry-after", "7")]), Some(7.0));
        assert_eq!(parse(&[("retry-after", "0.5")]), Some(0.5));
        assert_eq!(parse(&[("retry-after", "7"), ("retry-after-ms", "250")]), Some(0.25));
        assert_eq!(parse(&[("retry-after", "-3")]), Some(0.0));
        assert_eq!(parse(&[("retry-after", "1e300")]), Some(86_400.0));
        assert_eq!(parse(&[("retry-after", "NaN")]), None);
        assert_eq!(parse(&[("retry-after", "soon")]), None);
    }

    #[test]
    fn all_three_forms_of_a_date() {
        for date in
            ["Fri, 02 Jan 2026 03:05:05 GMT", "Friday, 02-Jan-26 03:05:05 GMT", "Fri Jan  2 03:05:05 2026"]
        {
            assert_eq!(parse(&[("retry-after", date)]), Some(60.0), "{date}");
        }
        assert_eq!(parse(&[("retry-after", "Fri, 02 Jan 2026 03:00:00 GMT")]), Some(0.0));
        assert_eq!(parse(&[("retry-after", "Fri, 02 Jan 2099 03:00:00 GMT")]), Some(86_400.0));
    }

    #[test]
    fn a_date_counts_from_the_servers_own_clock() {
        let headers =
            [("retry-after", "Tue, 06 Oct 2020 10:00:30 GMT"), ("date", "Tue, 06 Oct 2020 10:00:00 GMT")];
        assert_eq!(parse(&headers), Some(30.0));
    }
}
