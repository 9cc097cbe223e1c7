//! Keys that callers gave for a run.

use bench_domain::run::AuthMode;
use bench_domain::{RunSpec, Secret};
use bench_state::StateError;
use bench_state::credentials::Credentials;

/// Keys that callers gave for a run.
#[derive(Debug, Default)]
pub(super) struct CallerKeys {
    /// For the model that is measured.
    pub(super) model: Option<Secret>,
    /// For the judge.
    pub(super) judge: Option<Secret>,
}

impl CallerKeys {
    /// Loads both keys whatever the stage: neither may be in a stored text.
    pub(super) async fn load(credentials: &Credentials, spec: &RunSpec) -> Result<Self, StateError> {
        let mut keys = Self::default();
        if spec.auth == AuthMode::ApiKey {
            keys.model = credentials.get(spec.id).await?;
        }
        if spec.judge.as_ref().is_some_and(|judge| judge.auth == AuthMode::ApiKey) {
            keys.judge = credentials.judge(spec.id).await?;
        }
        Ok(keys)
    }
}
