//! Estimates of orders.

use crate::server::Server;
use bench_domain::{Code, ModelId, Outcome, Price, Timestamp};
use bench_state::ModelRecord;
use serde_json::{Value, json};

const PATH: &str = "/api/runs/estimate";

fn model(provider: &str, slug: &str, price: Option<Price>) -> ModelRecord {
    ModelRecord {
        id: ModelId::from_name(provider, slug),
        slug: slug.to_owned(),
        name: slug.to_owned(),
        provider: provider.to_owned(),
        tagline: None,
        user: None,
        logo: None,
        chute_id: None,
        instance_count: 1,
        is_active: true,
        price,
        synced_at: Timestamp::default(),
    }
}

async fn estimate(server: &Server, body: Value) -> Value {
    let reply = server.order(PATH, &[], &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

/// Starts a server without any key, which isn't bound to loopback.
async fn public() -> Server {
    let server = Server::new(false, &[]).await;
    let price = Price { input_per_million_usd: 1.0, output_per_million_usd: 10.0 };
    for model in [model("chutes", "paid", Some(price)), model("chutes", "secret", None)] {
        server.api.state.put_model(&model).await.unwrap();
    }
    server
}

#[tokio::test]
async fn an_order_is_estimated_without_a_key_and_creates_nothing() {
    let server = public().await;
    let body = json!({
        "model_id": "chutes/paid", "selected_benchmarks": ["mmlu_pro", "aime_2025", "none"], "subset_count": 100,
        "samples": 2, "budget_usd": 0.5, "count": 3,
    });
    let found = estimate(&server, body.clone()).await;
    assert_eq!(found["model"], "chutes/paid");
    assert_eq!(found["price"], json!({ "input_per_million_usd": 1.0, "output_per_million_usd": 10.0 }));
    let [mmlu, aime] = found["benchmarks"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!((&mmlu["items"], &mmlu["samples"]), (&json!(100), &json!(200)));
    assert_eq!((&aime["items"], &aime["samples"]), (&json!(30), &json!(60)), "all of them");
    assert_eq!((&mmlu["input_tokens"], &mmlu["output_tokens"]), (&json!(260_000), &json!(120_000)));
    // 0.26 million at $1, and 0.12 million at $10.
    assert_eq!((&mmlu["cost_usd"], &mmlu["cost_unknown"]), (&json!(1.46), &json!(null)));
    assert_eq!((&mmlu["judge"], &mmlu["judge_input_tokens"]), (&json!(null), &json!(0)));
    assert_eq!(mmlu["basis"]["lengths"], "typical");
    assert_eq!(
        mmlu["basis"]["text"],
        "typical prompts and answers without reasoning, at 50 tokens per second"
    );
    assert_eq!(found["samples"], 260);
    let sum = mmlu["duration_seconds"].as_f64().unwrap() + aime["duration_seconds"].as_f64().unwrap();
    assert_eq!(found["duration_seconds"], sum);
    assert_eq!((&found["budget_usd"], &found["reaches_budget"]), (&json!(0.5), &json!(true)));
    assert_eq!(found["ignored_benchmarks"], json!(["none"]));
    assert!(found["warnings"][0].as_str().unwrap().contains("subset_count"), "{found}");
    assert_eq!(server.get("/api/runs").await.json()["total"], 0);
    // The order itself is refused: who places it must say who pays.
    assert_eq!(server.order("/api/runs", &[], &body).await.code(), Some(Code::MissingCredentials));
}

#[tokio::test]
async fn unknown_costs_are_null_with_the_reason() {
    let server = public().await;
    let unknown = |found: &Value| {
        assert_eq!(found["cost_usd"], json!(null));
        assert!(found["cost_note"].as_str().unwrap().ends_with('.'));
        found["cost_unknown"].as_str().unwrap().to_owned()
    };
    let order = |model: &str, benchmark: &str| json!({ "model_id": model, "selected_benchmarks": [benchmark], "subset_count": 10 });
    let found = estimate(&server, order("chutes/secret", "mmlu_pro")).await;
    assert_eq!((unknown(&found), &found["known_cost_usd"]), ("price".to_owned(), &json!(0.0)));
    // The judge's price isn't known, but the model's is.
    let mut judged = order("chutes/paid", "hle");
    judged["judge"] = json!({ "model_id": "chutes/secret" });
    let found = estimate(&server, judged.clone()).await;
    assert_eq!(unknown(&found), "judge-price");
    assert!(found["known_cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(found["benchmarks"][0]["judge"], "chutes/secret");
    assert!(found["judge_output_tokens"].as_u64().unwrap() >= 2_500);
    let without = estimate(&server, order("chutes/paid", "hle")).await;
    assert_eq!(
        (unknown(&without), &without["benchmarks"][0]["judge"]),
        ("judge-price".to_owned(), &json!(null))
    );
    judged["judge"] = json!({ "model_id": "chutes/paid" });
    assert!(estimate(&server, judged).await["cost_usd"].as_f64().unwrap() > 0.0);
    let own = estimate(&Server::local().await, order("lmstudio/m", "mmlu_pro")).await;
    assert_eq!((&own["cost_usd"], &own["cost_unknown"]), (&json!(0.0), &json!(null)), "it is this machine");
}

#[tokio::test]
async fn a_run_that_asks_no_model_costs_nothing() {
    let server = Server::local().await;
    let found = estimate(&server, json!({ "model_id": "oracle", "demo": true, "temperature": 0.5 })).await;
    assert_eq!((&found["cost_usd"], &found["output_tokens"]), (&json!(0.0), &json!(0)));
    assert_eq!((&found["duration_seconds"], &found["price"]), (&json!(null), &json!(null)));
    assert_eq!(found["basis"], json!({ "lengths": "none", "speed": "none", "text": "no model is asked" }));
    assert!(found["warnings"][0].as_str().unwrap().contains("no model is asked"));
    assert!(found["benchmarks"].as_array().unwrap().len() > 5);
}

#[tokio::test]
async fn earlier_runs_tell_how_long_answers_are() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    server.plan_from("hub", run, "mmlu_pro", 2, 1).await;
    for item in 0..2 {
        let position = bench_domain::Position { item, sample: 0 };
        server.commit(run, "mmlu_pro", position, Outcome::Correct).await;
    }
    server.close(run).await;
    let order =
        |model: &str| json!({ "model_id": model, "selected_benchmarks": ["mmlu_pro"], "subset_count": 10 });
    let found = estimate(&server, order("lmstudio/other")).await;
    assert_eq!(found["basis"]["lengths"], "other-models");
    assert_eq!((&found["input_tokens"], &found["output_tokens"]), (&json!(1_000), &json!(100)));
    assert_eq!(found["basis"]["speed"], "measured");
}

#[tokio::test]
async fn an_order_with_errors_is_refused_like_one_that_is_placed() {
    let server = public().await;
    for (body, status, code) in [
        (json!({ "model_id": "nobody/x" }), 404, Code::ModelNotFound),
        (json!({ "model_id": "chutes/paid", "subset_pct": 0 }), 422, Code::InvalidRequest),
        (json!({ "model_id": "chutes/paid", "selected_benchmarks": ["none"] }), 400, Code::NoBenchmarks),
        (
            json!({ "model_id": "chutes/paid", "selected_benchmarks": ["hle"], "protocols": { "hle": "x" } }),
            422,
            Code::InvalidRequest,
        ),
        (json!({ "model_id": "lmstudio/x" }), 400, Code::ProviderNotConfigured),
    ] {
        let reply = server.order(PATH, &[], &body).await;
        assert_eq!((reply.status.as_u16(), reply.code()), (status, Some(code)), "{body}: {}", reply.text);
    }
}
