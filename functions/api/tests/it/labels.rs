//! Labels of runs: ordered, changed, and found in lists.

use bench_domain::{Outcome, RunId};
use serde_json::{Value, json};

use crate::server::{Reply, Server};

fn order(labels: Value) -> Value {
    let mut body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true });
    body.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    body
}

async fn make(server: &Server, labels: Value) -> RunId {
    let reply = server.order("/api/runs", &[], &order(labels)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().parse().unwrap()
}

async fn patch(server: &Server, run: RunId, change: Value) -> Reply {
    let headers = [("content-type", "application/json")];
    server.ask("PATCH", &format!("/api/runs/{run}"), &headers, change.to_string()).await
}

/// Returns the labels of a run's view.
fn shown(view: &Value) -> Value {
    json!([view["name"], view["tags"], view["notes"]])
}

async fn list(server: &Server, query: &str) -> (Vec<String>, u64) {
    let page = server.get(&format!("/api/runs?{query}")).await.json();
    let ids = page["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
    (ids.collect(), page["total"].as_u64().unwrap())
}

#[tokio::test]
async fn labels_are_ordered_and_changed_in_any_state_without_an_event() {
    let server = Server::local().await;
    let plain = server.get(&format!("/api/runs/{}", make(&server, json!({})).await)).await.json();
    assert_eq!(shown(&plain), json!([null, [], null]));
    let ordered = json!({ "name": " Baseline ", "tags": ["exp/7", "lr:1e-4", "exp/7"], "notes": "one\ntwo" });
    let run = make(&server, ordered).await;
    let path = format!("/api/runs/{run}");
    let before = server.get(&path).await.json();
    assert_eq!(shown(&before), json!(["Baseline", ["exp/7", "lr:1e-4"], "one\ntwo"]));
    let events = server.get(&format!("{path}/events?cursor=")).await.json()["events"].clone();
    assert!(!events.to_string().contains("exp/7"), "{events}");

    for (change, expected) in [
        (json!({}), json!(["Baseline", ["exp/7", "lr:1e-4"], "one\ntwo"])),
        (json!({ "name": "B", "remove_tags": ["exp/7"] }), json!(["B", ["lr:1e-4"], "one\ntwo"])),
        (json!({ "add_tags": ["x"], "notes": null }), json!(["B", ["lr:1e-4", "x"], null])),
        (json!({ "name": null, "tags": ["y"] }), json!([null, ["y"], null])),
        (json!({ "tags": null }), json!([null, [], null])),
    ] {
        let reply = patch(&server, run, change.clone()).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert_eq!(shown(&reply.json()), expected, "{change}");
        assert_eq!(shown(&server.get(&path).await.json()), expected, "{change}");
    }
    let after = server.get(&path).await.json();
    let rest = |view: &Value| {
        let mut fields = view.as_object().unwrap().clone();
        fields.retain(|name, _| {
            !["name", "tags", "notes", "eta_seconds", "start_delay_seconds"].contains(&name.as_str())
        });
        fields
    };
    assert_eq!(rest(&after), rest(&before), "nothing else changes");
    assert_eq!(server.get(&format!("{path}/events?cursor=")).await.json()["events"], events);

    let over = server.finished_run(&[Outcome::Correct]).await;
    let reply = patch(&server, over, json!({ "notes": "read again" })).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["notes"]), (200, &json!("read again")));
    assert_eq!(server.ask("DELETE", &format!("/api/runs/{over}"), &[], "").await.status, 200);
    assert_eq!(patch(&server, over, json!({ "notes": "too late" })).await.status, 404);
}

#[tokio::test]
async fn a_change_that_is_refused_changes_nothing() {
    let server = Server::local().await;
    let run = make(&server, json!({ "name": "a", "tags": ["t"] })).await;
    for change in [
        json!({ "name": "b", "tags": ["two words"] }),
        json!({ "name": "b", "samples": 2 }),
        json!({ "name": "b", "add_tags": (0..16).map(|n| n.to_string()).collect::<Vec<_>>() }),
        json!(["name"]),
    ] {
        let reply = patch(&server, run, change.clone()).await;
        assert_eq!(reply.status, 422, "{change}: {}", reply.text);
    }
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(shown(&view), json!(["a", ["t"], null]));
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let server = Server::local().await;
    let run = make(&server, json!({})).await;
    let changes = (0..8).map(|n| patch(&server, run, json!({ "add_tags": [format!("t{n}")] })));
    for reply in futures_util::future::join_all(changes).await {
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    let mut tags: Vec<&str> =
        view["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap()).collect();
    tags.sort_unstable();
    assert_eq!(tags, ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"]);
}

#[tokio::test]
async fn an_order_with_other_labels_is_another_order() {
    let server = Server::local().await;
    let key = [("idempotency-key", "k1")];
    let first = server.order("/api/runs", &key, &order(json!({ "name": "a" }))).await;
    assert_eq!(first.status, 201);
    let again = server.order("/api/runs", &key, &order(json!({ "name": "a" }))).await;
    assert_eq!((again.status.as_u16(), &again.json()["id"]), (200, &first.json()["id"]));
    assert_eq!(server.order("/api/runs", &key, &order(json!({ "name": "b" }))).await.status, 422);
}

#[tokio::test]
async fn runs_are_listed_by_tag_and_name() {
    let server = Server::local().await;
    let mut tagged = Vec::new();
    for n in 0..5 {
        tagged.push(
            make(&server, json!({ "name": format!("Sweep {n}"), "tags": ["a/b", "x"] })).await.to_string(),
        );
        make(&server, json!({ "name": "other", "tags": ["a"] })).await;
    }
    tagged.reverse();
    assert_eq!(list(&server, "tag=a%2Fb&limit=2").await, (tagged[..2].to_vec(), 5));
    let page = server.get("/api/runs?tag=a%2Fb&limit=2&offset=2").await.json();
    assert_eq!((&page["total"], &page["next_offset"]), (&json!(5), &json!(4)));
    assert_eq!(list(&server, "tag=a%2Fb&limit=2&offset=4").await, (tagged[4..].to_vec(), 5));
    assert_eq!(list(&server, "tag=A/B").await, (vec![], 0), "tags are compared as they are");
    assert_eq!(list(&server, "tag=b").await.1, 0, "and as a whole");
    assert_eq!(list(&server, "name=sWEEP&tag=x").await, (tagged.clone(), 5));
    assert_eq!(list(&server, "name=eep%203").await, (vec![tagged[1].clone()], 1));
    assert_eq!(list(&server, "name=sweep&tag=a").await.1, 0, "both apply");
    assert_eq!(list(&server, "tag=x,a%2Fb,%20x").await, (tagged.clone(), 5), "all tags apply");
    assert_eq!(list(&server, "tag=x,a").await.1, 0);
    assert_eq!(list(&server, "name=&tag=").await.1, 10, "empty filters are none");

    let newest: RunId = tagged[0].parse().unwrap();
    server.post(&format!("/api/runs/{newest}/cancel"), &[]).await;
    assert_eq!(list(&server, "tag=x&status=canceled").await, (vec![tagged[0].clone()], 1));
    assert_eq!(list(&server, "tag=x&status=queued").await.1, 4);
    assert_eq!(patch(&server, newest, json!({ "remove_tags": ["x"], "name": "renamed" })).await.status, 200);
    assert_eq!(list(&server, "tag=x").await, (tagged[1..].to_vec(), 4));
    assert_eq!(list(&server, "name=RENAMED").await, (vec![tagged[0].clone()], 1));
    server.ask("DELETE", &format!("/api/runs/{newest}"), &[], "").await;
    assert_eq!(list(&server, "tag=a%2Fb").await, (tagged[1..].to_vec(), 4));
    assert_eq!(list(&server, "name=renamed").await.1, 0);
}
