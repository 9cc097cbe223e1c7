//! Bodies between the SDK, a socket and the protocol layer.

use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::StatusCode;
use s3s::Body;

/// Answers to HEAD and 304 have no body. A listener would drop it; a caller in this process would read the error
/// in it, and report another one than it does on AWS.
pub(super) fn without_forbidden_body(bodiless: bool, response: http::Response<Body>) -> http::Response<Body> {
    if !bodiless && response.status() != StatusCode::NOT_MODIFIED {
        return response;
    }
    response.map(|_| Body::empty())
}

pub(super) fn sdk_body(body: Body) -> SdkBody {
    match body.bytes() {
        Some(bytes) => SdkBody::from(bytes),
        None => SdkBody::from_body_1_x(body),
    }
}

/// A body from a socket, as the protocol takes it.
pub(crate) fn body_of<B>(body: B) -> Body
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<s3s::StdError>,
{
    Body::http_body_unsync(http_body_util::BodyExt::map_err(body, Into::into))
}
