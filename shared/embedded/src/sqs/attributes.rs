//! Queue attributes: accepted values, limits and storage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::SqsError;

/// Maximum size of a message and of a batch, in bytes, including attributes.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 20;
pub(super) const DELAY_SECONDS_MAX: i64 = 900;
pub(super) const VISIBILITY_SECONDS_MAX: i64 = 43_200;
pub(super) const WAIT_SECONDS_MAX: i64 = 20;

/// Attributes that matter on AWS only: they are stored and reported, without effect here.
const STORED_ONLY: [&str; 5] = [
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "Policy",
    "RedriveAllowPolicy",
    "SqsManagedSseEnabled",
];

/// Redrive policy: the dead-letter queue for messages that were received too often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RedrivePolicy {
    pub(super) target_arn: String,
    pub(super) receives_max: u32,
}

/// The settable attributes of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attributes {
    pub(super) delay_seconds: i64,
    pub(super) message_bytes_max: i64,
    pub(super) retention_seconds: i64,
    pub(super) wait_seconds: i64,
    pub(super) visibility_seconds: i64,
    pub(super) redrive: Option<RedrivePolicy>,
    pub(super) kept: BTreeMap<String, String>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            delay_seconds: 0,
            message_bytes_max: 1 << 20,
            retention_seconds: 345_600,
            wait_seconds: 0,
            visibility_seconds: 30,
            redrive: None,
            kept: BTreeMap::new(),
        }
    }
}

impl Attributes {
    /// Changes the named attributes. After an error, `self` is in an unspecified state.
    pub(super) fn apply(&mut self, changes: &BTreeMap<String, String>) -> Result<(), SqsError> {
        for (name, value) in changes {
            match name.as_str() {
                "DelaySeconds" => self.delay_seconds = number(name, value, 0, DELAY_SECONDS_MAX)?,
                "MaximumMessageSize" => {
                    self.message_bytes_max = number(name, value, 1024, MESSAGE_BYTES_MAX as i64)?;
                }
                "MessageRetentionPeriod" => self.retention_seconds = number(name, value, 60, 1_209_600)?,
                "ReceiveMessageWaitTimeSeconds" => {
                    self.wait_seconds = number(name, value, 0, WAIT_SECONDS_MAX)?;
                }
                "VisibilityTimeout" => {
                    self.visibility_seconds = number(name, value, 0, VISIBILITY_SECONDS_MAX)?;
                }
                "RedrivePolicy" => self.redrive = RedrivePolicy::parse(value)?,
                "FifoQueue" => {
                    return Err(SqsError::unsupported("FIFO queues are not served by the embedded SQS."));
                }
                kept if STORED_ONLY.contains(&kept) => {
                    if value.is_empty() {
                        self.kept.remove(kept);
                    } else {
                        self.kept.insert(kept.to_owned(), value.clone());
                    }
                }
                _ => return Err(SqsError::invalid_attribute_name(name)),
            }
        }
        Ok(())
    }

    /// Returns all settable attributes in the form that AWS uses.
    pub(super) fn to_map(&self) -> BTreeMap<String, String> {
        let mut map = self.kept.clone();
        for (name, value) in [
            ("DelaySeconds", self.delay_seconds),
            ("MaximumMessageSize", self.message_bytes_max),
            ("MessageRetentionPeriod", self.retention_seconds),
            ("ReceiveMessageWaitTimeSeconds", self.wait_seconds),
            ("VisibilityTimeout", self.visibility_seconds),
        ] {
            map.insert(name.to_owned(), value.to_string());
        }
        if let Some(redrive) = &self.redrive {
            let policy = serde_json::json!({
                "deadLetterTargetArn": redrive.target_arn,
                "maxReceiveCount": redrive.receives_max,
            });
            map.insert("RedrivePolicy".to_owned(), policy.to_string());
        }
        map
    }

    /// Returns the first attribute in `requested` that has another value here.
    pub(super) fn first_difference(
        &self,
        requested: &BTreeMap<String, String>,
    ) -> Result<Option<String>, SqsError> {
        let mut changed = self.clone();
        changed.apply(requested)?;
        if changed == *self {
            return Ok(None);
        }
        let (mine, theirs) = (self.to_map(), changed.to_map());
        Ok(requested.keys().find(|name| mine.get(*name) != theirs.get(*name)).cloned())
    }
}

impl RedrivePolicy {
    /// Parses a policy. An empty text removes it.
    fn parse(text: &str) -> Result<Option<Self>, SqsError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Count {
            Number(u32),
            Text(String),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Policy {
            dead_letter_target_arn: String,
            max_receive_count: Count,
        }
        if text.is_empty() {
            return Ok(None);
        }
        let invalid = |reason: &str| {
            SqsError::invalid_parameter(format!(
                "Value {text} for parameter RedrivePolicy is invalid. Reason: {reason}."
            ))
        };
        let policy: Policy =
            serde_json::from_str(text).map_err(|_| invalid("Redrive policy is not a valid JSON map"))?;
        let receives_max = match policy.max_receive_count {
            Count::Number(number) => Some(number),
            Count::Text(text) => text.parse().ok(),
        };
        match receives_max {
            Some(receives_max @ 1..=1000) => {
                Ok(Some(Self { target_arn: policy.dead_letter_target_arn, receives_max }))
            }
            _ => Err(invalid("maxReceiveCount must be between 1 and 1000")),
        }
    }
}

fn number(name: &str, value: &str, min: i64, max: i64) -> Result<i64, SqsError> {
    value
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| SqsError::invalid_attribute_value(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn limits() {
        for (name, good, bad) in [
            ("DelaySeconds", "900", "901"),
            ("VisibilityTimeout", "0", "43201"),
            ("MessageRetentionPeriod", "60", "59"),
            ("ReceiveMessageWaitTimeSeconds", "20", "21"),
            ("MaximumMessageSize", "1048576", "1048577"),
        ] {
            Attributes::default().apply(&map(&[(name, good)])).unwrap();
            let error = Attributes::default().apply(&map(&[(name, bad)])).unwrap_err();
            assert_eq!(error.code, "InvalidAttributeValue", "{name}");
        }
        let error = Attributes::default().apply(&map(&[("Nonsense", "1")])).unwrap_err();
        assert_eq!(error.code, "InvalidAttributeName");
    }

    #[test]
    fn redrive_policies() {
        let mut attributes = Attributes::default();
        for count in ["3", "\"3\""] {
            let policy = format!(r#"{{"deadLetterTargetArn":"arn:x","maxReceiveCount":{count}}}"#);
            attributes.apply(&map(&[("RedrivePolicy", &policy)])).unwrap();
            assert_eq!(
                attributes.redrive,
                Some(RedrivePolicy { target_arn: "arn:x".to_owned(), receives_max: 3 })
            );
        }
        for bad in [r#"{"deadLetterTargetArn":"arn:x","maxReceiveCount":0}"#, r#"{"maxReceiveCount":3}"#, "3"]
        {
            attributes.clone().apply(&map(&[("RedrivePolicy", bad)])).unwrap_err();
        }
        attributes.apply(&map(&[("RedrivePolicy", "")])).unwrap();
        assert_eq!(attributes.redrive, None);
    }

    #[test]
    fn differences_are_named() {
        let mut attributes = Attributes::default();
        attributes.apply(&map(&[("VisibilityTimeout", "60")])).unwrap();
        assert_eq!(attributes.first_difference(&map(&[("VisibilityTimeout", "60")])).unwrap(), None);
        assert_eq!(attributes.first_difference(&map(&[])).unwrap(), None);
        let different = attributes.first_difference(&map(&[("VisibilityTimeout", "30")])).unwrap();
        assert_eq!(different.as_deref(), Some("VisibilityTimeout"));
    }
}
