//! Anyone may read; only owners and the operator may change.

use crate::server::Server;
use bench_domain::RunId;
use bench_domain::run::{AuthMode, Owner};
use serde_json::{Value, json};

const A: (&str, &str) = ("authorization", "Bearer key-a");
const B: (&str, &str) = ("authorization", "Bearer key-b");
const ADMIN: (&str, &str) = ("x-admin-secret", "hush");

fn body() -> Value {
    json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"] })
}

#[tokio::test]
async fn a_deployed_server_refuses_runs_without_a_credential() {
    let server = Server::deployed().await;
    let unknown =
        server.order("/api/runs", &[], &json!({ "model_id": "00000000-0000-4000-8000-000000000000" })).await;
    assert_eq!(unknown.status, 404, "as the compatible system's suite asks for");
    // A caller who may not order learns nothing about the operator's settings.
    let unset = server.order("/api/runs", &[], &json!({ "model_id": "chutes/lab/example" })).await;
    assert_eq!(unset.status, 401, "{}", unset.text);
    let nobody = server.order("/api/runs", &[], &body()).await;
    assert_eq!((nobody.status.as_u16(), nobody.detail().as_str()), (401, "Missing Authorization header"));
    let holder = server.order("/api/runs", &[A], &body()).await;
    assert_eq!(holder.status, 201);
    let id: RunId = holder.json()["id"].as_str().unwrap().parse().unwrap();
    let record = server.api.state.run(id).await.unwrap().unwrap();
    assert_eq!(record.spec.auth, AuthMode::ApiKey, "the operator does not pay");
    let operator = server.order("/api/runs", &[ADMIN], &body()).await;
    assert_eq!(operator.status, 201);
    let id: RunId = operator.json()["id"].as_str().unwrap().parse().unwrap();
    let record = server.api.state.run(id).await.unwrap().unwrap();
    assert_eq!((record.spec.owner, record.spec.auth), (Owner::Local, AuthMode::System));
    let wrong = server.order("/api/runs", &[("x-admin-secret", "guess")], &body()).await;
    assert_eq!((wrong.status.as_u16(), wrong.detail().as_str()), (401, "Invalid admin secret"));
    // Over a network, callers may not use this machine's LM Studio.
    assert_eq!(server.order("/api/runs", &[A], &json!({ "model_id": "lmstudio/x" })).await.status, 400);
}

#[tokio::test]
async fn only_the_owner_and_the_operator_change_a_run() {
    for server in [Server::deployed().await, Server::local().await] {
        let made = server.order("/api/runs/api", &[A], &body()).await.json();
        let id = made["id"].as_str().unwrap();
        let (cancel, requeue) = (format!("/api/runs/{id}/cancel"), format!("/api/admin/runs/{id}/requeue"));
        let run = format!("/api/runs/{id}");
        let nobody = if server.api.config.server.local { 403 } else { 401 };
        for (headers, status) in [(&[][..], nobody), (&[B][..], 403), (&[("x-admin-secret", "x")][..], 401)] {
            assert_eq!(server.post(&cancel, headers).await.status, status, "{headers:?}");
            assert_eq!(server.ask("DELETE", &run, headers, "").await.status, status, "{headers:?}");
            let headers = [headers, &[("content-type", "application/json")]].concat();
            let labeled = server.ask("PATCH", &run, &headers, r#"{"name":"mine"}"#).await;
            assert_eq!(labeled.status, status, "{headers:?}");
        }
        let view = server.get(&run).await.json();
        assert_eq!((&view["status"], &view["name"]), (&json!("queued"), &json!(null)));
        for caller in [A, ADMIN] {
            let headers = [caller, ("content-type", "application/json")];
            let labeled = server.ask("PATCH", &run, &headers, json!({ "name": caller.0 }).to_string()).await;
            assert_eq!((labeled.status.as_u16(), &labeled.json()["name"]), (200, &json!(caller.0)));
        }
        assert_eq!(server.post(&cancel, &[A]).await.status, 200);
        assert_eq!(server.post(&requeue, &[B]).await.status, 403);
        assert_eq!(server.post(&requeue, &[ADMIN, A]).await.status, 200);
        assert_eq!(server.post(&cancel, &[ADMIN]).await.status, 200);
        assert_eq!(server.ask("DELETE", &run, &[A], "").await.status, 200);
    }
}

#[tokio::test]
async fn the_operators_routes_are_closed_to_others() {
    let server = Server::deployed().await;
    for headers in [&[][..], &[A][..], &[("x-admin-secret", "")][..]] {
        let sync = server.post("/api/admin/sync-models", headers).await;
        assert_eq!(
            (sync.status.as_u16(), sync.detail().as_str()),
            (401, "Invalid admin secret"),
            "{headers:?}"
        );
    }
    let id = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
    assert_eq!(server.post(&format!("/api/admin/runs/{id}/requeue"), &[]).await.status, 401);
    assert_eq!(server.post(&format!("/api/admin/runs/{id}/requeue"), &[ADMIN]).await.status, 400);
    let open = Server::new(false, &[("ADMIN_SECRET", "")]).await;
    assert_eq!(open.post("/api/admin/sync-models", &[ADMIN]).await.status, 401, "no secret, no admin");
}
