//! What operators look at: counts of runs, workers at work, tokens.
//!
//! Counts change in the transactions that change what they count. Workers tell of themselves once a minute while
//! they work, and of tokens in hourly sums. So whoever looks reads a few small records and never counts anything.

mod counts;
mod recent;
mod secrets;
mod tokens;
mod workers;

pub use counts::RunCounts;
pub use tokens::{TOKEN_HOURS_MAX, TokenSum};
pub use workers::{Heartbeat, MinuteLoad, SeenWorker, WORKER_ID_CHARS_MAX, latest_of, minutes_of};

/// Microseconds of a minute and of an hour.
const MINUTE_US: i64 = 60_000_000;
const HOUR_US: i64 = 60 * MINUTE_US;
