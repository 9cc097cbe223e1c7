//! The JSON protocol of SQS: formatting of responses.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::command::{ReceivedMessage, Reply, SqsResult};
use super::content::{self, MessageAttributes};
use super::error::SqsError;
use super::wire::{Checksums, ResponseShape, queue_url};
use crate::service_response::ServiceResponse;

/// Formats the response to a command.
pub(super) fn format_response(shape: ResponseShape, reply: SqsResult<Reply>) -> ServiceResponse {
    match reply.and_then(|reply| format_body(shape, reply)) {
        Ok(body) => ServiceResponse::json_1_0(200, body),
        Err(error) => error.to_answer(),
    }
}

fn format_body(shape: ResponseShape, reply: Reply) -> SqsResult<Vec<u8>> {
    let value = match (shape, reply) {
        (ResponseShape::Nothing, Reply::Done) => json!({}),
        (ResponseShape::Single, Reply::Each(results)) => {
            results.into_iter().collect::<SqsResult<Vec<()>>>()?;
            json!({})
        }
        (ResponseShape::Url(name), Reply::Done) => json!({ "QueueUrl": queue_url(&name) }),
        (ResponseShape::Urls { with_token }, Reply::Queues { names, more }) => {
            let urls: Vec<String> = names.iter().map(|name| queue_url(name)).collect();
            // As on AWS, only callers that page get a token.
            match names.last().filter(|_| more && with_token) {
                Some(last) => json!({ "QueueUrls": urls, "NextToken": last }),
                None => json!({ "QueueUrls": urls }),
            }
        }
        (ResponseShape::Attributes(requested), Reply::Attributes(all)) => format_attributes(&requested, all)?,
        (ResponseShape::Sent(checksums), Reply::Sent(ids)) => {
            let mut ids = ids.into_iter();
            format_sent(ids.next().ok_or_else(unexpected_reply)??, &checksums)
        }
        (ResponseShape::SentBatch(entries), Reply::Sent(ids)) => format_batch(
            entries
                .into_iter()
                .zip(ids)
                .map(|((entry_id, checksums), id)| (entry_id, id.map(|id| format_sent(id, &checksums)))),
        ),
        (ResponseShape::Batch(ids), Reply::Each(results)) => {
            format_batch(ids.into_iter().zip(results).map(|(id, result)| (id, result.map(|()| json!({})))))
        }
        (ResponseShape::Received { system, message }, Reply::Received(delivery)) => {
            let messages: Vec<WireMessage> = delivery
                .take()
                .into_iter()
                .map(|received| wire_message(received, &system, &message))
                .collect();
            #[derive(Serialize)]
            #[serde(rename_all = "PascalCase")]
            struct Messages {
                #[serde(skip_serializing_if = "Vec::is_empty")]
                messages: Vec<WireMessage>,
            }
            return serde_json::to_vec(&Messages { messages }).map_err(|_| unexpected_reply());
        }
        _ => return Err(unexpected_reply()),
    };
    serde_json::to_vec(&value).map_err(|_| unexpected_reply())
}

fn unexpected_reply() -> SqsError {
    SqsError::internal("The answer could not be written.")
}

fn format_attributes(requested: &[String], mut all: BTreeMap<String, String>) -> SqsResult<Value> {
    if requested.iter().any(|name| name == "All") {
        return Ok(json!({ "Attributes": all }));
    }
    // As on AWS, names that exist but have no value are omitted.
    const WITHOUT_VALUE: [&str; 8] = [
        "ContentBasedDeduplication",
        "DeduplicationScope",
        "FifoQueue",
        "FifoThroughputLimit",
        "KmsDataKeyReusePeriodSeconds",
        "KmsMasterKeyId",
        "Policy",
        "RedriveAllowPolicy",
    ];
    let mut chosen = BTreeMap::new();
    for name in requested {
        match all.remove(name) {
            Some(value) => {
                chosen.insert(name, value);
            }
            None if chosen.contains_key(name)
                || matches!(name.as_str(), "RedrivePolicy" | "SqsManagedSseEnabled")
                || WITHOUT_VALUE.contains(&name.as_str()) => {}
            None => return Err(SqsError::invalid_attribute_name(name)),
        }
    }
    Ok(if chosen.is_empty() { json!({}) } else { json!({ "Attributes": chosen }) })
}

fn format_sent(id: Uuid, checksums: &Checksums) -> Value {
    let mut value = json!({ "MessageId": id, "MD5OfMessageBody": checksums.body });
    if let Some(md5) = &checksums.attributes {
        value["MD5OfMessageAttributes"] = json!(md5);
    }
    if let Some(md5) = &checksums.system_attributes {
        value["MD5OfMessageSystemAttributes"] = json!(md5);
    }
    value
}

fn format_batch(results: impl Iterator<Item = (String, SqsResult<Value>)>) -> Value {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (id, result) in results {
        match result {
            Ok(mut entry) => {
                entry["Id"] = json!(id);
                successful.push(entry);
            }
            Err(error) => failed.push(json!({
                "Id": id,
                "SenderFault": error.sender_fault(),
                "Code": error.code,
                "Message": error.message,
            })),
        }
    }
    json!({ "Successful": successful, "Failed": failed })
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WireMessage {
    message_id: Uuid,
    receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    md5_of_body: String,
    body: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'static str, String>,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    md5_of_message_attributes: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    message_attributes: MessageAttributes,
}

fn wire_message(received: ReceivedMessage, system: &[String], message: &[String]) -> WireMessage {
    let stored = received.content.attributes.as_deref();
    let message_attributes: MessageAttributes =
        stored.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let message_attributes = content::select(message_attributes, message);
    let all = system.iter().any(|name| name == "All");
    let attributes = [
        ("SenderId", Some(crate::ACCOUNT_ID.to_owned())),
        ("SentTimestamp", Some(received.sent_ms.to_string())),
        ("ApproximateReceiveCount", Some(received.receipt.receives.to_string())),
        ("ApproximateFirstReceiveTimestamp", Some(received.first_received_ms.to_string())),
        ("MessageGroupId", received.group),
        ("AWSTraceHeader", received.content.trace),
        ("DeadLetterQueueSourceArn", received.content.source_arn),
    ];
    let attributes = attributes
        .into_iter()
        .filter(|(name, _)| all || system.iter().any(|requested| requested == name))
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    WireMessage {
        message_id: received.id,
        receipt_handle: received.receipt.to_handle(),
        md5_of_body: content::body_md5(&received.content.body),
        body: received.content.body,
        attributes,
        md5_of_message_attributes: content::attributes_md5(&message_attributes),
        message_attributes,
    }
}
