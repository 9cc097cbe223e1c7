//! Predicts the units that an installation uses in a month, busy or idle, and those of agent episodes, which aren't
//! implemented yet.

use crate::counters::Counters;
use crate::measured::MeasuredRun;
use crate::model::{Workload, run};
use crate::prices::Usage;

/// Days of a month.
pub const DAYS: f64 = 30.0;
const HOURS: f64 = 24.0 * DAYS;
const MINUTES: f64 = 60.0 * HOURS;
const GB: f64 = 1_073_741_824.0;

/// Resources that are billed by the month.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Installation {
    /// Queues that drive a function, dead-letter queues among them.
    pub queues: f64,
    /// Long polls that Lambda keeps open at an idle queue: five, by its documentation.
    pub pollers: f64,
    /// Length of a long poll, in seconds.
    pub long_poll_s: f64,
    /// Metrics that alarms watch: an alarm over several is billed for each.
    pub alarms: f64,
    /// Custom metrics that are written at least once an hour. An idle installation writes none.
    pub metrics: f64,
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
    /// The template as it is: four queues and their dead-letter queues, four secrets, one key.
    pub const OURS: Self = Self {
        queues: 8.0,
        pollers: 5.0,
        long_poll_s: 20.0,
        alarms: 61.0,
        metrics: 2.0,
        secrets: 4.0,
        keys: 1.0,
        dashboards: 1.0,
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
    counters.add(Usage::ScheduleInvocations, wakes);
    counters.add(Usage::LambdaRequests, wakes);
    // 50 ms at 512 MB; environments live on between ticks.
    counters.add(Usage::LambdaGbSecondsArm64, wakes * 0.05 / 2.0);
    // A tick or reconciliation without work reads a page or two.
    counters.add(Usage::DynamoDbReadUnits, wakes * 4.0);
    counters.add(Usage::LogGb, wakes * 750.0 / GB);
    counters.add(Usage::LogGbMonths, wakes * 750.0 / GB);
    counters.add(Usage::AlarmMonths, installation.alarms);
    counters.add(Usage::MetricMonths, installation.metrics);
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
    // About a dozen metrics are written in one hour of each day.
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
/// transcript that it reads first. The code of episodes doesn't exist yet, so this is a model, not a measurement.
pub fn episodes(measured: &[MeasuredRun], episodes: &Episodes) -> Counters {
    let turns = episodes.episodes * episodes.turns;
    let workload = Workload { answer_s: episodes.turn_s, ..Workload::with_samples(turns) }.polled_every(30.0);
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

    /// By hand: 61 metrics under alarms; 8 queues, 5 pollers, 3 polls a minute, 43,200 minutes; and 43,200 + 8,640 + 1,440 wake-ups.
    #[test]
    fn an_idle_month_by_hand() {
        let counters = idle(&Installation::OURS);
        assert!((counters.units(Usage::SqsRequests) - 5_184_000.0).abs() < 0.5);
        assert!((counters.units(Usage::ScheduleInvocations) - 53_280.0).abs() < 0.5);
        let by_hand = 2.0736
            + 0.05328
            + 0.010656
            + 0.01776
            + 0.02664
            + 6.1
            + 0.6
            + 3.0
            + 1.6
            + 1.0
            + 0.023
            + 0.025
            + 0.02
            + 53_280.0 * 750.0 / GB * 0.53;
        assert!((counters.usd() - by_hand).abs() < 0.001, "{} instead of {by_hand}", counters.usd());
    }
}
