//! Orders that are well-formed and refused.

use bench_state::access::AccessKind;
use serde_json::{Value, json};

use super::{KEY, Recorder, id, order};
use crate::access::Provider;
use crate::server::Server;
use crate::upstream::{provider, server_with};

/// Orders a run of the oracle, with these fields changed.
async fn refuse(recorder: &mut Recorder, server: &Server, headers: &[(&str, &str)], change: Value) {
    let shown = format!("ORDER + {change}");
    recorder.post(server, "/api/runs", headers, &shown, &order(change)).await;
}

pub(super) async fn record(recorder: &mut Recorder) {
    recorder.heading("Models and benchmarks of orders");
    let local = Server::new(true, &[("HF_TOKEN", "")]).await;
    for change in [
        json!({ "model_id": "no/such" }),
        json!({ "provider": "openai" }),
        json!({ "provider": "gremium-openai" }),
        json!({ "model_id": "lmstudio/x", "provider": "chutes" }),
        json!({ "model_id": "openrouter/a/b" }),
        json!({ "selected_benchmarks": ["nope"] }),
        json!({ "selected_benchmarks": ["gpqa_diamond"], "demo": false }),
        json!({ "protocols": { "gpqa_diamond": "authors" } }),
        json!({ "benchmark_options": { "livecodebench": { "start_date": "2024-08-01" } } }),
    ] {
        refuse(recorder, &local, &[], change).await;
    }
    let model = json!({ "model_id": "no/such" });
    let shown = format!("ORDER + {model}");
    recorder.post(&local, "/api/runs/api", &[KEY], &shown, &order(model)).await;
    judges(recorder, &local).await;
    limits(recorder).await;
    keys(recorder).await;
    repeats(recorder, &local).await;
}

async fn judges(recorder: &mut Recorder, local: &Server) {
    recorder.heading("Judges and prices of orders");
    let judged = |judge: Value| json!({ "selected_benchmarks": ["hle"], "judge": judge });
    let without = json!({ "model_id": "lmstudio/x", "selected_benchmarks": ["hle"] });
    refuse(recorder, local, &[], without).await;
    refuse(recorder, local, &[], judged(json!({ "model_id": "no/such" }))).await;
    let talks = |user: Value| json!({ "model_id": "lmstudio/x", "selected_benchmarks": ["tau_bench_telecom"], "demo": true, "user_model": user });
    refuse(recorder, local, &[], talks(Value::Null)).await;
    refuse(recorder, local, &[], talks(json!({ "model_id": "no/such" }))).await;
    refuse(recorder, local, &[], talks(json!({ "model_id": "oracle" }))).await;
    refuse(recorder, local, &[], judged(json!({ "model_id": "j", "provider": "openai" }))).await;
    refuse(recorder, local, &[], judged(json!({ "model_id": "openrouter/j" }))).await;
    refuse(recorder, local, &[], json!({ "model_id": "lmstudio/x", "budget_usd": 1 })).await;
    let by_judge =
        json!({ "selected_benchmarks": ["hle"], "judge": { "model_id": "lmstudio/j" }, "budget_usd": 1 });
    refuse(recorder, local, &[], by_judge).await;
    let vars = [("OPENROUTER_API_KEY", "k"), ("BENCH_JUDGE_MODEL", "openrouter/d")];
    let public = Server::new(false, &vars).await;
    public.list(AccessKind::Key, "sk-caller", true, true).await;
    refuse(recorder, &public, &[KEY], judged(json!({ "model_id": "openrouter/dear" }))).await;
    let by_user = json!({ "model_id": "chutes/m", "selected_benchmarks": ["tau_bench_telecom"],
        "user_model": { "model_id": "openrouter/dear" } });
    refuse(recorder, &public, &[KEY], by_user).await;
}

async fn limits(recorder: &mut Recorder) {
    recorder.heading("Limits of orders");
    let with = async |variable: &str, limit: &str| {
        let server = Server::new(false, &[(variable, limit)]).await;
        server.list(AccessKind::Token, "bra_a", true, true).await;
        server
    };
    let caller = [("authorization", "Bearer bra_a")];
    let samples = with("BENCH_LIMIT_SAMPLES_PER_ORDER", "10").await;
    refuse(recorder, &samples, &caller, json!({})).await;
    for variable in ["BENCH_LIMIT_OPEN_RUNS_PER_OWNER", "BENCH_LIMIT_OPEN_RUNS"] {
        let server = with(variable, "1").await;
        server.order("/api/runs", &caller, &order(json!({}))).await;
        refuse(recorder, &server, &caller, json!({})).await;
    }
    for variable in ["BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "BENCH_LIMIT_ORDERS_PER_MINUTE"] {
        let server = with(variable, "1").await;
        // The minute may end in between.
        while server.order("/api/runs", &caller, &order(json!({}))).await.status == 201 {}
        refuse(recorder, &server, &caller, json!({})).await;
    }
}

/// Keys that a provider refuses, or can't confirm.
async fn keys(recorder: &mut Recorder) {
    recorder.heading("Keys of orders");
    let caller = [("authorization", "Bearer made-up")];
    for (model, account) in
        [("openai-compatible/m", "/v1/models"), ("openrouter/m", "/v1/key"), ("chutes/m", "/users/me")]
    {
        let server = Provider::start(&[account]).await.server(&[]).await;
        refuse(recorder, &server, &caller, json!({ "model_id": model })).await;
    }
    let any_key = Provider::start(&[]).await;
    let model = json!({ "model_id": "openai-compatible/m" });
    refuse(recorder, &any_key.server(&[]).await, &caller, model.clone()).await;
    let base = format!("{}/v1/broken", any_key.address);
    let broken = Server::new(false, &[("OPENAI_COMPATIBLE_BASE_URL", base.as_str())]).await;
    refuse(recorder, &broken, &caller, model.clone()).await;
    while broken.order("/api/runs", &caller, &order(model.clone())).await.status != 429 {}
    refuse(recorder, &broken, &caller, model).await;

    let (upstream, address) = provider().await;
    let server = server_with(&address, &[]).await;
    server.post("/api/admin/sync-models", &[]).await;
    upstream.lock().unwrap().gateway = (401, json!({ "detail": "no" }));
    let model = order(json!({ "model_id": "a/one" }));
    recorder.post(&server, "/api/runs", &[], "ORDER + {\"model_id\":\"a/one\"}", &model).await;
    recorder.post(&server, "/api/runs/api", &[KEY], "ORDER + {\"model_id\":\"a/one\"}", &model).await;
    upstream.lock().unwrap().gateway = (200, json!({ "data": [{ "id": "b/two", "max_model_len": 1000 }] }));
    upstream.lock().unwrap().chat = 404;
    recorder.post(&server, "/api/runs", &[], "ORDER + {\"model_id\":\"a/one\"}", &model).await;
}

async fn repeats(recorder: &mut Recorder, local: &Server) {
    recorder.heading("Repeated orders");
    let key = [("idempotency-key", "order-1")];
    let run = id(&local.order("/api/runs", &key, &order(json!({}))).await);
    refuse(recorder, local, &key, json!({ "samples": 2 })).await;
    local.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    local.ask("DELETE", &format!("/api/runs/{run}"), &[], "").await;
    refuse(recorder, local, &key, json!({})).await;
}
