//! Malformed requests: each gets a 4xx in the documented form and changes nothing.

use crate::server::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn bodies_that_are_not_as_they_should_be() {
    let server = Server::local().await;
    let with = |field: &str, value: Value| {
        let mut body = json!({ "model_id": "00000000-0000-4000-8000-000000000000" });
        body[field] = value;
        body
    };
    for (body, problem) in [
        (json!({}), "missing"),
        (with("model_id", json!(null)), "string_type"),
        (with("model_id", json!(5)), "string_type"),
        (with("subset_pct", json!(0)), "greater_than_equal"),
        (with("subset_pct", json!(101)), "less_than_equal"),
        (with("subset_pct", json!(null)), "int_type"),
        (with("subset_pct", json!("x")), "int_parsing"),
        (with("subset_pct", json!(1.5)), "int_from_float"),
        (with("subset_count", json!(0)), "greater_than_equal"),
        (with("subset_count", json!(u64::MAX)), "less_than_equal"),
        (with("subset_count", json!(1e300)), "less_than_equal"),
        (with("subset_seed", json!("x".repeat(129))), "string_too_long"),
        (with("selected_benchmarks", json!("mmlu_pro")), "list_type"),
        (with("selected_benchmarks", json!([1])), "string_type"),
        (with("config", json!("x")), "dict_type"),
        (with("provider", json!(1)), "string_type"),
        (with("items", json!({})), "list_type"),
    ] {
        for path in ["/api/runs", "/api/runs/api"] {
            let reply = server.order(path, &[("authorization", "Bearer k")], &body).await;
            assert_eq!(reply.problems(), [problem], "{body}");
            let first = &reply.json()["detail"][0];
            assert_eq!(first["loc"][0], "body");
            assert!(first["msg"].is_string() && first.get("input").is_some());
        }
    }
    let json = [("content-type", "application/json")];
    for (headers, body, problem) in [
        (&json[..], "", "missing"),
        (&json[..], "{\"model_id\": \"x\"", "json_invalid"),
        (&json[..], "\u{fffd}", "json_invalid"),
        (&json[..], "[1]", "model_attributes_type"),
        (&[("content-type", "text/plain")][..], "{\"model_id\": \"oracle\"}", "model_attributes_type"),
        (&[][..], "{\"model_id\": \"oracle\"}", "model_attributes_type"),
    ] {
        let reply = server.ask("POST", "/api/runs", headers, body.to_owned()).await;
        assert_eq!(reply.problems(), [problem], "{body}");
    }
    let large = format!("{{\"model_id\": \"{}\"}}", "x".repeat(1 << 20));
    let reply = server.ask("POST", "/api/runs", &json, large).await;
    assert_eq!(reply.status, 413);
    assert!(reply.detail().contains("1048576"));
    assert_eq!(
        server.get("/api/runs").await.json(),
        json!({ "runs": [], "total": 0, "next_offset": null, "unsearched": 0 })
    );
}

#[tokio::test]
async fn ids_that_are_none_and_runs_that_are_not_there() {
    let server = Server::local().await;
    let unknown = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
    for id in [unknown, "abc", "%20", "..%2F..", "%00", "3f2b8c1e", "%F0%9F%99%82"] {
        for (method, path, status, detail) in [
            ("GET", format!("/api/runs/{id}"), 404, "Run not found"),
            ("DELETE", format!("/api/runs/{id}"), 404, "Run not found"),
            ("GET", format!("/api/runs/{id}/events"), 404, "Run not found"),
            ("GET", format!("/api/runs/{id}/compare/{unknown}"), 404, "Run not found"),
            ("GET", format!("/api/runs/{id}/benchmarks/mmlu_pro"), 404, "Benchmark not found in run"),
            (
                "POST",
                format!("/api/runs/{id}/cancel"),
                400,
                "Run cannot be canceled (may already be completed or not found)",
            ),
            (
                "POST",
                format!("/api/admin/runs/{id}/requeue"),
                400,
                "Run cannot be requeued (must be failed or canceled)",
            ),
        ] {
            let reply = server.ask(method, &path, &[], "").await;
            assert_eq!((reply.status.as_u16(), reply.detail().as_str()), (status, detail), "{method} {path}");
        }
    }
    let run = server.run_of(&["mmlu_pro"]).await;
    for name in ["aime_2025", "nope", "%00"] {
        let reply = server.get(&format!("/api/runs/{run}/benchmarks/{name}")).await;
        assert_eq!((reply.status.as_u16(), reply.detail().as_str()), (404, "Benchmark not found in run"));
    }
}

#[tokio::test]
async fn queries_that_are_not_as_they_should_be() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    for (path, problem) in [
        ("/api/runs?limit=201".to_owned(), "less_than_equal"),
        ("/api/runs?limit=-1".to_owned(), "greater_than_equal"),
        ("/api/runs?offset=99999999999999999999999".to_owned(), "less_than_equal"),
        ("/api/runs?model_id=zz".to_owned(), "enum"),
        (format!("/api/runs/{run}/benchmarks/mmlu_pro?limit=501"), "less_than_equal"),
        (format!("/api/runs/{run}/benchmarks/mmlu_pro?cursor=x"), "value_error"),
        (format!("/api/runs/{run}/benchmarks/mmlu_pro?outcome=correct,nope"), "value_error"),
        (format!("/api/runs/{run}/benchmarks/mmlu_pro?sample=-1"), "greater_than_equal"),
        ("/api/runs?id_prefix=3f2".to_owned(), "enum"),
        ("/api/runs?id_prefix=latest".to_owned(), "enum"),
        (format!("/api/runs/{run}/events?cursor=x"), "value_error"),
        (format!("/api/runs/{run}/events?limit=0"), "greater_than_equal"),
    ] {
        assert_eq!(server.get(&path).await.problems(), [problem], "{path}");
    }
    for (path, total) in [
        ("/api/runs?status=dreaming", 0),
        ("/api/runs?limit=0", 1),
        ("/api/runs?offset=18446744073709551615", 1),
        ("/api/runs?model_slug=ORA", 1),
        ("/api/runs?model_slug=%25", 0),
        ("/api/runs?model_id=00000000-0000-4000-8000-000000000000", 0),
        ("/api/runs?status=queued&limit=1", 1),
    ] {
        let reply = server.get(path).await;
        assert_eq!(reply.json()["total"], total, "{path}: {}", reply.text);
    }
    assert_eq!(server.get("/api/nope").await.detail(), "Not Found");
    assert_eq!(server.post("/api/health", &[]).await.detail(), "Method Not Allowed");
    let moved = server.get("/api/runs/?limit=1").await;
    assert_eq!(
        (moved.status.as_u16(), &moved.headers["location"]),
        (307, &"/api/runs?limit=1".parse().unwrap())
    );
}
