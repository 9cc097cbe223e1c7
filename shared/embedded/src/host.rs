//! The Lambda host: queues trigger handlers, like Lambda's event source mappings.
//!
//! A mapping polls one queue and calls its handler with real `SqsEvent` batches, up to its concurrency limit. Messages
//! that the handler doesn't report as failed are deleted. Failed messages, and those of an invocation that panics or
//! times out, are delivered again by the queue.

mod client;
mod delete;
mod poll;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use bench_domain::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

pub use client::QueueClient;

/// Maximum number of messages of one receive, SQS's own limit.
pub const RECEIVE_MAX: usize = 10;

/// Future that a handler returns.
pub type HandlerFuture = Pin<Box<dyn Future<Output = SqsBatchResponse> + Send>>;
/// A function behind a queue. It gets a batch and the deadline of its invocation.
pub type Handler = Arc<dyn Fn(SqsEvent, Timestamp) -> HandlerFuture + Send + Sync>;

/// A queue and the function behind it.
#[derive(Clone)]
pub struct Mapping {
    /// Name for logs.
    pub name: &'static str,
    /// Address of the queue.
    pub queue_url: String,
    /// The function.
    pub handler: Handler,
    /// Maximum number of messages of one invocation, 1 to 10.
    pub batch_size: usize,
    /// Maximum number of messages being handled at once.
    pub concurrency: usize,
    /// True if [`Capacity`] changes that number while the host runs.
    pub adjustable: bool,
    /// Time limit of an invocation.
    pub timeout: Duration,
    /// Number of mappings whose messages wait for a place, to which this one adds itself. Handlers that only wait may end
    /// early then. `None` if no handler does, so that the queue isn't asked.
    pub places_wanted: Option<Arc<AtomicUsize>>,
}

/// Running mappings.
pub struct Host {
    stop: watch::Sender<bool>,
    pollers: JoinSet<()>,
    capacity: Capacity,
}

/// Messages that the adjustable mappings of a host may handle at once. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Capacity(Arc<[Arc<Semaphore>]>);

impl Capacity {
    /// Allows `messages` more at once, in each adjustable mapping.
    pub fn add(&self, messages: usize) {
        self.0.iter().for_each(|capacity| capacity.add_permits(messages));
    }

    /// Allows `messages` fewer at once, as soon as that many have been handled.
    pub fn remove(&self, messages: usize) {
        for capacity in self.0.iter() {
            let missing = messages - capacity.forget_permits(messages);
            let Some(missing) = u32::try_from(missing).ok().filter(|missing| *missing > 0) else { continue };
            let capacity = Arc::clone(capacity);
            tokio::spawn(async move {
                // The semaphore is never closed.
                if let Ok(permits) = capacity.acquire_many_owned(missing).await {
                    permits.forget();
                }
            });
        }
    }
}

impl Host {
    /// Starts to poll for every mapping.
    pub fn start(client: &QueueClient, mappings: Vec<Mapping>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut pollers = JoinSet::new();
        let mut adjustable = Vec::new();
        for mapping in mappings {
            let capacity = Arc::new(Semaphore::new(mapping.concurrency.max(1)));
            if mapping.adjustable {
                adjustable.push(Arc::clone(&capacity));
            }
            pollers.spawn(poll::run(client.clone(), mapping, capacity, stopped.clone()));
        }
        Self { stop, pollers, capacity: Capacity(adjustable.into()) }
    }

    /// Returns the capacity of the adjustable mappings.
    pub fn capacity(&self) -> Capacity {
        self.capacity.clone()
    }

    /// Stops receiving and waits up to `grace` for running invocations. Returns true if all of them have ended.
    pub async fn drain(&mut self, grace: Duration) -> bool {
        let _ = self.stop.send(true);
        let all = async { while self.pollers.join_next().await.is_some() {} };
        tokio::time::timeout(grace, all).await.is_ok()
    }

    /// Stops receiving, gives running invocations up to `grace`, then aborts them. Unfinished messages are delivered
    /// again after the next start. Safe to repeat.
    pub async fn stop(&mut self, grace: Duration) {
        self.drain(grace).await;
        self.pollers.shutdown().await;
    }
}
