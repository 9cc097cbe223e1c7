//! Schedules of terminal tasks.

use bench_domain::run::DatasetChoice;
use bench_domain::schedule::Schedule;
use serde_json::{Value, json};

use super::support::{BENCHMARK, task_zip};
use crate::server::{Reply, Server};
use crate::upstream::{provider, server_with};

async fn two_tasks(server: &Server) -> [Value; 2] {
    let upload = |text: &'static str| async move {
        let config = [("fix-it/task.toml", "[environment.env]\nA = \"${A:-0}\"\n")];
        server.upload("name=x&agent=oracle", &[], &task_zip(text, &config)).await.json()
    };
    [upload("one").await, upload("two").await]
}

fn order(more: Value) -> Value {
    let mut body = json!({ "name": "nightly", "cron": "30 2 * * *", "agent": "oracle", "samples": 2 });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn patch(server: &Server, schedule: &Value, change: Value) -> Reply {
    let path = format!("/api/schedules/{}", schedule["id"].as_str().unwrap());
    server.ask("PATCH", &path, &[("content-type", "application/json")], change.to_string()).await
}

async fn stored(server: &Server, schedule: &Value) -> Schedule {
    let id = schedule["id"].as_str().unwrap().parse().unwrap();
    server.api.state.schedule(id).await.unwrap().unwrap().schedule
}

#[tokio::test]
async fn a_schedule_keeps_its_tasks_until_they_change() {
    let server = Server::local().await;
    let [one, two] = two_tasks(&server).await;
    let reply = server.order("/api/schedules", &[], &order(json!({ "tasks": [one["id"]] }))).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let made = reply.json();
    assert_eq!((&made["tasks"], &made["benchmarks"]), (&json!([one["task"]]), &json!([BENCHMARK])));
    assert_eq!((&made["model"], &made["own_key"]), (&json!("oracle"), &json!(false)));
    let before = stored(&server, &made).await;
    assert!(matches!(before.run.datasets.get(BENCHMARK), Some(DatasetChoice::Local { .. })));

    let renamed = patch(&server, &made, json!({ "name": "weekly", "samples": 3 })).await;
    assert_eq!(renamed.status, 200, "{}", renamed.text);
    let after = stored(&server, &made).await;
    assert_eq!((&after.tasks, &after.run.datasets), (&before.tasks, &before.run.datasets));
    assert_eq!((after.run.samples, after.run.model), (Some(3), before.run.model.clone()));

    let other = patch(&server, &made, json!({ "tasks": [two["content_hash"], one["id"]] })).await.json();
    assert_eq!(other["tasks"], json!([two["task"], one["task"]]));
    assert_ne!(stored(&server, &made).await.run.datasets, before.run.datasets);

    // Another agent replaces the one before, with its options.
    let refused = patch(&server, &made, json!({ "agent": "bash" })).await;
    assert!(refused.status == 422 && refused.text.contains("asks a model"), "{}", refused.text);
    let nop = patch(&server, &made, json!({ "agent": "nop" })).await.json();
    assert_eq!((&nop["model"], &nop["tasks"]), (&json!("nop"), &other["tasks"]));

    let refused = patch(&server, &made, json!({ "selected_benchmarks": ["mmlu_pro"] })).await;
    assert!(refused.status == 422 && refused.text.contains("selected_benchmarks"), "{}", refused.text);
    let change =
        json!({ "selected_benchmarks": ["mmlu_pro"], "tasks": [], "model_id": "oracle", "demo": true });
    let plain = patch(&server, &made, change).await;
    assert_eq!(plain.status, 200, "{}", plain.text);
    assert_eq!(plain.json()["tasks"], json!([]));
}

#[tokio::test]
async fn an_agent_of_a_schedule_takes_its_options_with_it() {
    let (_provider, address) = provider().await;
    let server = server_with(&address, &[]).await;
    let [one, _] = two_tasks(&server).await;
    let with_bash = json!({
        "tasks": [one["id"]], "agent": "bash", "agent_options": { "max_turns": 3 },
        "model_id": "chutes/a/one", "benchmark_options": { "terminal_tasks": { "env.A": "1" } },
    });
    let reply = server.order("/api/schedules", &[], &order(with_bash)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let made = reply.json();
    let options = |schedule: &Value| schedule["benchmark_options"][BENCHMARK].clone();
    assert_eq!(options(&made), json!({ "agent": "bash", "agent.max_turns": "3", "env.A": "1" }));
    let later = patch(&server, &made, json!({ "samples": 4 })).await.json();
    assert_eq!((options(&later), &later["model"]), (options(&made), &made["model"]));
    let oracle = patch(&server, &made, json!({ "agent": "oracle", "model_id": null })).await.json();
    assert_eq!((options(&oracle), &oracle["model"]), (json!({ "env.A": "1" }), &json!("oracle")));
}

#[tokio::test]
async fn a_task_of_a_schedule_is_not_removed() {
    let server = Server::local().await;
    let [one, two] = two_tasks(&server).await;
    let made = server.order("/api/schedules", &[], &order(json!({ "tasks": [one["id"], two["id"]] }))).await;
    let made = made.json();
    let schedule = stored(&server, &made).await;
    let planned = bench_clock::now();
    let run = server.api.orders.runs.create_scheduled(&schedule, planned, planned, None).await.unwrap();
    let id = one["id"].as_u64().unwrap();
    // Its runs are runs of the task, as if they were ordered.
    let orders = server.api.state.task_orders(id).await.unwrap();
    assert_eq!(orders.iter().map(|order| (order.run, order.tasks)).collect::<Vec<_>>(), [(run, 2)]);

    let refused = server.ask("DELETE", &format!("/api/tasks/{id}"), &[], String::new()).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert_eq!(refused.json()["code"], "task_in_use");
    assert!(refused.text.contains("the schedule `nightly` runs this task"), "{}", refused.text);
    let path = format!("/api/schedules/{}", made["id"].as_str().unwrap());
    assert_eq!(server.ask("DELETE", &path, &[], String::new()).await.status, 200);
    let cancel = format!("/api/runs/{run}/cancel");
    assert_eq!(server.ask("POST", &cancel, &[], String::new()).await.status, 200);
    let removed = server.ask("DELETE", &format!("/api/tasks/{id}"), &[], String::new()).await;
    assert_eq!(removed.status, 200, "{}", removed.text);
}

/// Benchmarks of a dataset have agents, too, but no tasks.
#[tokio::test]
async fn a_schedule_of_a_benchmark_with_agents_has_an_agent() {
    let server = Server::local().await;
    let body = json!({ "tasks": null, "selected_benchmarks": ["terminal_bench_hard"], "demo": true });
    let reply = server.order("/api/schedules", &[], &order(body)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let made = reply.json();
    assert_eq!((&made["model"], &made["tasks"]), (&json!("oracle"), &json!([])));
    let nop = patch(&server, &made, json!({ "agent": "nop" })).await.json();
    assert_eq!((&nop["model"], &nop["benchmarks"]), (&json!("nop"), &json!(["terminal_bench_hard"])));
}
