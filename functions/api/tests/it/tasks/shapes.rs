//! Paths, shapes and errors that clients of the earlier runner know.

use bench_domain::{AgentOutcome, AgentTotals, Code, Outcome};
use serde_json::{Value, json};

use super::support::{form, task_zip};
use crate::schema::assert_fits;
use crate::server::Server;

#[tokio::test]
async fn a_task_has_the_known_shape_and_status_200() {
    let server = Server::local().await;
    let zip = task_zip("Fix it.", &[]);
    let reply = server
        .send_form(
            "/api/tasks?name=LoadTest-1&model=openai/gpt-5.2&agent=oracle&num_runs=3",
            &[],
            form("file", Some("a b.zip"), &zip),
        )
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let mut task = reply.json();
    let created = task["created_at"].as_str().unwrap();
    assert!(!created.ends_with('Z') && created.contains('T'), "{created}");
    let hash = task["content_hash"].as_str().unwrap().to_owned();
    assert_eq!(task["task"], format!("fix-it@{}", &hash[..12]));
    assert_eq!(
        (&task["listed"], &task["same_files_as"], &task["warnings"]),
        (&json!(true), &Value::Null, &json!([]))
    );
    for own in [
        "created_at",
        "content_hash",
        "task",
        "archive_bytes",
        "run_ids",
        "results",
        "listed",
        "same_files_as",
        "warnings",
    ] {
        assert!(task.as_object_mut().unwrap().remove(own).is_some(), "{own}");
    }
    assert_eq!(
        task,
        json!({
            "id": 1, "name": "LoadTest-1", "description": null, "original_filename": "a b.zip",
            "model": "", "agent": "oracle", "harness": "harbor", "num_runs": 3, "status": "pending",
            "started_at": null, "completed_at": null, "total_runs": 0, "passed_runs": 0, "failed_runs": 0,
            "error_runs": 0,
        })
    );
    let detail = server.task_view(1).await;
    assert_eq!(detail["runs"], json!([]));
    assert_eq!(server.get("/api/tasks/1/runs").await.json(), json!([]));
    let defaults = server.upload("name=x", &[], &zip).await.json();
    let values =
        [&defaults["id"], &defaults["name"], &defaults["model"], &defaults["agent"], &defaults["num_runs"]];
    assert_eq!(values, [&json!(2), &json!("x"), &json!("openai/gpt-5"), &json!("terminus-2"), &json!(10)]);
    // Old clients may send an empty name, which isn't one.
    for name in ["name=", "name=%20%20"] {
        assert_eq!(server.upload(name, &[], &zip).await.json()["name"], "fix-it", "{name}");
    }
}

#[tokio::test]
async fn an_episode_has_the_known_shape_with_tokens_and_cost() {
    let server = Server::local().await;
    let task = server.task("a", 2).await;
    server.post(&format!("/api/tasks/{task}/execute-async"), &[]).await;
    let run = server.last_run(task).await;
    server.plan_episodes(run, 2).await;
    let totals = AgentTotals {
        input_tokens: 100,
        cached_tokens: 60,
        output_tokens: 10,
        cost_usd: 0.5,
        ..AgentTotals::default()
    };
    server
        .end_episode_with(run, 0, Outcome::Correct, |report| {
            report.steps[0].agent = Some(AgentOutcome {
                end: "completed".into(),
                exception: None,
                prompt: "own".into(),
                elapsed_ms: 1_500,
                totals,
                records: 1,
            });
        })
        .await;
    let mut episodes = server.get(&format!("/api/tasks/{task}/runs")).await.json();
    let document = server.get("/openapi.json").await.json();
    for episode in episodes.as_array_mut().unwrap() {
        assert_fits(&document, "Episode", episode);
        for own in ["started_at", "completed_at"] {
            assert!(episode.as_object_mut().unwrap().remove(own).is_some(), "{own}");
        }
    }
    assert_eq!(
        episodes,
        json!([
            {
                "id": 1, "task_id": task, "run_number": 1, "status": "passed", "tests_total": 2, "tests_passed": 2,
                "tests_failed": 0, "logs": null, "error_message": null, "duration_seconds": 3.0, "reward": 1.0,
                "input_tokens": 100, "output_tokens": 10, "cached_tokens": 60, "cost_usd": 0.5,
            },
            {
                "id": 2, "task_id": task, "run_number": 2, "status": "pending", "tests_total": 0, "tests_passed": 0,
                "tests_failed": 0, "logs": null, "error_message": null, "duration_seconds": null, "reward": null,
                "input_tokens": null, "output_tokens": null, "cached_tokens": null, "cost_usd": null,
            },
        ])
    );
}

#[tokio::test]
async fn lists_are_paged_newest_first_and_filtered_by_status() {
    let server = Server::local().await;
    for name in ["a", "b", "c"] {
        server.task(name, 1).await;
    }
    let ids = async |query: &str| -> Vec<u64> {
        let reply = server.get(&format!("/api/tasks{query}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json().as_array().unwrap().iter().map(|task| task["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids("").await, [3, 2, 1]);
    assert_eq!(ids("?skip=1&limit=1").await, [2]);
    assert_eq!(ids("?status=pending&skip=2").await, [1]);
    assert_eq!(ids("?status=running").await, [0_u64; 0]);
    assert_eq!(ids("?status=anything").await, [0_u64; 0]);
    for (query, kinds) in [
        ("?skip=-1&limit=101", vec!["greater_than_equal", "less_than_equal"]),
        ("?limit=0", vec!["greater_than_equal"]),
        ("?limit=x", vec!["int_parsing"]),
    ] {
        assert_eq!(server.get(&format!("/api/tasks{query}")).await.problems(), kinds, "{query}");
    }
    let stats = server.get("/api/stats").await.json();
    assert_eq!(
        stats,
        json!({
            "tasks": { "total": 3, "pending": 3, "running": 0, "completed": 0, "failed": 0 },
            "runs": { "total": 0, "passed": 0, "failed": 0, "error": 0 },
            "results": {
                "tasks": { "total": 3, "pending": 3, "running": 0, "completed": 0, "failed": 0 },
                "episodes": { "total": 0, "passed": 0, "failed": 0, "error": 0 },
            },
        })
    );
    assert_eq!(server.ask("GET", "/api/tasks/", &[], "").await.status, 307);
    assert_eq!(server.ask("PUT", "/api/tasks", &[], "").await.status, 405);
}

#[tokio::test]
async fn all_bad_parameters_are_reported_together() {
    let server = Server::local().await;
    let reply = server.send_form("/api/tasks?num_runs=0", &[], form("other", None, b"x")).await;
    assert_eq!(reply.status, 422, "{}", reply.text);
    let detail = reply.json()["detail"].clone();
    let found: Vec<(&str, &Value, &Value)> = detail
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["type"].as_str().unwrap(), &problem["loc"], &problem["input"]))
        .collect();
    let (name, num_runs, file) =
        (json!(["query", "name"]), json!(["query", "num_runs"]), json!(["body", "file"]));
    assert_eq!(
        found,
        [
            ("missing", &name, &Value::Null),
            ("greater_than_equal", &num_runs, &json!("0")),
            ("missing", &file, &Value::Null),
        ]
    );
    assert_eq!(detail[1]["ctx"], json!({ "ge": 1 }));
    // A form field instead of a query parameter doesn't count.
    assert_eq!(
        server.send_form("/api/tasks", &[], form("name", None, b"x")).await.problems(),
        ["missing", "missing"]
    );
    assert_eq!(server.ask("POST", "/api/tasks?name=x", &[], "").await.problems(), ["missing"]);
    // Another kind of body isn't a form, and neither is one without its boundary.
    for (kind, body) in [
        ("application/zip", "x"),
        ("application/x-www-form-urlencoded", "file=x"),
        ("multipart/form-data", "x"),
        (
            "multipart/form-data; boundary=B",
            "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.zip\"\r\n\r\nx",
        ),
    ] {
        for path in ["/api/tasks?name=x", "/api/tasks/check"] {
            let reply = server.ask("POST", path, &[("content-type", kind)], body).await;
            assert_eq!((reply.status.as_u16(), reply.code()), (400, Some(Code::InvalidForm)), "{kind}");
            assert!(reply.detail().ends_with("the archive in the part `file`"), "{}", reply.detail());
        }
        let reply = server.ask("POST", "/api/tasks", &[("content-type", kind)], body).await;
        assert_eq!(reply.status, 422, "parameters are checked first: {}", reply.text);
    }
    let above = server.upload("name=x&num_runs=101", &[], &task_zip("x", &[])).await.json();
    assert_eq!(above["detail"][0]["ctx"], json!({ "le": 100 }));
    for path in ["/api/tasks/x", "/api/tasks/x/runs", "/api/tasks/1.5"] {
        let reply = server.get(path).await;
        let kinds = reply.problems();
        assert_eq!(kinds, ["int_parsing"], "{path}");
        assert_eq!(reply.json()["detail"][0]["loc"], json!(["path", "task_id"]));
    }
    assert_eq!(server.get("/api/tasks/x/runs/y/logs?limit=1").await.problems().len(), 3);
    assert_eq!(server.get("/api/tasks/x/runs/y").await.problems(), ["int_parsing", "int_parsing"]);
}

#[tokio::test]
async fn unknown_tasks_and_runs_have_the_known_messages() {
    let server = Server::local().await;
    server.task("a", 1).await;
    for (method, path, detail) in [
        ("GET", "/api/tasks/99", "Task not found"),
        ("GET", "/api/tasks/-1", "Task not found"),
        ("DELETE", "/api/tasks/99", "Task not found"),
        ("POST", "/api/tasks/99/start", "Task not found"),
        ("POST", "/api/tasks/99/retry", "Task not found"),
        ("POST", "/api/tasks/99/execute-async", "Task not found"),
        ("POST", "/api/tasks/99/execute-one", "Task not found"),
        ("POST", "/api/tasks/99/runs/1/execute", "Task not found"),
        ("POST", "/api/tasks/1/runs/1/execute", "Run not found"),
        ("POST", "/api/tasks/1/runs/1/execute-async", "Run not found"),
        ("GET", "/api/tasks/99/runs", "Task not found"),
        ("GET", "/api/tasks/99/runs/1", "Run not found"),
        ("GET", "/api/tasks/1/runs/1", "Run not found"),
        ("GET", "/api/tasks/1/runs/1/logs", "Run not found"),
    ] {
        let reply = server.ask(method, path, &[], "").await;
        assert_eq!((reply.status.as_u16(), reply.detail().as_str()), (404, detail), "{method} {path}");
        assert!(reply.json()["hint"].as_str().unwrap().contains("GET /api/tasks"), "{}", reply.text);
    }
    let reset = server.post("/api/tasks/1/retry", &[]).await;
    assert_eq!(
        (reset.status.as_u16(), reset.detail().as_str()),
        (400, "Task must be completed or failed to retry")
    );
    assert_eq!(
        reset.json()["hint"],
        "it is pending already: `POST /api/tasks/1/execute-async` orders its episodes"
    );
    server.post("/api/tasks/1/start", &[]).await;
    for (path, hint) in [
        ("retry", "wait until its episodes are over: `GET /api/tasks/1` shows them"),
        ("start", "`POST /api/tasks/1/execute-one` orders one more episode"),
    ] {
        let reply = server.post(&format!("/api/tasks/1/{path}"), &[]).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["hint"]), (400, &json!(hint)));
    }
}

#[tokio::test]
async fn agents_of_this_version_are_listed_and_others_refused_at_execution() {
    let server = Server::local().await;
    let agents = server.get("/api/agents").await.json();
    let ids: Vec<&str> =
        agents.as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["oracle", "nop", "terminus-2", "bash", "custom"]);
    assert_eq!(agents[0], json!({ "id": "oracle", "name": "Oracle (Testing)", "harness": "harbor" }));
    // Old clients upload with agents that follow later.
    let reply = server.upload("name=tab&agent=claude-code", &[], &task_zip("x", &[])).await;
    let refused = server.post(&format!("/api/tasks/{}/execute-async", reply.json()["id"]), &[]).await;
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.detail(),
        "this version has no agent `claude-code`; its agents are `oracle`, `nop`, `terminus-2`, `bash`, `custom`"
    );
    assert_eq!(server.task_view(1).await["status"], "pending");
}
