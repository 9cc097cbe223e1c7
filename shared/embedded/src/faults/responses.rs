//! Error responses of services, in the wording of AWS.

use bytes::Bytes;
use serde_json::json;

use crate::calls::Service;
use crate::service_response::ServiceResponse;
use crate::sqs::Sqs;
use crate::{ACCOUNT_ID, small_services};

const DYNAMODB: &str = "com.amazonaws.dynamodb.v20120810";

/// Throttling errors of DynamoDB: for a table, for an account and for control operations.
const DYNAMODB_THROTTLES: [(&str, &str); 3] = [
    (
        "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded. \
         Consider increasing your provisioning level with the UpdateTable API.",
    ),
    (
        "com.amazonaws.dynamodb.v20120810#RequestLimitExceeded",
        "Throughput exceeds the current throughput limit for your account.",
    ),
    ("com.amazon.coral.availability#ThrottlingException", "Rate of requests exceeds the allowed throughput."),
];

/// Returns a throttling error. `which` selects one of the texts of the service.
pub(crate) fn throttled(service: Service, which: usize) -> ServiceResponse {
    match service {
        Service::DynamoDb => {
            let (code, message) = DYNAMODB_THROTTLES[which % DYNAMODB_THROTTLES.len()];
            ServiceResponse::json_error(400, code, message)
        }
        Service::Sqs => Sqs::throttled(),
        Service::S3 => ServiceResponse {
            status: 503,
            content_type: "application/xml",
            query_error: None,
            body: Bytes::from_static(
                b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SlowDown</Code>\
                  <Message>Please reduce your request rate.</Message></Error>",
            ),
        },
        Service::Kms | Service::SecretsManager => {
            ServiceResponse::json_error(400, "ThrottlingException", "Rate exceeded")
        }
        Service::Sns => small_services::sns::error("Throttling", "Rate exceeded"),
    }
}

/// Returns an error for a missing permission. As on AWS, the text names the action, and the response to S3's `HEAD` has
/// no text.
pub(crate) fn denied(service: Service, action: &str, resources: &[&str]) -> ServiceResponse {
    let prefix = match service {
        Service::DynamoDb => "dynamodb",
        Service::Sqs => "sqs",
        Service::S3 => "s3",
        Service::Kms => "kms",
        Service::Sns => "SNS",
        Service::SecretsManager => "secretsmanager",
    };
    let message = format!(
        "User: arn:aws:sts::{ACCOUNT_ID}:assumed-role/embedded/function is not authorized to perform: \
         {prefix}:{action} on resource: {} because no identity-based policy allows the {prefix}:{action} action",
        resources.first().unwrap_or(&"*")
    );
    match service {
        Service::Sns => small_services::sns::error("AuthorizationError", &message),
        Service::S3 if action.starts_with("Head") => ServiceResponse {
            status: 403,
            content_type: "application/xml",
            query_error: None,
            body: Bytes::new(),
        },
        Service::S3 => ServiceResponse {
            status: 403,
            content_type: "application/xml",
            query_error: None,
            body: Bytes::from(format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code>\
                 <Message>{message}</Message></Error>"
            )),
        },
        Service::Sqs => ServiceResponse {
            query_error: Some("AccessDenied;Sender".to_owned()),
            ..ServiceResponse::json_error(403, "com.amazon.coral.service#AccessDeniedException", &message)
        },
        Service::DynamoDb => {
            ServiceResponse::json_error(400, "com.amazon.coral.service#AccessDeniedException", &message)
        }
        Service::Kms | Service::SecretsManager => {
            ServiceResponse::json_error(400, "AccessDeniedException", &message)
        }
    }
}

/// Returns an error for a conflict with another transaction. `items` is the number of items of a transaction, 0 for
/// other writes; `at` is the conflicting item.
pub(crate) fn conflict(items: usize, at: usize) -> ServiceResponse {
    if items == 0 {
        return ServiceResponse::json_error(
            400,
            &format!("{DYNAMODB}#TransactionConflictException"),
            "Transaction is ongoing for the item",
        );
    }
    let codes: Vec<&str> =
        (0..items).map(|item| if item == at { "TransactionConflict" } else { "None" }).collect();
    let reasons: Vec<_> = codes
        .iter()
        .map(|code| match *code {
            "None" => json!({ "Code": "None" }),
            code => json!({ "Code": code, "Message": "Transaction is ongoing for the item" }),
        })
        .collect();
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    let body = json!({
        "__type": format!("{DYNAMODB}#TransactionCanceledException"),
        "Message": message,
        "CancellationReasons": reasons,
    });
    ServiceResponse::json_1_0(400, body.to_string())
}
