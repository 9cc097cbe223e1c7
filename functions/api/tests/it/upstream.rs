//! Effects of a provider's model lists and refusals.

use std::sync::Arc;
use std::sync::Mutex;

use crate::server::Server;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};

/// Responses of a fake provider, and the requests that it received.
pub(crate) struct Provider {
    public: Value,
    pub(crate) gateway: (u16, Value),
    pub(crate) chat: u16,
    asked: Vec<(String, Option<String>)>,
}

pub(crate) type Shared = Arc<Mutex<Provider>>;

async fn answer(State(provider): State<Shared>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let key = request.headers().get("authorization").map(|key| key.to_str().unwrap().to_owned());
    let mut provider = provider.lock().unwrap();
    provider.asked.push((path.clone(), key));
    let (status, body) = match path.as_str() {
        "/chutes/" => (200, provider.public.clone()),
        "/v1/models" => provider.gateway.clone(),
        "/v1/chat/completions" => (provider.chat, json!({ "detail": "no" })),
        other => panic!("{other}"),
    };
    (http::StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

fn listed(name: &str, instances: usize) -> Value {
    json!({
        "name": name, "chute_id": format!("id-{name}"), "tagline": "t", "user": { "username": "u" }, "logo": null,
        "instances": vec![json!({}); instances],
        "current_estimated_price": { "per_million_tokens": { "input": { "usd": 0.5 }, "output": { "usd": 2.0 } } },
    })
}

fn offered(name: &str) -> Value {
    json!({ "id": name, "max_model_len": 1000 })
}

pub(crate) async fn provider() -> (Shared, String) {
    let provider = Arc::new(Mutex::new(Provider {
        public: json!({ "items": [listed("a/one", 1), listed("b/two", 3), listed("c/image", 9)], "total": 3 }),
        gateway: (200, json!({ "data": [offered("a/one"), offered("b/two")] })),
        chat: 500,
        asked: Vec::new(),
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::clone(&provider));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (provider, address)
}

async fn server_of(address: &str) -> Server {
    server_with(address, &[]).await
}

/// Starts a server with additional variables.
pub(crate) async fn server_with(address: &str, more: &[(&'static str, &str)]) -> Server {
    let base = format!("{address}/v1");
    let mut vars = vec![
        ("SKIP_MODEL_SYNC", ""),
        ("CHUTES_API_KEY", "operators-key"),
        ("CHUTES_API_BASE_URL", base.as_str()),
        ("CHUTES_MODELS_API_URL", address),
        ("CHUTES_MODELS_CACHE_TTL_SECONDS", "0"),
    ];
    vars.extend_from_slice(more);
    Server::new(true, &vars).await
}

pub(crate) fn order(model: &str) -> Value {
    json!({ "model_id": model, "selected_benchmarks": ["mmlu_pro"] })
}

#[tokio::test]
async fn the_catalogue_is_taken_over_and_what_vanished_becomes_inactive() {
    let (provider, address) = provider().await;
    let server = server_of(&address).await;
    let synced = server.post("/api/admin/sync-models", &[]).await;
    assert_eq!(synced.json(), json!({ "synced": 3, "message": "Synced 3 models" }), "{}", synced.text);
    let names = || async {
        let page = server.get("/api/models?provider=chutes").await.json();
        page["models"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["slug"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["b/two", "a/one"], "the most served first, images not at all");
    let keys: Vec<_> = provider.lock().unwrap().asked.clone();
    assert!(keys.contains(&("/chutes/".into(), None)), "no key for the public list");
    assert!(keys.contains(&("/v1/models".into(), Some("Bearer operators-key".into()))));
    let made = server.order("/api/runs", &[], &order("b/two")).await;
    assert_eq!(made.status, 201, "{}", made.text);
    provider.lock().unwrap().public = json!({ "items": [listed("a/one", 1)], "total": 1 });
    server.post("/api/admin/sync-models", &[]).await;
    assert_eq!(names().await, ["a/one"]);
    provider.lock().unwrap().public = json!({ "items": [], "total": 0 });
    let empty = server.post("/api/admin/sync-models", &[]).await;
    assert_eq!(empty.status, 500);
    assert!(!empty.text.contains("list of models"), "no internals");
    assert_eq!(names().await, ["a/one"], "an empty list changes nothing");
}

#[tokio::test]
async fn the_price_is_that_of_the_order() {
    let (_provider, address) = provider().await;
    let server = server_of(&address).await;
    server.post("/api/admin/sync-models", &[]).await;
    let made = server.order("/api/runs", &[], &order("id-a/one")).await.json();
    assert_eq!(made["model_slug"], "a/one");
    let run = made["id"].as_str().unwrap().parse().unwrap();
    server.plan(run, "mmlu_pro", 1, 1).await;
    server
        .commit(
            run,
            "mmlu_pro",
            bench_domain::Position { item: 0, sample: 0 },
            bench_domain::Outcome::Correct,
        )
        .await;
    let details = server.get(&format!("/api/runs/{run}/benchmarks/mmlu_pro")).await.json();
    let summary = &details["summary"];
    assert_eq!(summary["pricing_output_per_million_usd"], 2.0);
    assert_eq!(summary["input_cost_usd"], 100.0 / 1_000_000.0 * 0.5);
    assert_eq!(details["benchmark"]["cost"]["total_usd"], summary["total_cost_usd"]);
    let running = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(running["cost"]["total_usd"], summary["total_cost_usd"]);
    assert_eq!((&running["status"], &running["progress"]["completed"]), (&json!("running"), &json!(1)));
}

#[tokio::test]
async fn a_refused_key_is_reported_before_anything_is_queued() {
    let (provider, address) = provider().await;
    let server = server_of(&address).await;
    server.post("/api/admin/sync-models", &[]).await;
    let by_key = [("authorization", "Bearer callers-key")];
    let outcome = |path: &'static str, model: &'static str| {
        let server = &server;
        async move {
            let reply = server.order(path, &by_key, &order(model)).await;
            let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
            (reply.status.as_u16(), detail)
        }
    };
    provider.lock().unwrap().gateway = (401, json!({ "detail": "no" }));
    assert_eq!(
        outcome("/api/runs", "a/one").await,
        (403, "Chutes credentials are not authorized for this model.".into())
    );
    assert_eq!(
        outcome("/api/runs/api", "a/one").await,
        (403, "Chutes API key is not authorized for this model.".into())
    );
    let asked = provider.lock().unwrap().asked.clone();
    assert!(asked.contains(&("/v1/models".into(), Some("Bearer callers-key".into()))));
    // Any other failure lets the order through.
    provider.lock().unwrap().gateway = (500, json!({}));
    assert_eq!(outcome("/api/runs", "a/one").await.0, 201);
    // For a model that isn't in the list, the server requests one token, and the result decides.
    provider.lock().unwrap().gateway = (200, json!({ "data": [offered("b/two")] }));
    for (chat, status) in [(404, 404), (403, 403), (500, 201)] {
        provider.lock().unwrap().chat = chat;
        assert_eq!(outcome("/api/runs", "a/one").await.0, status, "{chat}");
    }
    assert_eq!(server.get("/api/runs").await.json()["total"], 2);
}

#[tokio::test]
async fn the_bearer_route_reads_the_catalogue_again_once_for_a_model_that_it_does_not_know() {
    let (provider, address) = provider().await;
    let server = server_of(&address).await;
    let by_key = [("authorization", "Bearer callers-key")];
    assert_eq!(server.order("/api/runs", &[], &order("a/one")).await.status, 404);
    let found = server.order("/api/runs/api", &by_key, &order("a/one")).await;
    assert_eq!(found.status, 201, "{}", found.text);
    let lists = || provider.lock().unwrap().asked.iter().filter(|(path, _)| path == "/chutes/").count();
    assert_eq!(lists(), 1);
    for _ in 0..3 {
        assert_eq!(server.order("/api/runs/api", &by_key, &order("no/such")).await.status, 404);
    }
    assert_eq!(lists(), 1, "not more than once a minute");
}

/// Settings are part of the public results.
#[tokio::test]
async fn settings_fit_the_provider_and_contain_no_key() {
    let (_provider, address) = provider().await;
    let server = server_of(&address).await;
    server.post("/api/admin/sync-models", &[]).await;
    let by_key = [("authorization", "Bearer callers-key-4711")];
    let refused = |setting: Value| {
        let mut body = order("id-a/one");
        body.as_object_mut().unwrap().extend(setting.as_object().unwrap().clone());
        let server = &server;
        async move {
            let reply = server.order("/api/runs/api", &by_key, &body).await;
            assert_eq!(reply.status, 422, "{}", reply.text);
            reply.detail()
        }
    };
    let budget = refused(json!({ "thinking_budget": 2_048 })).await;
    assert!(budget.starts_with("thinking_budget: Chutes has no field for it"), "{budget}");
    let both = refused(json!({ "omit": ["top-p"], "top_p": 0.5 })).await;
    assert!(both.starts_with("omit: `top_p` can't be both given and left out"), "{both}");
    for setting in [
        json!({ "extra_body": { "x": ["callers-key-4711"] } }),
        json!({ "system_prompt": "Use callers-key-4711." }),
    ] {
        let key = refused(setting).await;
        assert!(key.contains("it contains a key of the provider") && !key.contains("4711"), "{key}");
    }
    let mut body = order("id-a/one");
    body["reasoning_effort"] = json!("high");
    let made = server.order("/api/runs/api", &by_key, &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.json()["generation"]["reasoning_effort"], "high");
}
