use std::collections::BTreeMap;

use aws_sdk_s3::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, ChecksumMode};
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt as _;
use std::sync::{Arc, Mutex};

use super::super::{INLINE_BYTES_MAX, fast};
use super::*;

/// Records the signed requests that the SDK would send.
#[derive(Debug, Clone, Default)]
struct RequestRecorder(Arc<Mutex<Vec<http::Request<Vec<u8>>>>>);

impl Intercept for RequestRecorder {
    fn name(&self) -> &'static str {
        "Tap"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), aws_sdk_s3::error::BoxError> {
        let request = context.request();
        let mut kept = http::Request::builder().method(request.method()).uri(request.uri());
        for (name, value) in request.headers() {
            kept = kept.header(name, value);
        }
        self.0.lock().unwrap().push(kept.body(request.body().bytes().unwrap_or_default().to_vec())?);
        Ok(())
    }
}

type RecordedResponse = (u16, BTreeMap<String, String>, Vec<u8>);

async fn record(response: http::Response<SdkBody>) -> RecordedResponse {
    let (parts, body) = response.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    (parts.status.as_u16(), headers, body.collect().await.unwrap().to_bytes().to_vec())
}

fn clone_request(request: &http::Request<Vec<u8>>) -> http::Request<SdkBody> {
    request.clone().map(SdkBody::from)
}

/// Sends the request through both paths from the same state: reads are repeated, writes are written
/// twice.
async fn through_both_paths(
    store: &Store,
    request: &http::Request<Vec<u8>>,
) -> (Option<RecordedResponse>, RecordedResponse) {
    let fast_path = match fast::try_handle(store, &clone_request(request)).await {
        Some(response) => Some(record(response).await),
        None => None,
    };
    let long = endpoint(store).handle(clone_request(request).map(s3s::Body::http_body)).await;
    (fast_path, record(long.map(super::super::bodies::sdk_body)).await)
}

/// Removes times: the second write is later, and a read in between may see another second.
fn without_time(mut seen: RecordedResponse) -> RecordedResponse {
    seen.1.remove("last-modified");
    seen
}

#[tokio::test]
async fn both_paths_give_the_same_responses() {
    let dir = tempfile::tempdir().unwrap();
    let (store, plain) = with_bucket(dir.path()).await;
    let tap = RequestRecorder::default();
    let client = Client::from_conf(config(&endpoint(&store), false).interceptor(tap.clone()).build());
    let lean = fast_client(&store);
    let lean = Client::from_conf(lean.config().to_builder().interceptor(tap.clone()).build());
    for len in [0, 2048, INLINE_BYTES_MAX] {
        let put = |client: &Client| {
            client
                .put_object()
                .bucket(BUCKET)
                .key(format!("a b/ä{len}"))
                .body(ByteStream::from(bytes(len, 1)))
        };
        put(&client).send().await.unwrap();
        put(&lean).send().await.unwrap();
        let full = put(&client).content_type("text/html").cache_control("no-cache").metadata("a", "1");
        full.content_encoding("gzip")
            .content_language("en")
            .content_disposition("inline")
            .send()
            .await
            .unwrap();
        for algorithm in ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] {
            put(&client).checksum_algorithm(ChecksumAlgorithm::from(algorithm)).send().await.unwrap();
            let key = format!("a b/ä{len}");
            let get = || client.get_object().bucket(BUCKET).key(&key);
            get().send().await.unwrap();
            get().checksum_mode(ChecksumMode::Enabled).send().await.unwrap();
            lean.get_object().bucket(BUCKET).key(&key).send().await.unwrap();
            let _ = get().range("bytes=1-5").send().await;
            let _ = get().range("bytes=-3").send().await;
            let _ = get().range("bytes=99999999-").send().await;
            client.head_object().bucket(BUCKET).key(&key).send().await.unwrap();
            client
                .head_object()
                .bucket(BUCKET)
                .key(&key)
                .checksum_mode(ChecksumMode::Enabled)
                .send()
                .await
                .unwrap();
        }
        let _ = put(&client).checksum_crc32("AAAAAA==").send().await;
        let _ = put(&client).content_md5("AAAA").send().await;
        // The key exists.
        let _ = put(&client).if_none_match("*").send().await;
        let _ = put(&client).metadata("big", "x".repeat(3000)).send().await;
    }
    let _ = client.put_object().bucket("no-such-bucket").key("k").send().await;
    let _ = client.get_object().bucket("no-such-bucket").key("k").send().await;
    let _ = client.head_object().bucket("no-such-bucket").key("k").send().await;
    let _ = client.delete_object().bucket("no-such-bucket").key("k").send().await;
    let _ = client.get_object().bucket(BUCKET).key("missing").send().await;
    let _ = client.head_object().bucket(BUCKET).key("missing").send().await;
    client.delete_object().bucket(BUCKET).key("missing").send().await.unwrap();

    // Objects in files, read through both paths.
    for (key, metadata) in [("large", "1"), ("large too", "2")] {
        let put = plain.put_object().bucket(BUCKET).key(key).metadata("a", metadata);
        put.body(ByteStream::from(bytes(INLINE_BYTES_MAX * 9, 2))).send().await.unwrap();
        client.get_object().bucket(BUCKET).key(key).send().await.unwrap();
        client.get_object().bucket(BUCKET).key(key).range("bytes=70000-200000").send().await.unwrap();
    }

    let requests = std::mem::take(&mut *tap.0.lock().unwrap());
    assert!(requests.len() > 100);
    for request in &requests {
        let (fast_path, long) = through_both_paths(&store, request).await;
        let what = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
        let fast_path = fast_path.unwrap_or_else(|| panic!("left to the protocol layer: {what}"));
        assert_eq!(without_time(fast_path), without_time(long), "{what}");
    }
}

#[tokio::test]
async fn other_requests_are_left_to_the_protocol_layer() {
    let dir = tempfile::tempdir().unwrap();
    let (store, plain) = with_bucket(dir.path()).await;
    plain.put_object().bucket(BUCKET).key("k").send().await.unwrap();
    let tap = RequestRecorder::default();
    let client = Client::from_conf(config(&endpoint(&store), false).interceptor(tap.clone()).build());
    let put = || client.put_object().bucket(BUCKET).key("k");
    let get = || client.get_object().bucket(BUCKET).key("k");
    let _ = put().if_none_match("\"x\"").send().await;
    let _ = put().if_match("\"x\"").send().await;
    let _ = put().metadata("a", "Grüße").send().await;
    let _ = put().sse_customer_algorithm("AES256").send().await;
    let _ = put().expires(aws_sdk_s3::primitives::DateTime::from_secs(1_700_000_000)).send().await;
    let _ = put().body(ByteStream::from(bytes(INLINE_BYTES_MAX + 1, 0))).send().await;
    let _ = get().if_none_match("*").send().await;
    let _ = get().part_number(1).send().await;
    let _ = get().version_id("v").send().await;
    let _ = get().response_content_type("x/y").send().await;
    let _ = client.delete_object().bucket(BUCKET).key("k").if_match("*").send().await;
    let _ = client.head_object().bucket(BUCKET).key("k").range("bytes=0-1").send().await;
    let _ = client.list_objects_v2().bucket(BUCKET).send().await;
    let _ = client.head_bucket().bucket(BUCKET).send().await;
    let _ = client.create_multipart_upload().bucket(BUCKET).key("m").send().await;
    let requests = std::mem::take(&mut *tap.0.lock().unwrap());
    assert_eq!(requests.len(), 15);
    for request in &requests {
        let handled = fast::try_handle(&store, &clone_request(request)).await;
        assert!(handled.is_none(), "{} {} {:?}", request.method(), request.uri(), request.headers());
    }
    // The protocol layer has to reject unsigned requests.
    plain.put_object().bucket(BUCKET).key("k").send().await.unwrap();
    get().send().await.unwrap();
    let mut unsigned = tap.0.lock().unwrap().pop().unwrap();
    assert!(fast::try_handle(&store, &clone_request(&unsigned)).await.is_some());
    unsigned.headers_mut().remove("authorization");
    assert!(fast::try_handle(&store, &clone_request(&unsigned)).await.is_none());
}
