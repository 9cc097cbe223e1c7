//! Schedules, the catalog, access entries and the sandbox service.

use bench_domain::ScheduleId;
use bench_state::access::AccessKind;
use serde_json::{Value, json};

use super::{ADMIN, KEY, Recorder, cut, id, order, with};
use crate::ops::sandy;
use crate::server::Server;

const UNKNOWN: &str = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";

fn schedule(change: Value) -> Value {
    with(order(json!({ "name": "nightly", "cron": "30 2 * * *" })), &change)
}

pub(super) async fn record(recorder: &mut Recorder) {
    let server = Server::deployed().await;
    schedules(recorder, &server).await;
    recorder.heading("Catalog");
    recorder.send(&server, "GET", "/api/benchmarks/nope", &[]).await;
    recorder.send(&server, "GET", "/api/benchmarks/gpqa_diamond?protocol=official", &[]).await;
    entries(recorder, &server).await;
    recorder.heading("Sandbox service");
    recorder.send(&server, "GET", "/api/ops/sandy/resources", &[]).await;
    let (odd, task) = sandy("[1]").await;
    recorder.send(&odd, "GET", "/api/ops/sandy/resources", &[]).await;
    task.abort();
}

async fn schedules(recorder: &mut Recorder, server: &Server) {
    recorder.heading("Schedules");
    let path = "/api/schedules";
    recorder.send(server, "GET", &format!("{path}/{UNKNOWN}"), &[]).await;
    let made = id(&server.order(path, &[KEY], &schedule(json!({}))).await);
    recorder.name(&made, "SCHEDULE");
    recorder.post(server, path, &[KEY], "SCHEDULE", &schedule(json!({}))).await;
    recorder.send(server, "DELETE", &format!("{path}/{made}"), &[]).await;
    let other = [("authorization", "Bearer key-b")];
    recorder.send(server, "DELETE", &format!("{path}/{made}"), &other).await;
    let headers = [("content-type", "application/json"), KEY];
    server.ask("PATCH", &format!("{path}/{made}"), &headers, r#"{"enabled":false}"#).await;
    recorder.send(server, "POST", &format!("{path}/{made}/run-now"), &[KEY]).await;
    let id: ScheduleId = made.parse().unwrap();
    let mut template = server.api.state.schedule(id).await.unwrap().unwrap().schedule;
    for number in 1..100 {
        template.id = ScheduleId::random();
        template.name = format!("schedule {number}");
        server.api.state.create_schedule(&template, None).await.unwrap();
    }
    let more = json!({ "name": "one more" });
    recorder.post(server, path, &[KEY], &format!("SCHEDULE + {more}"), &schedule(more)).await;
}

async fn entries(recorder: &mut Recorder, server: &Server) {
    recorder.heading("Access entries");
    let path = "/api/admin/access";
    recorder.send(server, "DELETE", &format!("{path}/nope"), &[ADMIN]).await;
    for body in [json!({ "name": "key-a" }), json!({ "name": "ci", "key": "key-a" })] {
        recorder.post(server, path, &[ADMIN], &cut(&body.to_string()), &body).await;
    }
    let state = &server.api.state;
    for number in state.list_access().await.unwrap().len()..bench_state::access::ENTRIES_MAX {
        server.list(AccessKind::Token, &format!("bra_{number}"), false, false).await;
    }
    recorder.post(server, path, &[ADMIN], "ENTRY", &json!({ "name": "ci" })).await;
}
