//! Custom agents: uploads, orders, schedules, and who may see and remove them.

use bench_domain::Code;
use bench_state::access::AccessKind;
use serde_json::{Value, json};

use super::support::{BENCHMARK, form, task_zip, zip_of};
use crate::server::{Reply, Server};

const CONFIG: &str = "name = \"tiny\"\nversion = \"1.0\"\nrun = \"sh /installed-agent/go.sh\"\n";
const A: [(&str, &str); 1] = [("authorization", "Bearer key-a")];
const B: [(&str, &str); 1] = [("authorization", "Bearer key-b")];
const ADMIN: [(&str, &str); 1] = [("x-admin-secret", "hush")];

fn agent_zip(config: &str) -> Vec<u8> {
    zip_of(&[("tiny/agent.toml", config), ("tiny/go.sh", "touch done\n")])
}

async fn send(server: &Server, headers: &[(&str, &str)], zip: &[u8]) -> Reply {
    server.send_form("/api/agents", headers, form("file", Some("a.zip"), zip)).await
}

/// Uploads an agent and returns its id.
async fn upload(server: &Server, headers: &[(&str, &str)], config: &str) -> String {
    let reply = send(server, headers, &agent_zip(config)).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().to_owned()
}

fn order(agent: &str) -> Value {
    json!({ "tasks": [1], "agent": "custom", "agent_options": { "content_hash": agent }, "samples": 2 })
}

async fn objects(server: &Server) -> usize {
    server.api.blobs.list("agents/", None).await.unwrap().0.len()
}

#[tokio::test]
async fn an_uploaded_agent_stands_in_the_place_of_the_model() {
    let server = Server::local().await;
    server.task("a", 1).await;
    let added = send(&server, &[], &agent_zip(CONFIG)).await.json();
    let id = added["id"].as_str().unwrap().to_owned();
    assert_eq!((id.len(), &added["name"], &added["version"]), (64, &json!("tiny"), &json!("1.0")));
    assert_eq!((&added["model"], &added["files"]), (&json!("custom/tiny@1.0"), &json!(2)));
    assert_eq!(server.get(&format!("/api/agents/custom/{id}")).await.json(), added);
    let reply = server.order("/api/runs", &[], &order(&id)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let view = reply.json();
    assert_eq!((&view["model"], &view["provider"]), (&json!("custom/tiny@1.0"), &json!("custom")));
    let run = view["id"].as_str().unwrap().parse().unwrap();
    let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!(spec.model.qualified(), "custom/tiny@1.0");
    let options = json!({ "agent": "custom", "agent.content_hash": id });
    assert_eq!(serde_json::to_value(spec.options.get(BENCHMARK)).unwrap(), options);
    let estimate = server.order("/api/runs/estimate", &[], &order(&id)).await.json();
    assert_eq!((&estimate["model"], &estimate["cost_usd"]), (&json!("custom/tiny@1.0"), &json!(0.0)));
    // An order as another run's settings give it.
    let again = json!({
        "tasks": [1], "model_id": "custom/tiny@1.0", "benchmark_options": { "terminal_tasks": options },
    });
    let again = server.order("/api/runs", &[], &again).await;
    assert_eq!((again.status.as_u16(), &again.json()["model"]), (201, &json!("custom/tiny@1.0")));
}

#[tokio::test]
async fn the_same_files_are_the_same_agent() {
    let server = Server::local().await;
    let id = upload(&server, &[], CONFIG).await;
    let same = zip_of(&[("go.sh", "touch done\n"), ("agent.toml", CONFIG)]);
    let first = server.get("/api/agents/custom").await.json();
    assert_eq!(send(&server, &[], &same).await.json(), first[0]);
    let other = upload(&server, &[], &CONFIG.replace("1.0", "1.1")).await;
    assert_ne!(id, other);
    assert_eq!(server.get("/api/agents/custom").await.json().as_array().unwrap().len(), 2);
    assert_eq!(objects(&server).await, 2);
}

#[tokio::test]
async fn other_archives_are_refused_with_file_and_line() {
    let server = Server::local().await;
    for (zip, code, line) in [
        (agent_zip("name = \"a\"\nrun = \"x\"\nmodel = \"m\"\n"), "unknown_key", json!(3)),
        (agent_zip("name = \"a\"\nrun = "), "invalid_syntax", json!(2)),
        (agent_zip("name = \"a\"\n"), "missing_field", json!(1)),
        (zip_of(&[("README.md", "x")]), "no_agent", Value::Null),
        (task_zip("x", &[]), "no_agent", Value::Null),
        (b"#!/bin/sh".to_vec(), "not_zip", Value::Null),
        (vec![b'x'; (4 << 20) + 1], "agent_too_large", Value::Null),
        (vec![b'x'; 5 << 20], "agent_too_large", Value::Null),
    ] {
        let reply = send(&server, &[], &zip).await;
        assert_eq!((reply.status.as_u16(), reply.code()), (400, Some(Code::AgentRefused)), "{}", reply.text);
        let refusal = &reply.json()["refusal"];
        assert_eq!((&refusal["code"], &refusal["line"]), (&json!(code), &line), "{}", reply.text);
    }
    assert_eq!(objects(&server).await, 0);
    assert_eq!(server.get("/api/agents/custom").await.json(), json!([]));
}

#[tokio::test]
async fn an_order_of_a_custom_agent_names_files_and_no_model() {
    let server = Server::local().await;
    server.task("a", 1).await;
    let id = upload(&server, &[], CONFIG).await;
    let needs = upload(&server, &[], &format!("{CONFIG}[env]\nA = \"${{WHO}}\"\n")).await;
    let with = |more: Value| {
        let mut body = order(&id);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (body, status, part) in [
        (with(json!({ "model_id": "openrouter/a/b" })), 422, "until there is a gateway"),
        (with(json!({ "agent_options": {} })), 422, "needs the option `content_hash`"),
        (with(json!({ "agent_options": { "content_hash": "0".repeat(64) } })), 404, "Agent not found"),
        (order(&needs), 422, "needs the variable `WHO`"),
        (
            json!({ "model_id": "custom", "selected_benchmarks": ["mmlu_pro"] }),
            422,
            "works on terminal tasks",
        ),
        (
            json!({ "model_id": "x", "provider": "custom", "selected_benchmarks": ["mmlu_pro"] }),
            404,
            "Model not found",
        ),
        (
            json!({
                "tasks": [1], "agent": "bash", "model_id": "openrouter/a/b",
                "benchmark_options": { "terminal_bench_hard": { " agent": "custom ", "agent.content_hash": id } },
            }),
            400,
            "takes no model",
        ),
    ] {
        for path in ["/api/runs", "/api/runs/estimate"] {
            let reply = server.order(path, &[], &body).await;
            assert_eq!(reply.status, status, "{path} {body}: {}", reply.text);
            assert!(reply.text.contains(part), "{path} {body}: {}", reply.text);
        }
    }
    // Other benchmarks with agents take it, too.
    let hard = json!({
        "selected_benchmarks": ["terminal_bench_hard"], "demo": true, "agent": "custom",
        "agent_options": { "content_hash": id },
    });
    let reply = server.order("/api/runs", &[], &hard).await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["model"]),
        (201, &json!("custom/tiny@1.0")),
        "{}",
        reply.text
    );
    let given = json!({ "terminal_tasks": { "env.WHO": "me" } });
    let mut body = order(&needs);
    body["benchmark_options"] = given;
    assert_eq!(server.order("/api/runs", &[], &body).await.status, 201);
    // A task's own agent has no files.
    let reply = server.upload("name=x&agent=custom", &[], &task_zip("other", &[])).await.json();
    let refused = server.post(&format!("/api/tasks/{}/execute-async", reply["id"]), &[]).await;
    assert!(refused.status == 422 && refused.text.contains("content_hash"), "{}", refused.text);
}

#[tokio::test]
async fn agents_of_others_look_as_if_they_didnt_exist() {
    let server = Server::new(false, &[]).await;
    for key in ["key-a", "key-b"] {
        server.list_with(AccessKind::Key, key, |entry| entry.tasks = true).await;
    }
    server.list(AccessKind::Key, "sk-caller", true, true).await;
    for (headers, status) in [
        (&[][..], 401),
        (&[("authorization", "Bearer sk-caller")], 403),
        (&[("authorization", "Bearer sk-unlisted")], 403),
        (&[("x-admin-secret", "wrong")], 401),
    ] {
        assert_eq!(send(&server, headers, &agent_zip(CONFIG)).await.status, status, "{headers:?}");
    }
    let id = upload(&server, &A, CONFIG).await;
    let path = format!("/api/agents/custom/{id}");
    for (headers, count) in [(&A[..], 1), (&B, 0), (&ADMIN, 1), (&[], 0)] {
        let list = server.ask("GET", "/api/agents/custom", headers, "").await.json();
        assert_eq!(list.as_array().unwrap().len(), count, "{headers:?}");
        let status = if count == 1 { 200 } else { 404 };
        assert_eq!(server.ask("GET", &path, headers, "").await.status, status, "{headers:?}");
    }
    let upload_task = server.upload("name=mine&agent=oracle", &B, &task_zip("x", &[])).await;
    assert_eq!(upload_task.status, 200, "{}", upload_task.text);
    let refused = server.order("/api/runs", &B, &order(&id)).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (404, Some(Code::AgentNotFound)));
    assert_eq!(server.ask("DELETE", &path, &B, "").await.status, 404);
    assert_eq!(server.ask("DELETE", &path, &[], "").await.status, 404);
    // Its files stay for the other owner.
    assert_eq!(upload(&server, &B, CONFIG).await, id);
    assert_eq!(server.order("/api/runs", &B, &order(&id)).await.status, 201);
    assert_eq!(server.ask("DELETE", &path, &A, "").await.status, 200);
    assert_eq!(objects(&server).await, 1);
    assert_eq!(server.ask("GET", &path, &A, "").await.status, 404);
}

#[tokio::test]
async fn the_archive_of_an_agent_is_for_its_owner() {
    let server = Server::new(false, &[]).await;
    for key in ["key-a", "key-b"] {
        server.list_with(AccessKind::Key, key, |entry| entry.tasks = true).await;
    }
    let zip = agent_zip(CONFIG);
    let id = upload(&server, &A, CONFIG).await;
    let path = format!("/api/agents/custom/{id}/archive");
    for headers in [&A[..], &ADMIN] {
        let reply = server.ask("GET", &path, headers, "").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert!(reply.text == String::from_utf8_lossy(&zip), "other bytes than were uploaded");
        let header = |name: &str| reply.headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-length"), zip.len().to_string());
        assert_eq!(header("content-type"), "application/zip");
        let named = format!("attachment; filename=\"agent-{}.zip\"", &id[..12]);
        assert_eq!(header("content-disposition"), named);
    }
    for headers in [&B[..], &[], &[("x-admin-secret", "wrong")]] {
        let reply = server.ask("GET", &path, headers, "").await;
        assert_eq!((reply.status.as_u16(), reply.code()), (404, Some(Code::AgentNotFound)), "{headers:?}");
    }
    let other = format!("/api/agents/custom/{}/archive", "0".repeat(64));
    assert_eq!(server.ask("GET", &other, &A, "").await.code(), Some(Code::AgentNotFound));
}

#[tokio::test]
async fn an_archive_is_at_another_address_where_responses_are_not_streamed() {
    let server = Server::with(true, &[], |config| config.streaming = false).await;
    let id = upload(&server, &[], CONFIG).await;
    let reply = server.get(&format!("/api/agents/custom/{id}/archive")).await;
    assert_eq!(reply.status, 307, "{}", reply.text);
    let location = reply.headers["location"].to_str().unwrap();
    assert!(location.contains(&format!("agents/{id}.zip")), "{location}");
}

/// Returns a schedule of a task with an agent.
fn nightly(agent: &str, task: &Value) -> Value {
    let mut schedule = order(agent);
    schedule["name"] = "nightly".into();
    schedule["cron"] = "0 0 * * *".into();
    schedule["tasks"] = json!([task["id"]]);
    schedule
}

#[tokio::test]
async fn a_schedule_takes_another_agent_only_from_its_owner() {
    let server = Server::new(false, &[]).await;
    for key in ["key-a", "key-b"] {
        server.list_with(AccessKind::Key, key, |entry| entry.tasks = true).await;
    }
    let task = server.upload("name=mine&agent=oracle", &A, &task_zip("x", &[])).await.json();
    let own = upload(&server, &A, CONFIG).await;
    let next = upload(&server, &A, &CONFIG.replace("1.0", "1.1")).await;
    let theirs = upload(&server, &B, &CONFIG.replace("1.0", "2.0")).await;
    let schedule = nightly(&own, &task);
    let made = server.order("/api/schedules", &A, &schedule).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/api/schedules/{}", made.json()["id"].as_str().unwrap());
    let json = [A[0], ("content-type", "application/json")];
    let change = async |body: Value| server.ask("PATCH", &path, &json, body.to_string()).await;
    let by_option = |hash: &str| json!({ "benchmark_options": { "terminal_tasks": { "agent": "custom", "agent.content_hash": hash } } });
    let by_agent = |hash: &str| json!({ "agent_options": { "content_hash": hash } });
    let by_both = json!({ "agent": "custom", "agent_options": { "content_hash": theirs } });
    for body in [by_option(&theirs), by_agent(&theirs), by_both] {
        let refused = change(body.clone()).await;
        assert_eq!(refused.code(), Some(Code::AgentNotFound), "{body}: {}", refused.text);
    }
    for (body, model) in [(by_option(&next), "custom/tiny@1.1"), (by_agent(&own), "custom/tiny@1.0")] {
        let changed = change(body.clone()).await;
        assert_eq!((changed.status.as_u16(), &changed.json()["model"]), (200, &json!(model)), "{body}");
    }
    // Variables replace all options of the benchmark except for the agent.
    for (variables, left) in [
        (json!({ "terminal_tasks": { "env.WHO": "me", "env.WHERE": "here" } }), vec!["env.WHERE", "env.WHO"]),
        (json!({ "Terminal_Tasks": { "env.WHO": "me" } }), vec!["env.WHO"]),
        (json!({ "terminal_tasks": null }), vec![]),
        (Value::Null, vec![]),
    ] {
        let changed = change(json!({ "benchmark_options": variables })).await;
        assert_eq!(changed.status, 200, "{variables}: {}", changed.text);
        let options = changed.json()["benchmark_options"]["terminal_tasks"].clone();
        assert_eq!(options["agent.content_hash"], own, "{variables}: {options}");
        let names: Vec<&str> = options.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, [vec!["agent", "agent.content_hash"], left].concat(), "{variables}");
    }
    let agent_options = change(json!({ "agent_options": null })).await;
    assert_eq!(agent_options.json()["model"], "custom/tiny@1.0", "{}", agent_options.text);
    let other = json!({ "agent": "nop", "agent_options": null, "benchmark_options": null });
    let changed = change(other).await.json();
    assert_eq!((&changed["model"], &changed["benchmark_options"]), (&json!("nop"), &json!({})));
}

#[tokio::test]
async fn a_changed_schedule_keeps_its_agent_with_its_options() {
    let server = Server::local().await;
    let benchmark = "terminal_bench_hard";
    let schedule = json!({
        "name": "nightly", "cron": "0 0 * * *", "selected_benchmarks": [benchmark], "demo": true, "agent": "bash",
        "model_id": "openrouter/a/b", "agent_options": { "max_turns": 3 },
        "benchmark_options": { benchmark: { "difficulty": "all" } },
    });
    let made = server.order("/api/schedules", &A, &schedule).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/api/schedules/{}", made.json()["id"].as_str().unwrap());
    let json = [A[0], ("content-type", "application/json")];
    for (change, expected) in [
        (
            json!({ "benchmark_options": { benchmark: { "difficulty": "easy" } } }),
            json!({ "agent": "bash", "agent.max_turns": "3", "difficulty": "easy" }),
        ),
        (
            json!({ "agent_options": { "max_cost_usd": 1 } }),
            json!({ "agent": "bash", "agent.max_turns": "3", "agent.max_cost_usd": "1", "difficulty": "easy" }),
        ),
        (json!({ "agent_options": null }), json!({ "agent": "bash", "difficulty": "easy" })),
        (json!({ "benchmark_options": null }), json!({ "agent": "bash" })),
        (
            json!({ "benchmark_options": { benchmark: { "agent": "terminus-2" } } }),
            json!({ "agent": "terminus-2" }),
        ),
        (
            json!({ "agent": null, "benchmark_options": { benchmark: { "difficulty": "easy" } } }),
            json!({ "agent": "terminus-2", "difficulty": "easy" }),
        ),
        (
            json!({ "agent": "bash", "model_id": "openrouter/a/b" }),
            json!({ "agent": "bash", "difficulty": "easy" }),
        ),
        (json!({ "model_id": "oracle" }), json!({ "difficulty": "easy" })),
    ] {
        let changed = server.ask("PATCH", &path, &json, change.to_string()).await;
        assert_eq!(changed.status, 200, "{change}: {}", changed.text);
        assert_eq!(changed.json()["benchmark_options"][benchmark], expected, "{change}");
    }
}

#[tokio::test]
async fn an_agent_is_found_under_any_name_of_its_option() {
    let server = Server::local().await;
    server.task("a", 1).await;
    let order = |more: Value| {
        let mut order = json!({ "tasks": [1], "model_id": "lmstudio/m" });
        order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        order
    };
    for options in [
        json!({ "Terminal_Tasks": { "agent": "bash", "agent.max_turns": 3 } }),
        json!({ " terminal_tasks ": { " agent ": "bash", "agent.max_turns ": "3" } }),
    ] {
        let made = server.order("/api/runs", &A, &order(json!({ "benchmark_options": options }))).await;
        assert_eq!(made.status, 201, "{options}: {}", made.text);
        let run = made.json()["id"].as_str().unwrap().parse().unwrap();
        let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
        let chosen = serde_json::to_value(spec.options.get(BENCHMARK)).unwrap();
        assert_eq!(chosen, json!({ "agent": "bash", "agent.max_turns": "3" }), "{options}");
    }
    let oracle = |options: Value| {
        json!({ "model_id": "oracle", "selected_benchmarks": ["terminal_bench_hard", "mmlu_pro"], "demo": true,
            "benchmark_options": { "terminal_bench_hard": options } })
    };
    for (body, part) in [
        (
            order(json!({ "benchmark_options": { "terminal_tasks": {}, "Terminal_tasks": {} } })),
            "is given twice",
        ),
        (
            order(
                json!({ "benchmark_options": { "terminal_tasks": { "agent": "bash", "agent ": "bash" } } }),
            ),
            "`terminal_tasks.agent` is given twice",
        ),
        (
            order(
                json!({ "agent": "bash", "benchmark_options": { "terminal_tasks": { "agent": "terminus-2" } } }),
            ),
            "`bash` is not the agent that the option `agent`",
        ),
        (
            order(json!({ "agent": "bash", "agent_options": { "max_turns": 3 },
                "benchmark_options": { "terminal_tasks": { "agent.max_turns": 4 } } })),
            "`max_turns` has another value",
        ),
        (oracle(json!({ "agent": "bash" })), "`oracle` is an agent itself"),
        (oracle(json!({ "agent.max_turns": 3 })), "leave the option `agent.max_turns`"),
    ] {
        for path in ["/api/runs", "/api/runs/estimate"] {
            let refused = server.order(path, &A, &body).await;
            assert_eq!(refused.status, 422, "{path} {body}: {}", refused.text);
            assert!(refused.text.contains(part), "{path} {body}: {}", refused.text);
        }
    }
}

#[tokio::test]
async fn the_agent_of_a_schedule_follows_its_benchmark() {
    let server = Server::local().await;
    let task = server.task("a", 1).await;
    let schedule = json!({
        "name": "nightly", "cron": "0 0 * * *", "selected_benchmarks": ["terminal_bench_hard"], "demo": true,
        "agent": "bash", "model_id": "openrouter/a/b", "agent_options": { "max_turns": 3 },
        "benchmark_options": { "terminal_bench_hard": { "difficulty": "easy" } },
    });
    let made = server.order("/api/schedules", &A, &schedule).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/api/schedules/{}", made.json()["id"].as_str().unwrap());
    let json = [A[0], ("content-type", "application/json")];
    let change = async |body: Value| {
        let changed = server.ask("PATCH", &path, &json, body.to_string()).await;
        assert_eq!(changed.status, 200, "{body}: {}", changed.text);
        changed.json()["benchmark_options"].clone()
    };
    let bash = json!({ "agent": "bash", "agent.max_turns": "3" });
    let tasks = json!({ "tasks": [1], "selected_benchmarks": ["terminal_tasks"], "demo": null });
    assert_eq!(change(tasks).await, json!({ "terminal_tasks": bash }), "{task:?}");
    let back = json!({ "tasks": [], "selected_benchmarks": ["terminal_bench_hard"], "demo": true });
    assert_eq!(change(back).await, json!({ "terminal_bench_hard": bash }));
    let without = json!({ "agent_options": { "max_turns": null } });
    assert_eq!(change(without).await, json!({ "terminal_bench_hard": { "agent": "bash" } }));
}

#[tokio::test]
async fn an_agent_that_is_needed_is_not_removed() {
    let server = Server::local().await;
    server.task("a", 1).await;
    let id = upload(&server, &[], CONFIG).await;
    let path = format!("/api/agents/custom/{id}");
    let run = server.order("/api/runs", &[], &order(&id)).await.json()["id"].as_str().unwrap().to_owned();
    let delete = async || server.ask("DELETE", &path, &[], "").await;
    let refused = delete().await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, Some(Code::AgentInUse)));
    assert!(refused.detail().contains(&run), "{}", refused.text);
    assert_eq!(server.post(&format!("/api/runs/{run}/cancel"), &[]).await.status, 200);
    let mut schedule = order(&id);
    schedule["name"] = "nightly".into();
    schedule["cron"] = "0 0 * * *".into();
    let made = server.order("/api/schedules", &[], &schedule).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.json()["model"], "custom/tiny@1.0");
    assert!(delete().await.detail().contains("`nightly`"));
    let schedule = format!("/api/schedules/{}", made.json()["id"].as_str().unwrap());
    // A change of anything else keeps the agent; another agent replaces it.
    let json = [("content-type", "application/json")];
    let kept = server.ask("PATCH", &schedule, &json, json!({ "samples": 3 }).to_string()).await;
    assert_eq!((kept.status.as_u16(), &kept.json()["model"]), (200, &json!("custom/tiny@1.0")));
    let other = server.ask("PATCH", &schedule, &json, json!({ "agent": "nop" }).to_string()).await;
    assert_eq!(other.json()["model"], "nop", "{}", other.text);
    assert_eq!(delete().await.status, 200);
    assert_eq!(objects(&server).await, 0);
    assert_eq!(delete().await.code(), Some(Code::AgentNotFound));
    assert_eq!(server.order("/api/runs", &[], &order(&id)).await.code(), Some(Code::AgentNotFound));
}

#[tokio::test]
async fn callers_with_the_same_agent_remove_it_independently() {
    let server = Server::new(false, &[]).await;
    for key in ["key-a", "key-b"] {
        server.list_with(AccessKind::Key, key, |entry| entry.tasks = true).await;
    }
    let task = server.upload("name=mine&agent=oracle", &A, &task_zip("x", &[])).await.json();
    let id = upload(&server, &A, CONFIG).await;
    upload(&server, &B, CONFIG).await;
    let schedule = nightly(&id, &task);
    let made = server.order("/api/schedules", &A, &schedule).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/api/agents/custom/{id}");
    let refused = server.ask("DELETE", &path, &A, "").await;
    assert_eq!((refused.code(), refused.detail().contains("`nightly`")), (Some(Code::AgentInUse), true));
    assert_eq!(server.ask("DELETE", &path, &B, "").await.status, 200, "their own files aren't needed");
    assert_eq!(objects(&server).await, 1);
    assert_eq!(server.ask("DELETE", &path, &A, "").await.code(), Some(Code::AgentInUse));
}
