//! Off loopback, tasks are for the operator and listed callers, and each sees its own only.

use bench_domain::Code;
use bench_state::access::AccessKind;
use serde_json::json;

use super::support::{form, task_zip};
use crate::server::Server;

const ADMIN: [(&str, &str); 1] = [("x-admin-secret", "hush")];
const A: [(&str, &str); 1] = [("authorization", "Bearer key-a")];
const B: [(&str, &str); 1] = [("authorization", "Bearer key-b")];
/// Listed with other permissions.
const C: [(&str, &str); 1] = [("authorization", "Bearer sk-caller")];

async fn deployed() -> Server {
    let server = Server::new(false, &[]).await;
    for key in ["key-a", "key-b"] {
        server.list_with(AccessKind::Key, key, |entry| entry.tasks = true).await;
    }
    server.list(AccessKind::Key, "sk-caller", true, true).await;
    server
}

async fn upload(server: &Server, headers: &[(&str, &str)]) -> u64 {
    let reply = server.upload("name=mine&agent=oracle&num_runs=2", headers, &task_zip("x", &[])).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["id"].as_u64().unwrap()
}

#[tokio::test]
async fn uploading_needs_the_permission() {
    let server = deployed().await;
    let zip = task_zip("x", &[]);
    for path in ["/api/tasks?name=x", "/api/tasks/check"] {
        for (headers, status, code) in [
            (&[][..], 401, Code::MissingCredentials),
            (&C, 403, Code::OrderNotAllowed),
            (&[("authorization", "Bearer sk-unlisted")], 403, Code::OrderNotAllowed),
            (&[("x-admin-secret", "wrong")], 401, Code::InvalidAdminSecret),
        ] {
            let reply = server.send_form(path, headers, form("file", Some("t.zip"), &zip)).await;
            assert_eq!((reply.status.as_u16(), reply.code()), (status, Some(code)), "{path} {headers:?}");
        }
    }
    assert_eq!((upload(&server, &A).await, upload(&server, &ADMIN).await), (1, 2));
    let body = json!({ "bytes": 5, "sha256": "0".repeat(64) });
    assert_eq!(server.order("/api/tasks/uploads", &C, &body).await.status, 403);
}

#[tokio::test]
async fn tasks_of_others_look_as_if_they_didnt_exist() {
    let server = deployed().await;
    let task = upload(&server, &A).await;
    let get = async |path: &str, headers: &[(&str, &str)]| server.ask("GET", path, headers, "").await;
    for (headers, count) in [(&A[..], 1), (&B, 0), (&ADMIN, 1), (&[], 0)] {
        let list = get("/api/tasks", headers).await.json();
        assert_eq!(list.as_array().unwrap().len(), count, "{headers:?}");
        let stats = get("/api/stats", headers).await.json();
        assert_eq!(stats["tasks"]["total"], count, "{headers:?}");
    }
    assert_eq!(server.post(&format!("/api/tasks/{task}/execute-async"), &A).await.status, 200);
    let view = get(&format!("/api/tasks/{task}"), &A).await.json();
    let run = view["run_ids"][0].as_str().unwrap().to_owned();
    let id = view["runs"][0]["id"].as_u64().unwrap();
    for path in ["", "/archive", "/runs", &format!("/runs/{id}"), &format!("/runs/{id}/logs")] {
        let path = format!("/api/tasks/{task}{path}");
        for headers in [&B[..], &C, &[]] {
            assert_eq!(get(&path, headers).await.status, 404, "{path} {headers:?}");
        }
        assert!(get(&path, &A).await.status.as_u16() < 400, "{path}");
        assert!(get(&path, &ADMIN).await.status.as_u16() < 400, "{path}");
    }
    for action in ["start", "retry", "execute-async", "execute-one"] {
        assert_eq!(server.post(&format!("/api/tasks/{task}/{action}"), &B).await.status, 404, "{action}");
        assert_eq!(server.post(&format!("/api/tasks/{task}/{action}"), &[]).await.status, 401, "{action}");
        assert_eq!(server.post(&format!("/api/tasks/{task}/{action}"), &C).await.status, 403, "{action}");
    }
    for headers in [&B[..], &[]] {
        assert_eq!(server.ask("DELETE", &format!("/api/tasks/{task}"), headers, "").await.status, 404);
    }
    // The run is listed as all runs are, but what it says about the task is its owner's.
    let run: bench_domain::RunId = run.parse().unwrap();
    server.plan_episodes(run, 2).await;
    server.end_episode(run, 0, bench_domain::Outcome::Correct).await;
    let items = format!("/api/runs/{run}/benchmarks/terminal_tasks");
    let (hidden, own) = (get(&items, &B).await.json(), get(&items, &A).await.json());
    assert_eq!(
        (&hidden["items"]["items"][0]["prompt"], &hidden["items"]["items"][0]["hidden"]),
        (&json!(null), &json!(true))
    );
    assert!(own["items"]["items"][0]["prompt"].is_string());
    assert_eq!(server.ask("DELETE", &format!("/api/tasks/{task}"), &A, "").await.status, 200);
}

#[tokio::test]
async fn orders_of_runs_need_the_permission_and_visible_tasks() {
    let server = deployed().await;
    let task = upload(&server, &A).await;
    let body = json!({ "tasks": [task], "agent": "oracle" });
    for (headers, status, code) in [
        (&[][..], 401, Code::MissingCredentials),
        (&C, 403, Code::OrderNotAllowed),
        (&B, 404, Code::TaskNotFound),
    ] {
        let reply = server.order("/api/runs", headers, &body).await;
        assert_eq!((reply.status.as_u16(), reply.code()), (status, Some(code)), "{headers:?} {}", reply.text);
    }
    let plain = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true });
    let all = json!({ "model_id": "oracle", "selected_benchmarks": [], "demo": true });
    for body in [&plain, &all] {
        let reply = server.order("/api/runs", &A, body).await;
        assert_eq!(reply.status, 403, "the oracle needs its own permission: {}", reply.text);
    }
    for headers in [&A[..], &ADMIN] {
        let reply = server.order("/api/runs", headers, &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
    }
}
