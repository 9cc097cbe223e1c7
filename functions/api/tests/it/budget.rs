//! Budgets in orders.

use bench_domain::{Code, Outcome, Position};
use bench_state::{EventKind, NewEvent};
use serde_json::{Value, json};

use crate::server::Server;
use crate::upstream::{order, provider, server_with};

fn limited(model: &str, field: &str, value: Value) -> Value {
    let mut body = order(model);
    body[field] = value;
    body["demo"] = true.into();
    body
}

#[tokio::test]
async fn dollars_need_a_price_and_tokens_do_not() {
    let (_provider, address) = provider().await;
    let base = format!("{address}/v1");
    let server =
        server_with(&address, &[("OPENAI_COMPATIBLE_BASE_URL", &base), ("OPENAI_COMPATIBLE_API_KEY", "k")])
            .await;
    server.post("/api/admin/sync-models", &[]).await;
    let unknown =
        server.order("/api/runs", &[], &limited("openai-compatible/a/one", "budget_usd", json!(1))).await;
    assert_eq!(unknown.status, 400, "{}", unknown.text);
    assert!(
        unknown.detail().contains("budget_tokens") && unknown.detail().contains("--price"),
        "{}",
        unknown.text
    );
    let tokens =
        server.order("/api/runs", &[], &limited("openai-compatible/a/one", "budget_tokens", json!(5))).await;
    assert_eq!(tokens.status, 201, "{}", tokens.text);
    assert_eq!(tokens.json()["budget"], json!({ "usd": null, "tokens": 5 }));
    assert_eq!(tokens.json()["spent"], json!({ "tokens": 0, "usd": null, "estimated_tokens": 0 }));
    // The public list has this model's price.
    let dollars = server.order("/api/runs", &[], &limited("b/two", "budget_usd", json!(0.5))).await;
    assert_eq!(dollars.status, 201, "{}", dollars.text);
    let view = dollars.json();
    assert_eq!(view["budget"], json!({ "usd": 0.5, "tokens": null }));
    assert_eq!((&view["spent"]["usd"], &view["failure_reason"]), (&json!(0.0), &json!(null)));
    // The oracle costs nothing.
    assert_eq!(server.order("/api/runs", &[], &limited("oracle", "budget_usd", json!(1))).await.status, 201);
    let plain = server.order("/api/runs", &[], &order("b/two")).await.json();
    assert_eq!(plain["budget"], json!(null));
}

#[tokio::test]
async fn prices_of_openrouter_are_asked_for_and_kept_with_the_configured_models() {
    let (provider, address) = provider().await;
    let priced = |id: &str, prompt: &str| json!({ "id": id, "pricing": { "prompt": prompt, "completion": "0.000002" } });
    provider.lock().unwrap().gateway = (
        200,
        json!({ "data": [priced("x/good", "0.000001"), priced("x/odd", "-1"), priced("x/nan", "NaN")] }),
    );
    let base = format!("{address}/v1");
    let vars = [
        ("OPENROUTER_BASE_URL", base.as_str()),
        ("OPENROUTER_API_KEY", "key-o"),
        ("BENCH_MODELS", "openrouter/x/good,openrouter/x/odd"),
    ];
    let server = server_with(&address, &vars).await;
    let make = |model: &'static str| {
        let server = &server;
        async move { server.order("/api/runs", &[], &limited(model, "budget_usd", json!(1))).await }
    };
    let good = make("openrouter/x/good").await;
    assert_eq!(good.status, 201, "{}", good.text);
    let run = good.json()["id"].as_str().unwrap().parse().unwrap();
    let price = server.api.state.run(run).await.unwrap().unwrap().spec.price.unwrap();
    assert_eq!((price.input_per_million_usd, price.output_per_million_usd), (1.0, 2.0));
    for odd in ["openrouter/x/odd", "openrouter/x/nan", "openrouter/x/unlisted"] {
        let refused = make(odd).await;
        assert_eq!(refused.status, 400, "{odd}: {}", refused.text);
    }
    server.post("/api/admin/sync-models", &[]).await;
    let models = server.get("/api/models?provider=openrouter").await.json();
    let shown: Vec<_> = models["models"].as_array().unwrap().iter().collect();
    assert_eq!(shown.len(), 2, "{models}");
    for model in shown {
        let expected = if model["slug"] == "x/good" { json!(1.0) } else { json!(null) };
        assert_eq!(model["input_per_million_usd"], expected, "{model}");
    }
}

#[tokio::test]
async fn a_run_that_its_budget_stopped_is_requeued_with_a_larger_one() {
    let (_provider, address) = provider().await;
    let server = server_with(&address, &[]).await;
    server.post("/api/admin/sync-models", &[]).await;
    let made = server.order("/api/runs", &[], &limited("b/two", "budget_tokens", json!(100))).await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let run = id.parse().unwrap();
    server.plan(run, "mmlu_pro", 2, 1).await;
    server.commit(run, "mmlu_pro", Position { item: 0, sample: 0 }, Outcome::Correct).await;
    let found = server.api.state.run(run).await.unwrap().unwrap();
    let next = found.state.fail(bench_clock::now(), Code::BudgetReached, "stopped: x").unwrap();
    let event = NewEvent::new(EventKind::RunFailed, "Run failed");
    server.api.state.change_run(&found, &next, 1, &event, bench_clock::now()).await.unwrap();

    let view = server.get(&format!("/api/runs/{id}")).await.json();
    assert_eq!((&view["status"], &view["failure_reason"]), (&json!("failed"), &json!("budget")));
    let spent = view["spent"]["tokens"].as_u64().unwrap();
    assert!(spent > 100 && view["spent"]["usd"].as_f64().unwrap() > 0.0, "{view}");

    let path = format!("/api/admin/runs/{id}/requeue");
    let refused = server.post(&path, &[]).await;
    assert_eq!(refused.status, 400);
    assert!(refused.detail().contains("would stop at once"), "{}", refused.text);
    assert_eq!(server.order(&path, &[], &json!({ "budget_tokens": 0 })).await.status, 422);
    assert_eq!(server.order(&path, &[], &json!({ "budget_tokens": spent })).await.status, 400);
    assert_eq!(server.ask("POST", &path, &[("content-type", "application/json")], "[1]").await.status, 422);
    let requeued = server.order(&path, &[], &json!({ "budget_tokens": spent + 1, "budget_usd": 0.25 })).await;
    assert_eq!(requeued.status, 200, "{}", requeued.text);
    let view = server.get(&format!("/api/runs/{id}")).await.json();
    assert_eq!(view["budget"], json!({ "usd": 0.25, "tokens": spent + 1 }));
    assert_eq!((&view["status"], &view["failure_reason"]), (&json!("queued"), &json!(null)));
}

#[tokio::test]
async fn the_document_has_budgets() {
    let server = Server::local().await;
    let document = server.get("/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    let order = &schemas["Order"]["properties"];
    assert!(order["budget_usd"].is_object() && order["budget_tokens"].is_object(), "{order}");
    let run = &schemas["RunView"]["properties"];
    for field in ["failure_reason", "budget", "spent"] {
        assert!(run[field].is_object(), "{field}");
    }
    assert!(document["paths"]["/api/admin/runs/{run_id}/requeue"]["post"]["requestBody"].is_object());
}
