//! Timestamps of rows, in milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns milliseconds since 1970; 0 if the clock is set to an earlier time.
pub(super) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

/// Converts the timestamp of a row.
pub(super) fn system_time(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
