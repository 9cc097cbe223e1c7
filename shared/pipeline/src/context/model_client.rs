//! The models that runs ask, each with its endpoint and key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bench_domain::run::{AuthMode, ModelRef};
use bench_domain::{Code, ModelRole, RunId, SessionId, Timestamp};
use bench_inference::{Endpoint, InferenceConfig};
use bench_state::{SharedWait, WaitKey};

use super::pace::Paced;
use super::refusals::Refusals;
use super::runs::RunContext;

/// A model at a provider, as one run asks it.
pub(crate) struct ModelClient {
    /// Purpose for which the run asks it.
    pub(crate) role: ModelRole,
    /// The model.
    pub(crate) model: ModelRef,
    pub(crate) endpoint: Endpoint,
    /// Session whose access token pays. The endpoint has no key then.
    pub(crate) session: Option<SessionId>,
    /// Refusals that it gave this run.
    pub(crate) refusals: Arc<Refusals>,
    /// Wait that its provider asked for.
    pub(crate) wait: Wait,
}

/// A provider's wait, as this process knows it.
pub(crate) struct Wait {
    /// Requests that share the wait.
    pub(crate) key: WaitKey,
    /// Locked while the wait is read or written, so that no request is decided by what was known before.
    pub(crate) known: tokio::sync::Mutex<KnownWait>,
    /// Samples that wait for their slot, if the run limits its requests per minute.
    pub(crate) paced: Paced,
}

/// Wait with the time at which it was read.
#[derive(Debug, Default)]
pub(crate) struct KnownWait {
    /// The wait; `None` if there is none.
    pub(crate) wait: Option<SharedWait>,
    /// Time of the last reading.
    pub(crate) read_at: Timestamp,
}

impl Wait {
    fn new(key: WaitKey) -> Self {
        Self { key, known: tokio::sync::Mutex::default(), paced: Paced::default() }
    }
}

/// Reason why a model can't be asked. The run fails with it.
#[derive(Debug)]
pub(crate) struct Unavailable {
    pub(crate) code: Code,
    pub(crate) why: String,
}

impl Unavailable {
    pub(crate) fn new(code: Code, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }
}

/// Creates clients for the models that runs ask.
pub(crate) struct ModelClients {
    inference: InferenceConfig,
    /// Refusals outlive the contexts of their runs, since requests in flight still report to them.
    refusals: Mutex<HashMap<(RunId, u32, ModelRole), Weak<Refusals>>>,
}

impl ModelClients {
    pub(crate) fn new(inference: InferenceConfig) -> Self {
        Self { inference, refusals: Mutex::default() }
    }

    /// Creates the client of the run's model in this role. `missing` is the error if the caller's key for it is gone. Calls no
    /// service.
    ///
    /// # Errors
    /// Returns the reason why the model can't be asked. The run fails with it.
    pub(crate) fn client(
        &self,
        run: &RunContext,
        role: ModelRole,
        missing: Unavailable,
    ) -> Result<Box<ModelClient>, Unavailable> {
        let Some((model, auth)) = run.spec.asked_model(role) else { return Err(missing) };
        let provider = bench_inference::Provider::from_name(&model.provider).ok_or_else(|| {
            Unavailable::new(Code::UnsupportedProvider, format!("provider `{}` is unknown", model.provider))
        })?;
        let (key, session) = match (auth, run.caller_keys.of(role), &run.spec.session) {
            (AuthMode::System, ..) => (None, None),
            (AuthMode::ApiKey, Some(key), _) => (Some(key.clone()), None),
            (AuthMode::ApiKey, None, _) => return Err(missing),
            (AuthMode::Idp, _, Some(session)) => (None, Some(session.clone())),
            (AuthMode::Idp, _, None) => {
                let why = "Run is missing Chutes session credentials";
                return Err(Unavailable::new(Code::SessionInvalid, why));
            }
        };
        let endpoint = match (&model.base_url, key) {
            // An address from the command line. The operator's key is for another address.
            (Some(base_url), key) => Endpoint::new(provider, base_url, key),
            (None, None) if session.is_some() => self.inference.session_endpoint(provider),
            (None, Some(key)) => self.inference.endpoint_with_key(provider, key),
            (None, None) => self.inference.endpoint(provider),
        };
        let (base_url, host) = (model.base_url.as_deref(), model.endpoint_host.as_deref());
        let endpoint = endpoint
            .and_then(|endpoint| self.inference.check_host(provider, base_url, host).map(|()| endpoint))
            .map_err(|error| Unavailable::new(Code::ProviderNotConfigured, error.to_string()))?;
        let wait = Wait::new(WaitKey::new(model, role, auth, &run.spec.owner));
        let refusals = self.refusals(run.spec.id, run.generation, role);
        Ok(Box::new(ModelClient { role, model: model.clone(), endpoint, session, refusals, wait }))
    }

    /// Returns the wait for a busy provider that doesn't say how long to wait.
    pub(crate) const fn rate_limit_sleep(&self) -> Duration {
        self.inference.rate_limit_sleep
    }

    /// Returns the refusals that a run got in one of its generations.
    fn refusals(&self, run: RunId, generation: u32, role: ModelRole) -> Arc<Refusals> {
        let mut all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&(run, generation, role)).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, refusals| refusals.strong_count() > 0);
        let refusals = Arc::default();
        all.insert((run, generation, role), Arc::downgrade(&refusals));
        refusals
    }
}
