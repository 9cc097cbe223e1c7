//! Filters of the list of runs, and the actions that a caller may do.

use crate::server::Server;
use bench_domain::{Outcome, RunId};
use serde_json::{Value, json};

const A: (&str, &str) = ("authorization", "Bearer key-a");
const B: (&str, &str) = ("authorization", "Bearer key-b");
const ADMIN: (&str, &str) = ("x-admin-secret", "hush");

async fn list(server: &Server, query: &str, headers: &[(&str, &str)]) -> (Vec<String>, Value) {
    let reply = server.ask("GET", &format!("/api/runs?{query}"), headers, "").await;
    assert_eq!(reply.status, 200, "{query}: {}", reply.text);
    let page = reply.json();
    let ids = page["runs"].as_array().unwrap().iter();
    (ids.map(|run| run["id"].as_str().unwrap().to_owned()).collect(), page)
}

async fn order(server: &Server, headers: &[(&str, &str)], body: Value) -> String {
    let reply = server.order("/api/runs", headers, &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn runs_are_found_by_model_benchmark_owner_and_text() {
    let server = Server::deployed().await;
    let demo = |benchmark: &str, name: &str, tags: &[&str]| json!({ "model_id": "oracle", "selected_benchmarks": [benchmark], "demo": true, "name": name, "tags": tags });
    let first = order(&server, &[A], demo("mmlu_pro", "First try", &["exp-7"])).await;
    let second = order(&server, &[B], demo("aime_2025", "second", &["Law"])).await;
    let third = order(&server, &[A], demo("aime_2025", "", &[])).await;
    for (query, headers, expected) in [
        ("model=ORAC", &[][..], &[&third, &second, &first][..]),
        ("model=chutes", &[], &[]),
        ("benchmark=mmlu_pro", &[], &[&first]),
        ("benchmark=aime_2025&model=oracle", &[], &[&third, &second]),
        ("benchmark=unknown", &[], &[]),
        ("owner=me", &[A], &[&third, &first]),
        ("owner=me&benchmark=mmlu_pro", &[A], &[&first]),
        ("owner=me", &[B], &[&second]),
        ("owner=me", &[], &[]),
        ("search=first%20TRY", &[], &[&first]),
        ("search=law", &[], &[&second]),
        ("search=exp", &[], &[&first]),
        ("search=oracle", &[], &[&third, &second, &first]),
        ("search=nothing", &[], &[]),
        ("search=", &[], &[&third, &second, &first]),
        ("status=queued,running", &[], &[&third, &second, &first]),
        ("status=failed,canceled", &[], &[]),
        ("status=unknown", &[], &[]),
    ] {
        let (found, page) = list(&server, query, headers).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
        assert_eq!((&page["total"], &page["unsearched"]), (&json!(expected.len()), &json!(0)), "{query}");
    }
    let (found, _) = list(&server, &format!("search={}", &second[..8]), &[]).await;
    assert_eq!(found, [second.as_str()]);
    let (found, page) = list(&server, "search=oracle&limit=1&offset=1", &[]).await;
    assert_eq!((found, &page["next_offset"], &page["total"]), (vec![second.clone()], &json!(2), &json!(3)));
    let cancel = server.post(&format!("/api/runs/{second}/cancel"), &[B]).await;
    assert_eq!(cancel.status, 200);
    let (found, _) = list(&server, "status=canceled,queued&benchmark=aime_2025", &[]).await;
    assert_eq!(found, [third, second]);
    let wrong = server.get("/api/runs?owner=other").await;
    assert_eq!(wrong.status, 422, "{}", wrong.text);
}

#[tokio::test]
async fn a_run_says_what_its_caller_may_do() {
    let server = Server::deployed().await;
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true });
    let run = order(&server, &[A], body).await;
    let id: RunId = run.parse().unwrap();
    let can = async |headers: &[(&str, &str)]| {
        let view = server.ask("GET", &format!("/api/runs/{run}"), headers, "").await.json();
        let (_, page) = list(&server, "", headers).await;
        assert_eq!(page["runs"][0]["can"], view["can"], "the list says the same");
        let can = view["can"].as_object().unwrap().clone();
        let allowed = can.iter().filter(|(_, allowed)| **allowed == json!(true));
        let mut names: Vec<String> = allowed.map(|(name, _)| name.clone()).collect();
        names.sort();
        names.join(" ")
    };
    for (headers, expected) in [
        (&[][..], ""),
        (&[B], ""),
        (&[A], "cancel edit"),
        (&[ADMIN], "cancel edit"),
        (&[("x-admin-secret", "guess")], ""),
    ] {
        assert_eq!(can(headers).await, expected, "{headers:?}");
    }
    server.plan(id, "mmlu_pro", 2, 1).await;
    for (item, outcome) in [Outcome::Correct, Outcome::InfrastructureError].into_iter().enumerate() {
        let position = bench_domain::Position { item: u32::try_from(item).unwrap(), sample: 0 };
        server.commit(id, "mmlu_pro", position, outcome).await;
    }
    server.close(id).await;
    assert_eq!(can(&[]).await, "export");
    assert_eq!(can(&[A]).await, "delete edit export needs_key requeue requeue_errors");
    // Every action that is shown as possible is possible.
    let path = format!("/api/admin/runs/{run}/requeue");
    assert_eq!(server.post(&path, &[B]).await.status, 403);
    assert_eq!(server.post(&path, &[A]).await.status, 200);
    assert_eq!(can(&[A]).await, "cancel edit");
}

#[tokio::test]
async fn judged_answers_can_be_judged_again() {
    let server = Server::local().await;
    let run = server.judged_run(&[Outcome::Correct]).await;
    let can = server.get(&format!("/api/runs/{run}")).await.json()["can"].clone();
    assert_eq!(
        (&can["rejudge"], &can["requeue"], &can["export"]),
        (&json!(true), &json!(false), &json!(true))
    );
    let plain = server.finished_run(&[Outcome::Correct]).await;
    let can = server.get(&format!("/api/runs/{plain}")).await.json()["can"].clone();
    assert_eq!((&can["rejudge"], &can["delete"]), (&json!(false), &json!(true)));
}
