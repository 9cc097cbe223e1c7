//! Requests to a bucket in the same process, which trusts its callers.
//!
//! The SDK resolves an endpoint, signs, measures and retries each request, which costs more CPU time than storing a small
//! object does. The embedded services need none of that from a caller in their own process, so the requests that are
//! made for every sample, and that for every turn of an agent, are built here. Any other response than success is left to
//! the SDK, which repeats the request and says what is wrong.

use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use bytes::Bytes;

use super::OBJECT_BYTES_MAX;

/// Maximum size of a written object: the embedded bucket checks the signature of requests with larger ones.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Client of one bucket.
#[derive(Debug, Clone)]
pub(crate) struct UnsignedClient {
    connector: SharedHttpConnector,
    /// `http://HOST/BUCKET`.
    address: String,
}

impl UnsignedClient {
    pub(crate) fn new(connector: SharedHttpConnector, endpoint: &str, bucket: &str) -> Self {
        Self { connector, address: format!("{}/{bucket}", endpoint.trim_end_matches('/')) }
    }

    /// Writes an object, or replaces it. Returns true once it is stored.
    pub(crate) async fn put(&self, key: &str, body: &Bytes, content_type: &str) -> bool {
        let Some(request) = self.put_request(key, body, content_type) else { return false };
        self.connector.call(request).await.is_ok_and(|response| response.status().is_success())
    }

    /// Writes an object unless the key exists. Returns true if it was written, false if the key exists, and `None` if neither
    /// is known.
    pub(crate) async fn put_new(&self, key: &str, body: &Bytes, content_type: &str) -> Option<bool> {
        let mut request = self.put_request(key, body, content_type)?;
        request.headers_mut().try_insert("if-none-match", "*").ok()?;
        let status = self.connector.call(request).await.ok()?.status();
        match status.as_u16() {
            412 => Some(false),
            _ => status.is_success().then_some(true),
        }
    }

    fn put_request(&self, key: &str, body: &Bytes, content_type: &str) -> Option<HttpRequest> {
        if body.len() > BODY_BYTES_MAX {
            return None;
        }
        let mut request = self.request("PUT", key, SdkBody::from(body.clone()))?;
        let length = body.len().to_string();
        for (name, value) in [("content-type", content_type.to_owned()), ("content-length", length)] {
            request.headers_mut().try_insert(name, value).ok()?;
        }
        Some(request)
    }

    /// Reads an object of at most [`OBJECT_BYTES_MAX`]. Returns `Some(None)` if it doesn't exist, and `None` if it could not
    /// be read.
    pub(crate) async fn get(&self, key: &str) -> Option<Option<Bytes>> {
        let response = self.connector.call(self.request("GET", key, SdkBody::empty())?).await.ok()?;
        let status = response.status();
        let length = response.headers().get("content-length").and_then(|length| length.parse::<usize>().ok());
        if length.is_some_and(|length| length > OBJECT_BYTES_MAX) {
            return None;
        }
        let body = ByteStream::new(response.into_body()).collect().await.ok()?.into_bytes();
        if status.as_u16() == 404 && memchr::memmem::find(&body, b"<Code>NoSuchKey</Code>").is_some() {
            return Some(None);
        }
        (status.is_success() && Some(body.len()) == length).then_some(Some(body))
    }

    fn request(&self, method: &str, key: &str, body: SdkBody) -> Option<HttpRequest> {
        // The SDK encodes all other characters.
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/');
        if !key.bytes().all(is_plain) {
            return None;
        }
        let operation = if method == "PUT" { "PutObject" } else { "GetObject" };
        let mut request = HttpRequest::new(body);
        request.set_method(method).ok()?;
        request.set_uri(format!("{}/{key}?x-id={operation}", self.address)).ok()?;
        // The bucket answers requests without this header as those of strangers.
        request.headers_mut().try_insert("authorization", "none").ok()?;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bench_embedded::{Durability, ENDPOINT, Embedded, EmbeddedOptions, Faults, Recorder};
    use bytes::Bytes;

    use super::BODY_BYTES_MAX;
    use crate::Blobs;

    struct World {
        /// Makes requests of the SDK only.
        signed: Blobs,
        unsigned: Blobs,
        calls: Arc<Mutex<Vec<String>>>,
        _embedded: Embedded,
        _directory: tempfile::TempDir,
    }

    async fn world(faults: &str) -> World {
        let directory = tempfile::tempdir().unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&calls);
        let recorder = Recorder::for_completed_calls(move |completed| {
            noted.lock().unwrap().push(format!("{} {}", completed.call.action, completed.status));
        });
        let options =
            EmbeddedOptions::new(directory.path()).durability(Durability::Normal).recorder(recorder);
        let options = options.faults(faults.parse::<Faults>().unwrap());
        let embedded = Embedded::open(options).unwrap();
        let signed = Blobs::new(&embedded.sdk_config(), "bodies");
        signed.ensure_bucket().await.unwrap();
        let unsigned =
            signed.clone().with_unsigned_requests(embedded.connector_for("worker").unwrap(), ENDPOINT);
        calls.lock().unwrap().clear();
        World { signed, unsigned, calls, _embedded: embedded, _directory: directory }
    }

    #[tokio::test]
    async fn objects_are_those_of_the_sdk() {
        let world = world("").await;
        // Without, and with, characters that have to be encoded; stored in the index, and in a file.
        for key in ["bodies/a-1/b_2/0.00.json.zst", "datasets/a b/ä#1%20+?.json"] {
            for length in [0, 1, 1_000, 65_536, 65_537, 300_000] {
                let body = Bytes::from(vec![b'x'; length]);
                world.unsigned.put(key, body.clone(), "application/x-test").await.unwrap();
                assert_eq!(world.signed.get(key).await.unwrap(), Some(body.clone()), "{key} {length}");
                assert_eq!(world.unsigned.get(key).await.unwrap(), Some(body), "{key} {length}");
            }
        }
        assert_eq!(world.unsigned.get("missing").await.unwrap(), None);
        let stored = world.signed.client.get_object().bucket("bodies").key("bodies/a-1/b_2/0.00.json.zst");
        assert_eq!(stored.send().await.unwrap().content_type(), Some("application/x-test"));
    }

    #[tokio::test]
    async fn an_object_takes_one_request() {
        let world = world("").await;
        for length in [1, BODY_BYTES_MAX] {
            world.unsigned.put("a", Bytes::from(vec![b'x'; length]), "text/plain").await.unwrap();
            world.unsigned.get("a").await.unwrap();
            world.unsigned.get("missing").await.unwrap();
            let key = format!("new/{length}");
            for is_new in [true, false] {
                let put = world.unsigned.put_new(&key, Bytes::from(vec![b'x'; length]), "text/plain").await;
                assert_eq!(put.unwrap(), is_new);
            }
            let calls = std::mem::take(&mut *world.calls.lock().unwrap());
            let expected =
                ["PutObject 200", "GetObject 200", "GetObject 404", "PutObject 200", "PutObject 412"];
            assert_eq!(calls, expected, "{length}");
        }
    }

    #[tokio::test]
    async fn failures_are_repeated_as_by_the_sdk() {
        for seed in 0..4 {
            let world = world(&format!("seed={seed},throttle=0.1,lost-response=0.1")).await;
            for n in 0..20 {
                let (key, body) = (format!("bodies/{n}"), Bytes::from(vec![b'y'; n]));
                world.unsigned.put(&key, body.clone(), "text/plain").await.unwrap();
                assert_eq!(world.unsigned.get(&key).await.unwrap(), Some(body));
            }
        }
    }

    #[tokio::test]
    async fn a_missing_bucket_is_an_error() {
        let world = world("").await;
        let embedded = world._embedded.clone();
        let blobs = Blobs::new(&embedded.sdk_config(), "elsewhere");
        let blobs = blobs.with_unsigned_requests(embedded.connector_for("worker").unwrap(), ENDPOINT);
        let error = blobs.put("a", Bytes::new(), "text/plain").await.unwrap_err();
        assert!(error.to_string().contains("NoSuchBucket"), "{error}");
        assert!(blobs.get("a").await.is_err());
    }
}
