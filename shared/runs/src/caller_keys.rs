//! Callers' own keys, before they are stored.

use bench_domain::{ModelRole, RunId, ScheduleId, Secret};
use bench_state::StateError;
use bench_state::credentials::{Credentials, SealedKey};

/// Caller's own keys for a run.
#[derive(Debug, Clone, Default)]
pub struct CallerKeys {
    /// Key for the model.
    pub own: Option<Secret>,
    /// Key for the judge.
    pub judge: Option<Secret>,
    /// Key for the user model.
    pub user: Option<Secret>,
}

impl CallerKeys {
    /// Returns the keys with the roles that they are for.
    fn present(&self) -> impl Iterator<Item = (ModelRole, &Secret)> {
        let Self { own, judge, user } = self;
        let keys = [(ModelRole::Model, own), (ModelRole::Judge, judge), (ModelRole::UserModel, user)];
        keys.into_iter().filter_map(|(role, key)| Some((role, key.as_ref()?)))
    }

    /// Seals the keys, to be stored in one write with the run in this generation; `None` if there are none.
    ///
    /// # Errors
    /// If the keys can't be sealed.
    pub async fn seal(
        &self,
        credentials: &Credentials,
        run: RunId,
        generation: u32,
    ) -> Result<Option<SealedKey>, StateError> {
        let mut sealed = Vec::new();
        for (role, key) in self.present() {
            sealed.push(credentials.seal(run, role, generation, key).await?);
        }
        Ok(SealedKey::combine(sealed))
    }

    /// Seals the keys, to be stored in one write with the schedule; `None` if there are none.
    ///
    /// # Errors
    /// If the keys can't be sealed.
    pub async fn seal_for_schedule(
        &self,
        credentials: &Credentials,
        schedule: ScheduleId,
    ) -> Result<Option<SealedKey>, StateError> {
        let mut sealed = Vec::new();
        for (role, key) in self.present() {
            sealed.push(credentials.seal_for_schedule(schedule, role, key).await?);
        }
        Ok(SealedKey::combine(sealed))
    }
}
