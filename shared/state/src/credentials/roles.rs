//! Slots of callers' keys: one for each model that a run asks, so that no provider's key can be opened as another's.

use bench_domain::{ModelRole, RunId, ScheduleId, Secret};

use super::{Credentials, SealedKey};
use crate::StateError;
use crate::attributes::{Record, number, text};

/// Place of a key in the table, with the context for sealing it. Both differ for each role.
struct Slot {
    key: Record,
    context: String,
}

impl Slot {
    fn run(run: RunId, role: ModelRole) -> Self {
        Self::new("RUN", &run.to_string(), role)
    }

    fn schedule(schedule: ScheduleId, role: ModelRole) -> Self {
        Self::new("SCHEDULE", &schedule.to_string(), role)
    }

    fn new(kind: &str, id: &str, role: ModelRole) -> Self {
        let (place, part) = match role {
            ModelRole::Model => ("", ""),
            ModelRole::Judge => ("#JUDGE", "#judge"),
            ModelRole::UserModel => ("#USER", "#user"),
        };
        let key = Record::from([("pk".to_owned(), text(format!("{kind}#{id}{place}")))]);
        Self { key, context: format!("{id}{part}") }
    }
}

/// Returns the places of all keys of a run.
pub(super) fn run_keys(run: RunId) -> [Record; 3] {
    ModelRole::ALL.map(|role| Slot::run(run, role).key)
}

/// Returns the places of all keys of a schedule.
pub(super) fn schedule_keys(schedule: ScheduleId) -> [Record; 3] {
    ModelRole::ALL.map(|role| Slot::schedule(schedule, role).key)
}

impl SealedKey {
    /// Combines keys, to be stored in one write; `None` if there are none.
    pub fn combine(sealed: impl IntoIterator<Item = Self>) -> Option<Self> {
        sealed.into_iter().reduce(|mut all, one| {
            all.0.extend(one.0);
            all
        })
    }
}

impl Credentials {
    /// Encrypts a caller's key for this generation of a run. The caller stores both in one write, so that there is
    /// never a run without its key, or a key without its run. All keys of a run are removed together.
    pub async fn seal(
        &self,
        run: RunId,
        role: ModelRole,
        generation: u32,
        api_key: &Secret,
    ) -> Result<SealedKey, StateError> {
        let Slot { mut key, context } = Slot::run(run, role);
        key.insert("generation".to_owned(), number(generation));
        self.seal_record(key, &context, api_key).await
    }

    /// Encrypts a schedule's own key, to be stored together with the schedule.
    pub async fn seal_for_schedule(
        &self,
        schedule: ScheduleId,
        role: ModelRole,
        api_key: &Secret,
    ) -> Result<SealedKey, StateError> {
        let Slot { key, context } = Slot::schedule(schedule, role);
        self.seal_record(key, &context, api_key).await
    }

    /// Returns the caller's key of a run; `None` if there is none, or if it was removed.
    pub async fn get(&self, run: RunId, role: ModelRole) -> Result<Option<Secret>, StateError> {
        let Slot { key, context } = Slot::run(run, role);
        self.open_record(key, &context).await
    }

    /// Returns a schedule's own key; `None` if it has none, or if it was removed.
    pub async fn get_for_schedule(
        &self,
        schedule: ScheduleId,
        role: ModelRole,
    ) -> Result<Option<Secret>, StateError> {
        let Slot { key, context } = Slot::schedule(schedule, role);
        self.open_record(key, &context).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_keys_share_a_place_or_a_context() {
        let (run, schedule) = (RunId::random(), ScheduleId::random());
        let slots = ModelRole::ALL.map(|role| [Slot::run(run, role), Slot::schedule(schedule, role)]);
        let slots: Vec<Slot> = slots.into_iter().flatten().collect();
        let places: HashSet<String> = slots.iter().map(|slot| format!("{:?}", slot.key)).collect();
        let contexts: HashSet<&str> = slots.iter().map(|slot| slot.context.as_str()).collect();
        assert_eq!((places.len(), contexts.len()), (6, 6));
    }
}
