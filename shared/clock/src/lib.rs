//! System clock.
//!
//! `bench-domain` doesn't read the clock, so everything that depends on time can be tested with any time.

use std::time::{SystemTime, UNIX_EPOCH};

use bench_domain::Timestamp;

/// Returns the current time in whole microseconds; 1970-01-01 if the clock is set to an earlier time.
#[must_use]
pub fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}
