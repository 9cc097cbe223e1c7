//! JSON bodies, read whole up to a size limit. Each kind of invalid body has its own error.

use axum::body::{Body, to_bytes};
use bench_domain::Code;
use http::{HeaderMap, header};
use http_body_util::LengthLimitError;
use serde_json::{Map, Value, json};

use crate::{ApiError, FieldError, FieldReader};

/// Maximum size of a JSON body, in bytes.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Reads a body that must be a JSON object.
///
/// # Errors
/// 413 when it has more than [`BODY_BYTES_MAX`] bytes; 422 when it isn't JSON, isn't an object, or isn't declared as JSON.
pub async fn read_object(headers: &HeaderMap, body: Body) -> Result<FieldReader, ApiError> {
    parse_object(headers, &read_bytes(headers, body, BODY_BYTES_MAX).await?)
}

/// Like [`read_object`], for an object whose fields are all optional: an empty body counts as an empty object.
///
/// # Errors
/// Those of [`read_object`], except for an empty body.
pub async fn read_object_or_nothing(headers: &HeaderMap, body: Body) -> Result<FieldReader, ApiError> {
    match read_bytes(headers, body, BODY_BYTES_MAX).await? {
        bytes if bytes.is_empty() => Ok(FieldReader::from_body(Map::new())),
        bytes => parse_object(headers, &bytes),
    }
}

/// Reads a whole body of at most `bytes_max` bytes.
///
/// # Errors
/// 413 when it has more; 400 when it broke off.
pub async fn read_bytes(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Vec<u8>, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > bytes_max as u64)
    {
        return Err(ApiError::too_large(bytes_max));
    }
    to_bytes(body, bytes_max).await.map(|bytes| bytes.to_vec()).map_err(|error| {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(found) = cause {
            if found.is::<LengthLimitError>() {
                return ApiError::too_large(bytes_max);
            }
            cause = found.source();
        }
        ApiError::new(Code::IncompleteBody, "the request body ended early; send it again")
    })
}

/// Parses the bytes of a body as an object.
fn parse_object(headers: &HeaderMap, bytes: &[u8]) -> Result<FieldReader, ApiError> {
    let whole = |kind, msg: &str, input| {
        let problem = FieldError { kind, loc: vec!["body".into()], msg: msg.to_owned(), input, ctx: None };
        ApiError::validation(vec![problem])
    };
    let not_declared = "Input should be JSON, declared as `Content-Type: application/json`";
    let no_object = "Input should be a valid dictionary or object to extract fields from";
    if bytes.is_empty() {
        return Err(whole("missing", "Field required", Value::Null));
    }
    if !is_declared_as_json(headers) {
        let start = String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)).into_owned();
        return Err(whole("model_attributes_type", not_declared, Value::String(start)));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let place = byte_offset(bytes, error.line(), error.column());
        let problem = FieldError {
            kind: "json_invalid",
            loc: vec!["body".into(), place.into()],
            msg: "JSON decode error".to_owned(),
            input: Value::Object(Map::new()),
            ctx: Some(json!({ "error": error.to_string() })),
        };
        ApiError::invalid_json(problem)
    })?;
    match value {
        Value::Object(fields) => Ok(FieldReader::from_body(fields)),
        Value::String(_) | Value::Array(_) => {
            Err(whole("model_attributes_type", no_object, json!("(not an object)")))
        }
        other => Err(whole("model_attributes_type", no_object, other)),
    }
}

/// Returns true for `application/json` and related media types.
fn is_declared_as_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Converts a line and column, both counted from 1, to a byte offset.
fn byte_offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let before: usize =
        bytes.split(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(|l| l.len() + 1).sum();
    (before + column.saturating_sub(1)).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    async fn refusal(kind: Option<&str>, body: impl Into<Body>) -> (u16, Value) {
        let mut headers = HeaderMap::new();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
        }
        let error = read_object(&headers, body.into()).await.unwrap_err();
        let status = error.status().as_u16();
        let response = axum::response::IntoResponse::into_response(error);
        let bytes = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn bodies_other_than_json_objects_get_the_usual_error() {
        const JSON: Option<&str> = Some("application/json");
        for (kind, body, expected) in [
            (JSON, "", "missing"),
            (JSON, "{", "json_invalid"),
            (JSON, "{\"a\": nan}", "json_invalid"),
            (JSON, "{\"a\": 1e999}", "json_invalid"),
            (JSON, "[]", "model_attributes_type"),
            (JSON, "\"text\"", "model_attributes_type"),
            (JSON, "null", "model_attributes_type"),
            (None, "{}", "model_attributes_type"),
            (Some("text/plain"), "{}", "model_attributes_type"),
        ] {
            let (status, body_of_error) = refusal(kind, body).await;
            assert_eq!(status, 422, "{body}");
            assert_eq!(body_of_error["detail"][0]["type"], expected, "{body}");
            assert_eq!(body_of_error["detail"][0]["loc"][0], "body");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(refusal(JSON, deep).await.1["detail"][0]["type"], "json_invalid");
        let (_, lines) = refusal(JSON, "{\n  \"a\": x\n}").await;
        assert_eq!(lines["detail"][0]["loc"][1], 9);
    }

    #[tokio::test]
    async fn an_oversize_body_is_413_announced_or_not() {
        let large = vec![b' '; BODY_BYTES_MAX + 1];
        assert_eq!(refusal(Some("application/json"), large).await.0, 413);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("99999999999"));
        assert_eq!(read_object(&headers, Body::empty()).await.unwrap_err().status(), 413);
    }

    #[tokio::test]
    async fn an_object_is_read() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("Application/JSON; charset=utf-8"));
        let mut fields = read_object(&headers, Body::from(r#"{"n": 3}"#)).await.unwrap();
        assert_eq!(fields.integer("n", 0, 0, 9), 3);
    }
}
