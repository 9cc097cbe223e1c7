//! Firings: planned times that the scheduler has handled or is handling, and their results.

use serde::{Deserialize, Serialize};

use crate::statistics::Interval;
use crate::{BenchmarkName, Code, RunId, RunStatus, ScheduleId, Timestamp, code};

/// Maximum number of tries to deliver a notice over one channel.
pub const NOTICE_TRIES_MAX: u32 = 3;

/// One planned time of a schedule and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    /// Id of the schedule.
    pub schedule: ScheduleId,
    /// Planned time.
    pub planned: Timestamp,
    /// State of the firing.
    pub state: FiringState,
    /// Time since which the run is known to take too long.
    #[serde(default)]
    pub overdue_at: Option<Timestamp>,
    /// Notices that people receive about the firing.
    #[serde(default)]
    pub notices: Vec<Notice>,
}

/// State of a firing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum FiringState {
    /// The scheduler is creating the run.
    Starting {
        /// Time at which the scheduler began to handle the planned time.
        since: Timestamp,
        /// Number of failed tries to create the run.
        #[serde(default)]
        tries: u32,
        /// Error message of the last try.
        #[serde(default)]
        error: Option<String>,
        /// Code of that error. `None` before the first failure, and in records of older versions.
        #[serde(
            default,
            deserialize_with = "code::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        code: Option<Code>,
    },
    /// The run was created.
    Started {
        /// Id of the run.
        run: RunId,
        /// Time at which the run was created.
        started_at: Timestamp,
    },
    /// The run couldn't be created.
    NotStarted {
        /// Time at which the scheduler gave up.
        at: Timestamp,
        /// Reason, in one sentence.
        error: String,
        /// Code of that error. `None` in records of older versions.
        #[serde(
            default,
            deserialize_with = "code::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        code: Option<Code>,
    },
    /// The planned time passed while the scheduler wasn't running.
    Missed {
        /// Time at which the scheduler noticed.
        at: Timestamp,
        /// Number of earlier planned times that were missed too and have no record of their own.
        #[serde(default)]
        earlier: u64,
    },
    /// The run is over.
    Ended {
        /// Id of the run.
        run: RunId,
        /// Time at which the run was created.
        started_at: Timestamp,
        /// Time at which the run was over.
        ended_at: Timestamp,
        /// Final status of the run. `None` if it was deleted.
        run_status: Option<RunStatus>,
        /// Overall score of the run.
        #[serde(default)]
        score: Option<f64>,
        /// Error message of the run.
        #[serde(default)]
        error: Option<String>,
        /// Code of that error. `None` without one, and in records of older versions.
        #[serde(
            default,
            deserialize_with = "code::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        code: Option<Code>,
        /// Comparison with the last run of the schedule that succeeded.
        #[serde(default)]
        comparison: Option<Comparison>,
    },
}

/// Name of a [`FiringState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FiringStatus {
    /// The scheduler is creating the run.
    Starting,
    /// The run was created.
    Started,
    /// The run couldn't be created.
    NotStarted,
    /// The planned time passed while the scheduler wasn't running.
    Missed,
    /// The run is over.
    Ended,
}

impl FiringStatus {
    /// Returns the name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Started => "started",
            Self::NotStarted => "not_started",
            Self::Missed => "missed",
            Self::Ended => "ended",
        }
    }
}

impl FiringState {
    /// Returns the name of the state.
    pub const fn status(&self) -> FiringStatus {
        match self {
            Self::Starting { .. } => FiringStatus::Starting,
            Self::Started { .. } => FiringStatus::Started,
            Self::NotStarted { .. } => FiringStatus::NotStarted,
            Self::Missed { .. } => FiringStatus::Missed,
            Self::Ended { .. } => FiringStatus::Ended,
        }
    }
}

impl Firing {
    /// Creates the firing of a planned time for which a run is to be created.
    pub const fn starting(schedule: ScheduleId, planned: Timestamp, now: Timestamp) -> Self {
        let state = FiringState::Starting { since: now, tries: 0, error: None, code: None };
        Self { schedule, planned, state, overdue_at: None, notices: Vec::new() }
    }

    /// Creates the firing of a missed planned time, after `earlier` others without a record.
    pub const fn missed(schedule: ScheduleId, planned: Timestamp, earlier: u64, now: Timestamp) -> Self {
        let state = FiringState::Missed { at: now, earlier };
        Self { schedule, planned, state, overdue_at: None, notices: Vec::new() }
    }

    /// Returns the last error message and its code.
    pub fn error(&self) -> (Option<&str>, Option<Code>) {
        match &self.state {
            FiringState::Starting { error, code, .. } | FiringState::Ended { error, code, .. } => {
                (error.as_deref(), *code)
            }
            FiringState::NotStarted { error, code, .. } => (Some(error), *code),
            FiringState::Started { .. } | FiringState::Missed { .. } => (None, None),
        }
    }

    /// Returns the id of the run, if there is one.
    pub const fn run(&self) -> Option<RunId> {
        match self.state {
            FiringState::Started { run, .. } | FiringState::Ended { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Returns true if work remains: creating or watching the run, or delivering notices.
    pub fn is_open(&self) -> bool {
        matches!(self.state, FiringState::Starting { .. } | FiringState::Started { .. })
            || self.notices.iter().any(Notice::is_open)
    }

    /// Adds a notice, at most one of each kind.
    pub fn notify(&mut self, kind: NoticeKind, text: impl Into<String>, webhook: bool, topic: bool) {
        if self.notices.iter().any(|notice| notice.kind == kind) {
            return;
        }
        let delivery =
            |wanted| if wanted { Delivery::Due { tries: 0, error: None } } else { Delivery::NotWanted };
        self.notices.push(Notice {
            kind,
            text: text.into(),
            webhook: delivery(webhook),
            topic: delivery(topic),
        });
    }
}

/// Reason for a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A run couldn't be created.
    NotStarted,
    /// Planned times were missed, and no run was created for any of them.
    Missed,
    /// A run failed.
    Failed,
    /// A run takes too long.
    NotFinished,
    /// A run is worse than the last one.
    Regressed,
}

impl NoticeKind {
    /// Returns the name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Missed => "missed",
            Self::Failed => "failed",
            Self::NotFinished => "not_finished",
            Self::Regressed => "regressed",
        }
    }
}

/// Notice to people, and its delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Reason for the notice.
    pub kind: NoticeKind,
    /// Message, one sentence.
    pub text: String,
    /// Delivery to the schedule's webhook.
    pub webhook: Delivery,
    /// Delivery to the installation's topic.
    pub topic: Delivery,
}

impl Notice {
    /// Returns true if a delivery is pending.
    pub const fn is_open(&self) -> bool {
        self.webhook.is_open() || self.topic.is_open()
    }
}

/// State of the delivery over one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Delivery {
    /// The channel isn't configured.
    NotWanted,
    /// Pending.
    Due {
        /// Number of failed tries.
        #[serde(default)]
        tries: u32,
        /// Error message of the last try.
        #[serde(default)]
        error: Option<String>,
    },
    /// Delivered.
    Done {
        /// Time of the delivery.
        at: Timestamp,
    },
    /// Failed [`NOTICE_TRIES_MAX`] times.
    GivenUp {
        /// Error message of the last try.
        error: String,
    },
}

impl Delivery {
    /// Returns true if the delivery is pending.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Due { .. })
    }

    /// Returns the state after another try with this outcome.
    #[must_use]
    pub fn after_attempt(&self, outcome: Result<Timestamp, String>) -> Self {
        match (self, outcome) {
            (Self::Due { .. }, Ok(at)) => Self::Done { at },
            (Self::Due { tries, .. }, Err(error)) if tries + 1 < NOTICE_TRIES_MAX => {
                Self::Due { tries: tries + 1, error: Some(error) }
            }
            (Self::Due { .. }, Err(error)) => Self::GivenUp { error },
            (other, _) => other.clone(),
        }
    }
}

/// Comparison of a run with the last run of its schedule that succeeded, on the same items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Id of the earlier run.
    pub with: RunId,
    /// Benchmarks that are in both runs.
    pub benchmarks: Vec<BenchmarkDifference>,
    /// True if a benchmark is worse and that is unlikely to be chance.
    pub regressed: bool,
}

/// Comparison of one benchmark of two runs, over the items that are graded in both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkDifference {
    /// Name of the benchmark.
    pub benchmark: BenchmarkName,
    /// Number of items that are graded in both runs.
    pub items: u64,
    /// Mean over items of this run's score minus the earlier run's: below 0 if this run is worse.
    pub difference: Option<f64>,
    /// 95% interval of the difference.
    pub interval: Option<Interval>,
    /// True if the whole interval is below 0.
    pub regressed: bool,
    /// Reasons to doubt the comparison, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_without_a_code_is_read_and_written_as_before() {
        let time = Timestamp::default();
        for (state, error) in [
            (json!({ "status": "starting", "since": time, "tries": 1, "error": "no" }), "no"),
            (
                json!({ "status": "not_started", "at": time, "error": "its own key is gone" }),
                "its own key is gone",
            ),
            (
                json!({ "status": "ended", "run": RunId::random(), "started_at": time, "ended_at": time,
                    "run_status": "failed", "score": null, "error": "no", "comparison": null }),
                "no",
            ),
        ] {
            let read: FiringState = serde_json::from_value(state.clone()).unwrap();
            let firing = Firing { state: read, ..Firing::starting(ScheduleId::random(), time, time) };
            assert_eq!(firing.error(), (Some(error), None));
            assert_eq!(serde_json::to_value(&firing.state).unwrap(), state);
        }
    }

    #[test]
    fn a_code_is_kept_with_its_sentence() {
        let state = FiringState::NotStarted {
            at: Timestamp::default(),
            error: "its own key is gone".into(),
            code: Some(Code::KeyRequired),
        };
        let text = serde_json::to_string(&state).unwrap();
        assert!(text.contains(r#""code":"key_required""#), "{text}");
        assert_eq!(serde_json::from_str::<FiringState>(&text).unwrap(), state);
    }

    #[test]
    fn a_delivery_is_tried_three_times() {
        let mut delivery = Delivery::Due { tries: 0, error: None };
        for _ in 0..NOTICE_TRIES_MAX {
            assert!(delivery.is_open());
            delivery = delivery.after_attempt(Err("closed".into()));
        }
        assert_eq!(delivery, Delivery::GivenUp { error: "closed".into() });
        assert_eq!(delivery.after_attempt(Ok(Timestamp::default())), delivery);
    }

    #[test]
    fn each_notice_is_sent_once_and_keeps_the_firing_open() {
        let mut firing = Firing::missed(ScheduleId::random(), Timestamp::default(), 0, Timestamp::default());
        assert!(!firing.is_open());
        firing.notify(NoticeKind::Missed, "one", true, false);
        firing.notify(NoticeKind::Missed, "two", true, false);
        assert_eq!(firing.notices.len(), 1);
        assert!(firing.is_open());
        firing.notices[0].webhook = firing.notices[0].webhook.after_attempt(Ok(Timestamp::default()));
        assert!(!firing.is_open());
    }
}
