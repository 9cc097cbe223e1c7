//! Fast path for simple object requests of the SDK in this process.
//!
//! The protocol layer verifies the signature, hashes the body a second time, and parses every header that S3 knows. For
//! a small object that costs more than storing it. Requests from this process need no authentication, and nearly all of
//! them have one of four simple forms. This module answers those, with the same responses as the protocol layer (tests
//! compare them). For all other requests, [`try_handle`] returns `None` without any effect, and the protocol layer
//! handles them.
//!
//! Never pass a request from a socket to this module.

use std::borrow::Cow;

use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use s3s::dto::Range;
use s3s::path::{check_bucket_name, check_key};
use s3s::{Body, S3Error, S3Result};

use super::INLINE_BYTES_MAX;
use super::attrs::{Algorithm, Attrs, Checksums};
use super::bodies::{sdk_body, without_forbidden_body};
use super::objects::{self, ObjectResponse, ReadConditions, StoredObject, checksum_type, put_received};
use super::read::ContentBody;
use super::receive::{DeclaredBody, receive_bytes};
use super::store::{Store, WriteCondition};

const METADATA: &str = "x-amz-meta-";
const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");

/// Answers an unconditional PutObject, or one for a new key (at most [`INLINE_BYTES_MAX`] bytes, in memory), and an
/// unconditional GetObject, HeadObject or DeleteObject, in path style. Returns `None` for any other request, which the
/// protocol layer must handle.
///
/// Signatures and the signed payload hash aren't checked; checksums, Content-MD5 and Content-Length are.
pub async fn try_handle(store: &Store, request: &http::Request<SdkBody>) -> Option<Response<SdkBody>> {
    let headers = request.headers();
    // The protocol layer rejects unsigned requests, and handles repeated headers.
    if !headers.contains_key(header::AUTHORIZATION) || headers.keys_len() != headers.len() {
        return None;
    }
    let (bucket, key) = target(request.uri().path())?;
    let operation = request.uri().query();
    let method = request.method();
    if *method == Method::PUT && matches!(operation, None | Some("x-id=PutObject")) {
        let (attrs, declared, condition) = put_headers(headers)?;
        let body = request.body().bytes().filter(|body| body.len() <= INLINE_BYTES_MAX)?;
        let stored =
            put(store, bucket, &key, condition, attrs, &declared, Bytes::copy_from_slice(body)).await;
        return finish(false, stored.map(|stored| stored_response(&stored)));
    }
    if *method == Method::GET && matches!(operation, None | Some("x-id=GetObject")) {
        let (range, checksum_mode) = read_headers(headers)?;
        let got =
            objects::get(store, bucket, &key, &ReadConditions::default(), range.as_ref(), checksum_mode);
        return finish(false, got.map(|(answer, body)| object_response(&answer, Some(body))));
    }
    if *method == Method::HEAD && matches!(operation, None | Some("x-id=HeadObject")) {
        let (range, checksum_mode) = read_headers(headers)?;
        if range.is_some() {
            return None;
        }
        let found = objects::head(store, bucket, &key, &ReadConditions::default(), None, checksum_mode);
        return finish(true, found.map(|answer| object_response(&answer, None)));
    }
    if *method == Method::DELETE && matches!(operation, None | Some("x-id=DeleteObject")) {
        if headers.keys().any(|name| !is_envelope(name.as_str())) {
            return None;
        }
        let deleted = store.delete(bucket.to_owned(), vec![key.into_owned()], None).await;
        let response = deleted.map_err(S3Error::from).map(|()| {
            let mut response = Response::new(SdkBody::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Some(response)
        });
        return finish(false, response);
    }
    None
}

async fn put(
    store: &Store,
    bucket: &str,
    key: &str,
    condition: WriteCondition,
    attrs: Attrs,
    declared: &DeclaredBody,
    body: Bytes,
) -> S3Result<StoredObject> {
    let received = receive_bytes(body, declared)?;
    put_received(store, bucket.to_owned(), key.to_owned(), condition, attrs, received).await
}

/// Returns the response; an error becomes the response that the protocol layer would send.
fn finish(bodiless: bool, outcome: S3Result<Option<Response<SdkBody>>>) -> Option<Response<SdkBody>> {
    match outcome {
        Ok(response) => response,
        Err(error) => {
            let response = error.to_http_response().ok()?;
            Some(without_forbidden_body(bodiless, response).map(sdk_body))
        }
    }
}

/// Parses `/bucket/key` and decodes the key.
fn target(path: &str) -> Option<(&str, Cow<'_, str>)> {
    let (bucket, key) = path.strip_prefix('/')?.split_once('/')?;
    let key = percent_decode(key)?;
    (!key.is_empty() && check_bucket_name(bucket) && check_key(&key)).then_some((bucket, key))
}

fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let (digits, tail) = tail.split_at_checked(2)?;
            let mut value = [0];
            hex::decode_to_slice(digits, &mut value).ok()?;
            decoded.extend(value);
            rest = tail;
        } else {
            decoded.push(byte);
            rest = tail;
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// Returns true for headers that aren't properties of the object.
fn is_envelope(name: &str) -> bool {
    matches!(
        name,
        "host"
            | "authorization"
            | "x-amz-date"
            | "x-amz-content-sha256"
            | "x-amz-security-token"
            | "x-amz-sdk-checksum-algorithm"
            | "user-agent"
            | "x-amz-user-agent"
            | "amz-sdk-invocation-id"
            | "amz-sdk-request"
    )
}

/// Parses the headers of an upload; `None` unless all of them are known and simple.
fn put_headers(headers: &HeaderMap) -> Option<(Attrs, DeclaredBody, WriteCondition)> {
    let mut attrs = Attrs::default();
    let mut declared = DeclaredBody::default();
    let mut condition = WriteCondition::Always;
    for (name, value) in headers {
        let name = name.as_str();
        let value = value.to_str().ok().filter(|value| !value.is_empty())?;
        if name == "x-amz-content-sha256" && value.starts_with("STREAMING-") {
            return None;
        }
        if is_envelope(name) {
            continue;
        }
        let owned = || Some(value.to_owned());
        if let Some(metadata) = name.strip_prefix(METADATA) {
            // An encoded word (RFC 2047) stands for other text.
            if metadata.is_empty() || value.contains("=?") {
                return None;
            }
            attrs.metadata.insert(metadata.to_owned(), value.to_owned());
            continue;
        }
        match name {
            "if-none-match" if value == "*" => condition = WriteCondition::Absent,
            "content-length" => declared.length = Some(value.parse().ok()?),
            "content-md5" => declared.md5 = owned(),
            "content-type" => attrs.content_type = owned(),
            "cache-control" => attrs.cache_control = owned(),
            "content-disposition" => attrs.content_disposition = owned(),
            "content-encoding" if !value.contains("aws-chunked") => attrs.content_encoding = owned(),
            "content-language" => attrs.content_language = owned(),
            _ => {
                let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.header() == name)?;
                declared.checksums.set(algorithm, value.to_owned());
            }
        }
    }
    Some((attrs, declared, condition))
}

/// Parses the range of a read and the checksum mode; `None` if there are other headers.
fn read_headers(headers: &HeaderMap) -> Option<(Option<Range>, bool)> {
    let mut range = None;
    let mut checksum_mode = false;
    for (name, value) in headers {
        match name.as_str() {
            "range" => range = Some(Range::parse(value.to_str().ok()?).ok()?),
            "x-amz-checksum-mode" => checksum_mode = value == "ENABLED",
            name if is_envelope(name) => {}
            _ => return None,
        }
    }
    Some((range, checksum_mode))
}

fn stored_response(stored: &StoredObject) -> Option<Response<SdkBody>> {
    let mut response = Response::new(SdkBody::empty());
    let headers = response.headers_mut();
    headers.insert(header::ETAG, quote(&stored.etag)?);
    if !stored.checksums.is_empty() {
        insert_checksums(headers, &stored.checksums, checksum_type(false))?;
    }
    Some(response)
}

fn object_response(answer: &ObjectResponse, body: Option<ContentBody>) -> Option<Response<SdkBody>> {
    let body = match body {
        None => SdkBody::empty(),
        Some(ContentBody::Bytes(bytes)) => SdkBody::from(bytes),
        Some(body @ ContentBody::Stream(_)) => SdkBody::from_body_1_x(Body::from(body.into_blob())),
    };
    let mut response = Response::new(body);
    if answer.partial {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let attrs = &answer.meta.attrs;
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(answer.length()));
    headers.insert(header::CONTENT_TYPE, HeaderValue::try_from(answer.content_type()).ok()?);
    headers.insert(header::ETAG, quote(&answer.meta.etag)?);
    headers.insert(header::LAST_MODIFIED, answer.meta.last_modified_header().ok()?);
    let plain = [
        (header::CONTENT_RANGE, answer.content_range()),
        (header::CACHE_CONTROL, attrs.cache_control.clone()),
        (header::CONTENT_DISPOSITION, attrs.content_disposition.clone()),
        (header::CONTENT_ENCODING, attrs.content_encoding.clone()),
        (header::CONTENT_LANGUAGE, attrs.content_language.clone()),
        (header::EXPIRES, attrs.expires.clone()),
    ];
    for (name, value) in plain {
        if let Some(value) = value {
            headers.insert(name, HeaderValue::try_from(value).ok()?);
        }
    }
    for (name, value) in &attrs.metadata {
        // The protocol layer handles text that requires an encoded word (RFC 2047).
        if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return None;
        }
        let name = HeaderName::try_from(format!("{METADATA}{name}")).ok()?;
        headers.insert(name, HeaderValue::try_from(value).ok()?);
    }
    if let Some(kind) = answer.checksum_type() {
        insert_checksums(headers, &attrs.checksums, kind)?;
    }
    Some(response)
}

fn insert_checksums(headers: &mut HeaderMap, checksums: &Checksums, kind: &'static str) -> Option<()> {
    for algorithm in Algorithm::ALL {
        if let Some(sum) = checksums.get(algorithm) {
            headers.insert(algorithm.header(), HeaderValue::try_from(sum).ok()?);
        }
    }
    headers.insert(CHECKSUM_TYPE, HeaderValue::from_static(kind));
    Some(())
}

fn quote(etag: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("\"{etag}\"")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert_eq!(target("/bucket/a/b%20c"), Some(("bucket", Cow::Borrowed("a/b c"))));
        assert_eq!(target("/bucket/%C3%A4"), Some(("bucket", Cow::Borrowed("ä"))));
        for path in [
            "/",
            "/bucket",
            "/bucket/",
            "bucket/key",
            "/Bucket/key",
            "/bucket/%zz",
            "/bucket/%ff",
            "/bucket/%",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
        assert_eq!(target(&format!("/bucket/{}", "k".repeat(1025))), None);
    }
}
