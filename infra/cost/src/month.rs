//! Predicts the units that an installation uses in a month, busy or idle, and those of agent episodes.

use crate::counters::Counters;
use crate::measured::MeasuredRun;
use crate::model::{TURNS_BATCH, TURNS_MB, Workload, run};
use crate::prices::Usage;

/// Days of a month.
pub const DAYS: f64 = 30.0;
const HOURS: f64 = 24.0 * DAYS;
const MINUTES: f64 = 60.0 * HOURS;
const GB: f64 = 1_073_741_824.0;
/// Memory of the scheduler and of dead-letters, in GB.
const SMALL_GB: f64 = 0.25;
/// Seconds of a task of the scheduler without work.
const WAKE_S: f64 = 0.05;
/// Minutes between two looks at the dead-letter queues.
const DRAIN_MINUTES: f64 = 5.0;
/// Seconds of a look at empty dead-letter queues, including one second of waiting for messages.
const DRAIN_S: f64 = 1.1;
/// Bytes of log lines of an invocation without work.
const LOG_BYTES: f64 = 750.0;

/// Resources that are billed by the month.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Installation {
    /// Queues with an event source mapping. Nothing polls dead-letter queues all the time.
    pub queues: f64,
    /// Long polls that Lambda keeps open at an idle queue: five, by its documentation. It may reduce them to two, but not where
    /// the mapping has a maximum concurrency, as ours have.
    pub pollers: f64,
    /// Length of a long poll, in seconds.
    pub long_poll_s: f64,
    /// Metrics that alarms watch: an alarm over several is billed for each.
    pub alarms: f64,
    /// Secrets.
    pub secrets: f64,
    /// KMS keys.
    pub keys: f64,
    /// Dashboards.
    pub dashboards: f64,
    /// GB in the bucket: datasets, the page.
    pub stored_gb: f64,
    /// GB in the tables.
    pub records_gb: f64,
}

impl Installation {
    /// The template with its default parameters, which a test compares.
    pub const OURS: Self = Self {
        queues: 4.0,
        pollers: 5.0,
        long_poll_s: 20.0,
        alarms: 11.0,
        secrets: 4.0,
        keys: 1.0,
        dashboards: 0.0,
        stored_gb: 1.0,
        records_gb: 0.1,
    };
}

/// A month without users.
pub fn idle(installation: &Installation) -> Counters {
    let mut counters = Counters::default();
    let polls = MINUTES * 60.0 / installation.long_poll_s;
    counters.add(Usage::SqsRequests, installation.queues * installation.pollers * polls);
    // tick every minute, reconcile every five, sync-models and reap hourly.
    let wakes = MINUTES + MINUTES / 5.0 + 2.0 * HOURS;
    let drains = MINUTES / DRAIN_MINUTES;
    counters.add(Usage::ScheduleInvocations, wakes + drains);
    counters.add(Usage::LambdaRequests, wakes + drains);
    // Environments live on between ticks.
    let gb_seconds = SMALL_GB * (wakes * WAKE_S + drains * DRAIN_S);
    counters.add(Usage::LambdaGbSecondsArm64, gb_seconds);
    // One receive at each dead-letter queue, as many as there are queues.
    counters.add(Usage::SqsRequests, drains * installation.queues);
    // A tick or reconciliation without work reads a page or two. No other function writes metrics when there is nothing to do,
    // and neither do these.
    counters.add(Usage::DynamoDbReadUnits, wakes * 4.0);
    counters.add(Usage::LogGb, (wakes + drains) * LOG_BYTES / GB);
    counters.add(Usage::LogGbMonths, (wakes + drains) * LOG_BYTES / GB);
    counters.add(Usage::AlarmMonths, installation.alarms);
    counters.add(Usage::DashboardMonths, installation.dashboards);
    counters.add(Usage::SecretMonths, installation.secrets);
    counters.add(Usage::KmsKeyMonths, installation.keys);
    counters.add(Usage::S3GbMonths, installation.stored_gb);
    counters.add(Usage::DynamoDbGbMonths, installation.records_gb);
    counters.add(Usage::DynamoDbBackupGbMonths, installation.records_gb);
    counters
}

/// A month with a run of `samples` samples every night, without status requests, including the idle cost.
pub fn nightly(measured: &[MeasuredRun], samples: f64) -> Counters {
    let mut counters = idle(&Installation::OURS);
    let night = Workload { polls: 0.0, ..Workload::with_samples(samples) };
    counters.add_all(&run(measured, &night), DAYS);
    // About a dozen metrics are written in one hour of each day; AWS bills them by the hour.
    counters.add(Usage::MetricMonths, 12.0 * DAYS / HOURS);
    // One notice of a regression, assumed for every third night.
    counters.add(Usage::SnsRequests, DAYS / 3.0);
    counters
}

/// Assumptions about agent episodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episodes {
    /// Episodes.
    pub episodes: f64,
    /// Turns of each: one message, one answer of a model, one command in a sandbox.
    pub turns: f64,
    /// Seconds of an answer and its command together, on average.
    pub turn_s: f64,
    /// Bytes of the conversation and its outputs at the end, compressed; half of it at an average turn.
    pub transcript_bytes: f64,
}

impl Episodes {
    /// The reference workload.
    pub const OURS: Self = Self { episodes: 750.0, turns: 40.0, turn_s: 20.0, transcript_bytes: 60_000.0 };
}

/// Predicts agent episodes: each turn as a sample's message, claim, answer, body and commit, plus the
/// transcript that it reads first. This is a model: `bench-measure` doesn't run episodes.
pub fn episodes(measured: &[MeasuredRun], episodes: &Episodes) -> Counters {
    let turns = episodes.episodes * episodes.turns;
    let workload = Workload {
        answer_s: episodes.turn_s,
        memory_mb: TURNS_MB,
        batch: TURNS_BATCH,
        ..Workload::with_samples(turns)
    };
    let workload = workload.polled_every(30.0);
    let mut counters = run(measured, &workload);
    // Each turn sends the next one by itself; the planner sends only the first.
    counters.add(Usage::SqsRequests, turns - turns / 10.0);
    counters.add(Usage::S3Reads, turns);
    counters.add(Usage::S3GbMonths, episodes.episodes * episodes.transcript_bytes / GB);
    // Every turn sends the whole conversation to the model, uncompressed about four times as large.
    counters.add(Usage::TransferOutGb, turns * episodes.transcript_bytes / 2.0 * 4.0 / GB);
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 11 metrics under alarms; 4 queues, 5 pollers, 3 polls a minute, 43,200 minutes; 43,200 + 8,640 + 1,440 tasks of
    /// the scheduler, and 8,640 of dead-letters.
    #[test]
    fn an_idle_month_by_hand() {
        let counters = idle(&Installation::OURS);
        assert!((counters.units(Usage::SqsRequests) - (2_592_000.0 + 4.0 * 8_640.0)).abs() < 0.5);
        assert!((counters.units(Usage::ScheduleInvocations) - 61_920.0).abs() < 0.5);
        let by_hand = 1.0368
            + 0.013824
            + 0.06192
            + 0.012384
            + (666.0 + 2_376.0) * 0.0000133334
            + 0.02664
            + 1.1
            + 1.6
            + 1.0
            + 0.023
            + 0.025
            + 0.02
            + 61_920.0 * 750.0 / GB * 0.53;
        assert!((counters.usd() - by_hand).abs() < 0.001, "{} instead of {by_hand}", counters.usd());
    }
}
