//! Load of past minutes. An hour that has ended no longer changes and is read once.

use std::time::Duration;

use bench_domain::Timestamp;
use bench_state::ops::{Heartbeat, MinuteLoad, latest_heartbeats, minute_loads};
use bench_web::ApiError;
use futures_util::future::try_join_all;

use crate::Api;
use crate::context::lock;

const MINUTE_US: i64 = 60_000_000;
const HOUR_US: i64 = 60 * MINUTE_US;
/// Maximum length of the time series, in minutes.
pub(super) const MINUTES_MAX: u64 = 1_440;
/// Time after the last heartbeat at which a worker counts as gone: three heartbeat intervals.
const SEEN_WITHIN: Duration = Duration::from_secs(180);
/// Time after the end of an hour until which it is read again, since a heartbeat may arrive late.
const SETTLED_AFTER_US: i64 = 2 * MINUTE_US;
/// Maximum number of cached hours: a day and the hour in which it began.
const HOURS_MAX: usize = 26;

/// Returns the active workers and the load of the last minutes.
pub(super) async fn load(
    api: &Api,
    now: Timestamp,
    minutes: u64,
) -> Result<(Vec<Heartbeat>, Vec<MinuteLoad>), ApiError> {
    let back = i64::try_from(minutes.min(MINUTES_MAX)).unwrap_or(0) * MINUTE_US;
    let from = (now.as_micros() - back).div_euclid(MINUTE_US) * MINUTE_US;
    let seen_since =
        Timestamp::from_micros(now.as_micros() - i64::try_from(SEEN_WITHIN.as_micros()).unwrap_or(0));
    let (first, this) = (from.div_euclid(HOUR_US), now.as_micros().div_euclid(HOUR_US));
    let hours = (first..=this).map(|hour| hour_load(api, hour, now, seen_since));
    let mut workers: Vec<Heartbeat> = Vec::new();
    let mut series = Vec::new();
    for (seen, loads) in try_join_all(hours).await? {
        for heartbeat in seen {
            // Heartbeats of later hours replace earlier ones.
            workers.retain(|known| known.worker_id != heartbeat.worker_id);
            workers.push(heartbeat);
        }
        series.extend(loads.into_iter().filter(|load| load.timestamp.as_micros() >= from));
    }
    workers.sort_by(|a, b| a.worker_id.cmp(&b.worker_id));
    Ok((workers, series))
}

/// Returns the workers of an hour that are still active, and the hour's minutes.
async fn hour_load(
    api: &Api,
    hour: i64,
    now: Timestamp,
    seen_since: Timestamp,
) -> Result<(Vec<Heartbeat>, Vec<MinuteLoad>), ApiError> {
    let start = Timestamp::from_micros(hour * HOUR_US);
    let settled = now.as_micros() >= (hour + 1) * HOUR_US + SETTLED_AFTER_US;
    // A worker that is still active may have sent its last heartbeat in the previous hour.
    let fresh = seen_since.as_micros() < (hour + 1) * HOUR_US;
    if settled && !fresh {
        let cached = lock(&api.ops.hours).get(&hour).cloned();
        if let Some(loads) = cached {
            return Ok((Vec::new(), loads));
        }
    }
    let seen = api.state.heartbeats_from(start).await?;
    let loads = minute_loads(&seen);
    if settled {
        let mut cached = lock(&api.ops.hours);
        cached.insert(hour, loads.clone());
        while cached.len() > HOURS_MAX {
            cached.pop_first();
        }
    }
    Ok((latest_heartbeats(&seen, seen_since, api.state.epoch()), loads))
}
