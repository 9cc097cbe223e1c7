//! Receiving from dead-letter queues by a scheduled function.
//!
//! Deployed, Lambda's event source mappings receive from the queues themselves, with five requests open at each queue at
//! all times. Dead letters are too rare to pay for that.

use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, MessageSystemAttributeName};

use crate::{BATCH_MAX, DeliveredMessage, QueueError, QueueName, Queues, error_text};

/// Wait for a message, in seconds. A request that doesn't wait looks at some of SQS's hosts only, and can miss messages.
const WAIT_S: i32 = 1;

impl Queues {
    /// Receives up to [`BATCH_MAX`] messages from a queue's dead-letter queue. Returns none if it is empty.
    ///
    /// # Errors
    /// Fails if SQS refuses the request or can't be reached.
    pub async fn receive_dead_letters(&self, name: QueueName) -> Result<Vec<DeliveredMessage>, QueueError> {
        let receive = self.client.receive_message().queue_url(self.dead_letter_url(name)?);
        let received = receive
            .max_number_of_messages(BATCH_MAX as i32)
            .wait_time_seconds(WAIT_S)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send()
            .await;
        let received = received.map_err(|error| QueueError::Service {
            verb: "receive dead letters of",
            queue: name.as_str(),
            problem: error_text(error),
        })?;
        Ok(received.messages.unwrap_or_default())
    }

    /// Deletes at most [`BATCH_MAX`] received messages from a queue's dead-letter queue, by their receipts.
    ///
    /// # Errors
    /// Fails if SQS doesn't delete all of them. They are then delivered again.
    pub async fn delete_dead_letters(&self, name: QueueName, receipts: &[String]) -> Result<(), QueueError> {
        if receipts.is_empty() {
            return Ok(());
        }
        let service = |problem: String| QueueError::Service {
            verb: "delete dead letters of",
            queue: name.as_str(),
            problem,
        };
        let mut entries = Vec::with_capacity(receipts.len());
        for (index, receipt) in receipts.iter().enumerate() {
            let entry =
                DeleteMessageBatchRequestEntry::builder().id(index.to_string()).receipt_handle(receipt);
            entries.push(entry.build().map_err(|error| service(error.to_string()))?);
        }
        let delete = self.client.delete_message_batch().queue_url(self.dead_letter_url(name)?);
        let deleted =
            delete.set_entries(Some(entries)).send().await.map_err(|error| service(error_text(error)))?;
        match deleted.failed().first() {
            None => Ok(()),
            Some(failed) => {
                Err(service(format!("{}: {}", failed.code(), failed.message().unwrap_or_default())))
            }
        }
    }
}
