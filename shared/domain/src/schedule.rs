//! Schedules: orders that are repeated at planned times.
//!
//! **Clock changes.** A plan is written in local time. If a planned time doesn't exist because clocks were set forward,
//! it runs at the first moment after the gap; several planned times in one gap make one run. If a planned time exists
//! twice because clocks were set back, it runs once, the first time.
//!
//! **Missed times.** After an outage, only the latest planned time still runs, and only if it is less than [`LATE_MAX`]
//! ago. All others are recorded as missed.

mod firing;
mod timing;
mod webhook;

use serde::{Deserialize, Serialize};

pub use self::firing::{
    BenchmarkDifference, Comparison, Delivery, Firing, FiringState, FiringStatus, NOTICE_TRIES_MAX, Notice,
    NoticeKind,
};
pub use self::timing::{CRON_CHARS_MAX, DueTimes, INTERVAL_MIN, InvalidTiming, LATE_MAX, Timing};
pub use self::webhook::{InvalidWebhook, WEBHOOK_CHARS_MAX, Webhook, is_public_address};

use crate::run::{AuthMode, Owner};
use crate::{RunSpec, RunTemplate, ScheduleId, Timestamp};

/// Maximum number of schedules of an installation.
pub const SCHEDULES_MAX: usize = 1_000;
/// Maximum length of a schedule's name in characters.
pub const NAME_CHARS_MAX: usize = 100;

/// An order that is repeated at planned times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Id of the schedule.
    pub id: ScheduleId,
    /// Name for people, which its runs have, too. Checked by [`validate_name`].
    pub name: String,
    /// Owner of the schedule and of its runs, who may change them.
    pub owner: Owner,
    /// Times at which the schedule runs.
    pub timing: Timing,
    /// Order of each run.
    pub run: RunTemplate,
    /// Uploaded tasks whose dataset is the order's. They can't be removed while the schedule exists. Empty for other
    /// benchmarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<ScheduledTask>,
    /// Owner of the key that pays for the answers. With [`AuthMode::ApiKey`], the schedule's own key is stored encrypted
    /// until the schedule is deleted.
    pub auth: AuthMode,
    /// Webhook that receives notices about problems.
    #[serde(default)]
    pub webhook: Option<Webhook>,
    /// True if the schedule is on.
    pub enabled: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the owner's last change.
    pub updated_at: Timestamp,
    /// Next planned time. `None` if the schedule is off, or if its plan has no further time.
    pub next_at: Option<Timestamp>,
}

/// An uploaded terminal task of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledTask {
    /// Id of the task.
    pub id: u64,
    /// Id of its item, `NAME@` and the first 12 digits of the content hash.
    pub item: String,
}

impl Schedule {
    /// Creates the run for a planned time. The run's id depends only on schedule and time, so repeated calls create the
    /// same run.
    pub fn run_spec_at(&self, planned: Timestamp, software: &str, now: Timestamp) -> RunSpec {
        let mut template = self.run.clone().with_fixed_seed(self.id);
        template.labels.name = Some(self.name.clone());
        RunSpec {
            id: self.id.run_id_at(planned),
            template,
            rejudges: None,
            owner: self.owner.clone(),
            auth: self.auth,
            session: None,
            schedule: Some(self.id),
            software: software.to_owned(),
            created_at: now,
        }
    }

    /// Returns the first planned time after `now`, if the schedule is on. Callers set it as [`Self::next_at`] when the
    /// schedule is created, switched on, or gets a new timing: earlier planned times aren't made up for.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        if self.enabled { self.timing.next_after(now) } else { None }
    }

    /// Returns what to do about planned times that have passed.
    pub fn due(&self, now: Timestamp) -> Option<DueTimes> {
        let next = self.next_at.filter(|_| self.enabled)?;
        self.timing.due(next, now)
    }
}

/// Error for an invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a schedule's name must have 1 to {NAME_CHARS_MAX} characters and no control characters")]
pub struct InvalidName;

/// Trims and checks the name of a schedule.
///
/// # Errors
/// If the name is empty after trimming, is too long, or has control characters.
pub fn validate_name(name: &str) -> Result<String, InvalidName> {
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
            tasks: Vec::new(),
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
            schedule.run_spec_at(planned, "1", planned)
        });
        assert_ne!(a.id, b.id);
        assert_eq!(a.schedule, Some(schedule.id));
        assert_eq!(a.labels.name.as_deref(), Some("nightly"), "runs have the schedule's name");
        let items = |spec: &RunSpec| {
            spec.subset.select(1_000, &spec.id.to_string(), "mmlu_pro", crate::sampling::Order::Selected)
        };
        assert_eq!(items(&a), items(&b));
        assert_eq!(
            schedule
                .run_spec_at(Timestamp::from_micros(1_000_000), "2", Timestamp::from_micros(2_000_000))
                .id,
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
        // A schedule of an older version keeps naming items as before, and so do its runs.
        let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(old["run"].as_object_mut().unwrap().remove("item_naming"), Some("source-id".into()));
        let old: Schedule = serde_json::from_value(old).unwrap();
        let run = old.run_spec_at(Timestamp::default(), "1", Timestamp::default());
        assert_eq!(run.item_naming, ItemNaming::RowIndex);
        assert!(serde_json::from_str::<Schedule>(&text.replace("Europe/Berlin", "Europe/Nowhere")).is_err());
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(validate_name("  Nightly "), Ok("Nightly".into()));
        for bad in ["", "  ", "a\nb", &"x".repeat(NAME_CHARS_MAX + 1)] {
            assert_eq!(validate_name(bad), Err(InvalidName));
        }
    }
}
