//! Client of the mappings' queues, which calls SQS without the SDK if it is in this process.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lambda_events::event::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::connector::Services;
use crate::{ACCOUNT_ID, REGION};

/// Maximum wait for messages in seconds, SQS's own limit.
const LONG_POLL_S: i32 = 20;

/// Client of queues. Every message is received and deleted through it.
#[derive(Debug, Clone)]
pub struct QueueClient {
    pub(super) sdk: Client,
    services: Option<Arc<Services>>,
}

impl QueueClient {
    /// Creates a client that makes all calls with the SDK.
    pub fn new(sdk: Client) -> Self {
        Self { sdk, services: None }
    }

    /// Creates a client that needs no HTTP for the calls that every message makes. Those that fail are repeated by the SDK.
    pub(crate) fn direct(sdk: Client, services: Arc<Services>) -> Self {
        Self { sdk, services: Some(services) }
    }

    /// Receives up to `count` messages as a function gets them. Waits for the first.
    ///
    /// # Errors
    /// Returns the problem in one sentence.
    pub(super) async fn receive(&self, queue_url: &str, count: i32) -> Result<Vec<SqsMessage>, String> {
        let request = json!({
            "QueueUrl": queue_url,
            "MaxNumberOfMessages": count,
            "WaitTimeSeconds": LONG_POLL_S,
            "MessageSystemAttributeNames": ["All"],
        });
        if let Some(received) = self.call::<Received>("ReceiveMessage", &request).await {
            return Ok(received.messages.into_iter().map(|message| message.into_record(queue_url)).collect());
        }
        let receive = self
            .sdk
            .receive_message()
            .queue_url(queue_url)
            .max_number_of_messages(count)
            .wait_time_seconds(LONG_POLL_S)
            .message_system_attribute_names(MessageSystemAttributeName::All);
        let received = receive.send().await.map_err(|error| problem(&error))?;
        let messages = received.messages.unwrap_or_default().into_iter();
        Ok(messages.map(|message| ReceivedMessage::from(message).into_record(queue_url)).collect())
    }

    /// Deletes up to ten messages. Returns the number of those that couldn't be deleted.
    ///
    /// # Errors
    /// Returns the problem in one sentence if it is that of all messages.
    pub(super) async fn delete(&self, queue_url: &str, receipts: Vec<String>) -> Result<usize, String> {
        let entries = receipts.iter().enumerate();
        let entries = entries.map(|(id, receipt)| json!({ "Id": id.to_string(), "ReceiptHandle": receipt }));
        let request = json!({ "QueueUrl": queue_url, "Entries": entries.collect::<Vec<_>>() });
        let deleted = self.call::<Deleted>("DeleteMessageBatch", &request).await;
        if deleted.is_some_and(|deleted| deleted.failed.is_empty()) {
            return Ok(0);
        }
        let entries = receipts.into_iter().enumerate().map(|(id, receipt)| {
            DeleteMessageBatchRequestEntry::builder().id(id.to_string()).receipt_handle(receipt).build()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let delete = self.sdk.delete_message_batch().queue_url(queue_url).set_entries(Some(entries));
        delete.send().await.map(|deleted| deleted.failed().len()).map_err(|error| problem(&error))
    }

    /// Returns the response of the service in this process; `None` if it is in another, or the call failed.
    async fn call<T: for<'de> Deserialize<'de>>(&self, action: &str, request: &Value) -> Option<T> {
        let body = serde_json::to_vec(request).ok()?;
        let response = self.services.as_ref()?.sqs_json(action, body.into(), None).await.ok()?;
        (response.status == 200).then(|| serde_json::from_slice(&response.body).ok())?
    }
}

/// Returns the service's message of an error, or its text.
pub(super) fn problem<E: ProvideErrorMetadata + std::fmt::Display>(error: &E) -> String {
    error.message().map_or_else(|| error.to_string(), str::to_owned)
}

#[derive(Deserialize)]
struct Received {
    #[serde(rename = "Messages", default)]
    messages: Vec<ReceivedMessage>,
}

#[derive(Deserialize)]
struct Deleted {
    #[serde(rename = "Failed", default)]
    failed: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceivedMessage {
    message_id: Option<String>,
    receipt_handle: Option<String>,
    body: Option<String>,
    #[serde(rename = "MD5OfBody")]
    md5_of_body: Option<String>,
    #[serde(default)]
    attributes: HashMap<String, String>,
}

impl From<Message> for ReceivedMessage {
    fn from(message: Message) -> Self {
        let attributes = message.attributes.unwrap_or_default().into_iter();
        Self {
            message_id: message.message_id,
            receipt_handle: message.receipt_handle,
            body: message.body,
            md5_of_body: message.md5_of_body,
            attributes: attributes.map(|(name, value)| (name.as_str().to_owned(), value)).collect(),
        }
    }
}

impl ReceivedMessage {
    fn into_record(self, queue_url: &str) -> SqsMessage {
        let mut record = SqsMessage::default();
        record.message_id = self.message_id;
        record.receipt_handle = self.receipt_handle;
        record.body = self.body;
        record.md5_of_body = self.md5_of_body;
        record.attributes = self.attributes;
        record.event_source = Some("aws:sqs".to_owned());
        let queue_name = queue_url.rsplit('/').next().unwrap_or_default();
        record.event_source_arn = Some(format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{queue_name}"));
        record.aws_region = Some(REGION.to_owned());
        record
    }
}
