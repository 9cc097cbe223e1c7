//! SNS: publishing to topics. Messages are logged and kept in memory; there are no subscribers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use crate::service_response::ServiceResponse;
use crate::{ACCOUNT_ID, REGION};

/// Maximum number of stored messages; the oldest are removed first.
const KEPT_MAX: usize = 1_000;
/// Maximum message size of SNS, in bytes.
const MESSAGE_BYTES_MAX: usize = 262_144;
/// Maximum subject length of SNS, in characters.
const SUBJECT_CHARS_MAX: usize = 100;

/// A published message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedMessage {
    /// ARN of the topic.
    pub topic: String,
    /// Subject, as for an email.
    pub subject: Option<String>,
    /// Text of the message.
    pub message: String,
}

#[derive(Debug, Default)]
pub(crate) struct Sns {
    published: Mutex<VecDeque<PublishedMessage>>,
}

fn form(body: &Bytes) -> BTreeMap<String, String> {
    form_urlencoded::parse(body).into_owned().collect()
}

/// Returns the action and the name of the topic.
pub(super) fn describe(body: &Bytes) -> (String, Option<String>) {
    let mut form = form(body);
    let topic = form.remove("TopicArn").and_then(|arn| arn.rsplit(':').next().map(str::to_owned));
    (form.remove("Action").unwrap_or_default(), topic)
}

impl Sns {
    pub(crate) fn published(&self) -> Vec<PublishedMessage> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn call(&self, body: &Bytes) -> ServiceResponse {
        let mut form = form(body);
        match form.get("Action").map(String::as_str) {
            Some("Publish") => self.publish(&mut form).unwrap_or_else(|error| error),
            other => {
                error("InvalidAction", &format!("The action {} is not embedded.", other.unwrap_or_default()))
            }
        }
    }

    fn publish(&self, form: &mut BTreeMap<String, String>) -> Result<ServiceResponse, ServiceResponse> {
        let invalid = |problem: &str| error("InvalidParameter", &format!("Invalid parameter: {problem}"));
        let topic = form.remove("TopicArn").ok_or_else(|| invalid("TopicArn or TargetArn"))?;
        let prefix = format!("arn:aws:sns:{REGION}:{ACCOUNT_ID}:");
        match topic.strip_prefix(&prefix) {
            Some(name) if !name.is_empty() && !name.contains(':') => {}
            Some(_) => return Err(invalid("TopicArn")),
            None => return Err(error("NotFound", "Topic does not exist")),
        }
        let message = form.remove("Message").filter(|text| !text.is_empty());
        let message = message.ok_or_else(|| invalid("Empty message"))?;
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(invalid("Message too long"));
        }
        let subject = form.remove("Subject");
        let plain = |text: &String| {
            (1..=SUBJECT_CHARS_MAX).contains(&text.chars().count())
                && text.chars().all(|c| (' '..='~').contains(&c))
        };
        if subject.as_ref().is_some_and(|text| !plain(text)) {
            return Err(invalid("Subject"));
        }
        tracing::info!(topic, "Published: {}", subject.as_deref().unwrap_or(&message));
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        if published.len() == KEPT_MAX {
            published.pop_front();
        }
        published.push_back(PublishedMessage { topic, subject, message });
        Ok(xml(
            200,
            &format!(
                "<PublishResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><PublishResult>\
                 <MessageId>{}</MessageId></PublishResult><ResponseMetadata><RequestId>{}</RequestId>\
                 </ResponseMetadata></PublishResponse>",
                Uuid::new_v4(),
                Uuid::new_v4()
            ),
        ))
    }
}

fn xml(status: u16, text: &str) -> ServiceResponse {
    ServiceResponse {
        status,
        content_type: "text/xml",
        query_error: None,
        body: Bytes::from(format!("<?xml version=\"1.0\"?>\n{text}")),
    }
}

/// Returns an error response of the query protocol.
pub(crate) fn error(code: &str, message: &str) -> ServiceResponse {
    let status = match code {
        "NotFound" => 404,
        "AuthorizationError" => 403,
        _ => 400,
    };
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = format!(
        "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>Sender</Type>\
         <Code>{code}</Code><Message>{message}</Message></Error><RequestId>{}</RequestId></ErrorResponse>",
        Uuid::new_v4()
    );
    xml(status, &text)
}
