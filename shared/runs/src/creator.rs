//! Writes of new runs, and the messages that start them.

use std::time::Duration;

use bench_domain::run::Owner;
use bench_domain::{RunId, RunSpec};
use bench_inference::{InferenceConfig, ModelName};
use bench_queue::{Message, Queues};
use bench_state::access::{AccessPolicy, OrderLimits};
use bench_state::credentials::{Credentials, SealedKey};
use bench_state::{Creation, Idempotency, NewEvent, State, StateError};

/// Generation of a new run.
pub(crate) const FIRST_GENERATION: u32 = 1;

/// Settings for creating runs.
#[derive(Debug, Clone)]
pub struct RunCreatorConfig {
    /// Version of this program, as recorded in runs.
    pub software: String,
    /// True if orders come only from this machine.
    pub local: bool,
    /// Access policy: callers that may order.
    pub policy: AccessPolicy,
    /// Limits of orders.
    pub limits: OrderLimits,
    /// Providers, and the keys that are configured for them.
    pub inference: InferenceConfig,
    /// Judge of runs that name none. The operator's key pays for it.
    pub judge_model: Option<ModelName>,
}

impl RunCreatorConfig {
    /// Reads `BENCH_JUDGE_MODEL`, the judge of runs that name none.
    ///
    /// # Errors
    /// One sentence that names the variable if its value isn't a model that can judge.
    pub fn judge_model_from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Option<ModelName>, String> {
        let Some(text) = var("BENCH_JUDGE_MODEL") else { return Ok(None) };
        ModelName::parse_judge(&text).map(Some).map_err(|error| format!("BENCH_JUDGE_MODEL: {error}"))
    }
}

/// Services and settings for creating runs.
#[derive(Debug)]
pub struct RunCreator {
    /// Runs and samples.
    pub state: State,
    /// Queues for messages.
    pub queues: Queues,
    /// Callers' keys.
    pub credentials: Credentials,
    /// Settings.
    pub config: RunCreatorConfig,
}

impl RunCreator {
    /// Returns the limits of orders of this owner.
    pub fn limits(&self, owner: &Owner) -> OrderLimits {
        match self.config.policy.is_admin(owner) && !self.config.local {
            true => OrderLimits::TRUSTED,
            false => self.config.limits.for_owner(owner, self.config.local),
        }
    }

    /// Writes a run with its keys, within the limits of its owner. `ignored` are names in the order that aren't
    /// benchmarks. The keys are in the same write, so there is never a run without its key.
    pub(crate) async fn write(
        &self,
        spec: &RunSpec,
        ignored: &[String],
        idempotency: Option<&Idempotency>,
        sealed: Option<SealedKey>,
    ) -> Result<Creation, StateError> {
        let event = NewEvent::run_created(spec, ignored);
        let limits = self.limits(&spec.owner);
        let made = self.state.create_run_with_limits(
            spec,
            &event,
            idempotency,
            spec.created_at,
            sealed,
            Some(&limits),
        );
        made.await
    }

    /// Sends a run to the planner. If the message can't be sent, the run stays queued and reconciliation sends it.
    pub(crate) async fn send_to_planner(&self, run: RunId, generation: u32) {
        let message = Message::Plan { run, generation };
        if let Err(error) = self.queues.send(&message, Duration::ZERO).await {
            tracing::error!(run.id = %run, %error, "Run {run} waits for reconciliation: {error}");
        }
    }
}
