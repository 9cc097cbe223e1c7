//! The Lambda host: queues drive handlers, as Lambda's event source mappings do.
//!
//! A mapping polls one queue and calls its handler with real `SqsEvent` batches, at most so many
//! messages at a time. What the handler does not report as failed is deleted; what it reports, and
//! what an invocation that panics or outlives its time held, is delivered again by the queue.

mod delete;
mod poll;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::Client;
use bench_domain::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Messages of one receive: SQS's own limit.
pub const RECEIVE_MAX: usize = 10;

/// What a handler gives back.
pub type Handling = Pin<Box<dyn Future<Output = SqsBatchResponse> + Send>>;
/// A function behind a queue: it gets a batch, and when its invocation ends.
pub type Handler = Arc<dyn Fn(SqsEvent, Timestamp) -> Handling + Send + Sync>;

/// A queue and the function behind it.
#[derive(Clone)]
pub struct Mapping {
    /// Name for logs.
    pub name: &'static str,
    /// Address of the queue.
    pub queue_url: String,
    /// The function.
    pub handler: Handler,
    /// Messages of one invocation, 1 to 10.
    pub batch_size: usize,
    /// Messages being handled at once.
    pub concurrency: usize,
    /// How long an invocation may take.
    pub timeout: Duration,
}

/// Running mappings.
pub struct Host {
    stop: watch::Sender<bool>,
    pollers: JoinSet<()>,
}

impl Host {
    /// Starts to poll for every mapping.
    pub fn start(client: &Client, mappings: Vec<Mapping>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut pollers = JoinSet::new();
        for mapping in mappings {
            pollers.spawn(poll::run(client.clone(), mapping, stopped.clone()));
        }
        Self { stop, pollers }
    }

    /// Receives no more and waits up to `grace` for what is being handled. Returns whether all of it has ended.
    pub async fn settle(&mut self, grace: Duration) -> bool {
        let _ = self.stop.send(true);
        let all = async { while self.pollers.join_next().await.is_some() {} };
        tokio::time::timeout(grace, all).await.is_ok()
    }

    /// Receives no more, gives what is being handled up to `grace`, then ends it. What was not finished
    /// is delivered again after the next start. Safe to repeat.
    pub async fn stop(&mut self, grace: Duration) {
        self.settle(grace).await;
        self.pollers.shutdown().await;
    }
}
