//! Secrets Manager: reading.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::{error, read};
use crate::service_response::ServiceResponse;
use crate::{ACCOUNT_ID, REGION};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetSecretValue {
    secret_id: String,
}

/// Returns a secret by its name or ARN. As on AWS, the ARN has six characters after the name.
pub(super) fn get(
    secrets: &BTreeMap<String, String>,
    body: &Bytes,
) -> Result<ServiceResponse, ServiceResponse> {
    let request: GetSecretValue = read(body)?;
    let arn = |name: &str| format!("arn:aws:secretsmanager:{REGION}:{ACCOUNT_ID}:secret:{name}-000000");
    let found =
        secrets.iter().find(|(name, _)| **name == request.secret_id || arn(name) == request.secret_id);
    let Some((name, value)) = found else {
        return Err(error("ResourceNotFoundException", "Secrets Manager can't find the specified secret."));
    };
    Ok(super::json(&json!({
        "ARN": arn(name),
        "Name": name,
        "SecretString": value,
        "VersionStages": ["AWSCURRENT"],
    })))
}
