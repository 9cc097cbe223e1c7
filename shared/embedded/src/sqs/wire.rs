//! The JSON protocol of SQS: parsing of requests.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::attributes::{DELAY_SECONDS_MAX, MESSAGE_BYTES_MAX, VISIBILITY_SECONDS_MAX, WAIT_SECONDS_MAX};
use super::command::{Command, OutgoingMessage, SqsResult};
use super::content::{self, MessageAttributes};
use super::error::SqsError;
use super::receipt::Receipt;
use super::store::Content;

const BATCH_ENTRIES_MAX: usize = 10;
const NAME_CHARS_MAX: usize = 80;
const LISTED_MAX: i64 = 1000;

/// A command and the form of its response.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) command: Command,
    pub(super) shape: ResponseShape,
}

/// Form of a response.
#[derive(Debug)]
pub(super) enum ResponseShape {
    /// No members.
    Nothing,
    /// A single result without members.
    Single,
    /// The URL of the named queue.
    Url(String),
    Urls {
        with_token: bool,
    },
    Attributes(Vec<String>),
    Sent(Checksums),
    SentBatch(Vec<(String, Checksums)>),
    Received {
        system: Vec<String>,
        message: Vec<String>,
    },
    Batch(Vec<String>),
}

/// MD5 sums in hex.
#[derive(Debug, Default)]
pub(super) struct Checksums {
    pub(super) body: String,
    pub(super) attributes: Option<String>,
    pub(super) system_attributes: Option<String>,
}

/// Parses a request. Calls `copies` once for each message to send.
pub(super) fn parse(action: &str, body: &[u8], mut copies: impl FnMut(&str) -> u8) -> SqsResult<Call> {
    match action {
        "CreateQueue" => create_queue(body),
        "DeleteQueue" => on_queue(body, |queue| (Command::DeleteQueue { queue }, ResponseShape::Nothing)),
        "PurgeQueue" => on_queue(body, |queue| (Command::Purge { queue }, ResponseShape::Nothing)),
        "GetQueueUrl" => {
            let request: ByName = read(body)?;
            let queue = require(request.queue_name, "QueueName")?;
            Ok(Call {
                command: Command::FindQueue { queue: queue.clone() },
                shape: ResponseShape::Url(queue),
            })
        }
        "ListQueues" => list_queues(body),
        "GetQueueAttributes" => {
            let request: Attributes = read(body)?;
            let command = Command::Attributes { queue: queue_name(request.queue_url)? };
            Ok(Call { command, shape: ResponseShape::Attributes(request.attribute_names) })
        }
        "SetQueueAttributes" => {
            let request: Attributes = read(body)?;
            let queue = queue_name(request.queue_url)?;
            let attributes = request.attributes.ok_or_else(|| SqsError::missing_parameter("Attributes"))?;
            Ok(Call { command: Command::SetAttributes { queue, attributes }, shape: ResponseShape::Nothing })
        }
        "SendMessage" => send(body, &mut copies),
        "SendMessageBatch" => send_batch(body, &mut copies),
        "ReceiveMessage" => receive(body),
        "DeleteMessage" => {
            let request: ByReceipt = read(body)?;
            let queue = queue_name(request.queue_url)?;
            let receipts = vec![Ok(receipt(request.receipt_handle)?)];
            Ok(Call { command: Command::Delete { queue, receipts }, shape: ResponseShape::Single })
        }
        "DeleteMessageBatch" => {
            let request: Batch<ByReceipt> = read(body)?;
            let queue = queue_name(request.queue_url)?;
            let ids = check_batch(&request.entries, |entry| &entry.id, "DeleteMessageBatchRequestEntry")?;
            let receipts = request.entries.into_iter().map(|entry| receipt(entry.receipt_handle)).collect();
            Ok(Call { command: Command::Delete { queue, receipts }, shape: ResponseShape::Batch(ids) })
        }
        "ChangeMessageVisibility" => {
            let request: ByReceipt = read(body)?;
            let queue = queue_name(request.queue_url.clone())?;
            let changes = vec![Ok(visibility_change(request)?)];
            Ok(Call { command: Command::ChangeVisibility { queue, changes }, shape: ResponseShape::Single })
        }
        "ChangeMessageVisibilityBatch" => {
            let request: Batch<ByReceipt> = read(body)?;
            let queue = queue_name(request.queue_url)?;
            let ids =
                check_batch(&request.entries, |entry| &entry.id, "ChangeMessageVisibilityBatchRequestEntry")?;
            let changes = request.entries.into_iter().map(visibility_change).collect();
            Ok(Call {
                command: Command::ChangeVisibility { queue, changes },
                shape: ResponseShape::Batch(ids),
            })
        }
        other => Err(SqsError::invalid_action(other)),
    }
}

/// Returns the queue of a request, for observers, without validation.
pub(super) fn resource(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct About {
        queue_url: Option<String>,
        queue_name: Option<String>,
    }
    let about: About = serde_json::from_slice(body).ok()?;
    about.queue_name.or_else(|| about.queue_url?.rsplit('/').next().map(str::to_owned))
}

/// Returns the URL of a queue: endpoint, account and name.
pub(super) fn queue_url(name: &str) -> String {
    format!("{}/{}/{name}", crate::account::ENDPOINT, crate::ACCOUNT_ID)
}

fn queue_name(url: Option<String>) -> SqsResult<String> {
    let url = require(url, "QueueUrl")?;
    let mut parts = url.rsplitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(crate::ACCOUNT_ID), Some(_)) if valid_name(name) => Ok(name.to_owned()),
        _ => Err(SqsError::invalid_address(&url)),
    }
}

fn valid_name(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ByName {
    queue_name: Option<String>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes {
    queue_url: Option<String>,
    #[serde(default)]
    attribute_names: Vec<String>,
    attributes: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendRequest {
    queue_url: Option<String>,
    #[serde(default)]
    id: Option<String>,
    message_body: Option<String>,
    delay_seconds: Option<i64>,
    #[serde(default)]
    message_attributes: MessageAttributes,
    #[serde(default)]
    message_system_attributes: MessageAttributes,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", bound(deserialize = "T: Deserialize<'de>"))]
struct Batch<T> {
    queue_url: Option<String>,
    #[serde(default = "Vec::new")]
    entries: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ByReceipt {
    queue_url: Option<String>,
    #[serde(default)]
    id: Option<String>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiveRequest {
    queue_url: Option<String>,
    max_number_of_messages: Option<i64>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
    #[serde(default)]
    attribute_names: Vec<String>,
    #[serde(default)]
    message_system_attribute_names: Vec<String>,
    #[serde(default)]
    message_attribute_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListRequest {
    #[serde(default)]
    queue_name_prefix: String,
    max_results: Option<i64>,
    next_token: Option<String>,
}

fn read<T: DeserializeOwned>(body: &[u8]) -> SqsResult<T> {
    serde_json::from_slice(body).map_err(|error| SqsError::malformed(error.to_string()))
}

fn require(value: Option<String>, name: &str) -> SqsResult<String> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| SqsError::missing_parameter(name))
}

fn in_range(value: Option<i64>, name: &str, min: i64, max: i64, reason: &str) -> SqsResult<Option<i64>> {
    match value {
        Some(value) if !(min..=max).contains(&value) => Err(SqsError::out_of_range(value, name, reason)),
        value => Ok(value),
    }
}

fn on_queue(body: &[u8], command: impl FnOnce(String) -> (Command, ResponseShape)) -> SqsResult<Call> {
    let request: Attributes = read(body)?;
    let (command, shape) = command(queue_name(request.queue_url)?);
    Ok(Call { command, shape })
}

fn create_queue(body: &[u8]) -> SqsResult<Call> {
    let request: ByName = read(body)?;
    let name = require(request.queue_name, "QueueName")?;
    if name.ends_with(".fifo") {
        return Err(SqsError::unsupported("FIFO queues are not served by the embedded SQS."));
    }
    if !valid_name(&name) {
        return Err(SqsError::invalid_parameter(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        ));
    }
    if !request.tags.is_empty() {
        return Err(SqsError::unsupported("Queue tags are not served by the embedded SQS."));
    }
    let command = Command::CreateQueue { name: name.clone(), attributes: request.attributes };
    Ok(Call { command, shape: ResponseShape::Url(name) })
}

fn list_queues(body: &[u8]) -> SqsResult<Call> {
    let request: ListRequest = read(body)?;
    let reason = "MaxResults must be between 1 and 1000";
    let queues_max = in_range(request.max_results, "MaxResults", 1, LISTED_MAX, reason)?;
    let command = Command::ListQueues {
        prefix: request.queue_name_prefix,
        after: request.next_token,
        queues_max: usize::try_from(queues_max.unwrap_or(LISTED_MAX)).unwrap_or(usize::MAX),
    };
    Ok(Call { command, shape: ResponseShape::Urls { with_token: queues_max.is_some() } })
}

fn parse_outgoing(request: SendRequest, copies: u8) -> SqsResult<(OutgoingMessage, Checksums)> {
    let body = request.message_body.unwrap_or_default();
    let bytes = content::check(&body, &request.message_attributes)?;
    let reason = "DelaySeconds must be >= 0 and <= 900";
    let delay_seconds = in_range(request.delay_seconds, "DelaySeconds", 0, DELAY_SECONDS_MAX, reason)?;
    if request.message_deduplication_id.is_some() {
        return Err(SqsError::invalid_parameter(
            "The request include parameter MessageDeduplicationId which is not valid for this queue type.",
        ));
    }
    if let Some(group) = &request.message_group_id
        && !((1..=128).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_graphic()))
    {
        return Err(SqsError::invalid_parameter(
            "MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        ));
    }
    if let Some(unknown) = request.message_system_attributes.keys().find(|name| *name != "AWSTraceHeader") {
        return Err(SqsError::invalid_parameter(format!(
            "Message system attribute name '{unknown}' is invalid."
        )));
    }
    let checksums = Checksums {
        body: content::body_md5(&body),
        attributes: content::attributes_md5(&request.message_attributes),
        system_attributes: content::attributes_md5(&request.message_system_attributes),
    };
    let attributes = match request.message_attributes.is_empty() {
        true => None,
        false => serde_json::to_string(&request.message_attributes).ok(),
    };
    let trace =
        request.message_system_attributes.into_iter().next().and_then(|(_, value)| value.string_value);
    let content = Content { body, attributes, trace, source_arn: None };
    let group = request.message_group_id;
    Ok((OutgoingMessage { content, group, delay_seconds, bytes, copies }, checksums))
}

fn send(body: &[u8], copies: &mut impl FnMut(&str) -> u8) -> SqsResult<Call> {
    let mut request: SendRequest = read(body)?;
    let queue = queue_name(request.queue_url.take())?;
    let copies = copies(&queue);
    let (message, checksums) = parse_outgoing(request, copies)?;
    Ok(Call {
        command: Command::Send { queue, messages: vec![Ok(message)] },
        shape: ResponseShape::Sent(checksums),
    })
}

fn send_batch(body: &[u8], copies: &mut impl FnMut(&str) -> u8) -> SqsResult<Call> {
    let request: Batch<SendRequest> = read(body)?;
    let queue = queue_name(request.queue_url)?;
    let ids = check_batch(&request.entries, |entry| &entry.id, "SendMessageBatchRequestEntry")?;
    let mut bytes = 0;
    let mut messages = Vec::with_capacity(ids.len());
    let mut sums = Vec::with_capacity(ids.len());
    for (id, entry) in ids.into_iter().zip(request.entries) {
        let copies = copies(&queue);
        let (message, checksums) = match parse_outgoing(entry, copies) {
            Ok((message, checksums)) => (Ok(message), checksums),
            Err(error) => (Err(error), Checksums::default()),
        };
        bytes += message.as_ref().map_or(0, |message| message.bytes);
        messages.push(message);
        sums.push((id, checksums));
    }
    if bytes > MESSAGE_BYTES_MAX {
        return Err(SqsError::batch_too_long(bytes, MESSAGE_BYTES_MAX));
    }
    Ok(Call { command: Command::Send { queue, messages }, shape: ResponseShape::SentBatch(sums) })
}

fn receive(body: &[u8]) -> SqsResult<Call> {
    let request: ReceiveRequest = read(body)?;
    let queue = queue_name(request.queue_url)?;
    let reason = "Must be between 1 and 10, if provided";
    let messages_max = in_range(request.max_number_of_messages, "MaxNumberOfMessages", 1, 10, reason)?;
    let reason = "Must be >= 0 and <= 20, if provided";
    let wait_seconds = in_range(request.wait_time_seconds, "WaitTimeSeconds", 0, WAIT_SECONDS_MAX, reason)?;
    let visibility_seconds = visibility(request.visibility_timeout)?;
    let mut system = request.attribute_names;
    system.extend(request.message_system_attribute_names);
    Ok(Call {
        command: Command::Receive {
            queue,
            messages_max: usize::try_from(messages_max.unwrap_or(1)).unwrap_or(1),
            visibility_seconds,
            wait_seconds,
        },
        shape: ResponseShape::Received { system, message: request.message_attribute_names },
    })
}

fn visibility(seconds: Option<i64>) -> SqsResult<Option<i64>> {
    let reason = "Must be between 0 and 43200";
    in_range(seconds, "VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX, reason)
}

fn receipt(handle: Option<String>) -> SqsResult<Receipt> {
    Receipt::parse(&require(handle, "ReceiptHandle")?)
}

fn visibility_change(request: ByReceipt) -> SqsResult<(Receipt, i64)> {
    let receipt = receipt(request.receipt_handle)?;
    let seconds = visibility(request.visibility_timeout)?
        .ok_or_else(|| SqsError::missing_parameter("VisibilityTimeout"))?;
    Ok((receipt, seconds))
}

/// Checks the number of entries and their ids, and returns the ids.
fn check_batch<T>(
    entries: &[T],
    id: impl Fn(&T) -> &Option<String>,
    entry_name: &str,
) -> SqsResult<Vec<String>> {
    if entries.is_empty() {
        return Err(SqsError::empty_batch(entry_name));
    }
    if entries.len() > BATCH_ENTRIES_MAX {
        return Err(SqsError::batch_too_many(entries.len()));
    }
    let mut seen = BTreeSet::new();
    let mut ids = Vec::with_capacity(entries.len());
    for entry in entries {
        let id = id(entry).as_deref().filter(|id| valid_name(id)).ok_or_else(SqsError::batch_id_invalid)?;
        if !seen.insert(id) {
            return Err(SqsError::batch_ids_repeat(id));
        }
        ids.push(id.to_owned());
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(action: &str, body: &str) -> &'static str {
        parse(action, body.as_bytes(), |_| 1).unwrap_err().code
    }

    #[test]
    fn queue_urls_round_trip() {
        assert_eq!(queue_name(Some(queue_url("items"))).unwrap(), "items");
        for bad in ["", "items", "http://x/1/items", "http://x/000000000000/", "http://x/000000000000/a.b"] {
            queue_name(Some(bad.to_owned())).unwrap_err();
        }
        assert_eq!(resource(br#"{"QueueUrl":"http://x/000000000000/items"}"#).as_deref(), Some("items"));
        assert_eq!(resource(br#"{"QueueName":"items"}"#).as_deref(), Some("items"));
    }

    #[test]
    fn refusals() {
        let url = queue_url("q");
        let with = |rest: &str| format!(r#"{{"QueueUrl":"{url}"{rest}}}"#);
        assert_eq!(code("Nonsense", "{}"), "InvalidAction");
        assert_eq!(code("SendMessage", "{"), "MalformedInput");
        assert_eq!(code("SendMessage", "{}"), "MissingParameter");
        assert_eq!(code("SendMessage", &with("")), "MissingParameter");
        assert_eq!(
            code("SendMessage", &with(r#","MessageBody":"a","DelaySeconds":901"#)),
            "InvalidParameterValue"
        );
        assert_eq!(
            code("SendMessage", &with(r#","MessageBody":"a","MessageGroupId":"a b""#)),
            "InvalidParameterValue"
        );
        assert_eq!(
            code("SendMessage", &with(r#","MessageBody":"a","MessageDeduplicationId":"a""#)),
            "InvalidParameterValue"
        );
        assert_eq!(code("ReceiveMessage", &with(r#","MaxNumberOfMessages":11"#)), "InvalidParameterValue");
        assert_eq!(code("ReceiveMessage", &with(r#","MaxNumberOfMessages":0"#)), "InvalidParameterValue");
        assert_eq!(code("ReceiveMessage", &with(r#","WaitTimeSeconds":21"#)), "InvalidParameterValue");
        assert_eq!(code("ReceiveMessage", &with(r#","VisibilityTimeout":-1"#)), "InvalidParameterValue");
        assert_eq!(code("DeleteMessage", &with(r#","ReceiptHandle":"x""#)), "ReceiptHandleIsInvalid");
        assert_eq!(
            code("DeleteMessageBatch", &with(r#","Entries":[]"#)),
            "AWS.SimpleQueueService.EmptyBatchRequest"
        );
        assert_eq!(
            code("CreateQueue", r#"{"QueueName":"a.fifo"}"#),
            "AWS.SimpleQueueService.UnsupportedOperation"
        );
        assert_eq!(code("CreateQueue", r#"{"QueueName":"a b"}"#), "InvalidParameterValue");
    }

    #[test]
    fn a_batch_is_limited_as_a_whole() {
        let half = "x".repeat(MESSAGE_BYTES_MAX / 2 + 1);
        let body = format!(
            r#"{{"QueueUrl":"{}","Entries":[{{"Id":"a","MessageBody":"{half}"}},{{"Id":"b","MessageBody":"{half}"}}]}}"#,
            queue_url("q")
        );
        assert_eq!(code("SendMessageBatch", &body), "AWS.SimpleQueueService.BatchRequestTooLong");
    }
}
