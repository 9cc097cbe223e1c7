//! Executions: nothing is executed twice, and states never lie.

use bench_domain::{Code, EpisodeState, Outcome};
use bench_queue::{Message, QueueName};
use serde_json::{Value, json};

use super::support::{BENCHMARK, task_zip};
use crate::schema::assert_fits;
use crate::server::Server;

async fn counts(server: &Server, task: u64) -> (String, u64, u64, u64) {
    let view = server.task_view(task).await;
    let number = |name: &str| view[name].as_u64().unwrap();
    let status = view["status"].as_str().unwrap().to_owned();
    (status, number("total_runs"), number("passed_runs"), number("failed_runs"))
}

fn statuses(view: &Value) -> Vec<&str> {
    view["runs"].as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_execution_is_one_run_whose_samples_are_the_episodes() {
    let server = Server::local().await;
    let task = server.task("a", 4).await;
    let reply = server.post(&format!("/api/tasks/{task}/execute-async?openrouter_api_key=k"), &[]).await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (
            200,
            json!({
                "message": "Task queued with 4 runs", "task_id": task, "runs_queued": 4, "status": "running",
                "poll_url": format!("/api/tasks/{task}"),
            })
        )
    );
    let view = server.task_view(task).await;
    assert_eq!((view["status"].as_str(), statuses(&view)), (Some("running"), vec!["pending"; 4]));
    assert!(view["started_at"].is_string() && view["completed_at"].is_null());
    let run = server.last_run(task).await;
    assert!(
        matches!(server.messages(QueueName::Plans).await.as_slice(), [Message::Plan { run: sent, .. }] if *sent == run)
    );
    let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!((spec.model.qualified().as_str(), spec.samples), ("oracle", Some(4)));
    assert_eq!(spec.benchmarks.iter().map(ToString::to_string).collect::<Vec<_>>(), [BENCHMARK]);

    server.plan_episodes(run, 4).await;
    server.end_episode(run, 0, Outcome::Correct).await;
    server.end_episode(run, 1, Outcome::Partial).await;
    server.end_episode(run, 2, Outcome::InfrastructureError).await;
    assert_eq!(counts(&server, task).await, ("running".to_owned(), 4, 1, 2));
    let view = server.task_view(task).await;
    assert_eq!(statuses(&view), ["passed", "failed", "error", "pending"]);
    let list = server.get("/api/tasks").await.json();
    let numbers = ["passed_runs", "failed_runs", "error_runs"].map(|name| &list[0][name]);
    assert_eq!(numbers, [&json!(1), &json!(2), &json!(1)]);
    assert_eq!(view["error_runs"], 1);
    server.end_episode(run, 3, Outcome::Incorrect).await;
    server.close(run).await;
    assert_eq!(counts(&server, task).await, ("completed".to_owned(), 4, 1, 3));
    assert!(server.task_view(task).await["completed_at"].is_string());

    let runs = server.get(&format!("/api/tasks/{task}/runs")).await.json();
    let numbers: Vec<u64> =
        runs.as_array().unwrap().iter().map(|run| run["run_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let passed = &runs[0];
    assert_eq!(
        (&passed["tests_total"], &passed["tests_passed"], &passed["tests_failed"]),
        (&json!(2), &json!(2), &json!(0))
    );
    assert_eq!(
        (&passed["duration_seconds"], &passed["error_message"], &passed["logs"]),
        (&json!(3.0), &Value::Null, &Value::Null)
    );
    assert!(runs[2]["error_message"].as_str().unwrap().contains("HTTP 500"));
    let stats = server.get("/api/stats").await.json();
    assert_eq!(stats["runs"], json!({ "total": 4, "passed": 1, "failed": 2, "error": 1 }));
    assert_eq!(stats["tasks"]["completed"], 1);

    let id = passed["id"].as_u64().unwrap();
    let one = server.get(&format!("/api/tasks/{task}/runs/{id}")).await.json();
    let logs = one["logs"].as_str().unwrap();
    assert_eq!(logs.chars().count(), 50_000);
    assert!(logs.ends_with("\n\n=== TEST OUTPUT ===\n2 tests"), "the test output is never cut away");
    let all = server.get(&format!("/api/tasks/{task}/runs/{id}/logs")).await.json();
    assert_eq!(
        (&all["run_id"], &all["task_id"], &all["run_number"], &all["status"]),
        (&json!(id), &json!(task), &json!(1), &json!("passed"))
    );
    assert_eq!(all["logs"], logs);
    assert_eq!(all["log_files"][0], json!({ "name": "agent/oracle.txt", "bytes": 120_000, "omitted": 0 }));
    let (mut text, mut offset) = (String::new(), Some(0));
    while let Some(at) = offset {
        let path = format!("/api/tasks/{task}/runs/{id}/logs?log=agent/oracle.txt&offset={at}&limit=65535");
        let page = server.get(&path).await.json();
        text.push_str(page["logs"].as_str().unwrap());
        offset = page["next_offset"].as_u64();
    }
    assert_eq!(text, "ä".repeat(60_000));
    // The same log by the run's own address.
    let run =
        server.get(&format!("/api/tasks/{task}")).await.json()["run_ids"][0].as_str().unwrap().to_owned();
    let path = format!("/api/runs/{run}/items/log?benchmark=terminal_tasks");
    let listed = server.get(&path).await.json();
    assert_eq!((&listed["log_files"], &listed["text"]), (&all["log_files"], &json!("")));
    let page = server
        .get(&format!("{path}&position=0&sample=0&log=agent/oracle.txt&offset=65536&limit=65536"))
        .await
        .json();
    assert_eq!(
        (&page["text"], &page["next_offset"]),
        (&json!("ä".repeat((120_000 - 65_536) / 2)), &Value::Null)
    );
    let document = server.get("/openapi.json").await.json();
    assert_fits(&document, "ItemLog", &page);
    let open = server.get(&format!("{path}&sample=4&log=agent/oracle.txt")).await;
    assert_eq!((open.status.as_u16(), open.json()["code"].as_str()), (404, Some("sample_not_found")));
    let unknown = server.get(&format!("/api/tasks/{task}/runs/{id}/logs?log=../../x")).await;
    assert_eq!((unknown.status.as_u16(), unknown.json()["code"].as_str()), (404, Some("log_not_found")));
}

/// Clients of the earlier runner name models of OpenRouter, with or without its name before them.
#[tokio::test]
async fn models_are_those_of_openrouter_whatever_they_begin_with() {
    let server = Server::local().await;
    for (agent, model, expected) in [
        ("bash", "openai/gpt-5.2", "openrouter/openai/gpt-5.2"),
        ("terminus-2", "openrouter/a/b", "openrouter/a/b"),
        // A provider of this program, but a model's name here.
        ("bash", "chutes/x", "openrouter/chutes/x"),
        ("bash", "openai/openrouter/x", "openrouter/openai/openrouter/x"),
        ("oracle", "openai/gpt-5.2", "oracle"),
        ("nop", "openrouter/a/b", "nop"),
    ] {
        let query = format!("name=x&agent={agent}&model={model}&num_runs=1");
        let task = server.upload(&query, &[], &task_zip("x", &[])).await.json()["id"].as_u64().unwrap();
        let path = format!("/api/tasks/{task}/execute-async?openrouter_api_key=a-key-of-a-caller");
        let reply = server.post(&path, &[]).await;
        assert_eq!(reply.status, 200, "{model}: {}", reply.text);
        let run = server.last_run(task).await;
        let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
        assert_eq!(spec.model.qualified(), expected, "{agent} {model}");
    }
}

#[tokio::test]
async fn nothing_is_executed_twice() {
    let server = Server::local().await;
    let task = server.task("a", 2).await;
    let path = format!("/api/tasks/{task}/execute-async");
    let replies = futures_util::future::join_all((0..8).map(|_| server.post(&path, &[]))).await;
    let accepted = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(accepted, 1);
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!((reply.status.as_u16(), reply.detail().as_str()), (400, "Task is already running"));
    }
    let open = server.api.state.list_runs(&bench_state::RunFilter::default(), 0, 10).await.unwrap();
    assert_eq!(open.total, 1, "one run, whoever was first");
    let again = server.post(&format!("/api/tasks/{task}/start"), &[]).await;
    assert_eq!((again.status.as_u16(), again.detail().as_str()), (400, "Task is already running"));

    // A pending episode is queued already; one at work can't be started.
    let run = server.last_run(task).await;
    server.plan_episodes(run, 2).await;
    let ids: Vec<u64> = server.task_view(task).await["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["id"].as_u64().unwrap())
        .collect();
    let queued = server.post(&format!("/api/tasks/{task}/runs/{}/execute-async", ids[1]), &[]).await;
    assert_eq!(
        queued.json(),
        json!({
            "message": "Run queued", "task_id": task, "run_id": ids[1], "status": "queued",
            "poll_url": format!("/api/tasks/{task}/runs/{}", ids[1]),
        })
    );
    let waited =
        server.post(&format!("/api/tasks/{task}/runs/{}/execute?timeout_seconds=1", ids[1]), &[]).await;
    assert_eq!((waited.status.as_u16(), waited.json()["status"].as_str()), (200, Some("pending")));
    server.end_episode(run, 1, Outcome::Correct).await;
    let over = server.post(&format!("/api/tasks/{task}/runs/{}/execute", ids[1]), &[]).await;
    assert_eq!((over.status.as_u16(), over.detail().as_str()), (400, "Run is already passed"));
    server.end_episode(run, 0, Outcome::Correct).await;
    server.close(run).await;
    let completed = server.post(&path, &[]).await;
    assert_eq!(completed.detail(), "Task is already completed");

    let reset = server.post(&format!("/api/tasks/{task}/retry"), &[]).await;
    assert_eq!(reset.json(), json!({ "message": "Task reset for retry", "task_id": task }));
    assert_eq!(counts(&server, task).await, ("pending".to_owned(), 0, 0, 0));
    assert_eq!(server.post(&path, &[]).await.status, 200);
    let view = server.task_view(task).await;
    let fresh: Vec<u64> =
        view["runs"].as_array().unwrap().iter().map(|run| run["id"].as_u64().unwrap()).collect();
    assert!(fresh[0] > ids[1], "ids are unique over all rounds");
    assert_ne!(server.last_run(task).await, run);
}

#[tokio::test]
async fn a_repeated_request_with_an_idempotency_key_gets_the_same_answer() {
    let server = Server::local().await;
    let task = server.task("a", 2).await;
    let path = format!("/api/tasks/{task}/execute-async");
    let key = [("idempotency-key", "k-1")];
    let (first, again) = (server.post(&path, &key).await, server.post(&path, &key).await);
    assert_eq!((first.status.as_u16(), &first.text), (200, &again.text));
    assert_eq!(server.post(&path, &[("idempotency-key", "k-2")]).await.status, 400);
    let one = format!("/api/tasks/{task}/execute-one?timeout_seconds=1");
    let (first, again) =
        (server.post(&one, &key).await, server.post(&one, &[("idempotency-key", "k-3")]).await);
    assert_eq!(first.status, 200, "{}", first.text);
    let repeated = server.post(&one, &[("idempotency-key", "k-3")]).await;
    assert_eq!(again.json()["run_id"], repeated.json()["run_id"]);
    assert_eq!(counts(&server, task).await.1, 3);
}

/// A worker that waits for a sandbox holds the sample, but the episode hasn't begun.
#[tokio::test]
async fn an_episode_is_pending_until_it_has_a_sandbox_and_keeps_its_start() {
    let server = Server::local().await;
    let task = server.task("a", 2).await;
    server.post(&format!("/api/tasks/{task}/execute-async"), &[]).await;
    let run = server.last_run(task).await;
    server.plan_episodes(run, 2).await;
    let episode = async || server.task_view(task).await["runs"][0].clone();
    let claimed = server.claim_episode(run, 0).await;
    let view = episode().await;
    assert_eq!((&view["status"], &view["started_at"]), (&json!("pending"), &Value::Null));
    let mut state = EpisodeState::new(1, "n1");
    server.save_episode(&claimed, &state).await;
    let view = episode().await;
    assert_eq!((&view["status"], &view["started_at"]), (&json!("pending"), &Value::Null));
    let waiting = format!("/api/tasks/{task}/runs/{}/execute?timeout_seconds=1", view["id"]);
    let result = server.post(&waiting, &[]).await.json();
    assert_eq!(
        (&result["status"], &result["reward"], &result["graded"]),
        (&json!("pending"), &Value::Null, &json!(false))
    );

    state.sandbox = Some("s1".into());
    state.started_at = Some(bench_clock::now());
    server.save_episode(&claimed, &state).await;
    let running = episode().await;
    assert_eq!((&running["status"], &running["duration_seconds"]), (&json!("running"), &Value::Null));
    assert!(running["started_at"].is_string());
    // The sandbox is lost, and the episode waits for another.
    let next = EpisodeState { started_at: state.started_at, ..EpisodeState::new(2, "n2") };
    server.save_episode(&claimed, &next).await;
    let again = episode().await;
    assert_eq!((&again["status"], &again["started_at"]), (&json!("running"), &running["started_at"]));
    server.fail_episode(&claimed).await;
    let over = episode().await;
    assert_eq!((&over["status"], &over["started_at"]), (&json!("error"), &running["started_at"]));
    assert_eq!(over["reward"], Value::Null);
    let taken = over["duration_seconds"].as_f64().unwrap();
    assert!(over["completed_at"].is_string() && taken > 0.0 && taken < 60.0, "{over}");

    // One that ends before it has a sandbox never started.
    let claimed = server.claim_episode(run, 1).await;
    server.save_episode(&claimed, &EpisodeState::new(1, "n3")).await;
    server.fail_episode(&claimed).await;
    let view = server.task_view(task).await["runs"][1].clone();
    assert_eq!(
        (&view["status"], &view["started_at"], &view["duration_seconds"]),
        (&json!("error"), &Value::Null, &Value::Null)
    );
    let document = server.get("/openapi.json").await.json();
    assert_fits(&document, "Episode", &view);
    assert_fits(&document, "EpisodeResult", &result);
}

#[tokio::test]
async fn one_more_episode_is_ordered_and_waited_for() {
    let server = Server::local().await;
    let task = server.task("a", 5).await;
    let works = async {
        let run = loop {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let view = server.task_view(task).await;
            if let Some(run) = view["run_ids"].as_array().unwrap().last() {
                break run.as_str().unwrap().parse().unwrap();
            }
        };
        server.plan_episodes(run, 1).await;
        server.end_episode(run, 0, Outcome::Correct).await;
        server.close(run).await;
    };
    let path = format!("/api/tasks/{task}/execute-one");
    let (reply, ()) = tokio::join!(server.post(&path, &[]), works);
    assert_eq!(reply.status, 200, "{}", reply.text);
    let mut result = reply.json();
    let run_id = result["run_id"].take();
    assert_eq!(
        result,
        json!({
            "run_id": null, "task_id": task, "status": "passed", "success": true, "reward": 1.0, "graded": true, "tests_total": 2,
            "tests_passed": 2, "tests_failed": 0, "duration_seconds": 3.0, "error": null,
        })
    );
    assert!(run_id.as_u64().unwrap() >= 1);
    assert_eq!(counts(&server, task).await, ("completed".to_owned(), 1, 1, 0));
    let both = format!("{path}?timeout_seconds=1");
    let (one, two) = tokio::join!(server.post(&both, &[]), server.post(&both, &[]));
    assert_ne!(one.json()["run_id"], two.json()["run_id"]);
    let view = server.task_view(task).await;
    let numbers: Vec<u64> =
        view["runs"].as_array().unwrap().iter().map(|run| run["run_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(
        server.post(&format!("{path}?timeout_seconds=0"), &[]).await.problems(),
        ["greater_than_equal"]
    );
}

#[tokio::test]
async fn removal_cancels_open_runs_and_removes_the_archive() {
    let server = Server::local().await;
    let (task, other) = (server.task("a", 3).await, server.task("b", 3).await);
    assert_eq!(server.post(&format!("/api/tasks/{task}/execute-async"), &[]).await.status, 200);
    let run = server.last_run(task).await;
    server.plan_episodes(run, 3).await;
    server.end_episode(run, 0, Outcome::Correct).await;
    let deleted = server.ask("DELETE", &format!("/api/tasks/{task}"), &[], "").await;
    assert_eq!(
        (deleted.status.as_u16(), deleted.json()),
        (200, json!({ "message": "Task deleted successfully" }))
    );
    let record = server.api.state.run(run).await.unwrap().unwrap();
    assert_eq!(record.state.status().as_str(), "canceled");
    assert_eq!(server.get(&format!("/api/tasks/{task}")).await.status, 404);
    assert_eq!(server.ask("DELETE", &format!("/api/tasks/{task}"), &[], "").await.status, 404);
    // The other task has the same content.
    let objects = server.api.blobs.list("tasks/", None).await.unwrap().0;
    assert_eq!(objects.len(), 2);
    assert_eq!(server.ask("DELETE", &format!("/api/tasks/{other}"), &[], "").await.status, 200);
    assert!(server.api.blobs.list("tasks/", None).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn an_interrupted_removal_continues() {
    let server = Server::local().await;
    let task = server.task("a", 3).await;
    server.api.state.hide_task(task).await.unwrap();
    assert_eq!(server.get(&format!("/api/tasks/{task}")).await.status, 404);
    assert_eq!(server.post(&format!("/api/tasks/{task}/execute-async"), &[]).await.status, 404);
    assert_eq!(server.ask("DELETE", &format!("/api/tasks/{task}"), &[], "").await.status, 200);
    assert!(server.api.state.task(task).await.unwrap().is_none());
}

#[tokio::test]
async fn a_canceled_or_deleted_run_completes_the_task() {
    let server = Server::local().await;
    let task = server.task("a", 2).await;
    server.post(&format!("/api/tasks/{task}/execute-async"), &[]).await;
    let run = server.last_run(task).await;
    server.plan_episodes(run, 2).await;
    server.end_episode(run, 0, Outcome::Correct).await;
    let canceled = server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    assert_eq!(canceled.status, 200, "{}", canceled.text);
    // Attempts in progress may still end, so nothing is final before the finisher closes the benchmark.
    assert_eq!(counts(&server, task).await.0, "running");
    let found = server.api.state.run_with_benchmarks(run).await.unwrap().unwrap();
    let record = &found.benchmarks[0];
    let now = bench_clock::now();
    let next = record.state.skip(now, None, Code::RunEnded, "The run was canceled").unwrap();
    server.api.state.change_benchmark(run, record, &next, None, None, now).await.unwrap();
    assert_eq!(counts(&server, task).await, ("completed".to_owned(), 2, 1, 1));
    let view = server.task_view(task).await;
    assert_eq!(statuses(&view), ["passed", "error"]);
    assert_eq!(view["runs"][1]["error_message"], "the run ended before this episode was over");
    assert_eq!(server.ask("DELETE", &format!("/api/runs/{run}"), &[], "").await.status, 200);
    assert_eq!(counts(&server, task).await, ("completed".to_owned(), 2, 0, 2));
    assert_eq!(
        server.task_view(task).await["runs"][0]["error_message"],
        "the run with this episode was deleted"
    );
}

#[tokio::test]
async fn the_agent_nop_has_its_own_source_of_answers() {
    let server = Server::local().await;
    let reply = server.upload("name=n&agent=nop&num_runs=1", &[], &task_zip("x", &[])).await;
    let task = reply.json()["id"].as_u64().unwrap();
    let reply = server.post(&format!("/api/tasks/{task}/start"), &[]).await;
    assert_eq!(reply.json(), json!({ "message": "Task started with 1 runs", "task_id": task }));
    let run = server.last_run(task).await;
    assert_eq!(server.api.state.run(run).await.unwrap().unwrap().spec.model.qualified(), "nop");
}
