//! Timing of a schedule: a cron expression in a time zone.
//!
//! The expression is matched against wall clock time without a zone, where no time is missing or doubled. The result is
//! then resolved in the zone, by the rule in [`super`].

use std::collections::VecDeque;
use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Maximum delay with which a planned time still runs.
pub const LATE_MAX: Duration = Duration::from_secs(6 * 3_600);
/// Minimum interval between two planned times, by the wall clock.
pub const INTERVAL_MIN: Duration = Duration::from_secs(15 * 60);
/// Maximum length of a cron expression in characters.
pub const CRON_CHARS_MAX: usize = 200;
/// Maximum number of missed times with a record each.
const MISSED_KEPT: usize = 20;
/// Missed times are counted back to this long before now.
const COUNTED_BACK: Duration = Duration::from_secs(31 * 86_400);
const MINUTES_PER_DAY: u16 = 24 * 60;
/// Maximum number of planned local times that may resolve to the same moment or to a past one: a clock change of one
/// day.
const LOOKED_AT_MAX: usize = MINUTES_PER_DAY as usize + 1;
/// Years that are searched for a match: one cycle of leap years, between two changes of the century.
const YEARS: i64 = 4;
/// 2026-01-01, a fixed reference time, so that the check for expressions that never match doesn't depend on the clock.
const SOME_TIME: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// Cron expression in a time zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawTiming")]
pub struct Timing {
    /// Minute, hour, day of month, month, day of week, separated by single spaces.
    cron: String,
    /// Name in the IANA database.
    time_zone: String,
}

#[derive(Deserialize)]
struct RawTiming {
    cron: String,
    time_zone: String,
}

impl TryFrom<RawTiming> for Timing {
    type Error = InvalidTiming;

    fn try_from(written: RawTiming) -> Result<Self, InvalidTiming> {
        Self::new(&written.cron, &written.time_zone)
    }
}

/// Error for an invalid timing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTiming {
    /// The expression is too long.
    #[error("a cron expression must have at most {CRON_CHARS_MAX} characters")]
    Long,
    /// The expression doesn't have five fields.
    #[error(
        "a cron expression has five fields: minute, hour, day of month, month, day of week; this one has {0}"
    )]
    Fields(usize),
    /// A field contains something that can't be parsed.
    #[error("invalid field `{0}`; use `*`, numbers, names such as `MON` or `JAN`, ranges, lists and steps")]
    Word(String),
    /// A field contains a value out of range.
    #[error("invalid cron expression: {0}")]
    Cron(String),
    /// The time zone doesn't exist.
    #[error("unknown time zone `{0}`; use a name of the IANA database, such as `Europe/Berlin` or `UTC`")]
    TimeZone(String),
    /// The schedule would run too often.
    #[error(
        "two runs must be at least {} minutes apart; this expression has two that are {} apart",
        INTERVAL_MIN.as_secs() / 60,
        minutes(*.0)
    )]
    Often(u16),
    /// The schedule would never run.
    #[error("the cron expression matches no time in the next {YEARS} years")]
    Never,
}

/// Actions for planned times that have passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTimes {
    /// Planned time to run: the latest one, if it is less than [`LATE_MAX`] ago.
    pub fire: Option<Timestamp>,
    /// Missed times, the latest last; at most 20.
    pub missed: Vec<Timestamp>,
    /// Number of missed times before those, within the last 31 days.
    pub earlier: u64,
    /// Next planned time.
    pub next: Option<Timestamp>,
}

impl Timing {
    /// Creates a checked timing.
    ///
    /// # Errors
    /// Returns the reason why the timing is invalid.
    pub fn new(cron: &str, time_zone: &str) -> Result<Self, InvalidTiming> {
        if cron.chars().count() > CRON_CHARS_MAX {
            return Err(InvalidTiming::Long);
        }
        let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
        let [minute, hour, days @ ..] = fields.as_slice() else {
            return Err(InvalidTiming::Fields(fields.len()));
        };
        if days.len() != 3 {
            return Err(InvalidTiming::Fields(fields.len()));
        }
        if let Some(word) =
            fields.iter().flat_map(|field| field.split([',', '-', '/'])).find(|word| !is_plain(word))
        {
            return Err(InvalidTiming::Word(word.chars().take(20).collect()));
        }
        let unknown = || InvalidTiming::TimeZone(time_zone.chars().take(80).collect());
        let zone = TimeZone::get(time_zone.trim()).map_err(|_| unknown())?;
        let name = zone.iana_name().filter(|_| !zone.is_unknown()).ok_or_else(unknown)?;
        let timing = Self { cron: fields.join(" "), time_zone: name.to_owned() };
        parse(&timing.cron)?;
        check_interval(minute, hour, &days.join(" "))?;
        timing.next_after(SOME_TIME).ok_or(InvalidTiming::Never)?;
        Ok(timing)
    }

    /// Returns the expression: minute, hour, day of month, month, day of week.
    pub fn cron(&self) -> &str {
        &self.cron
    }

    /// Returns the time zone's name in the IANA database.
    pub fn time_zone(&self) -> &str {
        &self.time_zone
    }

    /// Returns the first planned time after `time`; `None` if there is none within four years.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        self.pattern()?.next_after(time)
    }

    /// Returns what to do at `now` if the planned times from `next` on haven't been handled yet; `None` if there is
    /// nothing to do.
    pub fn due(&self, next: Timestamp, now: Timestamp) -> Option<DueTimes> {
        if next > now {
            return None;
        }
        let pattern = self.pattern()?;
        let (mut missed, mut latest, mut earlier) = (VecDeque::new(), next, 0);
        let counted_from = Timestamp::from_micros(now.as_micros().saturating_sub(micros(COUNTED_BACK)));
        if next < counted_from
            && let Some(first) = pattern.next_after(counted_from).filter(|first| *first <= now)
        {
            (latest, earlier) = (first, 1);
        }
        let mut upcoming = pattern.next_after(latest);
        while let Some(time) = upcoming.filter(|time| *time <= now) {
            missed.push_back(latest);
            if missed.len() >= MISSED_KEPT {
                missed.pop_front();
                earlier += 1;
            }
            latest = time;
            upcoming = pattern.next_after(time);
        }
        let fire = (now.since(latest) < LATE_MAX).then_some(latest);
        if fire.is_none() {
            missed.push_back(latest);
        }
        Some(DueTimes { fire, missed: missed.into(), earlier, next: upcoming })
    }

    /// Returns at most `count` planned times after `time`, for display.
    pub fn upcoming(&self, time: Timestamp, count: usize) -> Vec<Timestamp> {
        let pattern = self.pattern();
        let next = |time: &Timestamp| pattern.as_ref()?.next_after(*time);
        std::iter::successors(next(&time), next).take(count).collect()
    }

    fn pattern(&self) -> Option<Pattern> {
        Some(Pattern { cron: parse(&self.cron).ok()?, zone: TimeZone::get(&self.time_zone).ok()? })
    }
}

struct Pattern {
    /// Expression that is matched against wall clock time as if it were UTC.
    cron: Crontab,
    zone: TimeZone,
}

impl Pattern {
    fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let instant = jiff::Timestamp::from_microsecond(time.as_micros()).ok()?;
        // Times planned at or before the wall clock's time aren't after `time`, in whichever direction the clocks
        // changed.
        let mut wall = TimeZone::UTC.to_timestamp(self.zone.to_datetime(instant)).ok()?;
        for _ in 0..LOOKED_AT_MAX {
            let planned = self.cron.find_next(MakeTimestamp(wall)).ok()?;
            let moment = self.moment(planned.datetime())?;
            if moment > instant {
                return Some(Timestamp::from_micros(moment.as_microsecond()));
            }
            wall = planned.timestamp();
        }
        None
    }

    /// Returns the moment at which a wall clock in the zone shows this time: the first such moment or, if the time is
    /// in a gap, the first moment after the gap.
    fn moment(&self, wall: DateTime) -> Option<jiff::Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(wall);
        if let AmbiguousOffset::Gap { after, .. } = ambiguous.offset() {
            // Read with the later offset, a time in the gap is a moment before the change.
            let before = after.to_timestamp(wall).ok()?;
            return self
                .zone
                .following(before)
                .find(|change| change.offset() == after)
                .map(|c| c.timestamp());
        }
        ambiguous.earlier().ok()
    }
}

fn parse(cron: &str) -> Result<Crontab, InvalidTiming> {
    cronexpr::parse_crontab(&format!("{cron} UTC")).map_err(|error| {
        let text = error.to_string();
        // The last line marks the position with a caret; the message follows it.
        let last = text.lines().last().unwrap_or_default();
        InvalidTiming::Cron(last.trim_start().trim_start_matches('^').trim().to_owned())
    })
}

/// Returns true for words that all cron programs understand alike. `L`, `W`, `#` and `H` aren't among them: other
/// programs don't know them, or give them another meaning.
fn is_plain(word: &str) -> bool {
    let name = |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    word == "*"
        || (!word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit()))
        || name(word)
}

fn check_interval(minute: &str, hour: &str, days: &str) -> Result<(), InvalidTiming> {
    let of_day = minutes_of_day(&format!("{minute} {hour} * * *"))?;
    let least = u16::try_from(INTERVAL_MIN.as_secs() / 60).unwrap_or(u16::MAX);
    let within = of_day.windows(2).filter_map(|pair| pair[1].checked_sub(pair[0])).min();
    if let Some(apart) = within.filter(|apart| *apart < least) {
        return Err(InvalidTiming::Often(apart));
    }
    let over_midnight = match (of_day.first(), of_day.last()) {
        (Some(first), Some(last)) => first + MINUTES_PER_DAY - last,
        _ => MINUTES_PER_DAY,
    };
    if over_midnight < least && has_days_in_a_row(days)? {
        return Err(InvalidTiming::Often(over_midnight));
    }
    Ok(())
}

/// Returns the minutes of the day at which a daily expression matches, in order.
fn minutes_of_day(cron: &str) -> Result<Vec<u16>, InvalidTiming> {
    let cron = parse(cron)?;
    let mut minutes = Vec::new();
    // Starts one second before 1970, so that the first minute is found too.
    let mut time = jiff::Timestamp::constant(-1, 0);
    while let Ok(found) = cron.find_next(MakeTimestamp(time)) {
        time = found.timestamp();
        match u16::try_from(time.as_second() / 60) {
            Ok(minute) if minute < MINUTES_PER_DAY => minutes.push(minute),
            _ => break,
        }
    }
    Ok(minutes)
}

fn has_days_in_a_row(days: &str) -> Result<bool, InvalidTiming> {
    const DAY_S: i64 = 86_400;
    let cron = parse(&format!("0 0 {days}"))?;
    // Covers each weekday on each date, which takes 28 years.
    const END_S: i64 = 7 * YEARS * 366 * DAY_S;
    let (mut last, mut time) = (None, jiff::Timestamp::UNIX_EPOCH);
    while let Ok(found) = cron.find_next(MakeTimestamp(time)) {
        time = found.timestamp();
        if last.is_some_and(|last| time.as_second() - last == DAY_S) {
            return Ok(true);
        }
        if time.as_second() > END_S {
            break;
        }
        last = Some(time.as_second());
    }
    Ok(false)
}

fn minutes(count: u16) -> String {
    format!("{count} minute{}", if count == 1 { "" } else { "s" })
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
