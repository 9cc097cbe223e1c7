//! Orders: created runs, refusals, and the order of the checks.

use crate::server::Server;
use bench_domain::run::{AuthMode, DatasetChoice, Owner};
use bench_domain::{BenchmarkName, Code, ModelRole, RunId, Secret};
use bench_queue::{Message, QueueName};
use bench_runs::{Order, Orderer, TrustedSettings};
use serde_json::json;

const KEY: (&str, &str) = ("authorization", "Bearer sk-caller");

#[tokio::test]
async fn a_run_is_made_and_queued() {
    let server = Server::local().await;
    let body = json!({
        "model_id": "oracle", "subset_pct": 5, "subset_count": "7", "subset_seed": " s1 ", "config": { "a": 1.0 },
        "selected_benchmarks": ["MMLU_Pro", "nope", "mmlu_pro", "aime_2025"], "provider": "", "demo": true,
        "samples": 2, "temperature": 0.5, "max_tokens": 100, "unknown": [],
    });
    let reply = server.order("/api/runs", &[], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let run = reply.json();
    for (field, value) in [
        ("model_slug", json!("oracle")),
        ("provider", json!("oracle")),
        ("subset_pct", json!(5)),
        ("subset_count", json!(7)),
        ("subset_seed", json!("s1")),
        ("status", json!("queued")),
        ("selected_benchmarks", json!(["mmlu_pro", "aime_2025"])),
        ("overall_score", json!(null)),
        ("error_message", json!(null)),
        ("provider_metadata", json!(null)),
        ("started_at", json!(null)),
        ("completed_at", json!(null)),
        ("ignored_benchmarks", json!(["nope"])),
        ("demo", json!(true)),
        ("samples", json!(2)),
        ("queue_position", json!(1)),
        ("coverage", json!(null)),
        ("software", json!("9.8.7")),
    ] {
        assert_eq!(run.get(field), Some(&value), "{field}");
    }
    assert!(run["created_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(run["generation"]["temperature"], 0.5);
    let benchmark = &run["benchmarks"][0];
    for (field, value) in [
        ("benchmark_name", json!("mmlu_pro")),
        ("status", json!("pending")),
        ("completed_items", json!(0)),
        ("sampled_items", json!(0)),
        ("score", json!(null)),
        ("metrics", json!(null)),
        ("error_message", json!(null)),
        ("started_at", json!(null)),
        ("completed_at", json!(null)),
    ] {
        assert_eq!(benchmark.get(field), Some(&value), "{field}");
    }
    assert_eq!(benchmark["total_items"], 28, "those of the demo data");
    assert_eq!(run["progress"]["total"], 7 + 7);
    let id: RunId = run["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(server.messages(QueueName::Plans).await, [Message::Plan { run: id, generation: 1 }]);
    let record = server.api.state.run(id).await.unwrap().unwrap();
    assert_eq!(record.spec.config.as_deref(), Some(r#"{"a":1.0}"#));
    assert_eq!((record.spec.owner, record.spec.auth), (Owner::Local, AuthMode::System));
    let read = server.get(&format!("/api/runs/{id}")).await.json();
    assert_eq!(read["id"], run["id"]);
    assert!(read.get("ignored_benchmarks").is_none());
    let events = server.get(&format!("/api/runs/{id}/events?cursor=")).await.json();
    let event = &events["events"][0];
    assert_eq!(event["event_type"], "run_created");
    assert_eq!(event["data"]["benchmark_count"], 2);
    assert!(event["message"].as_str().unwrap().contains("nope"), "{event}");
}

#[tokio::test]
async fn a_run_shows_the_size_of_its_own_dataset_before_it_is_planned() {
    let server = Server::local().await;
    let order = |demo: bool, datasets: &[(&str, DatasetChoice)]| Order {
        model: "oracle".into(),
        benchmarks: Some(vec!["mmlu_pro".into(), "livecodebench".into()]),
        demo,
        options: [("livecodebench".to_owned(), [("start_date".to_owned(), "2024-08-01".to_owned())].into())]
            .into(),
        trusted: TrustedSettings {
            datasets: datasets.iter().map(|(name, choice)| (name.parse().unwrap(), choice.clone())).collect(),
            ..TrustedSettings::default()
        },
        ..Order::default()
    };
    let file = DatasetChoice::Local { revision: "r".into() };
    for (order, sizes) in [
        // Items of the demo data after the options filtered them.
        (order(true, &[]), [28, 2]),
        (order(false, &[]), [12_032, bench_benchmarks::find("livecodebench").unwrap().spec().items]),
        (order(false, &[("mmlu_pro", file.clone()), ("livecodebench", file)]), [0, 0]),
    ] {
        let created = server.api.orders.create(order, Orderer::local()).await.unwrap();
        let run = created.run.run.spec.id;
        let view = server.get(&format!("/api/runs/{run}")).await.json();
        for (benchmark, size) in view["benchmarks"].as_array().unwrap().iter().zip(sizes) {
            assert_eq!(benchmark["total_items"], size, "{benchmark}");
            let name = benchmark["benchmark_name"].as_str().unwrap();
            let details = server.get(&format!("/api/runs/{run}/benchmarks/{name}")).await.json();
            assert_eq!(details["benchmark"]["total_items"], size);
        }
        assert_eq!(view["progress"]["total"], sizes.iter().sum::<u64>());
    }
}

#[tokio::test]
async fn the_model_is_found_by_id_and_by_qualified_name() {
    let server = Server::new(true, &[("CHUTES_API_KEY", "k")]).await;
    let models = server.get("/api/models").await.json();
    let oracle = models["models"][0]["id"].as_str().unwrap().to_owned();
    for (model, provider, slug) in [
        (oracle.as_str(), json!(null), "oracle"),
        ("oracle", json!("oracle"), "oracle"),
        ("chutes/deepseek-ai/DeepSeek-V3", json!(null), "deepseek-ai/DeepSeek-V3"),
        ("lmstudio/qwen", json!(null), "qwen"),
        ("qwen", json!("lmstudio"), "qwen"),
    ] {
        let body = json!({ "model_id": model, "provider": provider, "selected_benchmarks": ["mmlu_pro"] });
        let reply = server.order("/api/runs", &[], &body).await;
        assert_eq!(reply.status, 201, "{model}: {}", reply.text);
        assert_eq!(reply.json()["model_slug"], slug);
    }
    for (model, provider, status, detail) in [
        ("00000000-0000-4000-8000-000000000000", json!(null), 404, "Model not found"),
        ("deepseek-ai/DeepSeek-V3", json!(null), 404, "Model not found"),
        ("replay:/etc/passwd", json!(null), 404, "Model not found"),
        ("", json!(null), 404, "Model not found"),
        (oracle.as_str(), json!("chutes"), 400, "Model does not match selected provider"),
        ("lmstudio/qwen", json!("chutes"), 400, "Model does not match selected provider"),
        ("oracle", json!("gremium-openai"), 400, "Gremium provider is not enabled."),
        ("oracle", json!("openai"), 400, "Unsupported provider"),
        ("replay:x", json!("replay"), 400, "Unsupported provider"),
    ] {
        let reply = server.order("/api/runs", &[], &json!({ "model_id": model, "provider": provider })).await;
        assert_eq!((reply.status.as_u16(), reply.detail().as_str()), (status, detail), "{model} {provider}");
    }
    let reply = server.order("/api/runs", &[], &json!({ "model_id": "openrouter/a/b" })).await;
    assert_eq!(reply.status, 400);
    assert!(reply.detail().contains("OPENROUTER_API_KEY"), "{}", reply.detail());
    let reply =
        server.order("/api/runs", &[], &json!({ "model_id": "oracle", "selected_benchmarks": ["x"] })).await;
    assert_eq!(
        (reply.status.as_u16(), reply.detail().as_str()),
        (400, "No matching benchmarks found for selected_benchmarks")
    );
}

#[tokio::test]
async fn maintenance_refuses_creation_and_nothing_else() {
    let server = Server::new(true, &[("MAINTENANCE_MODE", "yes"), ("MAINTENANCE_MESSAGE", "Later.")]).await;
    let good = json!({ "model_id": "oracle" });
    for path in ["/api/runs", "/api/runs/api"] {
        let reply = server.order(path, &[KEY], &good).await;
        assert_eq!((reply.status.as_u16(), reply.detail().as_str()), (503, "Later."));
        let bad = server.order(path, &[KEY], &json!({ "model_id": "oracle", "subset_pct": 0 })).await;
        assert_eq!(bad.status, 422, "the body is looked at first");
    }
    assert_eq!(server.order("/api/runs/api", &[], &good).await.status, 401, "the key is looked at first");
    assert_eq!(server.get("/api/runs").await.status, 200);
    assert_eq!(server.get("/api/status").await.json()["maintenance_mode"], true);
}

#[tokio::test]
async fn the_key_is_looked_at_after_the_json_and_before_the_fields() {
    let server = Server::local().await;
    let json = ("content-type", "application/json");
    let broken = server.ask("POST", "/api/runs/api", &[json], "{").await;
    assert_eq!(broken.problems(), ["json_invalid"]);
    let fields = server.order("/api/runs/api", &[], &json!({ "subset_pct": 0 })).await;
    assert_eq!((fields.status.as_u16(), fields.detail().as_str()), (401, "Missing Authorization header"));
    let basic = server.order("/api/runs/api", &[("authorization", "Basic eA==")], &json!({})).await;
    assert_eq!((basic.status.as_u16(), basic.detail().as_str()), (401, "Invalid Authorization header"));
    let missing = server.order("/api/runs/api", &[KEY], &json!({})).await;
    assert_eq!(missing.problems(), ["missing"]);
    let unknown = server.order("/api/runs/api", &[KEY], &json!({ "model_id": "nobody/knows" })).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.detail().starts_with("Model not found. Provide"), "{}", unknown.detail());
}

#[tokio::test]
async fn the_callers_key_is_stored_for_the_run_and_nowhere_else() {
    let server = Server::local().await;
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"] });
    let reply = server.order("/api/runs/api", &[KEY], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert!(!reply.text.contains("sk-caller"));
    let id: RunId = reply.json()["id"].as_str().unwrap().parse().unwrap();
    let record = server.api.state.run(id).await.unwrap().unwrap();
    assert_eq!(record.spec.auth, AuthMode::ApiKey);
    assert!(matches!(record.spec.owner, Owner::Key(_)));
    assert!(!format!("{record:?}").contains("sk-caller"));
    assert_eq!(
        server.api.credentials.get(id, ModelRole::Model).await.unwrap(),
        Some(Secret::new("sk-caller").unwrap())
    );
    // No file of the services on disk contains the key as plain text.
    let mut files = vec![server.embedded.data_dir().to_owned()];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(9).any(|window| window == b"sk-caller"), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 2);
}

#[tokio::test]
async fn a_repeat_under_one_key_makes_one_run() {
    let server = Server::local().await;
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"] });
    let key = ("idempotency-key", "order-1");
    let first = server.order("/api/runs", &[key], &body).await;
    let again = server.order("/api/runs", &[key], &body).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 200));
    assert_eq!(first.json()["id"], again.json()["id"]);
    let other = json!({ "model_id": "oracle", "selected_benchmarks": ["aime_2025"] });
    let refused = server.order("/api/runs", &[key], &other).await;
    assert_eq!(
        (refused.status.as_u16(), refused.detail().as_str()),
        (422, "this `Idempotency-Key` was used for another order; use a new one for each order")
    );
    // The same idempotency key from another caller is a different key.
    let callers = server.order("/api/runs/api", &[key, KEY], &body).await;
    assert_eq!(callers.status, 201);
    assert_eq!(server.get("/api/runs").await.json()["total"], 2);
    assert_eq!(server.messages(QueueName::Plans).await.len(), 2);
    assert_eq!(server.order("/api/runs", &[("idempotency-key", "a b")], &body).await.status, 422);
    let callers_again = server.order("/api/runs/api", &[key, KEY], &body).await;
    assert_eq!((callers_again.status.as_u16(), &callers_again.json()["id"]), (200, &callers.json()["id"]));
}

#[tokio::test]
async fn orders_at_the_same_time_under_one_key_make_one_run() {
    let server = Server::local().await;
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"] });
    let headers = [("idempotency-key", "order-1"), KEY];
    let orders = (0..8).map(|_| server.order("/api/runs/api", &headers, &body));
    let replies = futures_util::future::join_all(orders).await;
    let made = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(made, 1, "{:?}", replies.iter().map(|reply| reply.status).collect::<Vec<_>>());
    assert!(replies.iter().all(|reply| reply.json()["id"] == replies[0].json()["id"]));
    assert_eq!(server.get("/api/runs").await.json()["total"], 1);
}

#[tokio::test]
async fn the_queue_is_shown() {
    let server = Server::local().await;
    let (first, second) = (server.run_of(&["mmlu_pro"]).await, server.run_of(&["mmlu_pro"]).await);
    let place = |run: RunId| {
        let server = &server;
        async move { server.get(&format!("/api/runs/{run}")).await.json()["queue_position"].clone() }
    };
    assert_eq!((place(first).await, place(second).await), (json!(1), json!(2)));
    let list = server.get("/api/runs?status=queued").await.json();
    assert_eq!(list["runs"][0]["queue_position"], 2, "newest first");
    server.post(&format!("/api/runs/{first}/cancel"), &[]).await;
    assert_eq!((place(first).await, place(second).await), (json!(null), json!(1)));
}

#[tokio::test]
async fn the_command_line_may_set_more_than_a_request() {
    let server = Server::local().await;
    let name: BenchmarkName = "mmlu_pro".parse().unwrap();
    let order = Order {
        model: "replay:answers.jsonl".into(),
        benchmarks: Some(vec!["mmlu_pro".into()]),
        trusted: TrustedSettings {
            replay_key: Some("uploads/x".into()),
            datasets: [(name.clone(), DatasetChoice::Local { revision: "r".into() })].into(),
            coverage_min: Some(0.5),
            ..TrustedSettings::default()
        },
        ..Order::default()
    };
    let created = server.api.orders.create(order.clone(), Orderer::local()).await.unwrap();
    let spec = &created.run.run.spec;
    assert_eq!(
        (spec.model.slug.as_str(), spec.model.replay_key.as_deref()),
        ("answers.jsonl", Some("uploads/x"))
    );
    assert_eq!((spec.coverage_min, spec.datasets.len()), (0.5, 1));
    let other = Order { benchmarks: Some(vec!["aime_2025".into()]), ..order };
    let error = server.api.orders.create(other, Orderer::local()).await.unwrap_err();
    assert_eq!(error.code(), Code::BenchmarkNotOrdered);
    let elsewhere = Order {
        model: "openai-compatible/m".into(),
        trusted: TrustedSettings {
            base_url: Some("http://127.0.0.1:9/v1".into()),
            ..TrustedSettings::default()
        },
        ..Order::default()
    };
    let created = server.api.orders.create(elsewhere, Orderer::local()).await.unwrap();
    assert_eq!(created.run.run.spec.model.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
}
