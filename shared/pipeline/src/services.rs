//! Clients of the services that a pipeline needs.

use bench_blobs::Blobs;
use bench_inference::{ChatClient, InferenceConfig};
#[cfg(feature = "deployed")]
use bench_lambda::Init;
use bench_queue::Queues;
#[cfg(feature = "deployed")]
use bench_sandy::SandyConfig;
use bench_state::State;
use bench_state::credentials::Credentials;

use crate::{Ledgers, SandboxHost};

/// Clients of the services that a pipeline needs.
pub struct Services {
    /// Runs and samples.
    pub state: State,
    /// Messages.
    pub queues: Queues,
    /// Items, prompts and answers.
    pub blobs: Blobs,
    /// Callers' keys.
    pub credentials: Credentials,
    /// HTTP client for model providers.
    pub chat: ChatClient,
    /// Configuration of the operator's providers.
    pub inference: InferenceConfig,
    /// Spending of runs. Shared by all pipelines of a process.
    pub ledgers: Ledgers,
    /// Host of the sandboxes that run answers. Only samples in stage `sandbox` need it.
    pub sandboxes: SandboxHost,
}

#[cfg(feature = "deployed")]
impl Services {
    /// Creates the clients of a Lambda function from its variables.
    ///
    /// # Errors
    /// Names the variable that is missing or invalid.
    pub fn from_init(init: &Init) -> anyhow::Result<Self> {
        let inference = InferenceConfig::from_vars(init.vars.lookup())?;
        let sandy = SandyConfig::from_vars(init.vars.lookup()).map_err(anyhow::Error::msg)?;
        Ok(Self {
            state: init.state()?,
            queues: init.queues(),
            blobs: init.blobs()?,
            credentials: init.credentials()?,
            chat: ChatClient::new(inference.http_options()),
            inference,
            ledgers: Ledgers::default(),
            sandboxes: SandboxHost::new(sandy),
        })
    }
}
