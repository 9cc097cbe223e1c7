//! Public tests of the compatible system, in their order, over real HTTP: first the suite for any address, then the
//! assertions of the suite within the process. `tests/page/it/compatible.test.js` has those for a page.
//!
//! One of them doesn't hold by intention: the number of benchmarks, which is that of this catalog.

mod sampling;
mod server;

use bench_domain::eta::{format_duration_ms, format_duration_seconds, format_percent};
use serde_json::{Value, json};

use self::server::{Reach, Server, UI};
use crate::support::runtime;

/// Neither a run nor a model has this id.
const UNKNOWN: &str = "00000000-0000-0000-0000-000000000000";
const REACHES: [Reach; 2] = [Reach::Machine, Reach::Others];

fn assert_fields(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value.get(name).is_some(), "`{name}` is missing: {value}");
    }
}

#[test]
fn the_http_suite_passes() {
    runtime().block_on(async {
        for reach in REACHES {
            let server = Server::start(reach).await;

            let health = server.get("/api/health").await;
            assert_eq!((health.status, &health.json()["status"]), (200, &json!("healthy")));

            let root = server.get("/").await.json();
            assert_eq!((&root["name"], &root["docs"]), (&json!("Chutes Bench Runner"), &json!("/docs")));
            assert_fields(&root, &["version"]);

            let models = server.get("/api/models?limit=10").await;
            assert_eq!(models.status, 200);
            assert_fields(&models.json(), &["models", "total"]);
            assert!(!models.list("models").is_empty(), "a server without a catalog offers the oracle");
            assert_fields(&models.list("models")[0], &["id", "slug", "name"]);

            let benchmarks = server.get("/api/benchmarks").await;
            assert_eq!(benchmarks.status, 200);
            let listed = benchmarks.list("benchmarks");
            assert_eq!(listed.len(), bench_benchmarks::all().len(), "the compatible system has 22");
            for benchmark in &listed {
                assert_fields(benchmark, &["name", "display_name", "description", "is_enabled"]);
            }

            let runs = server.get("/api/runs").await;
            assert_eq!((runs.status, runs.list("runs")), (200, vec![]));

            assert_eq!(server.get(&format!("/api/runs/{UNKNOWN}")).await.status, 404);
            let body = json!({ "model_id": UNKNOWN, "subset_pct": 10, "selected_benchmarks": ["mmlu_pro"] });
            assert_eq!(server.post("/api/runs", &body).await.status, 404, "{reach:?}");

            let status = server.get("/api/auth/status").await;
            assert_eq!((status.status, &status.json()["idp_configured"]), (200, &json!(true)));
            assert_eq!(status.json()["authenticated"], json!(false));
            let login = server.get("/api/auth/login").await;
            assert!([302, 307].contains(&login.status), "{login:?}");
            // Cookies must come back with the callback, so a sign-in at another name of this machine moves to the page's.
            let moved = login.header("location").unwrap().strip_prefix(UI);
            assert_eq!(moved.is_some(), reach == Reach::Machine, "{login:?}");
            let login = match moved {
                Some(path) => server.get_at_ui(path).await,
                None => login,
            };
            assert_eq!(login.status, 307);
            let authorize = format!("{}/idp/authorize?response_type=code&client_id=cid&", server.provider);
            assert!(login.header("location").unwrap().starts_with(&authorize), "{login:?}");

            let preflight = server.preflight("/api/models").await;
            assert_eq!(preflight.status, 200, "{preflight:?}");
            assert_eq!(preflight.header("access-control-allow-origin"), Some(UI));

            let export = format!("/api/runs/{UNKNOWN}/export");
            assert_eq!(server.get(&format!("{export}?format=nope")).await.status, 422);
            for format in ["csv", "pdf", "zip"] {
                assert_eq!(server.get(&format!("{export}?format={format}")).await.status, 404, "{format}");
            }
            server.stop().await;
        }
    });
}

#[test]
fn the_suite_within_the_process_passes() {
    runtime().block_on(async {
        for reach in REACHES {
            let server = Server::start(reach).await;

            // The list itself is never empty, since it has the oracle.
            let models = server.get("/api/models?search=no-such-model").await;
            assert_eq!((models.status, models.json()), (200, json!({ "models": [], "total": 0 })));
            let runs = server.get("/api/runs").await.json();
            assert_eq!((&runs["runs"], &runs["total"]), (&json!([]), &json!(0)));

            let cancel = server.post(&format!("/api/runs/{UNKNOWN}/cancel"), &Value::Null).await;
            assert_eq!(cancel.status, 400, "{reach:?}: {cancel:?}");

            for model in ["oracle", UNKNOWN] {
                for share in [0, 101] {
                    let body = json!({ "model_id": model, "subset_pct": share });
                    let refused = server.post("/api/runs", &body).await;
                    assert_eq!(refused.status, 422, "{model} {share}: {refused:?}");
                    assert_eq!(refused.json()["detail"][0]["loc"], json!(["body", "subset_pct"]));
                }
            }

            let synced = server.post("/api/admin/sync-models", &Value::Null).await;
            assert!([200, 401, 500].contains(&synced.status), "{synced:?}");
            assert_eq!(
                server.get("/api/runs").await.list("runs"),
                Vec::<Value>::new(),
                "nothing was ordered"
            );
            server.stop().await;
        }
    });
}

#[test]
fn the_texts_of_durations_and_shares_are_the_same() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/vectors/eta.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (group, field, format) in [
        ("durations", "ms", format_duration_ms as fn(Option<f64>) -> String),
        ("duration_seconds", "seconds", format_duration_seconds),
        ("percents", "value", format_percent),
    ] {
        let cases = vectors[group].as_array().unwrap();
        assert!(cases.len() >= 8, "{group}");
        for case in cases {
            assert_eq!(format(case[field].as_f64()), case["text"], "{group}: {case}");
        }
    }
}
