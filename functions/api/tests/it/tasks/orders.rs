//! Orders of runs with terminal tasks.

use bench_domain::run::DatasetChoice;
use serde_json::json;

use super::support::{BENCHMARK, task_zip};
use crate::server::Server;

#[tokio::test]
async fn tasks_are_named_by_id_hash_or_item() {
    let server = Server::local().await;
    let mut tasks = Vec::new();
    for text in ["one", "two", "three"] {
        tasks.push(server.upload("name=x&agent=oracle", &[], &task_zip(text, &[])).await.json());
    }
    server.upload("name=again", &[], &task_zip("one", &[])).await;
    let names = json!([tasks[0]["id"], tasks[1]["content_hash"], tasks[2]["task"], 4]);
    let body = json!({ "tasks": names, "agent": "oracle", "samples": 5 });
    let estimate = server.order("/api/runs/estimate", &[], &body).await;
    assert_eq!(estimate.status, 200, "{}", estimate.text);
    let total = estimate.json();
    assert_eq!(
        (&total["items"], &total["samples"], &total["cost_usd"]),
        (&json!(3), &json!(15), &json!(0.0))
    );
    let reply = server.order("/api/runs", &[], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert!(reply.json()["warnings"][0].as_str().unwrap().contains("same files"), "{}", reply.text);
    let run = reply.json()["id"].as_str().unwrap().parse().unwrap();
    let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!((spec.model.qualified().as_str(), spec.samples), ("oracle", Some(5)));
    let dataset = spec.datasets.get(BENCHMARK).unwrap();
    assert!(matches!(dataset, DatasetChoice::Local { .. }));
    // The order of the names doesn't matter.
    let same = json!({ "tasks": [3, 2, 1], "model_id": "oracle", "selected_benchmarks": ["terminal_tasks"] });
    let run = server.order("/api/runs", &[], &same).await.json()["id"].as_str().unwrap().parse().unwrap();
    let other = server.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!(other.datasets, spec.datasets);
}

#[tokio::test]
async fn wrong_orders_are_refused_with_the_field() {
    let server = Server::local().await;
    server.task("a", 1).await;
    for (body, status, part) in [
        (json!({ "tasks": [9], "agent": "oracle" }), 404, "Task not found: `9`"),
        (json!({ "tasks": ["x\u{1b}"], "agent": "oracle" }), 404, "`x`"),
        (
            json!({ "tasks": [1], "agent": "claude" }),
            422,
            "its agents are `oracle`, `nop`, `terminus-2`, `bash`, `custom`",
        ),
        (json!({ "tasks": [1] }), 422, "agent"),
        (
            json!({ "tasks": [1], "agent": "oracle", "selected_benchmarks": ["mmlu_pro"] }),
            422,
            "selected_benchmarks",
        ),
        (json!({ "model_id": "oracle", "selected_benchmarks": ["terminal_tasks"] }), 422, "tasks"),
        (
            json!({ "tasks": [1], "agent": "oracle", "benchmark_options": { "terminal_tasks": { "env.NEDED": "1" } } }),
            422,
            "benchmark_options.terminal_tasks: unknown option `env.NEDED`: none of the tasks asks for this variable; they ask \
             for no variables",
        ),
    ] {
        for path in ["/api/runs", "/api/runs/estimate", "/api/schedules"] {
            let mut body = body.clone();
            if path == "/api/schedules" {
                body["name"] = "n".into();
                body["cron"] = "0 0 * * *".into();
            }
            let reply = server.order(path, &[], &body).await;
            assert_eq!(reply.status, status, "{path} {body}: {}", reply.text);
            assert!(reply.text.contains(part), "{path} {body}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn a_variable_is_one_of_any_of_the_tasks() {
    let server = Server::local().await;
    server.task("a", 1).await;
    let zip = task_zip("b", &[("fix-it/task.toml", "[environment.env]\nKEY = \"${NEEDED}\"\n")]);
    server.upload("name=b&agent=oracle", &[], &zip).await;
    for (tasks, variable, status, part) in [
        (json!([1, 2]), "NEEDED", 201, ""),
        (json!([1]), "NEEDED", 422, "they ask for no variables"),
        (json!([1, 2]), "NEDED", 422, "did you mean `env.NEEDED`?"),
        // The name is that of the order's variable, not that in the container.
        (json!([2]), "KEY", 422, "they ask for `NEEDED`"),
    ] {
        let options = json!({ "terminal_tasks": { format!("env.{variable}"): "1" } });
        let body = json!({ "tasks": tasks, "agent": "oracle", "benchmark_options": options });
        let reply = server.order("/api/runs", &[], &body).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
        assert!(reply.text.contains(part), "{body}: {}", reply.text);
    }
}

#[tokio::test]
async fn a_task_of_an_open_order_of_several_is_not_removed() {
    let server = Server::local().await;
    for text in ["one", "two"] {
        server.upload("name=x", &[], &task_zip(text, &[])).await;
    }
    let order = async |tasks| {
        let reply = server.order("/api/runs", &[], &json!({ "tasks": tasks, "agent": "nop" })).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.json()["id"].as_str().unwrap().to_owned()
    };
    let (both, alone) = (order(json!([1, 2])).await, order(json!([1])).await);
    let refused = server.ask("DELETE", "/api/tasks/1", &[], "").await;
    assert_eq!((refused.status.as_u16(), refused.json()["code"].as_str()), (409, Some("task_in_use")));
    assert!(refused.detail().contains(&both), "{}", refused.detail());
    assert_eq!(server.get("/api/tasks/1").await.status, 200);
    assert_eq!(server.post(&format!("/api/runs/{both}/cancel"), &[]).await.status, 200);
    assert_eq!(server.ask("DELETE", "/api/tasks/1", &[], "").await.status, 200);
    let alone = server.get(&format!("/api/runs/{alone}")).await.json();
    assert_eq!(alone["status"], "canceled");
}

#[tokio::test]
async fn one_order_has_750_episodes() {
    let server = Server::local().await;
    for number in 0..75 {
        let zip = task_zip(&format!("Task {number}. {}", "x".repeat(2_000)), &[]);
        assert_eq!(server.upload(&format!("name=t{number}&agent=oracle"), &[], &zip).await.status, 200);
    }
    let tasks: Vec<u64> = (1..=75).collect();
    let body = json!({ "tasks": tasks, "agent": "oracle", "samples": 10 });
    assert_eq!(server.order("/api/runs/estimate", &[], &body).await.json()["samples"], 750);
    let reply = server.order("/api/runs", &[], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
}
