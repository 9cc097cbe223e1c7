//! Empties the dead-letter queues. On AWS, a schedule invokes it.

use std::collections::BTreeSet;
use std::time::Duration;

use bench_lambda::{Deadline, SqsEvent, SqsMessage};
use bench_queue::{DeliveredMessage, QueueError, QueueName};
use futures_util::future::join_all;
use serde_json::Value;

use crate::DeadLetters;

/// Time that a batch may take. With less left, the next invocation continues.
const RESERVE: Duration = Duration::from_secs(30);
/// The task that the schedule's input names.
const TASK: &str = "drain";

/// Numbers of deliveries of dead letters. A message that is delivered twice in one invocation counts twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Deliveries after which the message was no longer needed and was deleted.
    pub handled: usize,
    /// Deliveries that failed, or whose message is of another version of the program. The message is received again later.
    pub left: usize,
}

impl DeadLetters {
    /// Empties the dead-letter queues, if the input is `{"task": "drain"}`.
    ///
    /// # Errors
    /// Fails for any other input, and if a queue can't be read. The other queues are emptied nevertheless, and the next
    /// invocation continues.
    pub async fn drain(&self, input: &Value, deadline: Deadline) -> anyhow::Result<Drained> {
        let task = input.get("task").and_then(Value::as_str);
        anyhow::ensure!(task == Some(TASK), "the input is not `{{\"task\": \"{TASK}\"}}`");
        let mut all = Drained::default();
        let mut failed = None;
        for queue in join_all(QueueName::ALL.map(|queue| self.drain_queue(queue, deadline))).await {
            match queue {
                Ok(drained) => {
                    all.handled += drained.handled;
                    all.left += drained.left;
                }
                Err(error) => {
                    tracing::error!(%error, "A dead-letter queue was not emptied: {error}");
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(all), |error| Err(error.into()))
    }

    async fn drain_queue(&self, queue: QueueName, deadline: Deadline) -> Result<Drained, QueueError> {
        let url = self.queues.dead_letter_url(queue)?;
        let mut drained = Drained::default();
        while !deadline.remaining(RESERVE).is_zero() {
            let messages = self.queues.receive_dead_letters(queue).await?;
            if messages.is_empty() {
                break;
            }
            let mut receipts: Vec<(String, String)> = Vec::with_capacity(messages.len());
            let mut event = SqsEvent::default();
            for message in messages {
                let (id, receipt) = (message.message_id.clone(), message.receipt_handle.clone());
                receipts.push((id.unwrap_or_default(), receipt.unwrap_or_default()));
                event.records.push(record(message, &url));
            }
            let response = self.handle(event, deadline).await;
            let left: BTreeSet<&str> =
                response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect();
            receipts.retain(|(id, _)| !left.contains(id.as_str()));
            let receipts: Vec<String> = receipts.into_iter().map(|(_, receipt)| receipt).collect();
            self.queues.delete_dead_letters(queue, &receipts).await?;
            drained.handled += receipts.len();
            drained.left += left.len();
        }
        Ok(drained)
    }
}

/// Converts a message to the form of Lambda's event source mappings.
fn record(message: DeliveredMessage, url: &str) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id = message.message_id;
    record.receipt_handle = message.receipt_handle;
    record.body = message.body;
    let attributes = message.attributes.unwrap_or_default().into_iter();
    record.attributes = attributes.map(|(name, value)| (name.as_str().to_owned(), value)).collect();
    // Its last part identifies the queue.
    let name = url.rsplit('/').next().unwrap_or_default();
    record.event_source_arn = Some(format!("arn:aws:sqs:::{name}"));
    record
}
