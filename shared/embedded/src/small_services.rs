//! The required actions of KMS, SNS and Secrets Manager.
//!
//! | service | actions | content |
//! | --- | --- | --- |
//! | KMS | `Encrypt`, `Decrypt` | one key, [`KMS_KEY_ID`], that belongs to the data directory |
//! | SNS | `Publish` | every topic of the account; published messages are logged and kept for tests |
//! | Secrets Manager | `GetSecretValue` | the secrets in [`EmbeddedOptions::secrets`](crate::EmbeddedOptions::secrets) |

mod kms;
mod secrets;
pub(crate) mod sns;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;

pub use kms::KMS_KEY_ID;
pub use sns::PublishedMessage;

use crate::calls::Service;
use crate::service_response::ServiceResponse;

const KMS_PREFIX: &str = "TrentService.";
const SECRETS_PREFIX: &str = "secretsmanager.";
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/x-amz-json-1.1";

/// A call of one of these services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmallCall {
    pub(crate) service: Service,
    /// Empty for SNS, whose requests name the action in the body.
    action: String,
}

impl SmallCall {
    /// Parses the headers; `None` for a call of another service.
    pub(crate) fn from_headers(target: Option<&str>, content_type: Option<&str>) -> Option<Self> {
        let call = |service, action: &str| Some(Self { service, action: action.to_owned() });
        match target {
            Some(target) => {
                let kms = target.strip_prefix(KMS_PREFIX).map(|action| (Service::Kms, action));
                let secrets =
                    || target.strip_prefix(SECRETS_PREFIX).map(|action| (Service::SecretsManager, action));
                kms.or_else(secrets).and_then(|(service, action)| call(service, action))
            }
            None if content_type.is_some_and(|kind| kind.starts_with(FORM)) => call(Service::Sns, ""),
            None => None,
        }
    }

    /// Returns the action and its resource, for observers of calls.
    pub(crate) fn describe(&self, body: &Bytes) -> (String, Option<String>) {
        match self.service {
            Service::Sns => sns::describe(body),
            Service::Kms => (self.action.clone(), member(body, "KeyId").map(|id| kms::id_of(&id).to_owned())),
            _ => (self.action.clone(), member(body, "SecretId")),
        }
    }
}

/// The three services.
#[derive(Debug)]
pub(crate) struct SmallServices {
    kms: kms::Kms,
    pub(crate) sns: sns::Sns,
    secrets: BTreeMap<String, String>,
}

impl SmallServices {
    /// Creates the services. The bytes of the KMS key are derived from `material`.
    pub(crate) fn new(material: &[u8], secrets: BTreeMap<String, String>) -> Self {
        Self { kms: kms::Kms::new(material), sns: sns::Sns::default(), secrets }
    }

    pub(crate) fn call(&self, call: &SmallCall, body: &Bytes) -> ServiceResponse {
        let answer = match (call.service, call.action.as_str()) {
            (Service::Sns, _) => return self.sns.call(body),
            (Service::Kms, "Encrypt") => self.kms.encrypt(body),
            (Service::Kms, "Decrypt") => self.kms.decrypt(body),
            (Service::SecretsManager, "GetSecretValue") => secrets::get(&self.secrets, body),
            (_, action) => {
                Err(error("UnknownOperationException", &format!("The action {action} is not embedded.")))
            }
        };
        answer.unwrap_or_else(|error| error)
    }
}

fn json(body: &serde_json::Value) -> ServiceResponse {
    ServiceResponse { content_type: JSON, ..ServiceResponse::json_1_0(200, body.to_string()) }
}

fn error(kind: &str, message: &str) -> ServiceResponse {
    ServiceResponse { content_type: JSON, ..ServiceResponse::json_error(400, kind, message) }
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ServiceResponse> {
    serde_json::from_slice(body).map_err(|problem| error("SerializationException", &problem.to_string()))
}

fn member(body: &Bytes, name: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(body.get(name)?.as_str()?.to_owned())
}
