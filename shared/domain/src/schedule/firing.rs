//! What became of one planned time.

use serde::{Deserialize, Serialize};

use crate::statistics::Interval;
use crate::{BenchmarkName, Code, RunId, RunStatus, ScheduleId, Timestamp, code};

/// How often a message about a firing is tried on each way.
pub const NOTICE_TRIES_MAX: u32 = 3;

/// One planned time of a schedule and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The planned time.
    pub planned: Timestamp,
    /// Where it stands.
    pub state: FiringState,
    /// Since when it is known that the run takes too long.
    #[serde(default)]
    pub overdue_at: Option<Timestamp>,
    /// What people are told about it.
    #[serde(default)]
    pub notices: Vec<Notice>,
}

/// Where a firing stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum FiringState {
    /// Its run is being made.
    Starting {
        /// When the planned time was taken up.
        since: Timestamp,
        /// How often making the run has failed.
        #[serde(default)]
        tries: u32,
        /// Why it failed the last time.
        #[serde(default)]
        error: Option<String>,
        /// Code of that error. `None` before the first failure, and in records of older versions.
        #[serde(default, deserialize_with = "code::known", skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
    /// Its run was made.
    Started {
        /// The run.
        run: RunId,
        /// When.
        started_at: Timestamp,
    },
    /// Its run could not be made.
    NotStarted {
        /// When it was given up.
        at: Timestamp,
        /// Why, in one sentence.
        error: String,
        /// Code of that error. `None` in records of older versions.
        #[serde(default, deserialize_with = "code::known", skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
    /// Its time passed while nobody was at work.
    Missed {
        /// When that was found.
        at: Timestamp,
        /// Planned times before this one that were missed too and have no record of their own.
        #[serde(default)]
        earlier: u64,
    },
    /// Its run is over.
    Ended {
        /// The run.
        run: RunId,
        /// When the run was made.
        started_at: Timestamp,
        /// When it was over.
        ended_at: Timestamp,
        /// How it ended. `None` when it was deleted.
        run_status: Option<RunStatus>,
        /// Its overall score.
        #[serde(default)]
        score: Option<f64>,
        /// What went wrong.
        #[serde(default)]
        error: Option<String>,
        /// Code of that error. `None` without one, and in records of older versions.
        #[serde(default, deserialize_with = "code::known", skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
        /// Against the last run of the schedule that succeeded.
        #[serde(default)]
        comparison: Option<Comparison>,
    },
}

/// The name of a [`FiringState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FiringStatus {
    /// Its run is being made.
    Starting,
    /// Its run was made.
    Started,
    /// Its run could not be made.
    NotStarted,
    /// Its time passed while nobody was at work.
    Missed,
    /// Its run is over.
    Ended,
}

impl FiringStatus {
    /// The name in JSON.
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
    /// The state's name.
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
    /// A planned time that was just taken up.
    pub const fn starting(schedule: ScheduleId, planned: Timestamp, now: Timestamp) -> Self {
        let state = FiringState::Starting { since: now, tries: 0, error: None, code: None };
        Self { schedule, planned, state, overdue_at: None, notices: Vec::new() }
    }

    /// A planned time that was missed, after `earlier` others without a record.
    pub const fn missed(schedule: ScheduleId, planned: Timestamp, earlier: u64, now: Timestamp) -> Self {
        let state = FiringState::Missed { at: now, earlier };
        Self { schedule, planned, state, overdue_at: None, notices: Vec::new() }
    }

    /// What went wrong the last time, and its code.
    pub fn error(&self) -> (Option<&str>, Option<Code>) {
        match &self.state {
            FiringState::Starting { error, code, .. } | FiringState::Ended { error, code, .. } => {
                (error.as_deref(), *code)
            }
            FiringState::NotStarted { error, code, .. } => (Some(error), *code),
            FiringState::Started { .. } | FiringState::Missed { .. } => (None, None),
        }
    }

    /// Its run, once there is one.
    pub const fn run(&self) -> Option<RunId> {
        match self.state {
            FiringState::Started { run, .. } | FiringState::Ended { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Whether something remains to be done: making or watching its run, or telling somebody.
    pub fn is_open(&self) -> bool {
        matches!(self.state, FiringState::Starting { .. } | FiringState::Started { .. })
            || self.notices.iter().any(Notice::is_open)
    }

    /// Adds a notice, once per kind.
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

/// Why people are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A run could not be made.
    NotStarted,
    /// Planned times were missed, and none was made up for.
    Missed,
    /// A run failed.
    Failed,
    /// A run takes too long.
    NotFinished,
    /// A run is worse than the last one.
    Regressed,
}

impl NoticeKind {
    /// The name in JSON.
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

/// Something that people are told, and whether they were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Why.
    pub kind: NoticeKind,
    /// The message, one sentence.
    pub text: String,
    /// To the schedule's webhook.
    pub webhook: Delivery,
    /// To the installation's topic.
    pub topic: Delivery,
}

impl Notice {
    /// Whether it is still to be delivered.
    pub const fn is_open(&self) -> bool {
        self.webhook.is_open() || self.topic.is_open()
    }
}

/// Whether a message was delivered on one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Delivery {
    /// Nobody is there to be told.
    NotWanted,
    /// To be delivered.
    Due {
        /// How often it failed.
        #[serde(default)]
        tries: u32,
        /// Why it failed the last time.
        #[serde(default)]
        error: Option<String>,
    },
    /// Delivered.
    Done {
        /// When.
        at: Timestamp,
    },
    /// Failed [`NOTICE_TRIES_MAX`] times.
    GivenUp {
        /// Why it failed the last time.
        error: String,
    },
}

impl Delivery {
    /// Whether it is still to be delivered.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Due { .. })
    }

    /// What it becomes when a try has ended.
    #[must_use]
    pub fn after(&self, outcome: Result<Timestamp, String>) -> Self {
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

/// A run against the last run of its schedule that succeeded, on the same items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The earlier run.
    pub with: RunId,
    /// The benchmarks that both have.
    pub benchmarks: Vec<BenchmarkDifference>,
    /// Whether one of them is worse and that is unlikely to be chance.
    pub regressed: bool,
}

/// One benchmark of two runs, over the items that both have graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkDifference {
    /// The benchmark.
    pub benchmark: BenchmarkName,
    /// Items graded in both.
    pub items: u64,
    /// Mean over items of this run's score less the earlier one's: below 0 where this run is worse.
    pub difference: Option<f64>,
    /// 95 % interval of the difference.
    pub interval: Option<Interval>,
    /// Whether the interval is wholly below 0.
    pub regressed: bool,
    /// What makes the comparison doubtful, one sentence each.
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
            delivery = delivery.after(Err("closed".into()));
        }
        assert_eq!(delivery, Delivery::GivenUp { error: "closed".into() });
        assert_eq!(delivery.after(Ok(Timestamp::default())), delivery);
    }

    #[test]
    fn a_firing_tells_each_thing_once_and_stays_open_until_told() {
        let mut firing = Firing::missed(ScheduleId::random(), Timestamp::default(), 0, Timestamp::default());
        assert!(!firing.is_open());
        firing.notify(NoticeKind::Missed, "one", true, false);
        firing.notify(NoticeKind::Missed, "two", true, false);
        assert_eq!(firing.notices.len(), 1);
        assert!(firing.is_open());
        firing.notices[0].webhook = firing.notices[0].webhook.after(Ok(Timestamp::default()));
        assert!(!firing.is_open());
    }
}
