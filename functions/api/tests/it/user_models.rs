//! User models in orders: which key pays for them, when it is needed again, and what schedules keep.

use bench_domain::run::AuthMode;
use bench_domain::{ModelRole, RunId, Secret};
use serde_json::{Value, json};

use crate::server::Server;

const KEY: (&str, &str) = ("authorization", "Bearer sk-caller");
const USER_KEY: (&str, &str) = ("x-user-authorization", "Bearer sk-user");

fn order(model: &str, user: &str) -> Value {
    json!({
        "model_id": model, "selected_benchmarks": ["tau_bench_telecom"], "demo": true,
        "user_model": { "model_id": user },
    })
}

async fn made(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> RunId {
    let reply = server.order(path, headers, body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert!(!reply.text.contains("sk-caller") && !reply.text.contains("sk-user"), "{}", reply.text);
    reply.json()["id"].as_str().unwrap().parse().unwrap()
}

/// Returns the stored keys of a run, by role.
async fn keys(server: &Server, run: RunId) -> [String; 3] {
    let mut keys = [const { String::new() }; 3];
    for (key, role) in keys.iter_mut().zip(ModelRole::ALL) {
        let stored = server.api.credentials.get(run, role).await.unwrap();
        *key = stored.map(|key| key.expose().to_owned()).unwrap_or_default();
    }
    keys
}

#[tokio::test]
async fn the_user_models_key_is_sealed_apart_and_goes_to_its_own_provider() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let other = order("lmstudio/m", "openrouter/u");
    let same = order("openrouter/m", "openrouter/u");
    for (path, body, headers, own, user) in [
        ("/api/runs/api", &other, vec![KEY, USER_KEY], "sk-caller", "sk-user"),
        // The caller's key is for another provider, so the operator's key is used.
        ("/api/runs/api", &other, vec![KEY], "sk-caller", ""),
        ("/api/runs/api", &same, vec![KEY], "sk-caller", "sk-caller"),
        ("/api/runs/api", &same, vec![KEY, USER_KEY], "sk-caller", "sk-user"),
        ("/api/runs", &same, vec![USER_KEY], "", "sk-user"),
    ] {
        let run = made(&server, path, &headers, body).await;
        assert_eq!(keys(&server, run).await, [own, "", user], "{body} {headers:?}");
        let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
        let expected = if user.is_empty() { AuthMode::System } else { AuthMode::ApiKey };
        assert_eq!(spec.template.user.unwrap().auth, expected);
    }
    // The oracle plays the right actions, and asks no user model.
    let oracle = json!({ "model_id": "oracle", "selected_benchmarks": ["tau_bench_telecom"], "demo": true });
    let run = made(&server, "/api/runs", &[USER_KEY], &oracle).await;
    assert_eq!(keys(&server, run).await, ["", "", ""]);
    for (bad, why) in [
        ("Basic eA==", "Invalid X-User-Authorization header"),
        ("Bearer bra_token", "an access token can't be sent to a user model's provider"),
    ] {
        let refused = server.order("/api/runs", &[("x-user-authorization", bad)], &same).await;
        assert_eq!(refused.status, 401);
        assert!(refused.detail().starts_with(why), "{}", refused.detail());
    }
}

#[tokio::test]
async fn strangers_need_a_key_for_the_user_model() {
    let server = Server::new(false, &[("OPENROUTER_API_KEY", "k"), ("CHUTES_API_KEY", "k")]).await;
    server.list(bench_state::access::AccessKind::Key, "sk-caller", true, true).await;
    let mixed = order("chutes/m", "openrouter/u");
    let refused = server.order("/api/runs/api", &[KEY], &mixed).await;
    assert_eq!((refused.status.as_u16(), refused.json()["code"].as_str()), (400, Some("user_key_required")));
    assert!(refused.detail().contains("X-User-Authorization"), "{}", refused.detail());
    let run = made(&server, "/api/runs/api", &[KEY, USER_KEY], &mixed).await;
    assert_eq!(keys(&server, run).await, ["sk-caller", "", "sk-user"]);
}

#[tokio::test]
async fn a_run_is_requeued_with_its_user_models_key() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let run = made(&server, "/api/runs", &[USER_KEY], &order("openrouter/m", "openrouter/u")).await;
    server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    assert_eq!(keys(&server, run).await, ["", "", ""], "gone when the run is over");
    let can = server.get(&format!("/api/runs/{run}")).await.json()["can"].clone();
    assert_eq!(
        (&can["needs_user_key"], &can["needs_key"], &can["needs_judge_key"]),
        (&json!(true), &json!(false), &json!(false))
    );
    let path = format!("/api/admin/runs/{run}/requeue");
    let missing = server.post(&path, &[]).await;
    assert_eq!((missing.status.as_u16(), missing.json()["code"].as_str()), (400, Some("user_key_required")));
    for part in ["X-User-Authorization", "BENCH_USER_API_KEY"] {
        assert!(missing.detail().contains(part), "{}", missing.detail());
    }
    assert_eq!(server.post(&path, &[USER_KEY]).await.status, 200);
    assert_eq!(keys(&server, run).await, ["", "", "sk-user"]);
}

#[tokio::test]
async fn schedules_keep_the_user_models_key() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let mut body = order("openrouter/m", "openrouter/u");
    (body["name"], body["cron"]) = (json!("calls"), json!("30 2 * * *"));
    let reply = server.order("/api/schedules", &[USER_KEY], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let id = reply.json()["id"].as_str().unwrap().parse().unwrap();
    let path = format!("/api/schedules/{id}");
    let stored = async || {
        let key = server.api.credentials.get_for_schedule(id, ModelRole::UserModel).await.unwrap();
        key.as_ref().map(Secret::expose).map(str::to_owned)
    };
    let patch = async |headers: &[(&str, &str)], change: Value| {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let reply = server.ask("PATCH", &path, &headers, change.to_string()).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    };
    assert_eq!(stored().await.as_deref(), Some("sk-user"));
    // Other changes keep the user model with its key, also the change of the evaluated model.
    for change in [json!({ "subset_count": 2 }), json!({ "model_id": "openrouter/other" })] {
        assert_eq!(patch(&[], change).await["user_model"]["model"], "openrouter/u");
        assert_eq!(stored().await.as_deref(), Some("sk-user"));
    }
    let other = [("x-user-authorization", "Bearer sk-other")];
    patch(&other, json!({ "user_model": { "temperature": 1.0 } })).await;
    assert_eq!(stored().await.as_deref(), Some("sk-other"));
    let schedule = server.api.state.schedule(id).await.unwrap().unwrap().schedule;
    assert_eq!(schedule.run.user.unwrap().auth, AuthMode::ApiKey);
    assert_eq!(server.ask("DELETE", &path, &[], "").await.status, 200);
    assert_eq!(stored().await, None, "its keys are gone with it");
}
