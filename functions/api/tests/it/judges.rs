//! Protocols and judges in orders: accepted and refused choices, and which key is used.

use crate::server::Server;
use bench_domain::run::AuthMode;
use bench_domain::{ModelRole, RunId, Secret};
use bench_runs::{JudgeOrder, Order, Orderer, TrustedSettings};
use serde_json::{Value, json};

const KEY: (&str, &str) = ("authorization", "Bearer sk-caller");
const JUDGE_KEY: (&str, &str) = ("x-judge-authorization", "Bearer sk-judge");

fn order(model: &str, judge: Value) -> Value {
    json!({ "model_id": model, "selected_benchmarks": ["aa_omniscience"], "demo": true, "judge": judge })
}

async fn made(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> (RunId, Value) {
    let reply = server.order(path, headers, body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    for secret in ["sk-caller", "sk-judge"] {
        assert!(!reply.text.contains(secret));
    }
    (reply.json()["id"].as_str().unwrap().parse().unwrap(), reply.json())
}

#[tokio::test]
async fn a_judge_is_named_or_follows_from_the_model_or_the_operator() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let (run, view) = made(&server, "/api/runs", &[], &order("oracle", json!(null))).await;
    assert_eq!(
        view["judge"],
        json!({ "model": "oracle", "temperature": null, "seed": null, "max_tokens": null })
    );
    let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!(spec.template.judge.unwrap().auth, AuthMode::System);

    let judge = json!({ "model_id": "openrouter/j", "temperature": 0.5, "seed": -3, "max_tokens": 99 });
    let (_, view) = made(&server, "/api/runs", &[], &order("openrouter/m", judge)).await;
    assert_eq!(
        view["judge"],
        json!({ "model": "openrouter/j", "temperature": 0.5, "seed": -3, "max_tokens": 99 })
    );
    // An order with settings but no judge uses the default judge.
    let (_, view) = made(&server, "/api/runs", &[], &order("oracle", json!({ "seed": 1 }))).await;
    assert_eq!((&view["judge"]["model"], &view["judge"]["seed"]), (&json!("oracle"), &json!(1)));

    let nobody = server.order("/api/runs", &[], &order("openrouter/m", json!(null))).await;
    assert_eq!(nobody.status, 400);
    for part in ["aa_omniscience", "judge.model_id", "--judge-model", "BENCH_JUDGE_MODEL"] {
        assert!(nobody.detail().contains(part), "{part}: {}", nobody.detail());
    }
    for (judge, status, part) in [
        (json!({ "model_id": "nobody/knows" }), 404, "judge: Model not found"),
        (json!({ "model_id": "chutes/j" }), 400, "CHUTES_API_KEY"),
        (json!({ "model_id": "j", "provider": "openai" }), 400, "judge: Unsupported provider"),
        (json!({ "model_id": "replay:x" }), 404, "judge: "),
    ] {
        let reply = server.order("/api/runs", &[], &order("oracle", judge.clone())).await;
        assert_eq!(reply.status, status, "{judge}: {}", reply.text);
        assert!(reply.detail().contains(part), "{part}: {}", reply.detail());
    }
    // Without judged benchmarks, the order's judge isn't stored.
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "judge": { "model_id": "oracle" } });
    let (_, view) = made(&server, "/api/runs", &[], &body).await;
    assert_eq!(view["judge"], json!(null));

    let server =
        Server::new(true, &[("OPENROUTER_API_KEY", "k"), ("BENCH_JUDGE_MODEL", "openrouter/d")]).await;
    let (_, view) = made(&server, "/api/runs", &[], &order("oracle", json!(null))).await;
    assert_eq!(view["judge"]["model"], "openrouter/d");
}

#[tokio::test]
async fn an_order_without_benchmarks_leaves_out_those_without_a_judge() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let names = |view: &Value| -> Vec<String> {
        let all = view["benchmarks"].as_array().unwrap().iter();
        all.map(|benchmark| benchmark["benchmark_name"].as_str().unwrap().to_owned()).collect()
    };
    let body = json!({ "model_id": "openrouter/m", "demo": true });
    let (_, view) = made(&server, "/api/runs", &[], &body).await;
    assert!(
        names(&view).contains(&"mmlu_pro".to_owned()) && !names(&view).contains(&"aa_omniscience".to_owned())
    );
    let (_, view) = made(&server, "/api/runs", &[], &json!({ "model_id": "oracle", "demo": true })).await;
    assert!(names(&view).contains(&"aa_omniscience".to_owned()), "the oracle judges itself");
}

#[tokio::test]
async fn the_judges_key_is_sealed_apart_and_goes_to_its_own_provider() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let keys = async |run| {
        let credentials = &server.api.credentials;
        let text = |key: Option<Secret>| key.map(|key| key.expose().to_owned()).unwrap_or_default();
        (
            text(credentials.get(run, ModelRole::Model).await.unwrap()),
            text(credentials.get(run, ModelRole::Judge).await.unwrap()),
        )
    };
    let auth =
        async |run| server.api.state.run(run).await.unwrap().unwrap().spec.template.judge.unwrap().auth;
    let other = order("lmstudio/m", json!({ "model_id": "openrouter/j" }));
    let same = order("openrouter/m", json!({ "model_id": "openrouter/j" }));
    for (body, headers, own, judge) in [
        (&other, vec![KEY, JUDGE_KEY], "sk-caller", "sk-judge"),
        // The caller's key is for another provider, so the operator's key is used.
        (&other, vec![KEY], "sk-caller", ""),
        (&same, vec![KEY], "sk-caller", "sk-caller"),
        (&same, vec![KEY, JUDGE_KEY], "sk-caller", "sk-judge"),
    ] {
        let (run, _) = made(&server, "/api/runs/api", &headers, body).await;
        assert_eq!(keys(run).await, (own.to_owned(), judge.to_owned()), "{body} {headers:?}");
        let expected = if judge.is_empty() { AuthMode::System } else { AuthMode::ApiKey };
        assert_eq!(auth(run).await, expected);
    }
    // A run on the operator's key may use the caller's key for the judge; the oracle needs no key.
    let (run, _) = made(&server, "/api/runs", &[JUDGE_KEY], &same).await;
    assert_eq!(keys(run).await, (String::new(), "sk-judge".to_owned()));
    let (run, _) = made(&server, "/api/runs", &[JUDGE_KEY], &order("oracle", json!(null))).await;
    assert_eq!(keys(run).await, (String::new(), String::new()));
    let bad = server.order("/api/runs", &[("x-judge-authorization", "Basic eA==")], &same).await;
    assert_eq!((bad.status.as_u16(), bad.detail().as_str()), (401, "Invalid X-Judge-Authorization header"));
    // No file of the services on disk contains the keys as plain text.
    let mut files = vec![server.embedded.data_dir().to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(8).any(|window| window == b"sk-judge"), "{}", path.display());
        }
    }
}

#[tokio::test]
async fn strangers_spend_the_operators_money_on_the_operators_judge_alone() {
    let vars = [("OPENROUTER_API_KEY", "k"), ("BENCH_JUDGE_MODEL", "openrouter/d")];
    let server = Server::new(false, &vars).await;
    server.list(bench_state::access::AccessKind::Key, "sk-caller", true, true).await;
    let path = "/api/runs";
    made(&server, path, &[KEY], &order("oracle", json!(null))).await;
    let dear = order("oracle", json!({ "model_id": "openrouter/dear" }));
    let refused = server.order(path, &[KEY], &dear).await;
    assert_eq!(refused.status, 400);
    assert!(refused.detail().contains("X-Judge-Authorization"), "{}", refused.detail());
    made(&server, path, &[KEY, JUDGE_KEY], &dear).await;
    made(&server, path, &[("x-admin-secret", "hush")], &dear).await;
}

#[tokio::test]
async fn protocols_are_chosen_and_checked() {
    let server = Server::local().await;
    let hle = bench_benchmarks::find("hle").unwrap();
    let other = hle.other_protocols().first().unwrap().metadata().protocol_name;
    let body = |protocols: Value| json!({ "model_id": "oracle", "selected_benchmarks": ["HLE", "mmlu_pro"], "demo": true, "protocols": protocols });
    let (run, view) = made(&server, "/api/runs", &[], &body(json!({ "hle": other }))).await;
    assert_eq!(view["protocols"], json!({ "hle": other }));
    assert_eq!(view["benchmarks"][0]["protocol_name"], other);
    let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!(spec.protocols.values().collect::<Vec<_>>(), [other]);
    let default = hle.metadata().protocol_name;
    let (_, view) = made(&server, "/api/runs", &[], &body(json!({ "hle": default }))).await;
    assert_eq!(view["protocols"], json!({}), "the default one is no choice");
    for (protocols, parts) in [
        (json!({ "hle": "nope" }), vec!["no protocol `nope`", other, default]),
        (json!({ "nope": "x" }), vec!["unknown benchmark `nope`", "mmlu_pro"]),
        (json!({ "hle": 7 }), vec!["valid string"]),
        (json!(["hle"]), vec!["dictionary"]),
    ] {
        let reply = server.order("/api/runs", &[], &body(protocols.clone())).await;
        assert_eq!(reply.status, 422, "{protocols}: {}", reply.text);
        assert_eq!(reply.json()["detail"][0]["loc"][1], "protocols");
        for part in parts {
            assert!(reply.text.contains(part), "{part}: {}", reply.text);
        }
    }
    let elsewhere =
        body(json!({ "aime_2025": bench_benchmarks::find("aime_2025").unwrap().metadata().protocol_name }));
    let reply = server.order("/api/runs", &[], &elsewhere).await;
    assert_eq!(reply.status, 422);
    assert!(reply.detail().contains("isn't ordered"), "{}", reply.detail());
}

#[tokio::test]
async fn the_command_line_says_where_the_judge_answers() {
    let server = Server::local().await;
    let order = Order {
        model: "oracle".into(),
        benchmarks: Some(vec!["aa_omniscience".into()]),
        demo: true,
        judge: Some(JudgeOrder { model: Some("openai-compatible/j".into()), ..JudgeOrder::default() }),
        trusted: TrustedSettings {
            judge_base_url: Some("http://127.0.0.1:9/v1".into()),
            ..TrustedSettings::default()
        },
        ..Order::default()
    };
    let created = server.api.orders.create(order.clone(), Orderer::local()).await.unwrap();
    let judge = created.run.run.spec.template.judge.unwrap();
    assert_eq!(
        (judge.model.base_url.as_deref(), judge.auth),
        (Some("http://127.0.0.1:9/v1"), AuthMode::System)
    );
    let view = server.get(&format!("/api/runs/{}", created.run.run.spec.id)).await;
    assert!(!view.text.contains("127.0.0.1"), "{}", view.text);
    // A request can't set the judge's base URL.
    let body = json!({
        "model_id": "oracle", "selected_benchmarks": ["aa_omniscience"], "demo": true,
        "judge": { "model_id": "oracle" }, "judge_base_url": "http://127.0.0.1:9/v1",
    });
    let (run, _) = made(&server, "/api/runs", &[], &body).await;
    assert_eq!(
        server.api.state.run(run).await.unwrap().unwrap().spec.template.judge.unwrap().model.base_url,
        None
    );
}

#[tokio::test]
async fn a_run_is_requeued_with_its_judges_key() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let body = order("oracle", json!({ "model_id": "openrouter/j" }));
    let (run, _) = made(&server, "/api/runs", &[JUDGE_KEY], &body).await;
    server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    let credentials = &server.api.credentials;
    assert_eq!(credentials.get(run, ModelRole::Judge).await.unwrap(), None, "gone when the run is over");
    let path = format!("/api/admin/runs/{run}/requeue");
    let missing = server.post(&path, &[]).await;
    assert_eq!(missing.status, 400);
    assert!(missing.detail().contains("X-Judge-Authorization"), "{}", missing.detail());
    assert_eq!(server.post(&path, &[JUDGE_KEY]).await.status, 200);
    assert_eq!(credentials.get(run, ModelRole::Judge).await.unwrap(), Some(Secret::new("sk-judge").unwrap()));
    assert_eq!(credentials.get(run, ModelRole::Model).await.unwrap(), None);
}

#[tokio::test]
async fn schedules_have_judges_and_protocols() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let hle = bench_benchmarks::find("hle").unwrap();
    let protocol = hle.other_protocols().first().unwrap().metadata().protocol_name;
    let body = json!({
        "name": "nightly", "cron": "30 2 * * *", "model_id": "oracle", "selected_benchmarks": ["hle", "mmlu_pro"],
        "demo": true, "protocols": { "hle": protocol }, "judge": { "model_id": "openrouter/j", "seed": 1 },
    });
    let reply = server.order("/api/schedules", &[JUDGE_KEY], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let made = reply.json();
    assert_eq!(
        (&made["judge"]["model"], &made["protocols"]["hle"]),
        (&json!("openrouter/j"), &json!(protocol))
    );
    let id = made["id"].as_str().unwrap().parse().unwrap();
    let credentials = &server.api.credentials;
    assert_eq!(
        credentials.get_for_schedule(id, ModelRole::Judge).await.unwrap(),
        Some(Secret::new("sk-judge").unwrap())
    );
    let path = format!("/api/schedules/{id}");
    let patch = async |headers: &[(&str, &str)], change: Value| {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        let reply = server.ask("PATCH", &path, &all, change.to_string()).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    };
    // Unchanged fields stay, and so does the judge's key.
    let changed = patch(&[], json!({ "subset_count": 3 })).await;
    assert_eq!((&changed["judge"], &changed["protocols"]), (&made["judge"], &made["protocols"]));
    assert_eq!(
        credentials.get_for_schedule(id, ModelRole::Judge).await.unwrap(),
        Some(Secret::new("sk-judge").unwrap())
    );
    let changed =
        patch(&[("x-judge-authorization", "Bearer sk-other")], json!({ "judge": { "seed": 2 } })).await;
    let renamed = json!({ "judge": { "model": "openrouter/k" } });
    let renamed = patch(&[("x-judge-authorization", "Bearer sk-other")], renamed).await;
    assert_eq!((&renamed["judge"]["model"], &renamed["judge"]["seed"]), (&json!("openrouter/k"), &json!(2)));
    patch(
        &[("x-judge-authorization", "Bearer sk-other")],
        json!({ "judge": { "model_id": "openrouter/j" } }),
    )
    .await;
    assert_eq!((&changed["judge"]["model"], &changed["judge"]["seed"]), (&json!("openrouter/j"), &json!(2)));
    assert_eq!(
        credentials.get_for_schedule(id, ModelRole::Judge).await.unwrap(),
        Some(Secret::new("sk-other").unwrap())
    );
    // Removing a benchmark also removes its protocol and judge.
    let changed = patch(&[], json!({ "selected_benchmarks": ["mmlu_pro"] })).await;
    assert_eq!((&changed["judge"], &changed["protocols"]), (&json!(null), &json!({})));
    assert_eq!(server.ask("DELETE", &path, &[], "").await.status, 200);
    assert_eq!(
        credentials.get_for_schedule(id, ModelRole::Judge).await.unwrap(),
        None,
        "its keys are gone with it"
    );
}

#[tokio::test]
async fn schedules_have_user_models() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let body = json!({
        "name": "calls", "cron": "30 2 * * *", "model_id": "openrouter/a", "selected_benchmarks": ["tau_bench_telecom"],
        "demo": true, "user_model": { "model_id": "openrouter/u", "temperature": 0.5 },
    });
    let reply = server.order("/api/schedules", &[], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let path = format!("/api/schedules/{}", reply.json()["id"].as_str().unwrap());
    let patch = async |change: Value| {
        let headers = [("content-type", "application/json")];
        let reply = server.ask("PATCH", &path, &headers, change.to_string()).await;
        (reply.status.as_u16(), reply.json())
    };
    // Only the sent fields change.
    for (change, model, temperature) in [
        (json!({ "subset_count": 2 }), "openrouter/u", json!(0.5)),
        (json!({ "user_model": { "temperature": 1.0 } }), "openrouter/u", json!(1.0)),
        (json!({ "user_model": { "model": "openrouter/v" } }), "openrouter/v", json!(1.0)),
    ] {
        let (status, changed) = patch(change).await;
        assert_eq!((status, &changed["user_model"]["model"]), (200, &json!(model)), "{changed}");
        assert_eq!(changed["user_model"]["temperature"], temperature);
    }
    let (status, refused) = patch(json!({ "user_model": null })).await;
    assert_eq!(status, 422, "{refused}");
}
