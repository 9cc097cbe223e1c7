//! Keys of judges: stored like callers' keys, in separate slots.

use bench_domain::{RunId, ScheduleId, Secret};

use super::{Credentials, SealedKey};
use crate::StateError;
use crate::attributes::{Record, number, text};

/// Returns the context for sealing the judge's key of a run or schedule. It differs from the context of the caller's
/// key, so that neither key can be opened in place of the other.
fn context(target: impl std::fmt::Display) -> String {
    format!("{target}#judge")
}

impl SealedKey {
    /// Combines all keys that are present, to be stored in one write; `None` if there are none.
    pub fn combine(sealed: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        sealed.into_iter().flatten().reduce(|mut all, one| {
            all.0.extend(one.0);
            all
        })
    }
}

impl Credentials {
    pub(super) fn judge_key(run: RunId) -> Record {
        Record::from([("pk".to_owned(), text(format!("RUN#{run}#JUDGE")))])
    }

    pub(super) fn schedule_judge_key(schedule: ScheduleId) -> Record {
        Record::from([("pk".to_owned(), text(format!("SCHEDULE#{schedule}#JUDGE")))])
    }

    /// Encrypts the key of a run's judge for this generation of the run, to be stored together with the run. It is
    /// removed together with the run's other key.
    pub async fn seal_judge(
        &self,
        run: RunId,
        generation: u32,
        api_key: &Secret,
    ) -> Result<SealedKey, StateError> {
        let mut record = Self::judge_key(run);
        record.insert("generation".to_owned(), number(generation));
        self.seal_record(record, &context(run), api_key).await
    }

    /// Encrypts the key of the judge of a schedule's runs.
    pub async fn seal_judge_for_schedule(
        &self,
        schedule: ScheduleId,
        api_key: &Secret,
    ) -> Result<SealedKey, StateError> {
        self.seal_record(Self::schedule_judge_key(schedule), &context(schedule), api_key).await
    }

    /// Returns the key of a run's judge; `None` if there is none, or if it was removed.
    pub async fn get_judge(&self, run: RunId) -> Result<Option<Secret>, StateError> {
        self.open_record(Self::judge_key(run), &context(run)).await
    }

    /// Returns the key of the judge of a schedule's runs; `None` if there is none, or if it was removed.
    pub async fn get_judge_for_schedule(&self, schedule: ScheduleId) -> Result<Option<Secret>, StateError> {
        self.open_record(Self::schedule_judge_key(schedule), &context(schedule)).await
    }
}
