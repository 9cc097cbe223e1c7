//! The system's clock.
//!
//! `bench-domain` has none, so that whatever follows from a time can be tested with any time.

use std::time::{SystemTime, UNIX_EPOCH};

use bench_domain::Timestamp;

/// The time now, in whole microseconds; 1970 where the clock is set to before it.
#[must_use]
pub fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}
