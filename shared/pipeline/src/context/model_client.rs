//! The models that runs ask: the measured model and the judge, each with its endpoint and key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bench_domain::run::{AuthMode, ModelRef};
use bench_domain::{Code, RunId, Secret, Spending, Stage, Timestamp, Usage};
use bench_inference::{Endpoint, Failure, InferenceConfig};
use bench_state::{SharedWait, WaitKey};

use super::pace::Paced;
use super::refusals::Refusals;
use super::runs::RunContext;

/// Purpose for which a run asks a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Answers of the model that is measured.
    Model,
    /// Replies of the judge.
    Judge,
    /// Messages of the simulated user.
    User,
}

impl Role {
    /// Returns the word that users know for the model in this role.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Judge => "judge",
            Self::User => "user model",
        }
    }

    /// Returns the stage that asks the model in this role.
    pub(crate) const fn stage(self) -> Stage {
        match self {
            Self::Model => Stage::Answer,
            Self::Judge => Stage::Judge,
            Self::User => Stage::Episode,
        }
    }

    /// Assigns tokens to this role's part of the spending.
    pub(crate) const fn spending(self, usage: Usage) -> Spending {
        match self {
            Self::Model => Spending { answers: usage, judge: Usage::ZERO, user: Usage::ZERO },
            Self::Judge => Spending::judge_only(usage),
            Self::User => Spending::user_only(usage),
        }
    }

    /// Returns the code of a failure in this role.
    pub(crate) const fn code(self, failure: &Failure) -> Code {
        match self {
            Self::Model | Self::User => failure.code(),
            Self::Judge => failure.code().for_judge(),
        }
    }

    /// Adds to a cause that the judge or the user simulator could not be asked. Returns causes of the measured model unchanged.
    pub(crate) fn explain(self, cause: &str) -> String {
        match self {
            Self::Model => cause.to_owned(),
            Self::Judge => format!("the judge could not be asked: {cause}"),
            Self::User => format!("the user model could not be asked: {cause}"),
        }
    }
}

/// A model at a provider, as one run asks it.
pub(crate) struct ModelClient {
    /// Purpose for which the run asks it.
    pub(crate) role: Role,
    /// The model.
    pub(crate) model: ModelRef,
    pub(crate) endpoint: Endpoint,
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

/// The key that pays for the requests to a model.
#[derive(Debug)]
pub(crate) enum Key {
    /// The operator's key.
    Operator,
    /// A key provided by the caller.
    Caller(Secret),
    /// A caller's key that is gone.
    Missing(Unavailable),
}

impl Key {
    /// Selects the key. `missing` is the error if the caller's key is needed but gone.
    pub(crate) fn new(auth: AuthMode, caller: Option<Secret>, missing: Unavailable) -> Self {
        match (auth, caller) {
            (AuthMode::System, _) => Self::Operator,
            (AuthMode::ApiKey, Some(key)) => Self::Caller(key),
            (AuthMode::ApiKey, None) => Self::Missing(missing),
        }
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
    refusals: Mutex<HashMap<(RunId, u32, Role), Weak<Refusals>>>,
}

impl ModelClients {
    pub(crate) fn new(inference: InferenceConfig) -> Self {
        Self { inference, refusals: Mutex::default() }
    }

    /// Creates the client of a run's model. Calls no service.
    ///
    /// # Errors
    /// Returns the reason why the model can't be asked. The run fails with it.
    pub(crate) fn client(
        &self,
        run: &RunContext,
        role: Role,
        model: &ModelRef,
        key: Key,
    ) -> Result<Box<ModelClient>, Unavailable> {
        let provider = bench_inference::Provider::from_name(&model.provider).ok_or_else(|| {
            Unavailable::new(Code::UnsupportedProvider, format!("provider `{}` is unknown", model.provider))
        })?;
        let key = match key {
            Key::Operator => None,
            Key::Caller(key) => Some(key),
            Key::Missing(missing) => return Err(missing),
        };
        let endpoint = match (&model.base_url, key) {
            // An address from the command line. The operator's key is for another address.
            (Some(base_url), key) => Endpoint::new(provider, base_url, key),
            (None, Some(key)) => self.inference.endpoint_with_key(provider, key),
            (None, None) => self.inference.endpoint(provider),
        };
        let (base_url, host) = (model.base_url.as_deref(), model.endpoint_host.as_deref());
        let endpoint = endpoint
            .and_then(|endpoint| self.inference.check_host(provider, base_url, host).map(|()| endpoint))
            .map_err(|error| Unavailable::new(Code::ProviderNotConfigured, error.to_string()))?;
        let wait = Wait::new(wait_key(run, role, model));
        let refusals = self.refusals(run.spec.id, run.generation, role);
        Ok(Box::new(ModelClient { role, model: model.clone(), endpoint, refusals, wait }))
    }

    /// Returns the wait for a busy provider that doesn't say how long to wait.
    pub(crate) const fn rate_limit_sleep(&self) -> Duration {
        self.inference.rate_limit_sleep
    }

    /// Returns the refusals that a run got in one of its generations.
    fn refusals(&self, run: RunId, generation: u32, role: Role) -> Arc<Refusals> {
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

/// Returns the key of the requests that share a wait with this run's.
fn wait_key(run: &RunContext, role: Role, model: &ModelRef) -> WaitKey {
    let spec = &run.spec;
    match (role, &spec.judge, &spec.user) {
        (Role::Judge, Some(judge), _) => WaitKey::for_judge(model, judge.auth, &spec.owner),
        (Role::User, _, Some(user)) => WaitKey::for_model(model, user.auth, &spec.owner),
        (Role::Model | Role::Judge | Role::User, _, _) => WaitKey::for_model(model, spec.auth, &spec.owner),
    }
}
