//! Message batches: handles each message separately and reports failures per message.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use bench_domain::Timestamp;
use bench_queue::{Message, MessageError, QueueError, QueueName, Queues};
use futures_util::future::join_all;

use crate::metrics;

/// Delay before the next delivery of a message of another version.
const OTHER_VERSION_DELAY: Duration = Duration::from_secs(60);

/// Delay before the next delivery of a message that is in the wrong queue and can't be forwarded.
const MISDIRECTED_DELAY: Duration = Duration::from_secs(60);

/// Result of handling a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandleResult {
    /// The message is no longer needed.
    Done,
    /// The message must be delivered again.
    Retry,
}

/// A message in a dead-letter queue that no version of this program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableMessage {
    /// SQS's message id.
    pub message_id: String,
    /// Queue that the message was sent to.
    pub queue: QueueName,
    /// Time at which the message was sent, the same for each delivery.
    pub sent_at: Timestamp,
    /// Body of the message.
    pub text: String,
    /// Reason why the message can't be parsed.
    pub problem: String,
}

/// Handles the messages of a batch concurrently.
///
/// Reports a message that fails by its id, so that SQS delivers this one again and not the others. A message that this
/// program can't parse is delivered again until it becomes a dead letter. A message of another version is put back.
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
    let source = Source { queue, dead: false };
    let (handle, nobody) = (&handle, &never_called::<E>);
    handle_records(event, |record| async move { handle_one(&record, source, queues, handle, nobody).await })
        .await
}

/// Handles a batch of messages from dead-letter queues, which the ARN of each message identifies.
///
/// Passes messages that no version of this program wrote to `keep`. Hides messages of other versions for a minute, until
/// that version handles them or their retention ends.
pub async fn handle_dead_batch<F, Fut, K, Kept, E>(
    event: SqsEvent,
    queues: &Queues,
    handle: F,
    keep: K,
) -> SqsBatchResponse
where
    F: Fn(Message) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    K: Fn(UnreadableMessage) -> Kept,
    Kept: Future<Output = Result<(), E>>,
    E: Display,
{
    let (handle, keep) = (&handle, &keep);
    handle_records(event, |record| async move {
        let arn = record.event_source_arn.as_deref().unwrap_or_default();
        let Some(queue) = QueueName::from_dead_letter_arn(arn) else {
            tracing::error!("`{arn}` is not a known dead-letter queue: its messages stay there");
            metrics::count_failure(metrics::MESSAGES_FAILED);
            return HandleResult::Retry;
        };
        metrics::count(metrics::DEAD_LETTERS, 1.0);
        handle_one(&record, Source { queue, dead: true }, queues, handle, keep).await
    })
    .await
}

/// Forwards a message to the queue of its kind, if the function that received it doesn't handle it, such as a message
/// of a version that used the queues differently. A function that may not send there puts the message back into `from`,
/// the queue it came from, which adds a log entry every minute.
///
/// # Errors
/// Fails if neither queue accepts the message, which must then be delivered again.
pub async fn forward(message: Message, from: QueueName, queues: &Queues) -> Result<(), QueueError> {
    let (run, received, queue) = (message.run(), from.as_str(), message.queue());
    tracing::warn!(run.id = %run, "A message for queue {} arrived in queue {received} and is forwarded", queue.as_str());
    let Err(error) = queues.send(&message, Duration::ZERO).await else { return Ok(()) };
    tracing::error!(run.id = %run, %error, "It can't be forwarded and is put back into queue {received}: {error}");
    metrics::count_failure(metrics::MESSAGES_FAILED);
    queues.put_back(from, &message.to_body(), MISDIRECTED_DELAY).await
}

/// Handles all records, and reports those that must be delivered again.
async fn handle_records<F, Fut>(event: SqsEvent, handle: F) -> SqsBatchResponse
where
    F: Fn(SqsMessage) -> Fut,
    Fut: Future<Output = HandleResult>,
{
    let handle = &handle;
    let handled = join_all(event.records.into_iter().map(|record| async move {
        let id = record.message_id.clone().unwrap_or_default();
        (handle(record).await == HandleResult::Retry).then_some(id)
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

/// Queue that messages were received from. Their receipts are valid only there.
#[derive(Clone, Copy)]
struct Source {
    queue: QueueName,
    dead: bool,
}

/// Is never called: unreadable messages of an ordinary queue are reported as failed, and SQS delivers them again until
/// they become dead letters.
async fn never_called<E>(_: UnreadableMessage) -> Result<(), E> {
    Ok(())
}

async fn handle_one<F, Fut, K, Kept, E>(
    record: &SqsMessage,
    source: Source,
    queues: &Queues,
    handle: &F,
    keep: &K,
) -> HandleResult
where
    F: Fn(Message) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    K: Fn(UnreadableMessage) -> Kept,
    Kept: Future<Output = Result<(), E>>,
    E: Display,
{
    let name = source.queue.as_str();
    let body = record.body.as_deref().unwrap_or_default();
    let message_id = record.message_id.as_deref().unwrap_or_default();
    let message = match Message::from_body(body) {
        Ok(message) => message,
        Err(MessageError::OtherVersion { found }) => {
            tracing::info!(message_id, message_version = found, "Put back a message of version {found}");
            return put_back(record, source, queues, body).await;
        }
        Err(MessageError::Malformed(problem)) => {
            tracing::error!(message_id, problem, "A message of queue {name} cannot be read: {problem}");
            if source.dead {
                metrics::count(metrics::UNREADABLE_MESSAGES, 1.0);
                match keep(unreadable(record, source.queue, problem)).await {
                    Ok(()) => return HandleResult::Done,
                    Err(error) => tracing::error!(message_id, %error, "It could not be kept: {error}"),
                }
            }
            metrics::count_failure(metrics::MESSAGES_FAILED);
            shorten_retry_delay(record, source, queues).await;
            return HandleResult::Retry;
        }
    };
    let run = message.run();
    match handle(message).await {
        Ok(()) => HandleResult::Done,
        Err(error) => {
            tracing::warn!(run.id = %run, message_id, %error, "A message of queue {name} failed and comes again: {error}");
            metrics::count_failure(metrics::MESSAGES_FAILED);
            shorten_retry_delay(record, source, queues).await;
            HandleResult::Retry
        }
    }
}

fn unreadable(record: &SqsMessage, queue: QueueName, problem: String) -> UnreadableMessage {
    let sent_ms = record.attributes.get("SentTimestamp").and_then(|text| text.parse::<i64>().ok());
    UnreadableMessage {
        message_id: record.message_id.clone().unwrap_or_default(),
        queue,
        sent_at: Timestamp::from_micros(sent_ms.unwrap_or(0).saturating_mul(1_000)),
        text: record.body.clone().unwrap_or_default(),
        problem,
    }
}

/// Leaves a message for another version of the program. In an ordinary queue, sends it as a new message, so that its
/// deliveries aren't counted. In a dead-letter queue, where deliveries don't count, hides it for a while.
async fn put_back(record: &SqsMessage, source: Source, queues: &Queues, body: &str) -> HandleResult {
    if source.dead {
        let receipt = record.receipt_handle.as_deref().unwrap_or_default();
        if let Err(error) = queues.hide_dead_letter(source.queue, receipt, OTHER_VERSION_DELAY).await {
            tracing::debug!(%error, "The message waits for its visibility timeout");
        }
        return HandleResult::Retry;
    }
    match queues.put_back(source.queue, body, OTHER_VERSION_DELAY).await {
        Ok(()) => HandleResult::Done,
        Err(error) => {
            tracing::warn!(%error, "It could not be put back and comes again: {error}");
            HandleResult::Retry
        }
    }
}

/// Shortens the time until the next delivery. If this fails, too, the message is delivered after its visibility
/// timeout.
async fn shorten_retry_delay(record: &SqsMessage, source: Source, queues: &Queues) {
    let receipt = record.receipt_handle.as_deref().unwrap_or_default();
    let deliveries = record.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    let deliveries = deliveries.unwrap_or(1);
    if let Err(error) = queues.retry_later(source.queue, source.dead, receipt, deliveries).await {
        let message_id = record.message_id.as_deref().unwrap_or_default();
        tracing::debug!(message_id, %error, "The message waits for its visibility timeout");
    }
}
