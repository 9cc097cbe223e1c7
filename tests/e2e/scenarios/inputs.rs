//! Invalid requests get an error and have no effect.

use reqwest::Method;
use serde_json::{Value, json};

use crate::call::{Caller, demo_order, number};
use crate::target::Target;

pub(super) async fn errors_of_bad_requests_name_the_problem(target: &Target) {
    let with = |field: &str, value: Value| {
        let mut body = demo_order("oracle", "mmlu_pro");
        body[field] = value;
        body
    };
    for (status, names, body) in [
        (422, "model_id", json!({})),
        (422, "model_id", with("model_id", json!(7))),
        (422, "subset_pct", with("subset_pct", json!(101))),
        (422, "subset_count", with("subset_count", json!(0))),
        (422, "subset_seed", with("subset_seed", json!("x".repeat(129)))),
        (422, "selected_benchmarks", with("selected_benchmarks", json!("mmlu_pro"))),
        (422, "samples", with("samples", json!(1_001))),
        (422, "temperature", with("temperature", json!(-1))),
        (422, "config", with("config", json!([1]))),
        (400, "benchmarks", with("selected_benchmarks", json!(["no-such-benchmark"]))),
        (400, "provider", with("provider", json!("no-such-provider"))),
        (404, "Model", with("model_id", json!("no-such-model"))),
    ] {
        let detail = target.post("/api/runs", Caller::Admin, &body).await.detail(status);
        assert!(detail.contains(names), "{body}: {detail}");
    }
    for body in ["", "{", "[]", "7", "\"text\"", "\u{1F980}", "{\"model_id\":\"oracle\"}}"] {
        let request = target
            .request(Method::POST, "/api/runs", Caller::Admin)
            .header("content-type", "application/json");
        let answer = target.send(request.body(body)).await;
        answer.detail(422);
    }
    // Uses a separate connection, which the server closes.
    let own = reqwest::Client::builder().no_proxy().build().unwrap();
    let large = own.post(format!("{}/api/runs", target.base_url)).header("content-type", "application/json");
    let large = large.body(format!("{{\"model_id\":\"{}\"}}", "x".repeat(1024 * 1024)));
    target.send(large).await.detail(413);
    for path in ["/api/runs/nonsense", "/api/runs/00000000-0000-4000-8000-000000000000"] {
        target.get(path).await.detail(404);
        target.get(&format!("{path}/events")).await.detail(404);
        target.get(&format!("{path}/benchmarks/mmlu_pro")).await.detail(404);
        target.delete(path, Caller::Admin).await.detail(404);
        target.post(&format!("{path}/cancel"), Caller::Admin, &json!({})).await.detail(400);
    }
    for path in ["/api/runs?limit=x", "/api/runs?limit=201", "/api/models?offset=-1", "/api/runs?model_id=x"]
    {
        target.get(path).await.detail(422);
    }
    for path in ["/api/exports/verify", "/api/runs"] {
        let request =
            target.request(Method::POST, path, Caller::Admin).header("content-type", "multipart/form-data");
        let status = target.send(request.body("no form")).await.status;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let odd = target.get("/api/runs?status=dreaming").await.expect(200);
    assert_eq!(number(&odd, "total"), 0);
}
