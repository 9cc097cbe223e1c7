//! Requests that are refused whatever they are about, and callers that aren't known or not allowed.

use std::time::Duration;

use axum::body::Body;
use bench_state::access::AccessKind;
use bench_web::SecretLimits;
use futures_util::stream;
use serde_json::json;

use super::{ADMIN, JSON, KEY, Recorder, id, order};
use crate::server::Server;

pub(super) async fn record(recorder: &mut Recorder) {
    let local = Server::local().await;
    recorder.heading("Paths and headers");
    recorder.send(&local, "GET", "/%FF", &[]).await;
    recorder.send(&local, "GET", "/api/nope", &[]).await;
    recorder.send(&local, "POST", "/api/health", &[]).await;
    recorder.send(&local, "GET", "/api/runs", &[("host", "bench.example")]).await;
    recorder.send(&local, "GET", "/api/runs", &[("origin", "https://ui.example")]).await;
    let deployed = Server::deployed().await;
    let preflight = [("origin", "https://ui.example"), ("access-control-request-method", "POST")];
    recorder.send(&deployed, "OPTIONS", "/api/runs", &preflight).await;
    bodies(recorder, &local).await;
    callers(recorder, &deployed).await;
}

async fn bodies(recorder: &mut Recorder, local: &Server) {
    recorder.heading("Bodies");
    for body in ["", "{", "{\"model_id\": nan}", "[1]", "\"text\""] {
        let reply = local.ask("POST", "/api/runs", &[JSON], body).await;
        recorder.record("POST", "/api/runs", &[], &format!("`{body}`"), &reply);
    }
    let plain = [("content-type", "text/plain")];
    let reply = local.ask("POST", "/api/runs", &plain, "{}").await;
    recorder.record("POST", "/api/runs", &plain, "`{}`", &reply);
    let large = json!({ "model_id": "x".repeat(2 << 20) });
    recorder.post(local, "/api/runs", &[], "(2 MiB)", &large).await;
    let broken = stream::once(async { Err::<String, _>(std::io::Error::other("gone")) });
    let reply = local.ask("POST", "/api/runs", &[JSON], Body::from_stream(broken)).await;
    recorder.record("POST", "/api/runs", &[], "(breaks off)", &reply);
}

async fn callers(recorder: &mut Recorder, deployed: &Server) {
    recorder.heading("Callers");
    recorder.send(deployed, "GET", "/api/auth/login", &[]).await;
    recorder.send(deployed, "GET", "/api/auth/me", &[]).await;
    recorder.post(deployed, "/api/runs", &[], "ORDER", &order(json!({}))).await;
    let basic = [("authorization", "Basic eA==")];
    recorder.post(deployed, "/api/runs/api", &basic, "ORDER", &order(json!({}))).await;
    for judge in ["sk-judge", "Bearer bra_token"] {
        let headers = [KEY, ("x-judge-authorization", judge)];
        recorder.post(deployed, "/api/runs", &headers, "ORDER", &order(json!({}))).await;
    }
    let headers = [KEY, ("x-user-authorization", "sk-user")];
    recorder.post(deployed, "/api/runs", &headers, "ORDER", &order(json!({}))).await;
    let token = [("authorization", "Bearer bra_revoked")];
    recorder.post(deployed, "/api/runs", &token, "ORDER", &order(json!({}))).await;
    recorder.send(deployed, "POST", "/api/admin/sync-models", &[]).await;
    recorder.send(deployed, "POST", "/api/admin/sync-models", &[("x-admin-secret", "guess")]).await;
    let run = id(&deployed.order("/api/runs", &[KEY], &order(json!({}))).await);
    recorder.name(&run, "RUN");
    recorder.send(deployed, "POST", &format!("/api/runs/{run}/cancel"), &[]).await;
    let other = [("authorization", "Bearer key-b")];
    recorder.send(deployed, "POST", &format!("/api/runs/{run}/cancel"), &other).await;
    recorder.send(deployed, "POST", &format!("/api/admin/runs/{run}/requeue"), &[]).await;
    let limits = SecretLimits { delay: Duration::ZERO, per_minute: 0 };
    let strict = Server::with(false, &[], |config| config.secret_limits = limits).await;
    recorder.send(&strict, "POST", "/api/admin/sync-models", &[("x-admin-secret", "guess")]).await;
    let maintenance = Server::new(true, &[("MAINTENANCE_MODE", "1")]).await;
    recorder.post(&maintenance, "/api/runs", &[], "ORDER", &order(json!({}))).await;

    recorder.heading("Access policy");
    let closed = Server::new(false, &[("BENCH_ACCESS", "admin")]).await;
    recorder.post(&closed, "/api/runs", &[KEY], "ORDER", &order(json!({}))).await;
    let tokens_only = Server::new(false, &[("BENCH_ACCESS", "token")]).await;
    recorder.post(&tokens_only, "/api/runs", &[ADMIN], "ORDER", &order(json!({}))).await;
    deployed.list(AccessKind::Token, "bra_plain", false, false).await;
    deployed.list(AccessKind::Token, "bra_oracle", true, false).await;
    let plain = [("authorization", "Bearer bra_plain")];
    recorder.post(deployed, "/api/runs", &plain, "ORDER", &order(json!({}))).await;
    let vars = [
        ("CHUTES_CLIENT_ID", "cid"),
        ("FRONTEND_URL", "https://bench.example"),
        ("CHUTES_API_KEY", "sk-operator"),
        ("OPENROUTER_API_KEY", "sk-operator"),
    ];
    let users = Server::new(false, &vars).await;
    let cookie = users.sign_in('u', "s-1", false).await;
    recorder.name(&cookie, "SESSION");
    let chutes = json!({ "model_id": "chutes/a/b" });
    let cross_site = [("cookie", cookie.as_str())];
    recorder.post(&users, "/api/runs", &cross_site, "ORDER", &order(chutes.clone())).await;
    let own_page = [("cookie", cookie.as_str()), ("origin", "https://bench.example")];
    recorder.post(&users, "/api/runs", &own_page, &format!("ORDER + {chutes}"), &order(chutes)).await;
    let other = json!({ "model_id": "openrouter/a/b" });
    recorder.post(&users, "/api/runs", &own_page, &format!("ORDER + {other}"), &order(other)).await;
    recorder.post(&users, "/api/runs", &own_page, "ORDER", &order(json!({}))).await;
    let gated = json!({ "selected_benchmarks": ["gpqa_diamond"] });
    let oracle = [("authorization", "Bearer bra_oracle")];
    recorder.post(deployed, "/api/runs", &oracle, &format!("ORDER + {gated}"), &order(gated)).await;
}
