use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use aws_sdk_s3::presigning::PresigningConfig;
use http_body_util::{BodyExt as _, Full};
use plain_http::{Answer, request};
use tower::ServiceExt as _;

use super::super::{INLINE_BYTES_MAX, ListenerEndpoint};
use super::*;

/// Starts a listener for a store, and creates a client that signs for it.
async fn listening(dir: &Path) -> (Client, Client, String) {
    let (store, local) = with_bucket(dir).await;
    let endpoint = endpoint(&store);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let router = axum::Router::new().fallback_service(endpoint.clone().listening());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let signer = config(&endpoint, false).endpoint_url(format!("http://{address}")).build();
    (Client::from_conf(signer), local, address)
}

fn for_a_minute() -> PresigningConfig {
    PresigningConfig::expires_in(Duration::from_secs(60)).unwrap()
}

fn expired_config() -> PresigningConfig {
    PresigningConfig::builder()
        .start_time(SystemTime::now() - Duration::from_secs(120))
        .expires_in(Duration::from_secs(60))
        .build()
        .unwrap()
}

/// A plain HTTP/1.1 client that sends the requests of a browser or curl.
mod plain_http {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    pub(super) struct Answer {
        pub(super) status: u16,
        pub(super) head: String,
        pub(super) body: Vec<u8>,
    }

    pub(super) async fn request(
        address: &str,
        method: &str,
        uri: &str,
        extra: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let target = uri.split_once(address).map_or(uri, |(_, target)| target);
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        for (name, value) in extra {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut raw = Vec::new();
        stream.read_to_end(&mut raw).await.unwrap();
        let split = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(raw[..split].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: raw[split + 4..].to_vec() }
    }
}

#[tokio::test]
async fn presigned_put_and_get() {
    let dir = tempfile::tempdir().unwrap();
    let (signer, local, address) = listening(dir.path()).await;
    for len in [10, INLINE_BYTES_MAX * 5] {
        let key = format!("up load/ä+{len}");
        let put = signer.put_object().bucket(BUCKET).key(&key).content_type("text/plain");
        let put = put.presigned(for_a_minute()).await.unwrap();
        let extra: Vec<_> = put.headers().collect();
        let answer = request(&address, put.method(), put.uri(), &extra, &bytes(len, 6)).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        let got = local.get_object().bucket(BUCKET).key(&key).send().await.unwrap();
        assert_eq!(got.content_type(), Some("text/plain"));
        assert_eq!(got.body.collect().await.unwrap().to_vec(), bytes(len, 6));

        let get = signer.get_object().bucket(BUCKET).key(&key).response_content_disposition("attachment");
        let get = get.presigned(for_a_minute()).await.unwrap();
        let extra: Vec<_> = get.headers().collect();
        let answer = request(&address, "GET", get.uri(), &extra, b"").await;
        assert_eq!((answer.status, answer.body), (200, bytes(len, 6)));
        assert!(answer.head.contains("content-disposition: attachment"), "{}", answer.head);
        let head = signer.head_object().bucket(BUCKET).key(&key).presigned(for_a_minute()).await.unwrap();
        let answer = request(&address, "HEAD", head.uri(), &[], b"").await;
        assert_eq!((answer.status, answer.body), (200, Vec::new()));
        assert!(answer.head.contains(&format!("content-length: {len}\r\n")), "{}", answer.head);
        let ranged: Vec<_> = get.headers().chain([("range", "bytes=2-5")]).collect();
        let answer = request(&address, "GET", get.uri(), &ranged, b"").await;
        assert_eq!((answer.status, answer.body), (206, bytes(len, 6)[2..6].to_vec()));
    }
}

#[tokio::test]
async fn invalid_signatures_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (signer, local, address) = listening(dir.path()).await;
    local.put_object().bucket(BUCKET).key("k").send().await.unwrap();
    let refused = |answer: Answer, code: &str| {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 403, "{text}");
        assert!(text.contains(&format!("<Code>{code}</Code>")), "{text}");
    };

    let late = signer.get_object().bucket(BUCKET).key("k").presigned(expired_config()).await.unwrap();
    refused(request(&address, "GET", late.uri(), &[], b"").await, "AccessDenied");
    let late = signer.put_object().bucket(BUCKET).key("new").presigned(expired_config()).await.unwrap();
    refused(request(&address, "PUT", late.uri(), &[], b"x").await, "AccessDenied");

    let good = signer.get_object().bucket(BUCKET).key("k").presigned(for_a_minute()).await.unwrap();
    let get = |uri: String| {
        let address = address.clone();
        async move { request(&address, "GET", &uri, &[], b"").await }
    };
    assert_eq!(get(good.uri().to_owned()).await.status, 200);
    let (rest, signature) = good.uri().split_once("X-Amz-Signature=").unwrap();
    let flipped: String =
        signature.chars().enumerate().map(|(at, c)| if at == 0 { flip(c) } else { c }).collect();
    refused(get(format!("{rest}X-Amz-Signature={flipped}")).await, "SignatureDoesNotMatch");
    // Signed for another key, another method, another lifetime.
    refused(get(good.uri().replace("/k?", "/other?")).await, "SignatureDoesNotMatch");
    refused(request(&address, "PUT", good.uri(), &[], b"x").await, "SignatureDoesNotMatch");
    refused(get(good.uri().replace("Expires=60", "Expires=600")).await, "SignatureDoesNotMatch");
    // Not signed.
    refused(get(format!("http://{address}/{BUCKET}/k")).await, "AccessDenied");
    refused(
        request(&address, "PUT", &format!("http://{address}/{BUCKET}/k"), &[], b"x").await,
        "AccessDenied",
    );
    // An invalid signature in the header isn't accepted here.
    let forged = [("authorization", "AWS4-HMAC-SHA256 forged"), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")];
    assert_ne!(
        request(&address, "GET", &format!("http://{address}/{BUCKET}/k"), &forged, b"").await.status,
        200
    );
    assert_eq!(failure(local.head_object().bucket(BUCKET).key("new").send().await).1, 404);
}

fn flip(c: char) -> char {
    if c == '0' { '1' } else { '0' }
}

/// The received body must be the signed one.
#[tokio::test]
async fn a_body_that_was_not_signed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, client) = with_bucket(dir.path()).await;
    let put = client.put_object().bucket(BUCKET).key("k");
    put.body(aws_sdk_s3::primitives::ByteStream::from_static(b"good")).send().await.unwrap();
    let endpoint = endpoint(&store);
    let presigned = client.put_object().bucket(BUCKET).key("k").presigned(for_a_minute()).await.unwrap();
    let request = http::Request::builder()
        .method("PUT")
        .uri(presigned.uri())
        .header("host", "local.invalid")
        .header("content-length", "4")
        // SHA-256 of "abc" with another body.
        .header("x-amz-content-sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        .body(s3s::Body::http_body(Full::new(::bytes::Bytes::from_static(b"evil"))))
        .unwrap();
    let answer = endpoint.handle(request).await;
    assert_eq!(answer.status(), 400);
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&text).contains("XAmzContentSHA256Mismatch"));
    let got = client.get_object().bucket(BUCKET).key("k").send().await.unwrap();
    assert_eq!(got.body.collect().await.unwrap().to_vec(), b"good");
}

/// A listener doesn't read the bodies of callers that it rejects, and limits the number of bodies that it stores at
/// once.
#[tokio::test]
async fn a_listener_checks_the_caller_before_it_reads_a_body() {
    let dir = tempfile::tempdir().unwrap();
    let (store, client) = with_bucket(dir.path()).await;
    let listening = endpoint(&store).listening();
    let presigned = async |key: &str| {
        let put = client.put_object().bucket(BUCKET).key(key).presigned(for_a_minute()).await.unwrap();
        put.uri().to_owned()
    };
    let good = presigned("k").await;
    let forged = good.replace("/k?", "/other?");
    let plain = format!("http://local.invalid/{BUCKET}/k");
    let bucket = format!("http://local.invalid/{BUCKET}");
    // Invalid signatures in the header, with a body that is sent in chunks or declared by its digest.
    let day = "20260101";
    let forged_header = |access_key: &str| {
        format!(
            "AWS4-HMAC-SHA256 Credential={access_key}/{day}/us-east-1/s3/aws4_request, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={}",
            "0".repeat(64)
        )
    };
    let (known, unknown) = (forged_header("test"), forged_header("nobody"));
    let digest = "0".repeat(64);
    for (method, uri, kind, signature, status) in [
        ("PUT", &plain, "text/plain", None, 403),
        ("PUT", &forged, "text/plain", None, 403),
        ("POST", &plain, "text/plain", None, 403),
        ("POST", &bucket, "multipart/form-data; boundary=x", None, 501),
        ("PUT", &plain, "text/plain", Some((&known, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")), 403),
        ("PUT", &plain, "text/plain", Some((&known, "UNSIGNED-PAYLOAD")), 403),
        ("PUT", &plain, "text/plain", Some((&known, &digest)), 403),
        ("PUT", &plain, "text/plain", Some((&unknown, &digest)), 403),
    ] {
        let read = Arc::new(AtomicBool::new(false));
        let request = http::Request::builder().method(method).uri(uri).header("content-type", kind);
        let mut request = request.header("content-length", "100").header("host", "local.invalid");
        if let Some((signature, content)) = signature {
            request =
                request.header("authorization", signature).header("x-amz-date", format!("{day}T000000Z"));
            request = request.header("x-amz-content-sha256", content);
            request = request.header("x-amz-decoded-content-length", "50");
        }
        let answer = listening.clone().oneshot(request.body(EndlessBody(Arc::clone(&read))).unwrap());
        assert_eq!(answer.await.unwrap().status(), status, "{method} {uri}");
        assert!(!read.load(Ordering::Relaxed), "{method} {uri}");
    }
    // Bodies that never arrive take all permits; reads need none.
    let mut waiting = Vec::new();
    for _ in 0..16 {
        let read = Arc::new(AtomicBool::new(false));
        let request = http::Request::put(&good).header("host", "local.invalid").header("content-length", "9");
        let request = request.body(EndlessBody(Arc::clone(&read))).unwrap();
        waiting.push(tokio::spawn(listening.clone().oneshot(request)));
        while !read.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let get = client.get_object().bucket(BUCKET).key("k").presigned(for_a_minute()).await.unwrap();
    let get = http::Request::get(get.uri()).header("host", "local.invalid").body(Full::default()).unwrap();
    assert_eq!(listening.clone().oneshot(get).await.unwrap().status(), 404);
    let put = async |listening: ListenerEndpoint| {
        let put = http::Request::put(&good).header("host", "local.invalid").header("content-length", "1");
        let put = put.body(Full::new(::bytes::Bytes::from_static(b"x"))).unwrap();
        listening.oneshot(put).await.unwrap()
    };
    let busy = put(listening.clone()).await;
    assert_eq!((busy.status().as_u16(), &busy.headers()["retry-after"]), (503, &"10".parse().unwrap()));
    for task in waiting {
        task.abort();
        let _ = task.await;
    }
    assert_eq!(put(listening).await.status(), 200);
}

/// A body that never arrives, and records whether it was polled.
struct EndlessBody(Arc<AtomicBool>);

impl hyper::body::Body for EndlessBody {
    type Data = ::bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<hyper::body::Frame<::bytes::Bytes>>>> {
        self.0.store(true, Ordering::Relaxed);
        Poll::Pending
    }
}
