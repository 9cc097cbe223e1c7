//! The routes, with runs in the embedded services.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::support::{FAILING_ARCHIVES, Said, Stack, after, config, key_ring, owner_of, script, trusted};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bench_domain::Code;
use bench_exports::{ExportFormat, Exports, ExportsConfig, router};
use bench_lambda::metrics;
use bench_signing::{KeyError, Limits, verify_bytes};
use bench_web::{ServerConfig, finish};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

const SIGNED: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/chutes-signed-export.zip"));

fn app(exports: Exports) -> Router {
    finish(router(Arc::new(exports)), ServerConfig::default())
}

async fn get(app: &Router, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn bytes(response: Response) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

async fn json_of(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let body: Value = serde_json::from_slice(&bytes(response).await).unwrap();
    if status.is_client_error() || status.is_server_error() {
        assert!(body["code"].as_str().and_then(bench_domain::Code::from_name).is_some(), "{body}");
    }
    (status, body)
}

async fn upload(app: &Router, part: &str, content: &[u8]) -> Response {
    let mut body = format!("--XX\r\nContent-Disposition: form-data; {part}\r\n\r\n").into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--XX--\r\n");
    post(app, "multipart/form-data; boundary=XX", body).await
}

async fn post(app: &Router, content_type: &str, body: Vec<u8>) -> Response {
    let request = Request::post("/api/exports/verify").header("content-type", content_type);
    app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
}

const FILE: &str = "name=\"file\"; filename=\"a.zip\"";

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_checked_in_order_and_answered_as_a_file() {
    let stack = Stack::open().await;
    let script = script(3, |_| Some(Said::right("A")));
    let app = app(stack.exports());
    let path = format!("/api/runs/{}/export", script.run);

    for (query, input) in [("?format=docx", "docx"), ("?format=", ""), ("?format=ZIP", "ZIP")] {
        let (status, body) = json_of(get(&app, &format!("{path}{query}"), &[]).await).await;
        assert_eq!(status, 422, "{query}");
        assert_eq!(body["detail"][0]["type"], "string_pattern_mismatch");
        assert_eq!(body["detail"][0]["loc"], json!(["query", "format"]));
        assert_eq!(body["detail"][0]["input"], input);
    }
    for path in [path.as_str(), "/api/runs/abc/export?format=zip"] {
        assert_eq!(
            json_of(get(&app, path, &[]).await).await,
            (StatusCode::NOT_FOUND, json!({ "detail": "Run not found", "code": "run_not_found" }))
        );
    }
    let (status, _) = json_of(get(&app, "/api/runs/abc/export?format=docx", &[]).await).await;
    assert_eq!(status, 422, "the format is looked at first");

    script.create(&stack).await;
    let refused = json_of(get(&app, &path, &[]).await).await;
    assert_eq!(
        refused,
        (
            StatusCode::BAD_REQUEST,
            json!({ "detail": "Run must be completed before export", "code": "run_not_over" })
        )
    );

    let stack = Stack::open().await;
    script.play(&stack).await;
    let app = self::app(stack.exports());
    for (query, kind, name) in [
        ("", "text/csv; charset=utf-8", "benchmark_run"),
        ("?format=csv", "text/csv; charset=utf-8", "benchmark_run"),
        ("?format=jsonl", "application/x-ndjson", "benchmark_samples"),
        ("?format=zip", "application/zip", "benchmark_results"),
    ] {
        let answer = get(&app, &format!("{path}{query}"), &[]).await;
        assert_eq!(answer.status(), 200, "{query}");
        let headers = answer.headers().clone();
        assert_eq!(headers["content-type"], kind);
        let ending = match kind {
            "application/zip" => "zip",
            "application/x-ndjson" => "jsonl",
            _ => "csv",
        };
        let name = format!("attachment; filename=\"{name}_{}_20260102_042626.{ending}\"", script.run);
        assert_eq!(headers["content-disposition"], name.as_str());
        let body = bytes(answer).await;
        assert_eq!(headers["content-length"], body.len().to_string().as_str());
        assert_eq!(body.starts_with(b"PK"), ending == "zip");
    }
    let head = Request::head(&path).body(Body::empty()).unwrap();
    assert_eq!(app.oneshot(head).await.unwrap().status(), 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_export_is_streamed_or_redirected_to() {
    let stack = Stack::open().await;
    let script = script(40, |position| Some(Said::right(&format!("{position} ").repeat(500))));
    script.play(&stack).await;
    let path = format!("/api/runs/{}/export?format=zip", script.run);
    let whole = bytes(get(&app(stack.exports()), &path, &[]).await).await;
    assert!(verify_bytes(&whole, &trusted(), &Limits::default(), jiff::Timestamp::now()).valid);

    let small = |streaming| ExportsConfig { inline_bytes_max: 100, streaming, ..config() };
    let answer = get(&app(stack.exports_with(key_ring(), small(true))), &path, &[]).await;
    assert_eq!(
        (answer.status(), answer.headers()["content-length"].to_str().unwrap()),
        (StatusCode::OK, whole.len().to_string().as_str())
    );
    assert!(bytes(answer).await == whole, "the same bytes");

    let answer = get(&app(stack.exports_with(key_ring(), small(false))), &path, &[]).await;
    assert_eq!(answer.status(), 307);
    let location = answer.headers()["location"].to_str().unwrap();
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    assert!(location.contains(&built.filename) && location.contains("X-Amz-Signature="), "{location}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_during_a_build_gets_a_retry_after() {
    let stack = Stack::open().await;
    let script = script(300, |position| Some(Said::right(&format!("{position} ").repeat(500))));
    script.play(&stack).await;
    let path = format!("/api/runs/{}/export?format=zip", script.run);
    let config = ExportsConfig { build_wait: Some(Duration::ZERO), ..config() };
    let app = app(stack.exports_with(key_ring(), config));
    let first = get(&app, &path, &[]).await;
    assert_eq!(
        (first.status(), first.headers()["retry-after"].to_str().unwrap()),
        (StatusCode::ACCEPTED, "2")
    );
    assert!(json_of(first).await.1["detail"].as_str().unwrap().contains("being built"));
    // The build continues without a waiting caller. Afterwards the file has the same bytes as for a caller that waits.
    let whole = bytes(get(&self::app(stack.exports()), &path, &[]).await).await;
    let mut answer = get(&app, &path, &[]).await;
    while answer.status() == StatusCode::ACCEPTED {
        tokio::task::yield_now().await;
        answer = get(&app, &path, &[]).await;
    }
    assert_eq!(answer.status(), 200);
    assert!(bytes(answer).await == whole, "the same bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_before_the_benchmarks_close_gets_a_retry_after() {
    let stack = Stack::open().await;
    let script = script(1, |_| None);
    script.work(&stack).await;
    let run = stack.state.run(script.run).await.unwrap().unwrap();
    let failed = run.state.fail(after(20), Code::InvalidKey, "the key was refused").unwrap();
    let event = bench_state::NewEvent::new(bench_state::EventKind::RunFailed, "failed");
    stack.state.change_run(&run, &failed, 1, &event, after(20)).await.unwrap();
    let path = format!("/api/runs/{}/export?format=zip", script.run);
    let app = app(stack.exports());
    let answer = get(&app, &path, &[]).await;
    let again = answer.headers()["retry-after"].to_str().unwrap().to_owned();
    assert_eq!((answer.status(), again.as_str()), (StatusCode::ACCEPTED, "2"));
    let detail = json_of(answer).await.1["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail, "the run's benchmarks are still being closed; try again in 2 seconds");
    stack.state.skip_open_benchmarks(script.run, "it ended early", after(21)).await.unwrap();
    assert_eq!(get(&app, &path, &[]).await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lambda_adds_counts_towards_the_inline_limit() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let path = format!("/api/runs/{}/export?format=zip", script.run);
    for (streaming, status) in [(true, 200), (false, 307)] {
        let config = ExportsConfig { inline_bytes_max: built.length, streaming, ..config() };
        let answer = get(&app(stack.exports_with(key_ring(), config)), &path, &[]).await;
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_with_gated_items_is_for_owner_and_admin() {
    let stack = Stack::open().await;
    let mut script = script(1, |_| Some(Said::right("A")));
    script.owner = owner_of("sk-mine");
    script.benchmark = "gpqa_diamond";
    script.play(&stack).await;
    let path = format!("/api/runs/{}/export", script.run);
    let closed = app(stack.exports_with(key_ring(), config()));
    for (headers, status) in [
        (&[][..], 401),
        (&[("authorization", "Bearer sk-other")][..], 403),
        (&[("authorization", "Bearer sk-mine")][..], 200),
        (&[("x-admin-secret", "wrong")][..], 401),
        (&[("x-admin-secret", "hush")][..], 200),
    ] {
        assert_eq!(get(&closed, &path, headers).await.status(), status, "{headers:?}");
    }
    script.run = bench_domain::RunId::random();
    script.benchmark = "mmlu_pro";
    script.play(&stack).await;
    let path = format!("/api/runs/{}/export", script.run);
    assert_eq!(get(&closed, &path, &[]).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_form_of_an_export_of_private_items_is_for_others() {
    let stack = Stack::open().await;
    let mut script = script(2, |_| Some(Said::right("kept to its owner")));
    script.owner = owner_of("sk-mine");
    for (benchmark, source) in
        [("gpqa_diamond", "hub"), ("gpqa_diamond", "local"), ("terminal_tasks", "local")]
    {
        script.benchmark = benchmark;
        script.run = bench_domain::RunId::random();
        script.source = source;
        script.play(&stack).await;
        let app = app(stack.exports_with(key_ring(), config()));
        for format in ["csv", "zip"] {
            let path = format!("/api/runs/{}/export?format={format}", script.run);
            // Strangers are refused even after the owner's export is stored.
            for (headers, status) in [
                (&[][..], 401),
                (&[("authorization", "Bearer sk-other")][..], 403),
                (&[("authorization", "Bearer sk-mine")][..], 200),
                (&[("x-admin-secret", "hush")][..], 200),
                (&[][..], 401),
                (&[("authorization", "Bearer sk-other")][..], 403),
            ] {
                let answer = get(&app, &path, headers).await;
                assert_eq!(answer.status(), status, "{format} {headers:?}");
                let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
                let text = String::from_utf8_lossy(&body);
                let tells = format == "csv" && status == 200;
                assert_eq!(text.contains("kept to its owner"), tells, "{format} {headers:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_items_of_a_gated_benchmark_are_open() {
    let stack = Stack::open().await;
    let mut script = script(1, |_| Some(Said::right("A")));
    script.source = "demo";
    script.benchmark = "gpqa_diamond";
    script.play(&stack).await;
    let path = format!("/api/runs/{}/export", script.run);
    assert_eq!(get(&app(stack.exports_with(key_ring(), config())), &path, &[]).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn public_keys_are_served() {
    let stack = Stack::open().await;
    let app = app(stack.exports());
    let (status, key) = json_of(get(&app, "/api/exports/public-key", &[]).await).await;
    assert_eq!(status, 200);
    assert_eq!(
        key,
        json!({
            "algorithm": "ed25519",
            "public_key": "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
            "public_key_fingerprint": "56475aa75463474c0285df5dbf2bcab73da651358839e9b77481b2eab107708c",
        })
    );
    let (status, list) = json_of(get(&app, "/.well-known/bench-runner-keys.json", &[]).await).await;
    assert_eq!(status, 200);
    assert_eq!(list["keys"][0]["key_id"], key["public_key_fingerprint"]);
    assert_eq!(list["keys"][0]["status"], "current");
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_with_keys_are_reported() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let app = app(stack.exports_with(Err(KeyError::InvalidPrivateKey), config()));
    let unavailable = (
        StatusCode::SERVICE_UNAVAILABLE,
        json!({ "detail": "Invalid BENCH_SIGNING_PRIVATE_KEY", "code": "signing_key_invalid" }),
    );
    let export = format!("/api/runs/{}/export?format=zip", script.run);
    let _alone = FAILING_ARCHIVES.lock().await;
    metrics::start("bench-test", "bench-test-exports");
    for (path, failures) in
        [("/api/exports/public-key", 0.0), ("/.well-known/bench-runner-keys.json", 0.0), (&*export, 1.0)]
    {
        let before = metrics::pending(metrics::FAILURES);
        assert_eq!(json_of(get(&app, path, &[]).await).await, unavailable, "{path}");
        // Any caller may use the other routes; only an export that can't be signed raises an alarm.
        assert_eq!(metrics::pending(metrics::FAILURES) - before, failures, "{path}");
    }
    let (status, verdict) = json_of(upload(&app, FILE, SIGNED).await).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(false)));
    assert_eq!(verdict["errors"], json!(["Invalid BENCH_SIGNING_PRIVATE_KEY"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_archive_is_verified() {
    let stack = Stack::open().await;
    let script = script(3, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let app = app(stack.exports());
    let ours = bytes(get(&app, &format!("/api/runs/{}/export?format=zip", script.run), &[]).await).await;
    let (status, verdict) = json_of(upload(&app, FILE, &ours).await).await;
    assert_eq!(status, 200);
    assert_eq!(verdict["valid"], true, "{verdict}");
    assert_eq!(verdict["run_id"], json!(script.run.to_string()));
    assert_eq!(verdict.as_object().unwrap().len(), 13);

    let (_, theirs) = json_of(upload(&app, FILE, SIGNED).await).await;
    assert_eq!(theirs["valid"], true, "{theirs}");
    let mut altered = ours.clone();
    altered[60] ^= 1;
    for (content, error) in [
        (&b""[..], Some("Invalid zip archive")),
        (b"PK\x03\x04nothing", Some("Invalid zip archive")),
        (&altered, None),
    ] {
        let (status, verdict) = json_of(upload(&app, FILE, content).await).await;
        assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(false)));
        assert!(error.is_none_or(|error| verdict["errors"] == json!([error])), "{verdict}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_file_is_422_and_a_broken_one_400() {
    let stack = Stack::open().await;
    let app = app(stack.exports());
    let missing = [
        post(&app, "multipart/form-data", b"x".to_vec()).await,
        post(&app, "multipart/form-data; boundary=XX", b"--XX--\r\n".to_vec()).await,
        upload(&app, "name=\"other\"; filename=\"a.zip\"", SIGNED).await,
        app.clone().oneshot(Request::post("/api/exports/verify").body(Body::empty()).unwrap()).await.unwrap(),
    ];
    for answer in missing {
        let (status, body) = json_of(answer).await;
        assert_eq!(status, 422);
        assert_eq!(
            (&body["detail"][0]["type"], &body["detail"][0]["loc"]),
            (&json!("missing"), &json!(["body", "file"]))
        );
    }
    let (status, body) = json_of(upload(&app, "name=\"file\"", b"text").await).await;
    assert_eq!((status.as_u16(), &body["detail"][0]["type"]), (422, &json!("value_error")));
    let broken = post(
        &app,
        "multipart/form-data; boundary=XX",
        b"--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nhalf".to_vec(),
    )
    .await;
    assert_eq!(broken.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_is_413() {
    let stack = Stack::open().await;
    let app = app(stack.exports_with(key_ring(), ExportsConfig { upload_bytes_max: 1_000, ..config() }));
    assert_eq!(upload(&app, FILE, &[0; 1_000]).await.status(), 200, "just not");
    for length in [1_001, 60_000, 200_000] {
        assert_eq!(upload(&app, FILE, &vec![0; length]).await.status(), 413, "{length}");
    }
    // The advice is something that works on the server.
    for (direct_uploads, advice) in [(false, "bench verify --here"), (true, "POST /api/uploads")] {
        let config = ExportsConfig { upload_bytes_max: 1_000, direct_uploads, ..config() };
        let app = self::app(stack.exports_with(key_ring(), config));
        let (_, body) = json_of(upload(&app, FILE, &[0; 2_000]).await).await;
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains("1000 bytes") && detail.contains(advice), "{detail}");
    }
    let announced = Request::post("/api/exports/verify")
        .header("content-type", "multipart/form-data; boundary=XX")
        .header("content-length", "99999999999")
        .body(Body::empty())
        .unwrap();
    assert_eq!(app.oneshot(announced).await.unwrap().status(), 413);
}

#[test]
fn every_route_is_described() {
    let document = serde_json::to_value(bench_exports::openapi()).unwrap();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/.well-known/bench-runner-keys.json",
            "/api/exports/public-key",
            "/api/exports/verify",
            "/api/runs/{run_id}/export",
            "/api/uploads",
        ]
    );
    let verification = &document["components"]["schemas"]["VerificationView"]["properties"];
    assert_eq!(verification.as_object().unwrap().len(), 13);
}

/// The API serves one document for both functions and doesn't depend on this crate: it reads the file that
/// this test checks. `BENCH_WRITE_OPENAPI=1` rewrites the file.
#[test]
fn the_written_description_is_that_of_the_routes() {
    let mut described = serde_json::to_value(bench_exports::openapi()).unwrap();
    // The API has its own head, and describes the parts that both functions share.
    for head in ["openapi", "info"] {
        described.as_object_mut().unwrap().remove(head).unwrap();
    }
    for shared in ["Code", "ErrorBody", "ErrorDetail", "FieldError"] {
        described["components"]["schemas"].as_object_mut().unwrap().remove(shared).unwrap();
    }
    let text = serde_json::to_string_pretty(&described).unwrap() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    if std::env::var_os("BENCH_WRITE_OPENAPI").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == text,
        "functions/exports/openapi.json is out of date: BENCH_WRITE_OPENAPI=1 cargo test -p bench-exports --test it \
         written_description"
    );
}

/// Returns a form that begins and never ends.
fn unending(read: &Arc<AtomicBool>) -> Body {
    let read = Arc::clone(read);
    let begun = format!("--XX\r\nContent-Disposition: form-data; {FILE}\r\n\r\nPK");
    let mut begun = Some(begun);
    Body::from_stream(futures_util::stream::poll_fn(move |_| match begun.take() {
        Some(begun) => Poll::Ready(Some(Ok::<_, std::io::Error>(begun))),
        None => {
            read.store(true, Ordering::Relaxed);
            Poll::Pending
        }
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_read_only_when_there_is_room_for_it() {
    let stack = Stack::open().await;
    let config = ExportsConfig { upload_wait: Duration::from_millis(50), ..config() };
    let app = app(stack.exports_with(key_ring(), config));
    let ask = |body: Body| {
        let request =
            Request::post("/api/exports/verify").header("content-type", "multipart/form-data; boundary=XX");
        app.clone().oneshot(request.body(body).unwrap())
    };
    let mut slow = Vec::new();
    for _ in 0..8 {
        let read = Arc::new(AtomicBool::new(false));
        slow.push(tokio::spawn(ask(unending(&read))));
        while !read.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let read = Arc::new(AtomicBool::new(false));
    let (status, body) = json_of(ask(unending(&read)).await.unwrap()).await;
    assert_eq!(status, 503, "{body}");
    assert!(!read.load(Ordering::Relaxed), "a body without a slot is not read");
    assert_eq!(get(&app, "/api/exports/public-key", &[]).await.status(), 200);
    for slow in slow {
        slow.abort();
        let _ = slow.await;
    }
    let (status, body) = json_of(upload(&app, FILE, SIGNED).await).await;
    assert_eq!((status, &body["valid"]), (StatusCode::OK, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_together_take_a_bounded_part_of_the_disk() {
    let stack = Stack::open().await;
    let config = ExportsConfig { spooled_bytes_max: 1 << 20, ..config() };
    let app = app(stack.exports_with(key_ring(), config));
    let (status, body) = json_of(upload(&app, FILE, &vec![0; 2 << 20]).await).await;
    assert_eq!(status, 503, "{body}");
    for _ in 0..3 {
        assert_eq!(upload(&app, FILE, &vec![0; 900 << 10]).await.status(), 200);
    }
}
