//! Sessions.

use std::time::Duration;

use bench_domain::{SESSION_COOKIE_CHARS, SessionId};
use bench_state::SessionRecord;
use serde_json::json;

use super::{JSON, Recorder};
use crate::server::Server;

const PAGE: &str = "https://bench.example";

pub(super) async fn record(recorder: &mut Recorder) {
    recorder.heading("Sign-in");
    let server = Server::new(false, &[("FRONTEND_URL", PAGE), ("CHUTES_CLIENT_ID", "bench")]).await;
    let value = "c".repeat(SESSION_COOKIE_CHARS);
    let cookie = format!("bench_session={value}");
    recorder.name(&cookie, "SESSION");
    let me = "/api/auth/me";
    recorder.send(&server, "GET", me, &[]).await;
    recorder.send(&server, "GET", me, &[("cookie", &cookie)]).await;
    let now = bench_clock::now();
    let session = SessionRecord {
        id: SessionId::from_cookie(&value).unwrap(),
        subject: "user-1".to_owned(),
        name: "mira".to_owned(),
        has_invoke_scope: true,
        created_at: now,
        ends_at: now.plus(Duration::from_secs(60)),
    };
    server.api.state.create_session(&session, None).await.unwrap();
    let sent = [("cookie", cookie.as_str()), ("origin", PAGE)];
    let order = json!({ "model_id": "chutes/m", "selected_benchmarks": ["mmlu_pro"], "demo": true });
    let reply = server.order("/api/runs", &sent, &order).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let logout = "/api/auth/logout";
    recorder.send(&server, "POST", logout, &sent[..1]).await;
    recorder.send(&server, "POST", logout, &sent).await;
    let with_body: Vec<_> = sent.iter().copied().chain([JSON]).collect();
    recorder.post(&server, logout, &with_body, "{\"end_runs\":1.5}", &json!({ "end_runs": 1.5 })).await;
}
