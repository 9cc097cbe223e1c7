//! Data for operators: counts of runs, active workers, tokens.
//!
//! Counts change in the transactions that change the counted records. Active workers write a heartbeat once a minute,
//! and add tokens to hourly sums. Readers therefore read a few small records and never count anything.

mod counts;
mod recent;
mod secrets;
mod tokens;
mod workers;

pub use counts::RunCounts;
pub use tokens::{TOKEN_HOURS_MAX, TokenSum};
pub use workers::{
    Heartbeat, HeartbeatRecord, MinuteLoad, WORKER_ID_CHARS_MAX, latest_heartbeats, minute_loads,
};

/// Microseconds of a minute and of an hour.
const MINUTE_US: i64 = 60_000_000;
const HOUR_US: i64 = 60 * MINUTE_US;
