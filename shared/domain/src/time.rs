//! Timestamps, as stored and as displayed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Point in time, in whole microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

/// Error for a text that isn't an ISO 8601 time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an ISO 8601 time such as 2026-01-02T03:04:05Z")]
pub struct InvalidTimestamp(String);

impl Timestamp {
    /// Creates a timestamp from microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since 1970, rounded down; the unit of DynamoDB's time to live.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Adds a duration; the ends of the range saturate.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the duration since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Cuts off the fraction of a second, as in signed exports.
    pub const fn whole_seconds(self) -> Self {
        Self(self.0.div_euclid(1_000_000) * 1_000_000)
    }

    /// Returns the time in UTC as `YYYYMMDD_HHMMSS`, for file names.
    pub fn compact(self) -> String {
        let text = self.whole_seconds().to_string();
        text.replace(['-', ':'], "").replace('T', "_").trim_end_matches('Z').to_owned()
    }
}

impl fmt::Display for Timestamp {
    /// Writes the time in UTC with `T` and `Z`, and six fractional digits, or none if they are zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = jiff::Timestamp::MIN.as_microsecond()..=jiff::Timestamp::MAX.as_microsecond();
        let clamped = self.0.clamp(*range.start(), *range.end());
        let instant = jiff::Timestamp::from_microsecond(clamped).unwrap_or_default();
        match clamped.rem_euclid(1_000_000) {
            0 => write!(f, "{instant:.0}"),
            _ => write!(f, "{instant:.6}"),
        }
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Parses ISO 8601 with any offset; a time without a zone is treated as UTC.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let parsed = text.parse::<jiff::Timestamp>().or_else(|_| format!("{text}Z").parse());
        parsed
            .map(|instant| Self(instant.as_microsecond()))
            .map_err(|_| InvalidTimestamp(text.chars().take(80).collect()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_has_six_digits_or_is_left_out() {
        let time: Timestamp = "2026-01-02T03:04:05.123Z".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-02T03:04:05.123000Z");
        assert_eq!(time.whole_seconds().to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(time.compact(), "20260102_030405");
    }

    #[test]
    fn a_time_without_zone_is_utc_and_an_offset_is_honored() {
        let utc: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!("2026-01-02T03:04:05".parse(), Ok(utc));
        assert_eq!("2026-01-02T04:04:05+01:00".parse(), Ok(utc));
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn every_value_can_be_shown() {
        for micros in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert!(Timestamp::from_micros(micros).to_string().ends_with('Z'));
        }
    }
}
