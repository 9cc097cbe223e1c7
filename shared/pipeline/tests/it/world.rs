//! Services of one test, and pipelines that use them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench_blobs::Blobs;
use bench_domain::Timestamp;
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Recorder};
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

/// Name under which the pipelines' calls are recorded.
const PIPELINE: &str = "pipeline";

type Hook = Arc<dyn Fn() + Send + Sync>;

/// A hook to call before each call of an action by a pipeline.
#[derive(Clone, Default)]
struct Hooks(Arc<Mutex<Option<(&'static str, Hook)>>>);

impl Hooks {
    fn run(&self, action: &str) {
        let hook =
            self.0.lock().unwrap().as_ref().filter(|(of, _)| *of == action).map(|(_, hook)| Arc::clone(hook));
        if let Some(hook) = hook {
            hook();
        }
    }
}

/// Services of one test.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) queues: Queues,
    pub(crate) blobs: Blobs,
    pub(crate) provider: Provider,
    credentials: Credentials,
    pub(crate) embedded: Embedded,
    hooks: Hooks,
    directory: tempfile::TempDir,
}

impl World {
    /// Creates empty services, and a provider that gives these replies.
    pub(crate) async fn new(replies: &[Reply]) -> Self {
        Self::open(tempfile::tempdir().unwrap(), Provider::start(replies).await, "").await
    }

    /// Closes the services and opens them again with the given faults.
    pub(crate) async fn reopen(self, faults: &str) -> Self {
        let Self { embedded, provider, directory, .. } = self;
        embedded.close();
        Self::open(directory, provider, faults).await
    }

    async fn open(directory: tempfile::TempDir, provider: Provider, faults: &str) -> Self {
        let hooks = Hooks::default();
        let recorder = {
            let hooks = hooks.clone();
            Recorder::new(move |call| {
                if call.caller == Some(PIPELINE) {
                    hooks.run(call.action);
                }
            })
        };
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let options = options.recorder(recorder).faults(faults.parse().unwrap());
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
        Self { state, queues, blobs, provider, credentials, embedded, hooks, directory }
    }

    /// Creates the state client of a host restarted `starts` times: leases of earlier starts are void.
    pub(crate) fn state_after(&self, starts: u64) -> State {
        State::new(&self.embedded.sdk_config(), "bench", self.embedded.epoch() + starts)
    }

    /// Creates a pipeline of the first start.
    pub(crate) fn pipeline(&self) -> Pipeline {
        self.pipeline_after(0, PipelineConfig::default())
    }

    /// Creates a pipeline of a host restarted `starts` times. It has no runs loaded.
    pub(crate) fn pipeline_after(&self, starts: u64, config: PipelineConfig) -> Pipeline {
        self.pipeline_of(starts, config, &QueueName::ALL)
    }

    /// Creates a pipeline of the first start that may send only to these queues.
    pub(crate) fn pipeline_with_queues(&self, queues: &[QueueName]) -> Pipeline {
        self.pipeline_of(0, PipelineConfig::default(), queues)
    }

    fn pipeline_of(&self, starts: u64, config: PipelineConfig, queues: &[QueueName]) -> Pipeline {
        let inference = InferenceConfig::from_vars(|_| None).unwrap();
        let urls = queues.iter().map(|name| (*name, self.queues.url(*name).unwrap().to_owned()));
        let sdk = self.embedded.sdk_config_for(PIPELINE);
        let services = Services {
            state: State::new(&sdk, "bench", self.embedded.epoch() + starts),
            queues: Queues::new(&sdk, urls.collect()),
            blobs: Blobs::new(&sdk, "bench"),
            credentials: self.credentials.clone(),
            chat: ChatClient::new(inference.http_options()),
            inference,
            ledgers: Ledgers::default(),
            sandboxes: SandboxHost::new(SandyConfig::default()),
        };
        Pipeline::new(services, config)
    }

    /// Calls `hook` before each later call of this action by a pipeline. The hook may block if the test's
    /// runtime has several threads.
    pub(crate) fn hook_before(&self, action: &'static str, hook: impl Fn() + Send + Sync + 'static) {
        *self.hooks.0.lock().unwrap() = Some((action, Arc::new(hook)));
    }

    /// Removes the hook.
    pub(crate) fn remove_hook(&self) {
        *self.hooks.0.lock().unwrap() = None;
    }

    /// Returns the number of messages in a queue that are visible, and the number that are delayed.
    pub(crate) async fn queue_depth(&self, queue: QueueName) -> (u64, u64) {
        let Depth { visible, delayed, .. } = self.queues.depth(queue).await.unwrap();
        (visible, delayed)
    }
}

/// Handles one message. Returns `false` if it was reported as failed.
pub(crate) async fn handle(pipeline: &Pipeline, message: &Message) -> bool {
    handle_from(pipeline, message.queue(), message, Deadline::after(INVOCATION)).await
}

/// Handles one message from this queue until a deadline. Returns `false` if it was reported as failed.
pub(crate) async fn handle_from(
    pipeline: &Pipeline,
    queue: QueueName,
    message: &Message,
    deadline: Deadline,
) -> bool {
    let mut record = SqsMessage::default();
    record.message_id = Some("1".to_owned());
    record.body = Some(message.to_body());
    let mut event = SqsEvent::default();
    event.records = vec![record];
    let response = pipeline.handle(queue, event, deadline).await;
    response.batch_item_failures.is_empty()
}

/// Returns an end of a lease that is far enough in the future.
pub(crate) fn lease_end() -> Timestamp {
    bench_clock::now().plus(INVOCATION)
}
