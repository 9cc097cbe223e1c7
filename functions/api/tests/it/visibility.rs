//! Hidden runs and schedules, and lists of the caller's own.

use bench_domain::RunId;
use bench_state::access::AccessKind;
use serde_json::{Value, json};

use crate::server::Server;
use crate::tasks::support::task_zip;

const A: (&str, &str) = ("authorization", "Bearer key-a");
const B: (&str, &str) = ("authorization", "Bearer key-b");
const ADMIN: (&str, &str) = ("x-admin-secret", "hush");

type Headers<'a> = &'a [(&'a str, &'a str)];

async fn run(server: &Server, caller: (&str, &str), visibility: &str) -> RunId {
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "visibility": visibility });
    let reply = server.order("/api/runs", &[caller], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert_eq!(reply.json()["visibility"], visibility);
    reply.json()["id"].as_str().unwrap().parse().unwrap()
}

/// Returns the ids of a list, and its total.
async fn list(server: &Server, path: &str, headers: Headers<'_>) -> (Vec<String>, u64) {
    let reply = server.ask("GET", path, headers, "").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let page = reply.json();
    let rows = page["runs"].as_array().or(page["schedules"].as_array()).unwrap();
    let ids = rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    (ids, page["total"].as_u64().unwrap())
}

#[tokio::test]
async fn lists_show_what_each_caller_may_find() {
    let server = Server::deployed().await;
    let (open, unlisted) = (run(&server, A, "public").await, run(&server, A, "unlisted").await);
    let (private, of_b) = (run(&server, A, "private").await, run(&server, B, "private").await);
    let ids = |runs: &[RunId]| runs.iter().map(ToString::to_string).collect::<Vec<_>>();
    let all = ids(&[of_b, private, unlisted, open]);
    for (headers, expected) in [
        (&[][..], ids(&[open])),
        (&[A][..], ids(&[private, unlisted, open])),
        (&[B][..], ids(&[of_b, open])),
        (&[ADMIN][..], all.clone()),
    ] {
        let total = expected.len() as u64;
        // The same runs by every way through the indexes.
        for query in ["", "?status=queued", "?status=queued,running", "?model_slug=oracle", "?search=oracle"]
        {
            let found = list(&server, &format!("/api/runs{query}"), headers).await;
            assert_eq!(found, (expected.clone(), total), "{query} {headers:?}");
        }
        let last = list(&server, &format!("/api/runs?limit=1&offset={}", total - 1), headers).await;
        assert_eq!(last, (expected[expected.len() - 1..].to_vec(), total), "{headers:?}");
    }
    // After an update, the newest runs are searched until the owners' lists are complete.
    for is_complete in [false, true] {
        assert_eq!(server.api.state.are_owner_lists_complete().await.unwrap(), is_complete);
        assert_eq!(list(&server, "/api/runs?mine=true", &[A]).await.0, ids(&[private, unlisted, open]));
        assert_eq!(list(&server, "/api/runs?mine=true&limit=1&offset=1", &[A]).await, (ids(&[unlisted]), 3));
        assert_eq!(list(&server, "/api/runs?mine=true&status=failed", &[A]).await, (Vec::new(), 0));
        assert_eq!(list(&server, "/api/runs?mine=true&search=oracle", &[B]).await.0, ids(&[of_b]));
        assert_eq!(list(&server, "/api/runs?mine=true", &[ADMIN]).await.1, 0, "admins own what they order");
        assert_eq!(list(&server, "/api/runs?mine=true", &[]).await.1, 0);
        server.api.state.complete_owner_lists().await.unwrap();
    }
}

#[tokio::test]
async fn a_private_run_does_not_exist_for_others() {
    let server = Server::deployed().await;
    let hidden = run(&server, A, "private").await;
    let path = format!("/api/runs/{hidden}");
    for headers in [&[][..], &[B][..]] {
        assert_eq!(server.ask("GET", &path, headers, "").await.status, 404);
        let patch = [headers, &[("content-type", "application/json")]].concat();
        assert_eq!(server.ask("PATCH", &path, &patch, r#"{"visibility":"public"}"#).await.status, 404);
    }
    let change = async |visibility: Value| {
        let headers = [A, ("content-type", "application/json")];
        let body = json!({ "visibility": visibility }).to_string();
        server.ask("PATCH", &path, &headers, body).await.json()["visibility"].clone()
    };
    assert_eq!(change(json!("unlisted")).await, "unlisted");
    let view = server.get(&path).await.json();
    assert_eq!((&view["visibility"], &view["is_mine"]), (&json!("unlisted"), &json!(false)));
    assert_eq!(list(&server, "/api/runs", &[]).await.1, 0);
    assert_eq!(change(json!(null)).await, "public");
    assert_eq!(list(&server, "/api/runs", &[]).await.1, 1);
}

#[tokio::test]
async fn schedules_are_hidden_like_runs() {
    let server = Server::deployed().await;
    let add = async |name: &str, visibility: &str| {
        let body = json!({
            "name": name, "cron": "0 3 * * *", "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"],
            "visibility": visibility,
        });
        let reply = server.order("/api/schedules", &[A], &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        assert_eq!(
            (&reply.json()["visibility"], &reply.json()["is_mine"]),
            (&json!(visibility), &json!(true))
        );
        reply.json()["id"].as_str().unwrap().to_owned()
    };
    let (open, unlisted) = (add("a", "public").await, add("b", "unlisted").await);
    let private = add("c", "private").await;
    let all = 3;
    assert_eq!(list(&server, "/api/schedules", &[]).await, (vec![open.clone()], 1));
    assert_eq!(list(&server, "/api/schedules", &[A]).await.1, all);
    assert_eq!(list(&server, "/api/schedules?mine=true", &[A]).await.1, all);
    assert_eq!(list(&server, "/api/schedules?mine=true", &[B]).await.1, 0);
    assert_eq!(list(&server, "/api/schedules", &[ADMIN]).await.1, all);
    let status = async |id: &str, rest: &str, headers: Headers<'_>| {
        server.ask("GET", &format!("/api/schedules/{id}{rest}"), headers, "").await.status.as_u16()
    };
    assert_eq!((status(&unlisted, "", &[]).await, status(&private, "", &[B]).await), (200, 404));
    assert_eq!(status(&private, "/firings", &[]).await, 404);
    assert_eq!(status(&private, "", &[A]).await, 200);
    // Its runs are as visible as the schedule.
    let record = server.api.state.schedule(private.parse().unwrap()).await.unwrap().unwrap();
    let now = bench_clock::now();
    let spec = record.schedule.run_spec_at(now, "1", now);
    assert_eq!(spec.labels.visibility, bench_domain::Visibility::Private);
}

#[tokio::test]
async fn the_owner_of_a_task_sees_no_hidden_runs_of_others() {
    let server = Server::new(false, &[]).await;
    server.list_with(AccessKind::Key, "key-a", |entry| entry.tasks = true).await;
    let added = server.upload("name=x&agent=oracle&num_runs=2", &[A], &task_zip("x", &[])).await;
    assert_eq!(added.status, 200, "{}", added.text);
    // One run of the task alone and one that names the task, both of the admin.
    assert_eq!(server.post("/api/tasks/1/execute-async", &[ADMIN]).await.status, 200);
    let task = async |caller| server.ask("GET", "/api/tasks/1", &[caller], "").await.json();
    let view = task(A).await;
    let alone: RunId = view["run_ids"][0].as_str().unwrap().parse().unwrap();
    let episode = view["runs"][0]["id"].as_u64().unwrap();
    let body = json!({ "tasks": [1], "agent": "oracle", "visibility": "private" });
    let named = server.order("/api/runs", &[ADMIN], &body).await.json()["id"].as_str().unwrap().to_owned();
    let all = vec![named.clone(), alone.to_string()];
    let set = async |run: &str, visibility: &str| {
        let headers = [ADMIN, ("content-type", "application/json")];
        let body = json!({ "visibility": visibility }).to_string();
        assert_eq!(server.ask("PATCH", &format!("/api/runs/{run}"), &headers, body).await.status, 200);
    };
    let status = async |caller| {
        let path = format!("/api/tasks/1/runs/{episode}");
        let logs = server.ask("GET", &format!("{path}/logs"), &[caller], "").await.status.as_u16();
        (server.ask("GET", &path, &[caller], "").await.status.as_u16(), logs)
    };
    for (visibility, listed, seen) in
        [("public", true, true), ("unlisted", false, true), ("private", false, false)]
    {
        set(&alone.to_string(), visibility).await;
        for query in ["task=1", "task=1&status=queued", "task=1&search=oracle", "task=1&limit=1"] {
            let own = list(&server, &format!("/api/runs?{query}"), &[A]).await;
            let expected = if listed { (vec![alone.to_string()], 1) } else { (Vec::new(), 0) };
            assert_eq!(own, expected, "{visibility} {query}");
        }
        assert_eq!(list(&server, "/api/runs?task=1", &[ADMIN]).await, (all.clone(), 2));
        let view = task(A).await;
        let episodes = server.ask("GET", "/api/tasks/1/runs", &[A], "").await.json();
        assert_eq!(view["run_ids"].as_array().unwrap().len(), usize::from(seen), "{visibility}");
        assert_eq!(
            (view["runs"].as_array().unwrap().len(), &view["runs"]),
            (if seen { 2 } else { 0 }, &episodes)
        );
        assert_eq!((&view["total_runs"], &view["status"]), (&json!(2), &json!("running")), "counts have all");
        assert_eq!(view["results"], task(ADMIN).await["results"]);
        assert_eq!(status(A).await.0, if seen { 200 } else { 404 }, "{visibility}");
        assert_eq!(status(A).await.1 == 404, !seen, "{visibility}");
        assert_eq!(status(ADMIN).await.0, 200);
        assert_eq!(task(ADMIN).await["run_ids"].as_array().unwrap().len(), 1);
    }
}
