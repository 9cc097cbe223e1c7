//! HTTP responses of the JSON services.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;

/// Response to a call, before its conversion to an SDK response.
#[derive(Debug, Clone)]
pub(crate) struct ServiceResponse {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// `x-amzn-query-error`, the error code of the SQS query protocol.
    pub(crate) query_error: Option<String>,
    pub(crate) body: Bytes,
}

impl ServiceResponse {
    pub(crate) fn json_1_0(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, content_type: "application/x-amz-json-1.0", query_error: None, body: body.into() }
    }

    /// Creates an AWS JSON error response.
    pub(crate) fn json_error(status: u16, error_type: &str, message: &str) -> Self {
        let body = serde_json::json!({ "__type": error_type, "message": message });
        Self::json_1_0(status, body.to_string())
    }

    pub(crate) fn into_response(self) -> Result<HttpResponse, BoxError> {
        let mut builder =
            http::Response::builder().status(self.status).header("content-type", self.content_type);
        if let Some(code) = self.query_error {
            builder = builder.header("x-amzn-query-error", code);
        }
        Ok(HttpResponse::try_from(builder.body(SdkBody::from(self.body))?)?)
    }
}
