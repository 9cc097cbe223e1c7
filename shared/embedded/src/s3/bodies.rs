//! Conversion of bodies between the SDK, sockets and the protocol layer.

use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::StatusCode;
use s3s::Body;

/// Removes the body of responses to HEAD and of 304. A listener would drop it, but a caller in this process would read
/// the error in it and report another one than on AWS.
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

/// Converts a body from a socket for the protocol layer.
pub(crate) fn convert_body<B>(body: B) -> Body
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<s3s::StdError>,
{
    Body::http_body_unsync(http_body_util::BodyExt::map_err(body, Into::into))
}
