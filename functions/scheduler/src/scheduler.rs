//! Services and settings that all tasks use.

use bench_queue::Queues;
use bench_runs::RunCreator;
use bench_sandy::Sandy;
use bench_state::State;
use bench_state::credentials::Credentials;

use crate::config::SchedulerConfig;
use crate::webhook::WebhookClient;

/// The scheduler's function.
pub struct Scheduler {
    /// Runs, samples, schedules.
    pub state: State,
    /// The queues.
    pub queues: Queues,
    pub(crate) credentials: Credentials,
    pub(crate) runs: RunCreator,
    pub(crate) config: SchedulerConfig,
    pub(crate) webhooks: WebhookClient,
    pub(crate) sandy: Sandy,
}

impl Scheduler {
    /// Creates a scheduler that uses these services.
    pub fn new(state: State, queues: Queues, credentials: Credentials, config: SchedulerConfig) -> Self {
        let webhooks = WebhookClient::new(config.runs.local);
        let sandy = Sandy::new(config.sandy.clone());
        let runs = RunCreator {
            state: state.clone(),
            queues: queues.clone(),
            credentials: credentials.clone(),
            config: config.runs.clone(),
        };
        Self { state, queues, credentials, runs, config, webhooks, sandy }
    }
}
