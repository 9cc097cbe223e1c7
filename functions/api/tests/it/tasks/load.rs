//! A client that behaves as the load scripts of the earlier runner do, with reduced sizes and waits.
//!
//! Workers are replaced by a loop that ends episodes; the clients only speak HTTP, so they also fit a whole system.

use std::time::Duration;

use bench_domain::Outcome;
use bench_queue::{Message, QueueName};
use futures_util::future::join_all;
use serde_json::Value;

use super::support::{form, task_zip};
use crate::server::Server;

const POLL_EVERY: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 6_000;
const KEY: &str = "openrouter_api_key=YOUR_API_KEY_HERE";

/// Uploads an archive and returns the task's id. Only status 200 counts.
async fn upload(server: &Server, query: &str, file_name: &str) -> Option<u64> {
    let body = form("file", Some(file_name), &task_zip("Fix it.", &[]));
    let reply = server.send_form(&format!("/api/tasks?{query}"), &[], body).await;
    (reply.status == 200).then(|| reply.json()["id"].as_u64().unwrap())
}

async fn execute(server: &Server, task: u64) -> Option<Value> {
    let reply = server.post(&format!("/api/tasks/{task}/execute-async?{KEY}"), &[]).await;
    (reply.status == 200).then(|| reply.json())
}

/// As `load_test.py`: whole lifetimes of tasks, until the status is `completed`. Returns passed and total runs of
/// completed tasks.
async fn load_test(server: &Server, tasks: u32, runs: u32) -> Vec<(u64, u64)> {
    let one = |number: u32| async move {
        let query = format!("name=LoadTest-{number}&model=openai/gpt-5.2&agent=oracle&num_runs={runs}");
        let task = upload(server, &query, "break-filter-js-from-html.zip").await?;
        execute(server, task).await?;
        for _ in 0..POLLS_MAX {
            let view = server.task_view(task).await;
            if view["status"] == "completed" {
                return Some((view["passed_runs"].as_u64()?, view["total_runs"].as_u64()?));
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
        None
    };
    join_all((0..tasks).map(one)).await.into_iter().flatten().collect()
}

/// As `test_25_tabs.py` and `test_oracle_750.py`: all uploads at once, then polls over all tasks until as many runs
/// passed or failed as were ordered. Returns passed and failed runs.
async fn many_tabs(server: &Server, tabs: u32, runs: u64) -> (u64, u64) {
    let uploads = (0..tabs).map(|tab| async move {
        let query = format!(
            "name=oracle-user{tab}-task1&model=openrouter/openai/gpt-4o&agent=oracle&num_runs={runs}"
        );
        upload(server, &query, &format!("oracle-test-user{tab}-task1.zip")).await
    });
    let tasks: Vec<u64> = join_all(uploads).await.into_iter().flatten().collect();
    assert_eq!(tasks.len(), tabs as usize);
    let started = join_all(tasks.iter().map(|task| execute(server, *task))).await;
    let queued: u64 = started.iter().flatten().map(|reply| reply["runs_queued"].as_u64().unwrap()).sum();
    assert_eq!(queued, u64::from(tabs) * runs);
    for _ in 0..POLLS_MAX {
        let (mut passed, mut failed, mut waiting) = (0, 0, 0);
        for task in &tasks {
            let view = server.task_view(*task).await;
            passed += view["passed_runs"].as_u64().unwrap();
            failed += view["failed_runs"].as_u64().unwrap();
            let runs = view["runs"].as_array().unwrap().iter();
            waiting +=
                runs.filter(|run| ["running", "pending"].contains(&run["status"].as_str().unwrap())).count();
        }
        assert!(passed + failed <= queued, "no run is counted twice");
        if passed + failed >= queued {
            assert_eq!(waiting, 0);
            return (passed, failed);
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    panic!("the tasks don't end");
}

/// Plans and ends runs as they are ordered, every third episode with another result.
async fn work(server: &Server) {
    loop {
        for message in server.messages(QueueName::Plans).await {
            let Message::Plan { run, .. } = message else { continue };
            let samples = server.api.state.run(run).await.unwrap().unwrap().spec.samples.unwrap();
            server.plan_episodes(run, samples).await;
            for sample in 0..samples {
                let outcome = match sample % 3 {
                    2 => Outcome::InfrastructureError,
                    1 => Outcome::Partial,
                    _ => Outcome::Correct,
                };
                server.end_episode(run, sample, outcome).await;
            }
            server.close(run).await;
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[tokio::test]
async fn every_task_of_the_load_test_completes() {
    let server = Server::local().await;
    let done = tokio::select! {
        done = load_test(&server, 6, 1) => done,
        () = work(&server) => Vec::new(),
    };
    assert_eq!(done, vec![(1, 1); 6]);
}

#[tokio::test]
async fn every_run_of_many_tabs_is_counted_once() {
    let server = Server::local().await;
    let counts = tokio::select! {
        counts = many_tabs(&server, 10, 5) => counts,
        () = work(&server) => (0, 0),
    };
    assert_eq!(counts, (20, 30));
}
