//! Operators' views.

use std::time::Duration;

use crate::server::Server;
use axum::Router;
use axum::routing::get;
use bench_domain::{Outcome, RunId, RunStatus, Timestamp};
use bench_queue::{Message, QueueName};
use bench_state::RunFilter;
use bench_state::ops::{Heartbeat, TokenSum};
use serde_json::{Value, json};

const STATUSES: [RunStatus; 5] =
    [RunStatus::Queued, RunStatus::Running, RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled];

fn beat(worker: &str, at: Timestamp, runs: u64) -> Heartbeat {
    Heartbeat {
        worker_id: worker.to_owned(),
        hostname: Some("host".to_owned()),
        running_runs: runs,
        max_concurrent_runs: 3,
        item_concurrency: 10,
        at,
    }
}

fn back(now: Timestamp, seconds: u64) -> Timestamp {
    Timestamp::from_micros(now.as_micros() - i64::try_from(seconds).unwrap() * 1_000_000)
}

async fn overview_at(server: &Server, now: Timestamp, minutes: u64) -> Value {
    serde_json::to_value(bench_api::overview(&server.api, now, minutes).await.unwrap()).unwrap()
}

fn ids(list: &Value) -> Vec<RunId> {
    list.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().parse().unwrap()).collect()
}

/// Checks that the counts match the runs themselves, and returns the overview.
async fn counts_are_right(server: &Server) -> Value {
    let overview = overview_at(server, bench_clock::now(), 60).await;
    for status in STATUSES {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        let listed = server.api.state.list_runs(&filter, 0, 100).await.unwrap();
        assert_eq!(overview["queue_counts"][status.as_str()], listed.total, "{status}");
    }
    overview
}

#[tokio::test]
async fn counts_follow_a_run_through_its_life() {
    let server = Server::local().await;
    counts_are_right(&server).await;
    let first = server.run_of(&["mmlu_pro"]).await;
    let second = server.run_of(&["mmlu_pro", "aime_2025"]).await;
    let overview = counts_are_right(&server).await;
    assert_eq!(ids(&overview["queued_runs"]), [first, second], "the oldest first");
    assert_eq!(overview["queued_runs"][1]["benchmarks"], json!(["mmlu_pro", "aime_2025"]));
    server.plan(second, "mmlu_pro", 2, 1).await;
    let overview = counts_are_right(&server).await;
    assert_eq!((ids(&overview["queued_runs"]), ids(&overview["running_runs"])), (vec![first], vec![second]));
    server.post(&format!("/api/runs/{second}/cancel"), &[]).await;
    let done = server.finished_run(&[Outcome::Correct]).await;
    let failed = server.finished_run(&[Outcome::InfrastructureError]).await;
    let overview = counts_are_right(&server).await;
    assert_eq!(ids(&overview["completed_runs"]), [failed, done, second], "the latest end first");
    assert_eq!(overview["completed_runs"][2]["status"], "canceled");
    server.post(&format!("/api/admin/runs/{failed}/requeue"), &[]).await;
    // A refused requeue isn't counted.
    server.post(&format!("/api/admin/runs/{failed}/requeue"), &[]).await;
    let overview = counts_are_right(&server).await;
    assert_eq!(ids(&overview["queued_runs"]), [first, failed]);
    for _ in 0..2 {
        server.ask("DELETE", &format!("/api/runs/{done}"), &[], "").await;
    }
    let overview = counts_are_right(&server).await;
    assert_eq!(
        overview["queue_counts"],
        json!({ "queued": 2, "running": 0, "succeeded": 0, "failed": 0, "canceled": 1 })
    );
    let record = server.api.state.newest_runs(RunStatus::Canceled, 1).await.unwrap().remove(0);
    assert_eq!(record.spec.id, second);
}

/// Concurrent changes of one run: only the one that wins is counted, once.
#[tokio::test]
async fn races_are_counted_once() {
    let server = Server::local().await;
    let runs = futures_util::future::join_all((0..6).map(|_| server.run_of(&["mmlu_pro"]))).await;
    let paths: Vec<String> = runs.iter().map(|run| format!("/api/runs/{run}/cancel")).collect();
    let cancels = paths.iter().flat_map(|path| (0..3).map(|_| server.post(path, &[])));
    futures_util::future::join_all(cancels).await;
    let overview = counts_are_right(&server).await;
    assert_eq!(overview["queue_counts"]["canceled"], 6);
}

#[tokio::test]
async fn workers_are_those_of_the_last_minutes_and_the_series_reaches_back() {
    let server = Server::local().await;
    let state = &server.api.state;
    server.run_of(&["mmlu_pro"]).await;
    // Two minutes into an hour, an active worker's last heartbeat may be in the previous hour.
    let hour = bench_clock::now().as_micros() / 3_600_000_000;
    let now = Timestamp::from_micros(hour * 3_600_000_000 + 130_000_000);
    for (worker, seconds, runs) in
        [("a", 60, 2), ("a", 5, 1), ("b", 150, 1), ("gone", 400, 1), ("old", 3_500, 4), ("older", 90_000, 9)]
    {
        state.note_heartbeat(&beat(worker, back(now, seconds), runs)).await.unwrap();
    }
    let overview = overview_at(&server, now, 60).await;
    let workers = overview["workers"].as_array().unwrap();
    let names: Vec<_> = workers.iter().map(|worker| worker["worker_id"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(
        workers[0],
        json!({
            "worker_id": "a", "hostname": "host", "running_runs": 1, "max_concurrent_runs": 3,
            "item_concurrency": 10, "last_seen": back(now, 5).to_string(),
        })
    );
    let minutes = |overview: &Value| -> Vec<(String, u64, u64, u64)> {
        let series = overview["timeseries"].as_array().unwrap().iter();
        let number = |minute: &Value, name: &str| minute[name].as_u64().unwrap();
        series
            .map(|minute| {
                let at = minute["timestamp"].as_str().unwrap().to_owned();
                let workers = number(minute, "worker_count");
                (at, workers, number(minute, "running_runs"), number(minute, "queued_runs"))
            })
            .collect()
    };
    let minute = |seconds: u64, workers, running| {
        let micros = back(now, seconds).as_micros() / 60_000_000 * 60_000_000;
        (Timestamp::from_micros(micros).to_string(), workers, running, 1)
    };
    let expected =
        vec![minute(3_500, 1, 4), minute(400, 1, 1), minute(150, 1, 1), minute(60, 1, 2), minute(5, 1, 1)];
    assert_eq!(minutes(&overview), expected);
    assert_eq!(minutes(&overview_at(&server, now, 30).await), expected[1..]);
    assert_eq!(minutes(&overview_at(&server, now, 1_440).await), expected, "25 hours ago is too long ago");
    // A second worker in a minute, and a second heartbeat for the same minute.
    state.note_heartbeat(&beat("b", back(now, 5), 1)).await.unwrap();
    state.note_heartbeat(&beat("b", back(now, 5), 2)).await.unwrap();
    let last = minutes(&overview_at(&server, now, 60).await).pop().unwrap();
    assert_eq!(last, minute(5, 2, 2));
    // An hour later the previous hours have ended and are cached; the cache returns the same values.
    let later = now.plus(Duration::from_secs(3_600));
    let first = minutes(&overview_at(&server, later, 120).await);
    assert_eq!(first.len(), 5);
    assert_eq!(minutes(&overview_at(&server, later, 120).await), first);
}

#[tokio::test]
async fn tokens_are_those_of_the_windows() {
    let server = Server::local().await;
    let now = bench_clock::now();
    let hours = [(0, 1), (0, 1), (23, 10), (26, 100), (167, 1_000), (170, 10_000)];
    for (hours, tokens) in hours {
        let sum = TokenSum { input_tokens: tokens, output_tokens: 2 * tokens };
        server.api.state.add_tokens(back(now, hours * 3_600), sum).await.unwrap();
    }
    let overview = overview_at(&server, now, 60).await;
    assert_eq!(
        overview["token_stats"],
        json!({
            "last_24h": { "window_hours": 24, "input_tokens": 12, "output_tokens": 24 },
            "last_7d": { "window_hours": 168, "input_tokens": 1_112, "output_tokens": 2_224 },
        })
    );
}

#[tokio::test]
async fn the_route_has_every_field_and_bounds() {
    let server = Server::new(true, &[("WORKER_MAX_CONCURRENT", "7"), ("WORKER_ITEM_CONCURRENCY", "9")]).await;
    for bad in ["29", "1441", "x", "-1"] {
        let reply = server.get(&format!("/api/ops/overview?minutes={bad}")).await;
        assert_eq!(reply.status, 422, "{bad}");
        assert!(reply.json()["detail"].is_array());
    }
    let run = server.run_of(&["mmlu_pro"]).await;
    let message = Message::Finish { run, generation: 1 };
    server.api.queues.send(&message, Duration::from_secs(900)).await.unwrap();
    let dead = server.api.queues.dead_letter_url(QueueName::Items).unwrap();
    server.api.queues.client().send_message().queue_url(dead).message_body("x").send().await.unwrap();
    let unreadable = bench_state::UnreadableRecord {
        message_id: "m1".into(),
        queue: "items".into(),
        sent_at: bench_clock::now(),
        text: "very secret text".into(),
        problem: "p".repeat(1_000),
        run: Some(run),
        sample: None,
    };
    server.api.state.note_unreadable(&unreadable, bench_clock::now()).await.unwrap();
    let reply = server.get("/api/ops/overview").await;
    let overview = reply.json();
    let mut names: Vec<&str> = overview.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "completed_runs",
            "queue_counts",
            "queued_runs",
            "queues",
            "running_runs",
            "timeseries",
            "token_stats",
            "unreadable_messages",
            "worker_config",
            "workers",
            "wrong_admin_secrets_24h"
        ]
    );
    assert_eq!(
        overview["worker_config"],
        json!({ "worker_max_concurrent": 7, "worker_item_concurrency": 9 })
    );
    assert_eq!(
        overview["queues"],
        json!([
            { "name": "plans", "visible": 1, "in_flight": 0, "delayed": 0, "dead": 0 },
            { "name": "items", "visible": 0, "in_flight": 0, "delayed": 0, "dead": 1 },
            { "name": "turns", "visible": 0, "in_flight": 0, "delayed": 0, "dead": 0 },
            { "name": "finishes", "visible": 0, "in_flight": 0, "delayed": 1, "dead": 0 },
        ])
    );
    let shown = &overview["unreadable_messages"][0];
    assert_eq!((&shown["message_id"], &shown["run_id"]), (&json!("m1"), &json!(run.to_string())));
    assert!(!reply.text.contains("very secret") && reply.text.len() < 4_000);
    let line = overview["queued_runs"][0].as_object().unwrap();
    assert_eq!(line.len(), 14);
    let schema = &server.get("/openapi.json").await.json()["components"]["schemas"]["RunLine"]["properties"];
    assert!(line.keys().all(|field| schema[field].is_object()), "{schema}");
}

/// Starts a server whose sandbox service gives this answer to every request.
pub(crate) async fn sandy(answer: &'static str) -> (Server, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(get(move || async move { answer }));
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let vars = [("SANDY_BASE_URL", address.as_str()), ("SANDY_API_KEY", "sandy-key")];
    (Server::new(false, &vars).await, task)
}

#[tokio::test]
async fn the_sandbox_host_is_passed_through() {
    let (server, task) = sandy(r#"[{"sandbox_id":"a","timestamp":"2026-01-02T03:04:05Z","more":1}]"#).await;
    let path = "/api/ops/sandy/sandboxes?ids=a,%20b";
    assert_eq!(server.get(path).await.json(), json!([]), "single sandboxes are the operator's business");
    let sandboxes = server.ask("GET", path, &[("x-admin-secret", "hush")], "").await;
    assert_eq!(sandboxes.status, 200, "{}", sandboxes.text);
    assert_eq!(sandboxes.json()[0].as_object().unwrap().len(), 10);
    let metrics = server.get("/api/ops/sandy/metrics").await;
    assert_eq!((metrics.status.as_u16(), metrics.json()[0].as_object().unwrap().len()), (200, 4));
    let resources = server.get("/api/ops/sandy/resources").await;
    assert_eq!(resources.status, 502);
    assert!(resources.detail().contains("unexpected shape"), "{}", resources.text);
    for bad in ["metrics?hours=0", "metrics?hours=49", "metrics?hours=x"] {
        assert_eq!(server.get(&format!("/api/ops/sandy/{bad}")).await.status, 422, "{bad}");
    }
    let many = format!("/api/ops/sandy/sandboxes?ids={}", vec!["x"; 101].join(","));
    assert_eq!(server.get(&many).await.problems(), ["too_long"]);
    // Responses are cached for a moment, also after the service went away.
    task.abort();
    assert_eq!(server.get("/api/ops/sandy/metrics?hours=12").await.status, 200);
}

#[tokio::test]
async fn a_sandbox_host_that_is_not_there_is_503_with_the_cause() {
    let server = Server::local().await;
    for path in ["resources", "metrics", "sandboxes"] {
        let reply = server.get(&format!("/api/ops/sandy/{path}")).await;
        assert_eq!(
            (reply.status.as_u16(), reply.detail().as_str()),
            (503, "Sandy API key is not configured: set SANDY_API_KEY")
        );
    }
    let (server, task) = sandy("").await;
    task.abort();
    let _ = task.await;
    let reply = server.get("/api/ops/sandy/resources").await;
    assert_eq!(reply.status, 503);
    assert!(reply.detail().starts_with("Sandy cannot be reached"), "{}", reply.text);
}
