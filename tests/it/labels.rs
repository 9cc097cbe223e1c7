//! Labels of runs while they run and after, and what is left of a run that was deleted.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use bench_blobs::{bodies_prefix, exports_prefix};
use bench_domain::{RunId, RunStatus};
use bench_state::RunFilter;
use bench_tests::model_server::Reply;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

/// Sends a request to the API, and returns status and body.
pub(crate) async fn send(world: &World, method: &str, path: &str, body: Option<Value>) -> (u16, Vec<u8>) {
    let request = http::Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.header("content-type", "application/json");
    let request = request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap();
    let response = world.stack.router().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    (status, to_bytes(response.into_body(), 64 << 20).await.unwrap().to_vec())
}

async fn label(world: &World, run: RunId, change: Value) -> Value {
    let (status, body) = send(world, "PATCH", &format!("/api/runs/{run}"), Some(change)).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// Builds an export anew, and returns its bytes.
async fn export(world: &World, run: RunId, format: &str) -> Vec<u8> {
    world.stack.blobs.delete_prefix(&exports_prefix(run)).await.unwrap();
    let (status, body) = send(world, "GET", &format!("/api/runs/{run}/export?format={format}"), None).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    body
}

async fn tagged(world: &World, tag: &str) -> Vec<RunId> {
    let filter = RunFilter { tags: vec![tag.to_owned()], ..RunFilter::default() };
    world.stack.state.list_runs(&filter, 0, 100).await.unwrap().runs
}

#[test]
fn labels_can_change_while_a_run_works_and_never_change_its_exports() {
    runtime().block_on(async {
        let settings = Settings { latency: Duration::from_millis(20), concurrency: 4, ..Settings::default() };
        let world = World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(40).with_aime(2).place(&world).await;
        // Every transition of the run meets changes of its labels.
        let mut changes = 0;
        while world.stored_run(run).await.run.state.status().is_open() {
            label(&world, run, json!({ "name": format!("change {changes}"), "add_tags": ["busy"] })).await;
            changes += 1;
        }
        assert!(changes > 5, "{changes}");
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        let labels = world.stored_run(run).await.run.spec.template.labels;
        assert_eq!(
            (labels.name, labels.tags),
            (Some(format!("change {}", changes - 1)), vec!["busy".to_owned()])
        );
        assert_eq!(tagged(&world, "busy").await, [run]);

        let before = [export(&world, run, "zip").await, export(&world, run, "csv").await];
        let labels = json!({ "name": "another name", "tags": ["another"], "notes": "another note" });
        label(&world, run, labels).await;
        assert_eq!([export(&world, run, "zip").await, export(&world, run, "csv").await], before);
        label(&world, run, json!({ "name": null, "tags": null, "notes": null })).await;
        assert_eq!([export(&world, run, "zip").await, export(&world, run, "csv").await], before);
        assert!(!String::from_utf8_lossy(&before[1]).contains("change "));
    });
}

#[test]
fn nothing_is_left_of_a_run_that_is_deleted_while_answers_are_under_way() {
    runtime().block_on(async {
        let settings = Settings {
            concurrency: 4,
            vars: &[("CHUTES_INFERENCE_TIMEOUT_SECONDS", "600")],
            ..Settings::default()
        };
        let world = World::start(settings, |request| match request.total_before {
            0..4 => Reply::Text(data::right_answer(&request.item)),
            _ => Reply::Hang(Duration::from_secs(600)),
        })
        .await;
        let run = Order::mmlu_pro(12).place(&world).await;
        label(&world, run, json!({ "tags": ["to-delete"] })).await;
        let path = format!("/api/runs/{run}");
        world.wait_until("calls in flight", || async { world.model.in_flight() == 4 }).await;
        let (status, body) = send(&world, "DELETE", &path, None).await;
        assert_eq!(status, 400, "it must be canceled first: {}", String::from_utf8_lossy(&body));
        assert_eq!(tagged(&world, "to-delete").await, [run]);
        world.cancel(run).await;
        assert_eq!(send(&world, "DELETE", &path, None).await.0, 200);
        assert_eq!(send(&world, "GET", &path, None).await.0, 404);
        assert!(tagged(&world, "to-delete").await.is_empty());
        let state = &world.stack.state;
        world
            .wait_until("the removal", || async {
                state.any_run_with_benchmarks(run).await.unwrap().is_none()
            })
            .await;
        assert_eq!(world.model.in_flight(), 0, "answers that nobody needs are not waited for");
        let (bodies, _) = world.stack.blobs.list(&bodies_prefix(run), None).await.unwrap();
        assert!(bodies.is_empty(), "{bodies:?}");
        assert!(state.events(run, 0, 100).await.unwrap().is_empty());
        assert_eq!(state.list_runs(&RunFilter::default(), 0, 100).await.unwrap().total, 0);
    });
}
