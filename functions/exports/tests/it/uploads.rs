//! Files that are too large for a request: requested, sent to the bucket, verified, deleted.

use std::sync::Arc;

use crate::support;
use crate::support::Stack;
use axum::Router;
use axum::body::Body;
use bench_exports::{Exports, VERIFY_BYTES_MAX, router};
use bench_web::{ServerConfig, finish};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

const SIGNED: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/chutes-signed-export.zip"));
const MINE: &str = "Bearer sk-mine";
const OTHERS: &str = "Bearer sk-other";

fn app(exports: Exports) -> Router {
    finish(router(Arc::new(exports)), ServerConfig::default())
}

async fn post(app: &Router, path: &str, key: Option<&str>, body: &Value) -> (StatusCode, Value) {
    let mut request = Request::post(path).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("authorization", key);
    }
    let answer = app.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    let status = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

fn order(content: &[u8]) -> Value {
    let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "purpose": "verify", "bytes": content.len(), "sha256": sha256 })
}

/// Returns the request that a client makes from the response.
fn put(upload: &Value, content: &[u8]) -> Request<Body> {
    let url = upload["url"].as_str().unwrap();
    let host = support::S3_ADDRESS.strip_prefix("http://").unwrap();
    let mut request = Request::put(url).header("host", host);
    for (name, value) in upload["headers"].as_object().unwrap() {
        if name != "content-length" {
            request = request.header(name, value.as_str().unwrap());
        }
    }
    // A client can't send a wrong length: the connection would break.
    request.header("content-length", content.len()).body(Body::from(content.to_vec())).unwrap()
}

async fn verify(app: &Router, key: Option<&str>, id: &Value) -> (StatusCode, Value) {
    post(app, "/api/exports/verify", key, &json!({ "upload_id": id })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_uploaded_verified_and_gone() {
    let stack = Stack::open().await;
    let app = app(stack.reachable());
    let (status, upload) = post(&app, "/api/uploads", Some(MINE), &order(SIGNED)).await;
    assert_eq!((status, &upload["method"]), (StatusCode::CREATED, &json!("PUT")), "{upload}");
    assert!(upload["url"].as_str().unwrap().starts_with(support::S3_ADDRESS), "{upload}");
    let id = &upload["upload_id"];
    let (status, body) = verify(&app, Some(MINE), id).await;
    assert_eq!(status, 404, "nothing was sent yet: {body}");
    assert_eq!(stack.ask_s3(put(&upload, SIGNED)).await, 200);

    assert_eq!(verify(&app, Some(OTHERS), id).await.0, 404, "it is somebody else's");
    assert_eq!(verify(&app, None, id).await.0, 401);
    let (status, verdict) = verify(&app, Some(MINE), id).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(true)), "{verdict}");
    assert_eq!(verify(&app, Some(MINE), id).await.0, 404, "it was verified already");
    assert!(stack.blobs.list("uploads/", None).await.unwrap().0.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bucket_takes_what_was_announced_and_nothing_else() {
    let stack = Stack::open().await;
    let app = app(stack.reachable());
    let (_, upload) = post(&app, "/api/uploads", Some(MINE), &order(SIGNED)).await;
    let mut altered = SIGNED.to_vec();
    altered[100] ^= 1;
    let longer = [SIGNED, b"x"].concat();
    for content in [&altered, &longer, &SIGNED[1..].to_vec()] {
        let status = stack.ask_s3(put(&upload, content)).await;
        assert!(status.is_client_error(), "{status} for {} bytes", content.len());
    }
    // The header is part of the signature, so without it the signature doesn't match.
    let mut bare = put(&upload, &altered);
    bare.headers_mut().remove("x-amz-checksum-sha256").unwrap();
    assert_eq!(stack.ask_s3(bare).await, 403);
    assert_eq!(verify(&app, Some(MINE), &upload["upload_id"]).await.0, 404);
    assert!(stack.blobs.list("uploads/", None).await.unwrap().0.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_archive_gets_a_verdict_and_is_deleted() {
    let stack = Stack::open().await;
    let app = app(stack.reachable());
    let (_, upload) = post(&app, "/api/uploads", Some(MINE), &order(b"no archive")).await;
    assert_eq!(stack.ask_s3(put(&upload, b"no archive")).await, 200);
    let (status, verdict) = verify(&app, Some(MINE), &upload["upload_id"]).await;
    assert_eq!((status, &verdict["errors"]), (StatusCode::OK, &json!(["Invalid zip archive"])));
    assert!(stack.blobs.list("uploads/", None).await.unwrap().0.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused() {
    let stack = Stack::open().await;
    let app = app(stack.reachable());
    let good = order(SIGNED);
    assert_eq!(post(&app, "/api/uploads", None, &good).await.0, 401);
    for (field, value, kind) in [
        ("purpose", json!("keep"), "literal_error"),
        ("purpose", json!(null), "string_type"),
        ("bytes", json!(null), "missing"),
        ("bytes", json!(0), "greater_than_equal"),
        ("sha256", json!("zz".repeat(32)), "value_error"),
        ("sha256", json!("ab"), "value_error"),
        ("sha256", json!(""), "value_error"),
        ("purpose", json!(""), "literal_error"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        let (status, answer) = post(&app, "/api/uploads", Some(MINE), &body).await;
        assert_eq!(status, 422, "{field}: {answer}");
        let problems = answer["detail"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{answer}");
        assert!(problems[0]["type"] == kind && problems[0]["loc"] == json!(["body", field]), "{answer}");
    }
    let mut large = good.clone();
    large["bytes"] = json!(VERIFY_BYTES_MAX + 1);
    let (status, answer) = post(&app, "/api/uploads", Some(MINE), &large).await;
    assert_eq!(status, 413, "{answer}");
    large["bytes"] = json!(VERIFY_BYTES_MAX);
    assert_eq!(post(&app, "/api/uploads", Some(MINE), &large).await.0, 201);

    for id in ["", "verify-", "verify-../../bodies/x", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"] {
        assert_eq!(verify(&app, Some(MINE), &json!(id)).await.0, 404, "{id}");
    }
    assert_eq!(post(&app, "/api/exports/verify", Some(MINE), &json!({})).await.0, 422);
    // A server whose bucket callers can't reach says so.
    let closed = self::app(stack.exports());
    let (status, answer) = post(&closed, "/api/uploads", Some(MINE), &good).await;
    assert_eq!(status, 404, "{answer}");
}

/// Any text is accepted as a key, so uploads are limited per address, whatever keys it sends.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_bounded_for_each_address() {
    let stack = Stack::open().await;
    let app = app(stack.reachable());
    let ask = async |n: usize, address: &str| {
        let request = Request::post("/api/uploads")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer made-up-{n}"))
            .header("x-forwarded-for", address);
        let request = request.body(Body::from(order(SIGNED).to_string())).unwrap();
        let answer = app.clone().oneshot(request).await.unwrap();
        (answer.status().as_u16(), answer.headers().contains_key("retry-after"))
    };
    let mut statuses = Vec::new();
    for n in 0..40 {
        statuses.push(ask(n, "192.0.2.1").await);
    }
    assert_eq!(statuses.iter().filter(|answer| **answer == (201, false)).count(), 30, "{statuses:?}");
    assert_eq!(statuses[39], (429, true));
    assert_eq!(ask(40, "192.0.2.2").await, (201, false));
}
