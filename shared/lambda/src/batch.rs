//! Batches of messages: each handled by itself, failures reported one by one.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use bench_queue::{Message, MessageError, QueueName, Queues};
use futures_util::future::join_all;

/// How long a message of another version stays away before it is looked at again.
const OTHER_VERSION_DELAY: Duration = Duration::from_secs(60);

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It is not needed any more.
    Done,
    /// It is to be delivered again.
    Again,
}

/// Handles the messages of a batch side by side.
///
/// A message that fails is reported by its id and comes again; its neighbours do not. One that this
/// program cannot read comes again too, until it is dead; one of another version is put back.
pub async fn handle_batch<F, Fut, E>(
    event: SqsEvent,
    queue: QueueName,
    queues: &Queues,
    handle: F,
) -> SqsBatchResponse
where
    F: Fn(Message) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Display,
{
    handle_from(event, Source { queue, dead: false }, queues, handle).await
}

/// The same for the dead-letter queue of `queue`.
pub async fn handle_dead_batch<F, Fut, E>(
    event: SqsEvent,
    queue: QueueName,
    queues: &Queues,
    handle: F,
) -> SqsBatchResponse
where
    F: Fn(Message) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Display,
{
    handle_from(event, Source { queue, dead: true }, queues, handle).await
}

/// Where messages were received: their receipts are good there only.
#[derive(Clone, Copy)]
struct Source {
    queue: QueueName,
    dead: bool,
}

async fn handle_from<F, Fut, E>(
    event: SqsEvent,
    source: Source,
    queues: &Queues,
    handle: F,
) -> SqsBatchResponse
where
    F: Fn(Message) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Display,
{
    let handle = &handle;
    let handled = join_all(event.records.into_iter().map(|record| async move {
        let again = handle_one(&record, source, queues, handle).await == Handled::Again;
        again.then(|| record.message_id.unwrap_or_default())
    }));
    let failures = handled.await.into_iter().flatten().map(|id| {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = id;
        failure
    });
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = failures.collect();
    response
}

async fn handle_one<F, Fut, E>(record: &SqsMessage, source: Source, queues: &Queues, handle: &F) -> Handled
where
    F: Fn(Message) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Display,
{
    let queue = source.queue;
    let body = record.body.as_deref().unwrap_or_default();
    let message_id = record.message_id.as_deref().unwrap_or_default();
    let message = match Message::from_body(body) {
        Ok(message) => message,
        Err(MessageError::OtherVersion { found }) => {
            tracing::info!(message_id, message_version = found, "Put back a message of version {found}");
            return match queues.put_back(queue, body, OTHER_VERSION_DELAY).await {
                Ok(()) => Handled::Done,
                Err(_) => Handled::Again,
            };
        }
        Err(error) => {
            tracing::error!(message_id, %error, "A message of queue {} cannot be read", queue.as_str());
            come_again(record, source, queues).await;
            return Handled::Again;
        }
    };
    let run = message.run();
    match handle(message).await {
        Ok(()) => Handled::Done,
        Err(error) => {
            let name = queue.as_str();
            tracing::warn!(run.id = %run, message_id, %error, "A message of queue {name} failed and comes again: {error}");
            come_again(record, source, queues).await;
            Handled::Again
        }
    }
}

/// Lets a message come again sooner. If this fails too, it comes again when its visibility timeout ends.
async fn come_again(record: &SqsMessage, source: Source, queues: &Queues) {
    let receipt = record.receipt_handle.as_deref().unwrap_or_default();
    let deliveries = record.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    let deliveries = deliveries.unwrap_or(1);
    if let Err(error) = queues.come_again(source.queue, source.dead, receipt, deliveries).await {
        let message_id = record.message_id.as_deref().unwrap_or_default();
        tracing::debug!(message_id, %error, "The message waits for its visibility timeout");
    }
}
