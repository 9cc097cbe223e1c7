//! Terminal tasks.

use bench_domain::Outcome;
use serde_json::json;

use super::{ADMIN, KEY, Recorder, id};
use crate::server::Server;
use crate::tasks::support::{form, task_zip, zip_of};

const LONG_NAME: usize = 256;

pub(super) async fn record(recorder: &mut Recorder) {
    let server = Server::with(true, &[], |config| config.direct_uploads = true).await;
    recorder.heading("Uploads of terminal tasks");
    uploads(recorder, &server).await;
    recorder.heading("Terminal tasks");
    tasks(recorder, &server).await;
    executions(recorder, &server).await;
    recorder.heading("Custom agents");
    agents(recorder, &server).await;
    recorder.heading("Terminal tasks of an exposed server");
    let exposed = Server::deployed().await;
    recorder.send(&exposed, "GET", "/api/tasks?openrouter_api_key=KEY", &[ADMIN]).await;
    recorder.send(&exposed, "POST", "/api/tasks/7/start", &[]).await;
    recorder.send(&exposed, "POST", "/api/tasks/7/start", &[KEY]).await;
    let content = json!({ "bytes": 1, "sha256": "0".repeat(64) });
    recorder.post(&exposed, "/api/tasks/uploads", &[ADMIN], "CONTENT", &content).await;
}

async fn uploads(recorder: &mut Recorder, server: &Server) {
    let long = "x".repeat(LONG_NAME);
    for query in [
        String::new(),
        format!("?name={long}&model={long}&agent={long}&harness={long}&num_runs=0"),
        "?name=a%0Ab&num_runs=101&listed=maybe".to_owned(),
    ] {
        let path = format!("/api/tasks{query}");
        let reply = server.send_form(&path, &[], form("other", None, b"x")).await;
        recorder.record("POST", &path, &[], "FORM", &reply);
    }
    let reply = server.ask("POST", "/api/tasks?name=x", &[("content-type", "application/zip")], "x").await;
    recorder.record("POST", "/api/tasks?name=x", &[], "no form", &reply);
    let toml = |text: &str| task_zip("x", &[("fix-it/task.toml", text)]);
    for (shown, file_name, zip) in [
        ("a file that isn't named as an archive", "x.tar", task_zip("x", &[])),
        ("no archive", "x.zip", b"#!/bin/sh".to_vec()),
        ("no task", "x.zip", zip_of(&[("README.md", "x")])),
        ("a path that leaves the folder", "x.zip", task_zip("x", &[("../x", "")])),
        ("a number of the wrong type", "x.zip", toml("[agent]\ntimeout_sec = 'x'\n")),
        ("too many processors", "x.zip", toml("[environment]\ncpus = 1000\n")),
    ] {
        let reply = server.send_form("/api/tasks?name=x", &[], form("file", Some(file_name), &zip)).await;
        recorder.record("POST", "/api/tasks", &[], shown, &reply);
    }
    for body in [json!({}), json!({ "bytes": 0, "sha256": "x" })] {
        recorder.post(server, "/api/tasks/uploads", &[], &body.to_string(), &body).await;
    }
    for body in [json!({ "nme": "x" }), json!({ "upload": "task-x", "name": "x" })] {
        recorder.post(server, "/api/tasks", &[], &body.to_string(), &body).await;
    }
}

async fn tasks(recorder: &mut Recorder, server: &Server) {
    for path in [
        "/api/tasks?skip=-1&limit=101&all=maybe&mine=maybe",
        &format!("/api/tasks?status={}", "x".repeat(LONG_NAME)),
        "/api/tasks/x",
        "/api/tasks/7",
        "/api/tasks/7/runs/7",
        &format!("/api/tasks/7/runs/RUN/logs?log={}&offset=-1&limit=3", "x".repeat(LONG_NAME)),
    ] {
        recorder.send(server, "GET", path, &[]).await;
    }
    for action in ["execute-async", "execute-one", "runs/RUN/execute", "runs/RUN/execute-async"] {
        recorder.send(server, "POST", &format!("/api/tasks/7/{action}?timeout_seconds=0"), &[]).await;
    }
    recorder.send(server, "POST", "/api/tasks/7/execute-async?openrouter_api_key=two%20words", &[]).await;
    let body = json!({ "tasks": ["fix-it@0123456789ab"], "agent": "oracle" });
    recorder.post(server, "/api/runs", &[], &body.to_string(), &body).await;
    for (agent, options) in [
        ("oracle", json!({ "max_turns": "5" })),
        ("bash", json!({ "nope": "5" })),
        ("terminus-2", json!({ "max_turns": "many" })),
    ] {
        let body = json!({ "tasks": [1], "model_id": "oracle", "agent": agent, "agent_options": options });
        recorder.post(server, "/api/runs", &[], &body.to_string(), &body).await;
    }
    let schedule = json!({ "name": "n", "cron": "0 0 * * *", "model_id": "oracle", "tasks": [1] });
    recorder.post(server, "/api/schedules", &[], &schedule.to_string(), &schedule).await;
}

async fn agents(recorder: &mut Recorder, server: &Server) {
    let toml = |text: &str| zip_of(&[("agent.toml", text)]);
    let usual = "name = 'tiny'\nrun = 'x'\n";
    let nested = zip_of(&[("a/agent.toml", usual), ("b/x", "")]);
    for (shown, file_name, zip) in [
        ("a file that isn't named as an archive", "x.tar", toml(usual)),
        ("no archive", "x.zip", b"#!/bin/sh".to_vec()),
        ("no agent", "x.zip", zip_of(&[("README.md", "x")])),
        ("a file beside the folder", "x.zip", nested),
        ("too many bytes", "x.zip", vec![b'x'; 5 << 20]),
        ("an unknown key", "x.zip", toml(&format!("{usual}model = 'm'\n"))),
        ("no command", "x.zip", toml("name = 'tiny'\n")),
        ("a script that isn't there", "x.zip", toml(&format!("{usual}install = 'x.sh'\n"))),
    ] {
        let reply = server.send_form("/api/agents", &[], form("file", Some(file_name), &zip)).await;
        recorder.record("POST", "/api/agents", &[], shown, &reply);
    }
    recorder.send(server, "POST", "/api/agents", &[]).await;
    recorder.send(server, "GET", "/api/agents/custom/x", &[]).await;
    recorder.send(server, "DELETE", "/api/agents/custom/x", &[]).await;
    recorder.send(server, "GET", "/api/agents/custom/x/archive", &[]).await;
    let needy = format!("{usual}[env]\nA = '${{WHO}}'\n");
    let added = server.send_form("/api/agents", &[], form("file", Some("x.zip"), &toml(&needy))).await;
    let agent = id(&added);
    recorder.name(&agent, "AGENT");
    let order = |more: serde_json::Value| {
        let mut body = json!({ "tasks": [1], "agent": "custom" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for body in [
        order(json!({})),
        order(json!({ "agent_options": { "content_hash": agent }, "model_id": "openrouter/a/b" })),
        order(json!({ "agent_options": { "content_hash": agent } })),
        order(json!({ "agent_options": { "content_hash": "0".repeat(64) } })),
        order(json!({ "agent_options": { "content_hash": "x" } })),
        order(json!({ "agent_options": { "max_turns": "5" } })),
        json!({ "model_id": "custom", "selected_benchmarks": ["mmlu_pro"] }),
    ] {
        recorder.post(server, "/api/runs", &[], &body.to_string(), &body).await;
    }
    let body = order(json!({
        "agent_options": { "content_hash": agent }, "benchmark_options": { "terminal_tasks": { "env.WHO": "me" } },
    }));
    let run = id(&server.order("/api/runs", &[], &body).await);
    recorder.name(&run, "OPEN");
    recorder.send(server, "DELETE", &format!("/api/agents/custom/{agent}"), &[]).await;
}

async fn executions(recorder: &mut Recorder, server: &Server) {
    server.upload("name=a&agent=claude-code", &[], &task_zip("a", &[])).await;
    recorder.send(server, "POST", "/api/tasks/1/execute-async", &[]).await;
    recorder.send(server, "POST", "/api/tasks/1/retry", &[]).await;
    server.upload("name=b&agent=oracle&num_runs=1", &[], &task_zip("b", &[])).await;
    server.post("/api/tasks/2/start", &[]).await;
    recorder.send(server, "POST", "/api/tasks/2/start", &[]).await;
    let run = server.last_run(2).await;
    server.plan_episodes(run, 1).await;
    server.end_episode(run, 0, Outcome::Correct).await;
    recorder.send(server, "POST", "/api/tasks/2/runs/1/execute", &[]).await;
    recorder.send(server, "GET", "/api/tasks/2/runs/1/logs?log=x", &[]).await;
    let both = id(&server.order("/api/runs", &[], &json!({ "tasks": [1, 2], "agent": "nop" })).await);
    recorder.name(&both, "RUN");
    recorder.send(server, "DELETE", "/api/tasks/2", &[]).await;
    let body = json!({ "name": "t", "cron": "0 0 * * *", "agent": "oracle", "tasks": [1] });
    assert_eq!(server.order("/api/schedules", &[], &body).await.status, 201);
    recorder.send(server, "DELETE", "/api/tasks/1", &[]).await;
}
