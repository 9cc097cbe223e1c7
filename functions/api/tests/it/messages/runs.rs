//! Requests about runs that are refused.

use bench_domain::Outcome::{Correct, InfrastructureError};
use bench_domain::{Code, Position};
use bench_state::{EventKind, NewEvent};
use serde_json::{Value, json};

use super::{KEY, Recorder, id, order};
use crate::server::Server;

const UNKNOWN: &str = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";

pub(super) async fn record(recorder: &mut Recorder) {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    recorder.heading("Runs");
    recorder.name(UNKNOWN, "UNKNOWN");
    for (method, end) in [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/events"),
        ("GET", "/judgings"),
        ("GET", "/benchmarks/mmlu_pro"),
        ("GET", "/items/index?benchmark=mmlu_pro"),
        ("GET", "/items/log?benchmark=mmlu_pro"),
        ("GET", "/items/turns?benchmark=mmlu_pro"),
        ("POST", "/cancel"),
        ("POST", "/rejudge"),
    ] {
        recorder.send(&server, method, &format!("/api/runs/{UNKNOWN}{end}"), &[]).await;
    }
    recorder.send(&server, "POST", &format!("/api/admin/runs/{UNKNOWN}/requeue"), &[]).await;
    let queued = server.run_of(&["mmlu_pro"]).await;
    let over = server.finished_run(&[Correct]).await;
    recorder.name(queued, "QUEUED");
    recorder.name(over, "OVER");
    recorder.send(&server, "GET", &format!("/api/runs/{over}/benchmarks/hle"), &[]).await;
    for (run, benchmark) in [(over, "mmlu_pro"), (over, "hle"), (queued, "mmlu_pro")] {
        let path = format!("/api/runs/{run}/items/index?benchmark={benchmark}");
        recorder.send(&server, "GET", &path, &[]).await;
    }
    for end in ["hle", "mmlu_pro&log=agent/trajectory.json"] {
        let path = format!("/api/runs/{over}/items/log?benchmark={end}");
        recorder.send(&server, "GET", &path, &[]).await;
    }
    for end in ["hle", "mmlu_pro&position=99"] {
        let path = format!("/api/runs/{over}/items/turns?benchmark={end}");
        recorder.send(&server, "GET", &path, &[]).await;
    }
    recorder.send(&server, "GET", "/api/leaderboard?benchmark=nope", &[]).await;
    recorder.send(&server, "DELETE", &format!("/api/runs/{queued}"), &[]).await;
    recorder.send(&server, "POST", &format!("/api/runs/{over}/cancel"), &[]).await;
    recorder.send(&server, "GET", &format!("/api/runs/{queued}/compare/{over}"), &[]).await;
    let other = server.run_of(&["aime_2025"]).await;
    recorder.name(other, "OTHER");
    server.post(&format!("/api/runs/{other}/cancel"), &[]).await;
    recorder.send(&server, "GET", &format!("/api/runs/{over}/compare/{other}"), &[]).await;
    requeues(recorder, &server, over).await;
    rejudges(recorder, &server, queued, over).await;
}

async fn requeues(recorder: &mut Recorder, server: &Server, over: bench_domain::RunId) {
    recorder.heading("Requeues");
    let path = |run: &dyn std::fmt::Display| format!("/api/admin/runs/{run}/requeue");
    recorder.send(server, "POST", &path(&over), &[]).await;
    let errors = json!({ "errors": true });
    recorder.post(server, &path(&over), &[], &errors.to_string(), &errors).await;

    let keyed = id(&server.order("/api/runs/api", &[KEY], &order(json!({}))).await);
    recorder.name(&keyed, "KEYED");
    server.post(&format!("/api/runs/{keyed}/cancel"), &[KEY]).await;
    recorder.send(server, "POST", &path(&keyed), &[]).await;
    let judged = order(json!({ "selected_benchmarks": ["hle"], "judge": { "model_id": "openrouter/j" } }));
    let judge_key = [("x-judge-authorization", "Bearer sk-judge")];
    let judged = id(&server.order("/api/runs", &judge_key, &judged).await);
    recorder.name(&judged, "JUDGED");
    server.post(&format!("/api/runs/{judged}/cancel"), &[]).await;
    recorder.send(server, "POST", &path(&judged), &[]).await;
    let talking = order(json!({ "model_id": "openrouter/m", "selected_benchmarks": ["tau_bench_telecom"],
        "user_model": { "model_id": "openrouter/u" } }));
    let user_key = [("x-user-authorization", "Bearer sk-user")];
    let talking = id(&server.order("/api/runs", &user_key, &talking).await);
    recorder.name(&talking, "TALKING");
    server.post(&format!("/api/runs/{talking}/cancel"), &[]).await;
    recorder.send(server, "POST", &path(&talking), &[]).await;

    let body = order(json!({ "model_id": "lmstudio/x", "budget_tokens": 100 }));
    let stopped = server.order("/api/runs", &[], &body).await;
    let stopped: bench_domain::RunId = id(&stopped).parse().unwrap();
    recorder.name(stopped, "STOPPED");
    server.plan(stopped, "mmlu_pro", 2, 1).await;
    server.commit(stopped, "mmlu_pro", Position { item: 0, sample: 0 }, Correct).await;
    let state = &server.api.state;
    let found = state.run(stopped).await.unwrap().unwrap();
    let next = found.state.fail(bench_clock::now(), Code::BudgetReached, "stopped").unwrap();
    let event = NewEvent::new(EventKind::RunFailed, "Run failed");
    state.change_run(&found, &next, 1, &event, bench_clock::now()).await.unwrap();
    recorder.send(server, "POST", &path(&stopped), &[]).await;
    let dollars = json!({ "budget_usd": 1 });
    recorder.post(server, &path(&stopped), &[], &dollars.to_string(), &dollars).await;
}

async fn rejudges(
    recorder: &mut Recorder,
    server: &Server,
    queued: bench_domain::RunId,
    over: bench_domain::RunId,
) {
    recorder.heading("Rejudges");
    let path = |run: &dyn std::fmt::Display| format!("/api/runs/{run}/rejudge");
    recorder.send(server, "POST", &path(&queued), &[]).await;
    recorder.send(server, "POST", &path(&over), &[]).await;
    let unplanned = server.run_of(&["hle"]).await;
    recorder.name(unplanned, "UNPLANNED");
    server.post(&format!("/api/runs/{unplanned}/cancel"), &[]).await;
    recorder.send(server, "POST", &path(&unplanned), &[]).await;
    let first = server.judged_run(&[Correct, InfrastructureError]).await;
    recorder.name(first, "FIRST");
    for body in [
        json!({ "judge": { "model_id": "no/such" } }),
        json!({ "judge": { "model_id": "chutes/j" } }),
        json!({ "judge": { "model_id": "lmstudio/j" }, "budget_usd": 1 }),
    ] {
        recorder.post(server, &path(&first), &[], &body.to_string(), &body).await;
    }
    let again: Value = server.order(&path(&first), &[], &json!({})).await.json();
    let again = again["id"].as_str().unwrap().to_owned();
    recorder.name(&again, "AGAIN");
    server.post(&format!("/api/runs/{again}/cancel"), &[]).await;
    server.ask("DELETE", &format!("/api/runs/{first}"), &[], "").await;
    recorder.send(server, "POST", &path(&again), &[]).await;
    recorder.send(server, "GET", &format!("/api/runs/{again}/judgings"), &[]).await;
}
