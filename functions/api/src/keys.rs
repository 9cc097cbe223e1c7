//! Callers' own keys on their way into the store.

use bench_domain::{RunId, Secret};
use bench_state::credentials::SealedKey;
use bench_web::ApiError;

use crate::Api;

/// The caller's own keys for a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    /// For the model.
    pub(crate) own: Option<Secret>,
    /// For the judge.
    pub(crate) judge: Option<Secret>,
}

impl Keys {
    /// The keys, to be stored in one write with the run in this generation; `None` when there are none.
    pub(crate) async fn seal(
        &self,
        api: &Api,
        run: RunId,
        generation: u32,
    ) -> Result<Option<SealedKey>, ApiError> {
        let own = match &self.own {
            Some(key) => Some(api.credentials.seal(run, generation, key).await?),
            None => None,
        };
        let judge = match &self.judge {
            Some(key) => Some(api.credentials.seal_judge(run, generation, key).await?),
            None => None,
        };
        Ok(SealedKey::all([own, judge]))
    }
}
