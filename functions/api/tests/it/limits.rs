//! Responses stay within API Gateway's size limit, whatever the runs contain.

use crate::server::{Reply, Server};
use bench_domain::{Outcome, Position, RunId};
use bench_state::{EventKind, NewEvent};
use bench_web::size::carried_text_bytes;
use serde_json::{Value, json};

/// Lambda's response limit, less the bytes around the body.
const CARRIED_MAX: usize = 6_291_456 - 64 * 1024;
const MIB: usize = 1024 * 1024;

/// Starts a server behind API Gateway: nothing is streamed.
async fn behind_gateway() -> Server {
    Server::with(true, &[], |config| config.streaming = false).await
}

#[track_caller]
fn fits(reply: &Reply) {
    assert_eq!(reply.status, 200, "{}", reply.text.chars().take(500).collect::<String>());
    let carried = carried_text_bytes(&reply.text);
    assert!(carried <= CARRIED_MAX, "{carried} bytes");
}

/// Creates a run whose samples have these answers.
async fn run_with(server: &Server, answers: &[String]) -> RunId {
    let run = server.run_of(&["mmlu_pro"]).await;
    server.plan(run, "mmlu_pro", answers.len() as u64, 1).await;
    for (item, answer) in answers.iter().enumerate() {
        let position = Position { item: u32::try_from(item).unwrap(), sample: 0 };
        server.commit_text(run, "mmlu_pro", position, Outcome::Correct, answer).await;
    }
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_long_answers_ends_early_and_none_is_lost() {
    let server = behind_gateway().await;
    // A text may grow when it is carried: each of these characters takes two bytes in JSON, and four in the
    // JSON text around it.
    let answers: Vec<String> = (0..12).map(|n| format!("{n}{}", "\"".repeat(600 * 1024))).collect();
    let run = run_with(&server, &answers).await;
    let path = format!("/api/runs/{run}/benchmarks/mmlu_pro");
    let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let reply = server.get(&format!("{path}?limit=500{cursor}")).await;
        fits(&reply);
        let page = reply.json()["items"].clone();
        for item in page["items"].as_array().unwrap() {
            assert_eq!(item["cut"], json!([]), "one alone fits");
            assert_eq!(item["body_url"], Value::Null);
            seen.push(item["response"].as_str().unwrap().to_owned());
        }
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(seen == answers, "every answer, whole and in order");
    assert!(pages > 2, "{pages} pages");
    // Streamed responses have no such limit.
    let whole = Server::local().await;
    let run = run_with(&whole, &answers).await;
    let reply = whole.get(&format!("/api/runs/{run}/benchmarks/mmlu_pro?limit=500")).await;
    assert_eq!(reply.json()["items"]["items"].as_array().unwrap().len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_is_too_large_is_cut_and_says_where_all_of_it_is() {
    let server = behind_gateway().await;
    let run = run_with(&server, &["ä".repeat(5 * MIB), "short".to_owned()]).await;
    let path = format!("/api/runs/{run}/benchmarks/mmlu_pro");
    let reply = server.get(&path).await;
    fits(&reply);
    let page = reply.json()["items"].clone();
    let items = page["items"].as_array().unwrap();
    assert_eq!((items.len(), &page["next_cursor"], &page["total"]), (1, &json!("1"), &json!(2)));
    let response = items[0]["response"].as_str().unwrap();
    assert!(response.len() > MIB && response.chars().all(|c| c == 'ä'), "{} bytes are left", response.len());
    assert_eq!(items[0]["cut"], json!(["response"]));
    let url = items[0]["body_url"].as_str().unwrap();
    assert!(url.contains("/bodies/") && url.contains("X-Amz-Signature="), "{url}");
    let next = server.get(&format!("{path}?cursor=1")).await.json();
    assert_eq!(
        (&next["items"]["items"][0]["response"], &next["items"]["items"][0]["cut"]),
        (&json!("short"), &json!([]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_long_lists_of_items_come_in_smaller_pages() {
    let server = behind_gateway().await;
    let items: Vec<String> = (0..390).map(|n| format!("{n:0>250}")).collect();
    let body =
        json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true, "items": items });
    for _ in 0..60 {
        assert_eq!(server.order("/api/runs", &[], &body).await.status, 201);
    }
    let (mut seen, mut offset) = (Vec::new(), 0);
    loop {
        let reply = server.get(&format!("/api/runs?limit=200&offset={offset}")).await;
        fits(&reply);
        let page = reply.json();
        assert_eq!(page["total"], 60);
        seen.extend(page["runs"].as_array().unwrap().iter().map(|run| run["id"].clone()));
        match page["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(seen.len(), 60);
    seen.sort_by_key(Value::to_string);
    seen.dedup();
    assert_eq!(seen.len(), 60, "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_answers_that_can_be_carried() {
    let server = behind_gateway().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    let state = &server.api.state;
    let text = "\"\\".repeat(50_000);
    for _ in 0..40 {
        let event = NewEvent::new(EventKind::RunStarted, "x").with_data(json!({ "text": text }));
        state.add_event(run, &event, bench_clock::now()).await.unwrap();
    }
    server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    let path = format!("/api/runs/{run}/events");
    let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let reply = server.get(&format!("{path}?limit=1000&cursor={cursor}")).await;
        fits(&reply);
        let page = reply.json();
        seen.extend(
            page["events"].as_array().unwrap().iter().map(|event| event["sequence"].as_u64().unwrap()),
        );
        cursor = page["cursor"].as_str().unwrap().to_owned();
        if page["done"] == true {
            break;
        }
    }
    let all: Vec<u64> = (1..=seen.len() as u64).collect();
    assert!(seen == all && seen.len() >= 42, "{seen:?}");
    // As a stream: it ends before it is too large, and resumes after the last event that the client saw.
    let (mut streamed, mut last) = (0, String::new());
    loop {
        let headers = [("last-event-id", last.as_str())];
        let headers = if last.is_empty() { &headers[..0] } else { &headers[..] };
        let reply = server.ask("GET", &path, headers, axum::body::Body::empty()).await;
        fits(&reply);
        let ids: Vec<&str> = reply.text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        streamed += ids.len();
        if reply.text.contains("event: done") {
            break;
        }
        assert!(reply.text.contains("retry: "));
        last = (*ids.last().unwrap()).to_owned();
    }
    assert_eq!(streamed, seen.len());
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_with_the_limit() {
    let server = Server::local().await;
    let reply = server.order("/api/runs", &[], &json!({ "model_id": "x".repeat(2 * MIB) })).await;
    assert_eq!(reply.status, 413);
    // Uploads are for archives, and not offered by every server.
    assert!(reply.detail().contains("1048576 bytes") && !reply.detail().contains("upload"), "{}", reply.text);
}
