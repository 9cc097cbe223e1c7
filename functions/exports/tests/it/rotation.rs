//! Rotation of the signing key: archives that the old key signed still verify.

use std::sync::Arc;

use crate::support::{Said, Stack, config, script};
use axum::Router;
use axum::body::Body;
use bench_exports::{Exports, router};
use bench_signing::{Distrust, KeyRing, RingConfig, rotate_secret};
use bench_web::{ServerConfig, finish};
use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::ServiceExt;

/// A secret as the template generates it.
const SECRET: &str =
    r#"{"BENCH_SIGNING_PRIVATE_KEY":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}"#;

fn app(exports: Exports) -> Router {
    finish(router(Arc::new(exports)), ServerConfig::default())
}

/// Returns the key ring of a function whose environment has this secret.
fn ring(secret: &str) -> KeyRing {
    let members: Value = serde_json::from_str(secret).unwrap();
    let text = |name: &str| members[name].as_str();
    let config = RingConfig {
        private_key: text("BENCH_SIGNING_PRIVATE_KEY"),
        public_key: text("BENCH_SIGNING_PUBLIC_KEY"),
        old_public_keys: text("BENCH_SIGNING_OLD_PUBLIC_KEYS"),
        valid_from: None,
    };
    KeyRing::from_config(&config).unwrap()
}

async fn ask(app: &Router, request: Request<Body>) -> Vec<u8> {
    let response = app.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

async fn export(app: &Router, run: bench_domain::RunId) -> Vec<u8> {
    let request = Request::get(format!("/api/runs/{run}/export?format=zip")).body(Body::empty());
    ask(app, request.unwrap()).await
}

async fn verdict(app: &Router, archive: &[u8]) -> Value {
    let mut form =
        b"--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.zip\"\r\n\r\n".to_vec();
    form.extend_from_slice(archive);
    form.extend_from_slice(b"\r\n--XX--\r\n");
    let request =
        Request::post("/api/exports/verify").header("content-type", "multipart/form-data; boundary=XX");
    serde_json::from_slice(&ask(app, request.body(Body::from(form)).unwrap()).await).unwrap()
}

async fn keys(app: &Router) -> Value {
    let request = Request::get("/.well-known/bench-runner-keys.json").body(Body::empty());
    serde_json::from_slice(&ask(app, request.unwrap()).await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_secret_was_rotated_old_archives_verify_and_new_ones_have_the_new_key() {
    let stack = Stack::open().await;
    let script = script(2, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let app_of = |secret: &str| app(stack.exports_with(Ok(ring(secret)), config()));
    let before = app_of(SECRET);
    let old = export(&before, script.run).await;
    let rotated = rotate_secret(SECRET, Distrust::Nothing, Timestamp::now()).unwrap();
    let after = app_of(&rotated.secret);
    let listed = keys(&after).await;
    assert_eq!(listed["keys"][0]["key_id"], json!(rotated.current.fingerprint()));
    assert_eq!(
        (&listed["keys"][1]["key_id"], &listed["keys"][1]["status"]),
        (&json!(rotated.retired.fingerprint()), &json!("retired"))
    );
    let new = export(&after, script.run).await;
    assert_ne!(old, new);
    for (archive, key) in [(&old, rotated.retired), (&new, rotated.current)] {
        let verdict = verdict(&after, archive).await;
        assert_eq!(verdict["valid"], true, "{verdict}");
        assert_eq!(verdict["public_key_fingerprint"], json!(key.fingerprint()));
    }
    // An environment with the old secret continues to work, and its archives verify.
    assert_eq!(export(&before, script.run).await, old);
    assert_eq!(verdict(&before, &new).await["valid"], false);
    // Archives that a leaked key signed no longer verify.
    let distrusted = rotate_secret(SECRET, Distrust::Current, Timestamp::now()).unwrap();
    assert_eq!(verdict(&app_of(&distrusted.secret), &old).await["valid"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_signs_with_the_new_key_of_its_directory() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let directory = tempfile::tempdir().unwrap();
    let mut beside = KeyRing::open(directory.path(), Timestamp::now()).unwrap();
    let server = KeyRing::open(directory.path(), Timestamp::now()).unwrap();
    let app = app(stack.exports_with(Ok(server), config()));
    let old = export(&app, script.run).await;
    let current = beside.rotate(Timestamp::now()).unwrap();
    assert_eq!(keys(&app).await["keys"][0]["key_id"], json!(current.fingerprint()));
    let new = export(&app, script.run).await;
    assert_eq!(verdict(&app, &new).await["public_key_fingerprint"], json!(current.fingerprint()));
    for archive in [&old, &new] {
        assert_eq!(verdict(&app, archive).await["valid"], true);
    }
    // A damaged key directory doesn't stop the server.
    std::fs::write(directory.path().join("keys.json"), "{").unwrap();
    assert_eq!(export(&app, script.run).await, new);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_made_after_a_rotation_is_dated_within_its_key_s_time() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(Said::right("A")));
    script.play(&stack).await;
    // The run was completed in January 2026, after the first key was created and before the second was.
    let (before, after) =
        ("2025-12-01T00:00:00Z".parse().unwrap(), "2026-02-01T00:00:00.5Z".parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut beside = KeyRing::open(directory.path(), before).unwrap();
    let server = KeyRing::open(directory.path(), before).unwrap();
    let app = app(stack.exports_with(Ok(server), config()));
    let date = |archive: &[u8]| {
        let archive = std::io::Cursor::new(archive);
        let manifest =
            bench_signing::unverified_manifest(archive, &bench_signing::Limits::default()).unwrap();
        manifest["generated_at"].as_str().unwrap().to_owned()
    };
    let old = export(&app, script.run).await;
    assert_eq!(date(&old), "2026-01-02T04:26:26Z");
    beside.rotate(after).unwrap();
    let new = export(&app, script.run).await;
    assert_eq!(date(&new), "2026-02-01T00:00:00Z");
    assert_eq!(export(&app, script.run).await, new, "the same bytes for the same key");
    for archive in [&old, &new] {
        let verdict = verdict(&app, archive).await;
        assert_eq!(verdict["valid"], true, "{verdict}");
        assert_eq!(verdict["exported_at"], "2026-01-02T04:26:26Z");
    }
    // The old key leaked: its archives are no longer valid, and the response says why.
    let leaked = beside.retired()[0].public_key;
    beside.distrust(leaked, after).unwrap();
    let verdict = verdict(&app, &old).await;
    assert_eq!((&verdict["valid"], &verdict["signature_valid"]), (&json!(false), &json!(false)));
    assert!(verdict["errors"][0].as_str().unwrap().contains("not trusted any more"), "{verdict}");
}
