//! SQS errors in the JSON protocol: the shape name in `__type` and the code of the older query
//! protocol in a header. The SDK derives its typed errors from the header.

use serde_json::json;

use crate::service_response::ServiceResponse;

/// An error response. The caller is at fault in all but [`SqsError::internal`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SqsError {
    /// Code in the query protocol.
    pub(super) code: &'static str,
    /// Shape name in the JSON protocol.
    shape: &'static str,
    status: u16,
    pub(super) message: String,
}

impl SqsError {
    fn sender(code: &'static str, shape: &'static str, message: impl Into<String>) -> Self {
        Self { code, shape, status: 400, message: message.into() }
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self { code: "InternalError", shape: "InternalError", status: 500, message: message.into() }
    }

    pub(super) fn no_such_queue() -> Self {
        let message = "The specified queue does not exist.";
        Self::sender("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", message)
    }

    pub(super) fn queue_exists(attribute: &str) -> Self {
        let message = format!(
            "A queue already exists with the same name and a different value for attribute {attribute}"
        );
        Self::sender("QueueAlreadyExists", "QueueNameExists", message)
    }

    pub(super) fn invalid_address(address: &str) -> Self {
        let message = format!("The address {address} is not valid for this endpoint.");
        Self::sender("InvalidAddress", "InvalidAddress", message)
    }

    pub(super) fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::sender("InvalidParameterValue", "InvalidParameterValueException", message)
    }

    pub(super) fn out_of_range(value: i64, parameter: &str, reason: &str) -> Self {
        Self::invalid_parameter(format!(
            "Value {value} for parameter {parameter} is invalid. Reason: {reason}."
        ))
    }

    pub(super) fn missing_parameter(name: &str) -> Self {
        let message = format!("The request must contain the parameter {name}.");
        Self::sender("MissingParameter", "MissingRequiredParameterException", message)
    }

    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self::sender("MalformedInput", "SerializationException", message)
    }

    pub(super) fn invalid_action(action: &str) -> Self {
        let message = format!("The action {action} is not valid for this endpoint.");
        Self::sender("InvalidAction", "InvalidAction", message)
    }

    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::sender("AWS.SimpleQueueService.UnsupportedOperation", "UnsupportedOperation", message)
    }

    pub(super) fn invalid_attribute_name(name: &str) -> Self {
        Self::sender("InvalidAttributeName", "InvalidAttributeName", format!("Unknown Attribute {name}."))
    }

    pub(super) fn invalid_attribute_value(name: &str) -> Self {
        let message = format!("Invalid value for the parameter {name}.");
        Self::sender("InvalidAttributeValue", "InvalidAttributeValue", message)
    }

    pub(super) fn invalid_contents(message: impl Into<String>) -> Self {
        Self::sender("InvalidMessageContents", "InvalidMessageContents", message)
    }

    pub(super) fn invalid_receipt_handle() -> Self {
        let message = "The input receipt handle is not a valid receipt handle.";
        Self::sender("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", message)
    }

    pub(super) fn not_in_flight() -> Self {
        let message = "The message referred to is not in flight.";
        Self::sender("AWS.SimpleQueueService.MessageNotInflight", "MessageNotInflight", message)
    }

    pub(super) fn empty_batch(entry: &str) -> Self {
        let message = format!("There should be at least one {entry} in the request.");
        Self::sender("AWS.SimpleQueueService.EmptyBatchRequest", "EmptyBatchRequest", message)
    }

    pub(super) fn batch_too_many(count: usize) -> Self {
        let message = format!("Maximum number of entries per request are 10. You have sent {count}.");
        let code = "AWS.SimpleQueueService.TooManyEntriesInBatchRequest";
        Self::sender(code, "TooManyEntriesInBatchRequest", message)
    }

    pub(super) fn batch_too_long(bytes: usize, bytes_max: usize) -> Self {
        let message =
            format!("Batch requests cannot be longer than {bytes_max} bytes. You have sent {bytes} bytes.");
        Self::sender("AWS.SimpleQueueService.BatchRequestTooLong", "BatchRequestTooLong", message)
    }

    pub(super) fn batch_ids_repeat(id: &str) -> Self {
        let code = "AWS.SimpleQueueService.BatchEntryIdsNotDistinct";
        Self::sender(code, "BatchEntryIdsNotDistinct", format!("Id {id} repeated."))
    }

    pub(super) fn batch_id_invalid() -> Self {
        let message = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
                       It can be at most 80 letters long.";
        Self::sender("AWS.SimpleQueueService.InvalidBatchEntryId", "InvalidBatchEntryId", message)
    }

    /// Too many requests; the SDK waits and retries.
    pub(super) fn throttled() -> Self {
        Self::sender(
            "RequestThrottled",
            "RequestThrottled",
            "The request was denied due to request throttling.",
        )
    }

    pub(super) fn sender_fault(&self) -> bool {
        self.status < 500
    }

    pub(super) fn to_answer(&self) -> ServiceResponse {
        let body = json!({ "__type": format!("com.amazonaws.sqs#{}", self.shape), "message": self.message });
        let fault = if self.sender_fault() { "Sender" } else { "Receiver" };
        let mut answer = ServiceResponse::json_1_0(self.status, body.to_string());
        answer.query_error = Some(format!("{};{fault}", self.code));
        answer
    }
}
