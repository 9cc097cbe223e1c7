//! Schedules: runs that are ordered again and again at planned times.
//!
//! **Clock changes.** A plan is written in local time. A planned time that does not exist, because clocks
//! were put forward, runs at the first moment after the gap; several planned times in one gap are one run. A
//! planned time that exists twice, because clocks were put back, runs once, the first time.
//!
//! **Missed times.** After an outage the latest planned time alone is still run, and only if it is less than
//! [`LATE_MAX`] ago. All others are recorded as missed.

mod firing;
mod timing;
mod webhook;

use serde::{Deserialize, Serialize};

pub use self::firing::{
    BenchmarkDifference, Comparison, Delivery, Firing, FiringState, FiringStatus, NOTICE_TRIES_MAX, Notice,
    NoticeKind,
};
pub use self::timing::{CRON_CHARS_MAX, Due, INTERVAL_MIN, InvalidTiming, LATE_MAX, Timing};
pub use self::webhook::{InvalidWebhook, WEBHOOK_CHARS_MAX, Webhook};

use crate::run::{AuthMode, Owner};
use crate::{RunSpec, RunTemplate, ScheduleId, Timestamp};

/// Schedules that an installation may have.
pub const SCHEDULES_MAX: usize = 1_000;
/// Characters of a schedule's name.
pub const NAME_CHARS_MAX: usize = 100;

/// Runs that are ordered again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The schedule.
    pub id: ScheduleId,
    /// Its name, for people. Checked by [`checked_name`].
    pub name: String,
    /// Who may change it; its runs belong to the same.
    pub owner: Owner,
    /// When it runs.
    pub timing: Timing,
    /// What it runs.
    pub run: RunTemplate,
    /// Whose key pays for the answers. With [`AuthMode::ApiKey`] its own key is kept sealed until it is deleted.
    pub auth: AuthMode,
    /// Who is told when something is wrong.
    #[serde(default)]
    pub webhook: Option<Webhook>,
    /// Whether it runs at all.
    pub enabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed by its owner.
    pub updated_at: Timestamp,
    /// The planned time that comes next. `None` while it is off, and when its plan has no further time.
    pub next_at: Option<Timestamp>,
}

impl Schedule {
    /// The run for a planned time. Its id depends on schedule and time alone, so that however often it is
    /// made, it is one run.
    pub fn run_at(&self, planned: Timestamp, software: &str, now: Timestamp) -> RunSpec {
        RunSpec {
            id: self.id.run_at(planned),
            template: self.run.clone().with_fixed_seed(self.id),
            rejudges: None,
            owner: self.owner.clone(),
            auth: self.auth,
            schedule: Some(self.id),
            software: software.to_owned(),
            created_at: now,
        }
    }

    /// The planned time after `now` while it is on. To be set as [`Self::next_at`] when it was made, switched on
    /// or its timing was changed: times of the past are not made up for.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        if self.enabled { self.timing.next_after(now) } else { None }
    }

    /// What is to be done about planned times that have come.
    pub fn due(&self, now: Timestamp) -> Option<Due> {
        let next = self.next_at.filter(|_| self.enabled)?;
        self.timing.due(next, now)
    }
}

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a schedule's name must have 1 to {NAME_CHARS_MAX} characters and no control characters")]
pub struct InvalidName;

/// A schedule's name, trimmed.
///
/// # Errors
/// When nothing is left of it, it is too long or has control characters.
pub fn checked_name(name: &str) -> Result<String, InvalidName> {
    let name = name.trim();
    let legal =
        !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control);
    if legal { Ok(name.to_owned()) } else { Err(InvalidName) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ItemNaming;
    use crate::{Subset, testing};

    fn schedule() -> Schedule {
        Schedule {
            id: ScheduleId::random(),
            name: "nightly".into(),
            owner: Owner::Local,
            timing: Timing::new("30 2 * * *", "Europe/Berlin").unwrap(),
            run: RunTemplate {
                subset: Subset { count: Some(5), ..Subset::default() },
                ..testing::template("oracle/oracle", "mmlu_pro")
            },
            auth: AuthMode::System,
            webhook: None,
            enabled: true,
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            next_at: None,
        }
    }

    #[test]
    fn all_runs_of_a_schedule_have_the_same_items() {
        let schedule = schedule();
        let [a, b] = [1_000_000, 2_000_000].map(|micros| {
            let planned = Timestamp::from_micros(micros);
            schedule.run_at(planned, "1", planned)
        });
        assert_ne!(a.id, b.id);
        assert_eq!(a.schedule, Some(schedule.id));
        let items = |spec: &RunSpec| {
            spec.subset.select(1_000, &spec.id.to_string(), "mmlu_pro", crate::sampling::Order::Selected)
        };
        assert_eq!(items(&a), items(&b));
        assert_eq!(
            schedule.run_at(Timestamp::from_micros(1_000_000), "2", Timestamp::from_micros(2_000_000)).id,
            a.id
        );
    }

    #[test]
    fn a_schedule_that_is_off_is_never_due() {
        let mut schedule = schedule();
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        schedule.next_at = schedule.next_after(now);
        assert_eq!(schedule.next_at, "2026-03-01T01:30:00Z".parse().ok());
        let later = now.plus(std::time::Duration::from_secs(7_200));
        assert!(schedule.due(later).is_some());
        schedule.enabled = false;
        assert_eq!((schedule.due(later), schedule.next_after(now)), (None, None));
    }

    #[test]
    fn a_stored_schedule_is_read_back() {
        let schedule = schedule();
        let text = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
        // One of an older program keeps naming items as it did, and so do its runs.
        let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(old["run"].as_object_mut().unwrap().remove("item_naming"), Some("source-id".into()));
        let old: Schedule = serde_json::from_value(old).unwrap();
        let run = old.run_at(Timestamp::default(), "1", Timestamp::default());
        assert_eq!(run.item_naming, ItemNaming::RowIndex);
        assert!(serde_json::from_str::<Schedule>(&text.replace("Europe/Berlin", "Europe/Nowhere")).is_err());
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(checked_name("  Nightly "), Ok("Nightly".into()));
        for bad in ["", "  ", "a\nb", &"x".repeat(NAME_CHARS_MAX + 1)] {
            assert_eq!(checked_name(bad), Err(InvalidName));
        }
    }
}
