//! Results of tasks over all of their orders.

use bench_domain::{Code, Outcome, Position, RunId};
use serde_json::{Value, json};

use super::support::{BENCHMARK, task_zip};
use crate::schema::assert_fits;
use crate::server::Server;

fn results(status: &str, [runs, open, episodes, passed, failed, errors]: [u64; 6], partial: Value) -> Value {
    json!({
        "status": status, "runs": runs, "open_runs": open, "episodes": episodes, "passed": passed, "failed": failed,
        "partial": partial, "errors": errors,
    })
}

async fn order(server: &Server, tasks: &[u64], samples: u32) -> RunId {
    let body = json!({ "tasks": tasks, "agent": "oracle", "samples": samples });
    let reply = server.order("/api/runs", &[], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().parse().unwrap()
}

/// Closes the benchmark of a canceled run as the finisher does.
async fn skip(server: &Server, run: RunId) {
    let found = server.api.state.run_with_benchmarks(run).await.unwrap().unwrap();
    let record = &found.benchmarks[0];
    let now = bench_clock::now();
    let next = record.state.skip(now, None, Code::RunEnded, "The run was canceled").unwrap();
    server.api.state.change_benchmark(run, record, &next, None, None, now).await.unwrap();
}

#[tokio::test]
async fn every_order_counts_in_the_results_of_its_tasks() {
    let server = Server::local().await;
    let mut items = Vec::new();
    for text in ["one", "two"] {
        let added = server.upload("name=x&agent=oracle&num_runs=2", &[], &task_zip(text, &[])).await.json();
        assert_eq!(added["results"], results("pending", [0; 6], json!(0)));
        items.push(added["task"].as_str().map(str::to_owned));
    }
    // An order of one task, as the page and `bench run --task` send it.
    let alone = order(&server, &[1], 4).await;
    assert_eq!(
        server.task_view(1).await["results"],
        results("running", [1, 1, 4, 0, 0, 0], json!(0)),
        "episodes count before they are planned"
    );
    server.plan_episodes(alone, 4).await;
    server.end_episode(alone, 0, Outcome::Correct).await;
    server.end_episode(alone, 1, Outcome::Partial).await;
    server.end_episode(alone, 2, Outcome::InfrastructureError).await;
    assert_eq!(server.task_view(1).await["results"], results("running", [1, 1, 4, 1, 1, 1], Value::Null));
    server.end_episode(alone, 3, Outcome::Incorrect).await;
    server.close(alone).await;
    let of_one = results("completed", [1, 0, 4, 1, 2, 1], json!(1));

    // Clients of the earlier runner see the orders of its own routes only.
    let list = server.get("/api/tasks").await.json();
    let one = &list[1];
    assert_eq!(
        (&one["status"], &one["total_runs"], &one["run_ids"]),
        (&json!("pending"), &json!(0), &json!([]))
    );
    assert_eq!(one["results"], of_one);
    assert_eq!(list[0]["results"], results("pending", [0; 6], json!(0)));
    assert_fits(&server.get("/openapi.json").await.json(), "Task", one);

    // Of an order of several tasks, each task has its own episodes.
    let both = order(&server, &[1, 2], 2).await;
    items.reverse();
    let first = items.iter().position(|item| *item == one["task"].as_str().map(str::to_owned)).unwrap();
    server.plan_ids(both, BENCHMARK, items, 2, |_| {}).await;
    for (sample, outcome) in [(0, Outcome::Correct), (1, Outcome::Correct)] {
        let position = Position { item: u32::try_from(first).unwrap(), sample };
        server.commit(both, BENCHMARK, position, outcome).await;
    }
    let other = u32::try_from(1 - first).unwrap();
    server.commit(both, BENCHMARK, Position { item: other, sample: 0 }, Outcome::Incorrect).await;
    assert_eq!(server.task_view(1).await["results"], results("running", [2, 1, 6, 3, 2, 1], json!(1)));
    assert_eq!(server.task_view(2).await["results"], results("running", [1, 1, 2, 0, 1, 0], json!(0)));

    // What a canceled run leaves undone has no grade.
    assert_eq!(server.post(&format!("/api/runs/{both}/cancel"), &[]).await.status, 200);
    skip(&server, both).await;
    let list = server.get("/api/tasks").await.json();
    assert_eq!(list[0]["results"], results("completed", [1, 0, 2, 0, 1, 1], json!(0)));
    assert_eq!(list[1]["results"], results("completed", [2, 0, 6, 3, 2, 1], json!(1)));
    assert_eq!(list, server.get("/api/tasks").await.json(), "what was counted once is the same again");

    let stats = server.get("/api/stats").await.json();
    assert_eq!(stats["tasks"]["pending"], 2);
    let of_all = json!({ "total": 8, "passed": 3, "failed": 3, "error": 2 });
    assert_eq!(
        (&stats["results"]["episodes"], &stats["results"]["tasks"]["completed"]),
        (&of_all, &json!(2))
    );

    // The runs of a task are listed, newest first, also together with other filters.
    let runs = async |query: &str| {
        let found = server.get(&format!("/api/runs?{query}")).await.json();
        let ids = found["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), found["total"].as_u64().unwrap())
    };
    let (alone, both) = (alone.to_string(), both.to_string());
    assert_eq!(runs("task=1").await, (vec![both.clone(), alone.clone()], 2));
    assert_eq!(runs("task=1&limit=1&offset=1").await, (vec![alone.clone()], 2));
    assert_eq!(runs("task=2").await, (vec![both.clone()], 1));
    assert_eq!(runs("task=1&status=failed").await, (vec![alone.clone()], 1));
    assert_eq!(runs("task=2&status=failed").await, (vec![], 0));
    assert_eq!(server.get("/api/runs?task=9").await.status, 404);
    assert_eq!(server.get("/api/runs?task=x").await.status, 422);

    // A run that is gone counts no more.
    assert_eq!(server.ask("DELETE", &format!("/api/runs/{both}"), &[], "").await.status.as_u16() / 100, 2);
    assert_eq!(server.task_view(1).await["results"], of_one);
}
