//! Compression of JSON for clients that accept gzip. CloudFront compresses only what it may cache, and caches no answers.

use axum::body::HttpBody;
use http::{HeaderMap, HeaderValue, Response, header};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};

/// Smallest body that is compressed, in bytes: a smaller one takes one packet as it is.
const BYTES_MIN: u16 = 1024;

/// Compresses large JSON. Archives are compressed already, and events must not wait in a buffer.
pub(crate) fn layer() -> CompressionLayer<And<SizeAbove, JsonOnly>> {
    let large_json = SizeAbove::new(BYTES_MIN).and(JsonOnly);
    CompressionLayer::new().quality(CompressionLevel::Best).compress_when(large_json)
}

/// Selects responses whose content type is JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonOnly;

impl Predicate for JsonOnly {
    fn should_compress<B: HttpBody>(&self, response: &Response<B>) -> bool {
        is_json(response.headers())
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.starts_with(b"application/json")
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::extract::Request;
    use axum::http::header::CONTENT_TYPE;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;
    use crate::{ServerConfig, finish};

    const LARGE: usize = 100_000;

    /// Asks for a body of a type, and returns its encoding and the number of bytes.
    async fn ask(accepted: &str, kind: &'static str, bytes: usize) -> (Option<String>, usize) {
        let answer = move || async move { ([(CONTENT_TYPE, kind)], "x".repeat(bytes)) };
        let router = finish(Router::new().route("/", get(answer)), ServerConfig::default());
        let request =
            Request::get("/").header(header::ACCEPT_ENCODING, accepted).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let encoding =
            response.headers().get(header::CONTENT_ENCODING).map(|name| name.to_str().unwrap().to_owned());
        (encoding, to_bytes(response.into_body(), LARGE).await.unwrap().len())
    }

    #[tokio::test]
    async fn large_json_is_compressed_for_clients_that_accept_it() {
        for kind in ["application/json", "application/json; charset=utf-8"] {
            let (encoding, bytes) = ask("br, gzip;q=0.8", kind, LARGE).await;
            assert_eq!(encoding.as_deref(), Some("gzip"), "{kind}");
            assert!(bytes < LARGE / 10, "{bytes} bytes");
        }
        for accepted in ["identity", "br", "gzip;q=0"] {
            assert_eq!(ask(accepted, "application/json", LARGE).await, (None, LARGE), "{accepted}");
        }
    }

    #[tokio::test]
    async fn small_answers_events_and_archives_stay_as_they_are() {
        for (kind, bytes) in [
            ("application/json", 100),
            ("text/event-stream; charset=utf-8", LARGE),
            ("application/zip", LARGE),
        ] {
            assert_eq!(ask("gzip", kind, bytes).await, (None, bytes), "{kind}");
        }
    }
}
