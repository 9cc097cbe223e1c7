//! Runs that are hidden while they are listed, followed or judged again.

use bench_domain::{Outcome, RunId};
use futures_util::{StreamExt as _, future};
use serde_json::{Value, json};

use crate::server::{Reply, Server};

const A: (&str, &str) = ("authorization", "Bearer key-a");
const B: (&str, &str) = ("authorization", "Bearer key-b");
const ADMIN: (&str, &str) = ("x-admin-secret", "hush");

fn id(view: &Value) -> RunId {
    view["id"].as_str().unwrap().parse().unwrap()
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Reply {
    server.ask("GET", path, headers, "").await
}

async fn patch(server: &Server, run: RunId, body: &Value) -> Reply {
    let headers = [A, ("content-type", "application/json")];
    server.ask("PATCH", &format!("/api/runs/{run}"), &headers, body.to_string()).await
}

async fn set(server: &Server, run: RunId, visibility: &str) {
    let reply = patch(server, run, &json!({ "visibility": visibility })).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Returns an answered run of A, and two runs that judge its answers again.
async fn judged_again(server: &Server) -> (RunId, RunId, RunId) {
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["hle"], "demo": true });
    let run = id(&server.order("/api/runs", &[A], &body).await.json());
    server.finish_judged(run, &[Outcome::Correct], |judge| judge.version = 1).await;
    (run, rejudge(server, run).await, rejudge(server, run).await)
}

async fn rejudge(server: &Server, run: RunId) -> RunId {
    let reply = server.order(&format!("/api/runs/{run}/rejudge"), &[A], &json!({})).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    id(&reply.json())
}

async fn judgings(server: &Server, run: RunId, headers: &[(&str, &str)]) -> Vec<RunId> {
    let reply = get(server, &format!("/api/runs/{run}/judgings"), headers).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let judgings = reply.json()["judgings"].as_array().unwrap().clone();
    judgings.iter().map(|judging| judging["run_id"].as_str().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn runs_that_are_ordered_hidden_are_in_no_list_of_others_at_any_moment() {
    let server = Server::deployed().await;
    let order = async {
        for _ in 0..8 {
            let body =
                json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "visibility": "private" });
            assert_eq!(server.order("/api/runs", &[ADMIN], &body).await.status, 201);
        }
    };
    let look = |query: &'static str| {
        let server = &server;
        async move {
            for _ in 0..40 {
                let page = get(server, &format!("/api/runs{query}"), &[B]).await.json();
                assert_eq!(page["runs"], json!([]), "{query}");
            }
        }
    };
    let looks = future::join3(look(""), look("?status=queued,running"), look("?search=oracle"));
    future::join(order, looks).await;
    assert_eq!(get(&server, "/api/runs", &[B]).await.json()["total"], 0);
    assert_eq!(get(&server, "/api/runs", &[ADMIN]).await.json()["total"], 8);
}

#[tokio::test]
async fn judgings_are_at_most_as_visible_as_their_run() {
    let server = Server::deployed().await;
    let (run, second, third) = judged_again(&server).await;
    set(&server, third, "private").await;
    set(&server, run, "unlisted").await;
    let visibility =
        async |run: RunId| get(&server, &format!("/api/runs/{run}"), &[A]).await.json()["visibility"].clone();
    assert_eq!((visibility(second).await, visibility(third).await), (json!("unlisted"), json!("private")));
    set(&server, run, "private").await;
    let fourth = rejudge(&server, run).await;
    for judging in [second, third, fourth] {
        assert_eq!(visibility(judging).await, "private");
        for path in ["", "/judgings", "/benchmarks/hle", "/export", "/events?cursor="] {
            assert_eq!(get(&server, &format!("/api/runs/{judging}{path}"), &[B]).await.status, 404, "{path}");
        }
        let refused = patch(&server, judging, &json!({ "visibility": "unlisted" })).await;
        assert_eq!(refused.status, 422);
        assert!(refused.text.contains(&run.to_string()), "{}", refused.text);
        assert_eq!(patch(&server, judging, &json!({ "name": "x" })).await.status, 200);
    }
    assert_eq!(get(&server, "/api/runs", &[B]).await.json()["total"], 0);
    // The owner shows each rejudge that was hidden with the run.
    set(&server, run, "public").await;
    assert_eq!(visibility(second).await, "private");
    set(&server, second, "public").await;
    assert_eq!(get(&server, "/api/runs", &[B]).await.json()["total"], 2);
}

#[tokio::test]
async fn others_are_told_of_public_judgings_only() {
    let server = Server::deployed().await;
    let (run, second, third) = judged_again(&server).await;
    let fourth = rejudge(&server, run).await;
    set(&server, third, "unlisted").await;
    set(&server, fourth, "private").await;
    let all = vec![run, second, third, fourth];
    for caller in [A, ADMIN] {
        assert_eq!(judgings(&server, run, &[caller]).await, all);
    }
    for headers in [&[][..], &[B]] {
        assert_eq!(judgings(&server, run, headers).await, [run, second]);
        assert_eq!(judgings(&server, third, headers).await, [run, second, third], "its id is known");
    }
    for judging in [second, fourth] {
        server.post(&format!("/api/runs/{judging}/cancel"), &[A]).await;
        let deleted = server.ask("DELETE", &format!("/api/runs/{judging}"), &[A], "").await;
        assert_eq!(deleted.status, 200, "{}", deleted.text);
    }
    assert_eq!(judgings(&server, run, &[B]).await, [run]);
    assert_eq!(judgings(&server, run, &[A]).await, all);
}

#[tokio::test]
async fn an_open_stream_ends_when_its_run_becomes_private() {
    let server = Server::deployed().await;
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"] });
    let run = id(&server.order("/api/runs", &[A], &body).await.json());
    let path = format!("/api/runs/{run}/events");
    let mut stream = server.open("GET", &path, &[B]).await.into_body().into_data_stream();
    let mut text = String::new();
    let waited = std::time::Duration::from_secs(120);
    while !text.contains("run_created") {
        let part = tokio::time::timeout(waited, stream.next()).await.expect("the stream has no event");
        text.push_str(&String::from_utf8_lossy(&part.unwrap().unwrap()));
    }
    set(&server, run, "private").await;
    let rest: Vec<_> = tokio::time::timeout(waited, stream.collect()).await.expect("the stream goes on");
    for part in rest {
        text.push_str(&String::from_utf8_lossy(&part.unwrap()));
    }
    assert!(text.ends_with("retry: 3000\n\n") && !text.contains("event: done"), "{text}");
    assert_eq!(get(&server, &path, &[B]).await.status, 404);
    assert_eq!(get(&server, &format!("{path}?cursor="), &[A]).await.status, 200);
}
