//! Calls the functions one message at a time: nothing happens unless the test requests it.

use aws_sdk_sqs::types::MessageSystemAttributeName;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bench_datasets::{Library, LibraryConfig};
use bench_dead_letters::DeadLetters;
use bench_finisher::Finisher;
use bench_inference::{ChatClient, InferenceConfig};
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent, SqsMessage};
use bench_pipeline::{Ledgers, Pipeline, PipelineConfig, SandboxHost, Services};
use bench_planner::Planner;
use bench_queue::{Message, QueueName, Queues};
use bench_sandy::SandyConfig;
use bench_sandy::testing::KEY;
use bench_scheduler::{Scheduler, SchedulerConfig};
use bench_state::State;

use super::World;

/// Time limit of an invocation.
const INVOCATION: Duration = Duration::from_secs(300);

/// Returns the world's sandbox host. A turn polls a new job until it is over; on the scripted host, it does one thing.
fn sandbox_host(world: &World) -> SandboxHost {
    let host = SandboxHost::new(sandy(world)).on_this_machine(world.files().join("sandbox-files"));
    if world.scripted.is_some() { host.with_linger(Duration::ZERO) } else { host }
}

fn sandy(world: &World) -> SandyConfig {
    let config = world.sandbox_address().map(|address| {
        let vars = |name: &str| match name {
            "SANDY_BASE_URL" => Some(address.clone()),
            "SANDY_API_KEY" => Some(KEY.to_owned()),
            _ => None,
        };
        SandyConfig::from_vars(vars).unwrap()
    });
    config.unwrap_or_default()
}

/// All functions, on the services of a stack that doesn't drive them.
pub(crate) struct ManualDriver {
    pub(crate) state: State,
    pub(crate) queues: Queues,
    planner: Planner,
    worker: Pipeline,
    turns: Pipeline,
    finisher: Finisher,
    dead_letters: DeadLetters,
    pub(crate) scheduler: Scheduler,
}

impl ManualDriver {
    /// Creates the functions of a host restarted `starts` times after the stack's start, so that earlier leases are
    /// void.
    pub(crate) fn new(world: &World, starts: u64) -> Self {
        Self::with_host(world, starts, || sandbox_host(world))
    }

    /// Creates the functions of a host whose turns wait for their operations, while this many queues find no place.
    pub(crate) fn lingering(world: &World, places_wanted: usize) -> Self {
        let places_wanted = Arc::new(AtomicUsize::new(places_wanted));
        Self::with_host(world, 0, || {
            sandbox_host(world).with_linger(INVOCATION).with_places_wanted(Arc::clone(&places_wanted))
        })
    }

    fn with_host(world: &World, starts: u64, host: impl Fn() -> SandboxHost) -> Self {
        let stack = &world.stack;
        let epoch = stack.state.epoch() + starts;
        let state = State::new(&stack.embedded.sdk_config(), stack.state.table(), epoch);
        let (queues, blobs, credentials) =
            (stack.queues.clone(), stack.blobs.clone(), stack.credentials.clone());
        let library = LibraryConfig { offline: true, ..LibraryConfig::new(world.files().join("downloads")) };
        let inference = InferenceConfig::from_vars(|_| None).unwrap();
        let mut scheduling = SchedulerConfig::from_vars(|_| None, true, "test").unwrap();
        scheduling.sandy = sandy(world);
        let services = || Services {
            state: state.clone(),
            queues: queues.clone(),
            blobs: blobs.clone(),
            credentials: credentials.clone(),
            chat: ChatClient::new(inference.http_options()),
            inference: inference.clone(),
            ledgers: Ledgers::default(),
            sandboxes: host(),
        };
        Self {
            planner: Planner::new(state.clone(), queues.clone(), Library::new(blobs.clone(), library)),
            worker: Pipeline::new(services(), PipelineConfig::default()),
            turns: Pipeline::new(services(), PipelineConfig::default()),
            finisher: Finisher {
                state: state.clone(),
                queues: queues.clone(),
                blobs: blobs.clone(),
                credentials: credentials.clone(),
            },
            dead_letters: DeadLetters {
                state: state.clone(),
                queues: queues.clone(),
                after_outage: Duration::ZERO,
            },
            scheduler: Scheduler::new(state.clone(), queues.clone(), stack.credentials.clone(), scheduling),
            state,
            queues,
        }
    }

    /// Handles one message. Returns `false` if it would be delivered again.
    pub(crate) async fn handle(&self, message: &Message) -> bool {
        let mut record = SqsMessage::default();
        record.message_id = Some("by-hand".to_owned());
        record.body = Some(message.to_body());
        let mut event = SqsEvent::default();
        event.records = vec![record];
        self.call(message.queue(), event).await.batch_item_failures.is_empty()
    }

    async fn call(&self, queue: QueueName, event: SqsEvent) -> SqsBatchResponse {
        let deadline = Deadline::after(INVOCATION);
        match queue {
            QueueName::Plans => self.planner.handle(event, deadline).await,
            QueueName::Items => self.worker.handle(queue, event, deadline).await,
            QueueName::Turns => self.turns.handle(queue, event, deadline).await,
            QueueName::Finishes => self.finisher.handle(event, deadline).await,
        }
    }

    /// Handles one message as a dead letter. Returns `false` if it would be delivered again.
    pub(crate) async fn handle_dead_letter(&self, message: &Message) -> bool {
        let mut record = SqsMessage::default();
        record.message_id = Some("by-hand".to_owned());
        record.body = Some(message.to_body());
        let queue = message.queue().as_str();
        record.event_source_arn = Some(format!("arn:aws:sqs:us-east-1:000000000000:bench-{queue}-dead"));
        let mut event = SqsEvent::default();
        event.records = vec![record];
        let response = self.dead_letters.handle(event, Deadline::after(INVOCATION)).await;
        response.batch_item_failures.is_empty()
    }

    /// Handles messages one by one until none is left, each twice. Returns their number.
    pub(crate) async fn drain_twice(&self) -> usize {
        let mut count = 0;
        loop {
            let mut any = false;
            for queue in QueueName::ALL {
                let had_one = self.drain_some(queue, 2).await;
                any |= had_one;
                count += usize::from(had_one);
            }
            if !any {
                return count;
            }
        }
    }

    /// Handles messages one by one until none is left. Received messages stay visible, so that they are still there
    /// if a test stops in between.
    pub(crate) async fn drain(&self) {
        loop {
            let mut any = false;
            for queue in QueueName::ALL {
                any |= self.drain_one(queue).await;
            }
            if !any {
                return;
            }
        }
    }

    async fn drain_one(&self, queue: QueueName) -> bool {
        self.drain_some(queue, 1).await
    }

    async fn drain_some(&self, queue: QueueName, deliveries: u32) -> bool {
        let url = self.queues.url(queue).unwrap();
        let receive = self.queues.client().receive_message().queue_url(url).visibility_timeout(0);
        let received =
            receive.message_system_attribute_names(MessageSystemAttributeName::All).send().await.unwrap();
        let Some(message) = received.messages.unwrap_or_default().pop() else { return false };
        let receipt = message.receipt_handle.clone().unwrap();
        let mut record = SqsMessage::default();
        record.message_id = message.message_id;
        record.body = message.body;
        record.receipt_handle = Some(receipt.clone());
        let mut event = SqsEvent::default();
        event.records = vec![record];
        let mut is_done = false;
        for _ in 0..deliveries {
            is_done = self.call(queue, event.clone()).await.batch_item_failures.is_empty();
        }
        if is_done {
            self.queues
                .client()
                .delete_message()
                .queue_url(url)
                .receipt_handle(receipt)
                .send()
                .await
                .unwrap();
        }
        true
    }
}
