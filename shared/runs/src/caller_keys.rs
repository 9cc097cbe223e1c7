//! Callers' own keys, before they are stored.

use bench_domain::{RunId, Secret};
use bench_state::StateError;
use bench_state::credentials::{Credentials, SealedKey};

/// Caller's own keys for a run.
#[derive(Debug, Clone, Default)]
pub struct CallerKeys {
    /// Key for the model.
    pub own: Option<Secret>,
    /// Key for the judge.
    pub judge: Option<Secret>,
}

impl CallerKeys {
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
        let own = match &self.own {
            Some(key) => Some(credentials.seal(run, generation, key).await?),
            None => None,
        };
        let judge = match &self.judge {
            Some(key) => Some(credentials.seal_judge(run, generation, key).await?),
            None => None,
        };
        Ok(SealedKey::combine([own, judge]))
    }
}
