//! The services of one test, and pipelines on them.

use std::sync::Arc;
use std::time::Duration;

use bench_blobs::Blobs;
use bench_domain::Timestamp;
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_inference::{ChatClient, InferenceConfig};
use bench_lambda::{Deadline, SqsEvent, SqsMessage};
use bench_pipeline::{Ledgers, Pipeline, PipelineConfig, SandboxHost, Services};
use bench_queue::{Depth, Message, QueueName, QueueSettings, Queues};
use bench_sandy::SandyConfig;
use bench_state::State;
use bench_state::credentials::{Credentials, KEY_BYTES, LocalKey};

use crate::provider::{Provider, Reply};

/// Time limit of one invocation.
pub(crate) const INVOCATION: Duration = Duration::from_secs(300);

/// The services of one test.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) queues: Queues,
    pub(crate) blobs: Blobs,
    pub(crate) provider: Provider,
    credentials: Credentials,
    embedded: Embedded,
    _directory: tempfile::TempDir,
}

impl World {
    /// Empty services, and a provider that gives these replies.
    pub(crate) async fn new(replies: &[Reply]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let embedded = Embedded::open(options).unwrap();
        let config = embedded.sdk_config();
        let state = State::new(&config, "bench", embedded.epoch());
        state.ensure_table().await.unwrap();
        let queues = Queues::create(&config, "bench-", QueueSettings::default()).await.unwrap();
        let blobs = Blobs::new(&config, "bench");
        blobs.ensure_bucket().await.unwrap();
        let key = Arc::new(LocalKey::new(&[7; KEY_BYTES]).unwrap());
        let credentials = Credentials::new(&config, "bench-credentials", key);
        credentials.ensure_table().await.unwrap();
        let provider = Provider::start(replies).await;
        Self { state, queues, blobs, provider, credentials, embedded, _directory: directory }
    }

    /// The state as a host sees it that was started so many times after the first one: leases of earlier starts are void.
    pub(crate) fn state_after(&self, starts: u64) -> State {
        State::new(&self.embedded.sdk_config(), "bench", self.embedded.epoch() + starts)
    }

    /// A pipeline of the first start.
    pub(crate) fn pipeline(&self) -> Pipeline {
        self.pipeline_after(0, PipelineConfig::default())
    }

    /// A pipeline of a host that was started so many times after the first one. It knows nothing of any run yet.
    pub(crate) fn pipeline_after(&self, starts: u64, config: PipelineConfig) -> Pipeline {
        let inference = InferenceConfig::from_vars(|_| None).unwrap();
        let services = Services {
            state: self.state_after(starts),
            queues: self.queues.clone(),
            blobs: self.blobs.clone(),
            credentials: self.credentials.clone(),
            chat: ChatClient::new(inference.http_options()),
            inference,
            ledgers: Ledgers::default(),
            sandboxes: SandboxHost::new(SandyConfig::default()),
        };
        Pipeline::new(services, config)
    }

    /// How many messages a queue has: those that can be received now, and those that are due later.
    pub(crate) async fn waiting(&self, queue: QueueName) -> (u64, u64) {
        let Depth { visible, delayed, .. } = self.queues.depth(queue).await.unwrap();
        (visible, delayed)
    }
}

/// Handles one message; `false` if it was reported as failed.
pub(crate) async fn handle(pipeline: &Pipeline, message: &Message) -> bool {
    let mut record = SqsMessage::default();
    record.message_id = Some("1".to_owned());
    record.body = Some(message.to_body());
    let mut event = SqsEvent::default();
    event.records = vec![record];
    let response = pipeline.handle(message.queue(), event, Deadline::after(INVOCATION)).await;
    response.batch_item_failures.is_empty()
}

/// The end of a lease that is long.
pub(crate) fn lease_end() -> Timestamp {
    bench_clock::now().plus(INVOCATION)
}
