//! Events as a stream and as pages.

use crate::server::Server;
use bench_domain::{Outcome, RunId};
use bench_state::{EventKind, NewEvent};
use serde_json::{Value, json};

struct Message {
    id: Option<String>,
    name: Option<String>,
    data: Value,
}

/// Returns the messages of a stream, without comments and `retry`.
fn messages(stream: &str) -> Vec<Message> {
    assert!(stream.ends_with("\n\n"));
    let blocks = stream.split_terminator("\n\n").filter(|block| block.contains("data: "));
    blocks
        .map(|block| {
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
            };
            let data = serde_json::from_str(&field("data").unwrap()).unwrap();
            Message { id: field("id"), name: field("event"), data }
        })
        .collect()
}

async fn run_with_many_events(server: &Server, count: u64) -> RunId {
    let run = server.finished_run(&[Outcome::Correct]).await;
    let state = &server.api.state;
    let one_time = bench_clock::now();
    let known = state.last_event(run).await.unwrap();
    for number in known..count {
        let event = NewEvent::new(EventKind::BenchmarkProgress, format!("Progress: {number}"))
            .with_data(json!({ "n": number }));
        state.add_event(run, &event, one_time).await.unwrap();
    }
    run
}

#[tokio::test]
async fn a_finished_run_streams_every_event_and_then_done() {
    let server = Server::local().await;
    let run = run_with_many_events(&server, 450).await;
    let reply = server.get(&format!("/api/runs/{run}/events")).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(reply.headers["cache-control"], "no-cache");
    let all = messages(&reply.text);
    assert_eq!(all.len(), 451);
    let (done, events) = all.split_last().unwrap();
    assert_eq!((done.name.as_deref(), &done.id, &done.data), (Some("done"), &None, &json!({})));
    for (number, event) in (1..).zip(events) {
        assert_eq!(event.name, None, "unnamed, for onmessage");
        assert_eq!(event.id.as_deref(), event.data["id"].as_str());
        assert_eq!(event.data["sequence"], number);
        for field in ["id", "event_type", "benchmark_name", "message", "data", "created_at"] {
            assert!(event.data.get(field).is_some(), "{field}");
        }
    }
    assert_eq!(events[0].data["event_type"], "run_created");

    // Events with equal times are not skipped, wherever the client resumes.
    let (id, rest) = (events[299].id.clone().unwrap(), 150);
    let path = format!("/api/runs/{run}/events");
    let by_query = server.get(&format!("{path}?Last-Event-ID={id}")).await;
    let by_header = server.ask("GET", &path, &[("last-event-id", &id)], "").await;
    let by_number = server.get(&format!("{path}?Last-Event-ID=300")).await;
    for reply in [by_query, by_header, by_number] {
        assert_eq!(messages(&reply.text).len(), rest + 1);
    }
    for unknown in ["3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "garbage", ""] {
        let reply = server.get(&format!("{path}?Last-Event-ID={unknown}")).await;
        assert_eq!(messages(&reply.text).len(), 451, "{unknown}");
    }
}

#[tokio::test]
async fn pages_show_every_event_once() {
    let server = Server::local().await;
    let run = run_with_many_events(&server, 25).await;
    let json_please = [("accept", "application/json")];
    let first = server.ask("GET", &format!("/api/runs/{run}/events?limit=10"), &json_please, "").await.json();
    assert_eq!((first["events"].as_array().unwrap().len(), &first["done"]), (10, &json!(false)));
    let mut cursor = first["cursor"].as_str().unwrap().to_owned();
    let mut seen = 10;
    loop {
        let page = server.get(&format!("/api/runs/{run}/events?limit=10&cursor={cursor}")).await.json();
        seen += page["events"].as_array().unwrap().len();
        cursor = page["cursor"].as_str().unwrap().to_owned();
        if page["done"] == true {
            break;
        }
    }
    assert_eq!(seen, 25);
    let after = server.get(&format!("/api/runs/{run}/events?cursor={cursor}")).await.json();
    assert_eq!(
        (&after["events"], &after["done"], &after["cursor"]),
        (&json!([]), &json!(true), &json!(cursor))
    );
}

#[tokio::test]
async fn an_open_stream_shows_what_happens_and_ends_with_the_run() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    let path = format!("/api/runs/{run}/events");
    let watching = server.get(&path);
    let acting = async {
        server.plan(run, "mmlu_pro", 1, 1).await;
        server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    };
    let (stream, ()) = futures_util::future::join(watching, acting).await;
    let kinds: Vec<String> = messages(&stream.text)
        .into_iter()
        .map(|message| {
            message.name.unwrap_or_else(|| message.data["event_type"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(kinds, ["run_created", "run_started", "run_canceled", "done"]);
}

#[tokio::test]
async fn where_waiting_is_paid_for_a_stream_ends_with_what_there_is() {
    let server = Server::with(true, &[], |config| config.streaming = false).await;
    let run = server.run_of(&["mmlu_pro"]).await;
    let reply = server.get(&format!("/api/runs/{run}/events")).await;
    assert_eq!(messages(&reply.text).len(), 1);
    assert!(reply.text.ends_with("retry: 3000\n\n"), "{}", reply.text);
    assert!(!reply.text.contains("event: done"));
}

/// Collects the events of a client that reconnects whenever a stream ends, until the run is over.
#[tokio::test]
async fn a_stream_that_ends_in_time_is_resumed_without_loss_or_repetition() {
    let soon = std::time::Duration::from_millis(30);
    let server = Server::with(true, &[], |config| config.stream_time = Some(soon)).await;
    let run = server.run_of(&["mmlu_pro"]).await;
    let path = format!("/api/runs/{run}/events");
    let (mut seen, mut last, mut streams) = (Vec::new(), None::<String>, 0);
    loop {
        streams += 1;
        assert!(streams < 1_000, "the stream does not get on: {seen:?}");
        let headers: Vec<(&str, &str)> = last.iter().map(|last| ("last-event-id", last.as_str())).collect();
        let reply = server.ask("GET", &path, &headers, "").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let mut received = messages(&reply.text);
        let is_done = received.pop_if(|message| message.name.as_deref() == Some("done")).is_some();
        last = received.last().and_then(|message| message.id.clone()).or(last);
        seen.extend(received.into_iter().map(|message| message.data["sequence"].as_u64().unwrap()));
        if is_done {
            break;
        }
        // The run is open, so only the time limit can have ended the stream.
        assert!(reply.text.ends_with("retry: 1000\n\n"), "{}", reply.text);
        match streams {
            1..=3 => {
                // More than a page of events with equal times, between two streams.
                for number in 0..250 {
                    let event = NewEvent::new(EventKind::BenchmarkProgress, format!("{streams}: {number}"));
                    server.api.state.add_event(run, &event, bench_clock::now()).await.unwrap();
                }
            }
            4 => assert_eq!(server.post(&format!("/api/runs/{run}/cancel"), &[]).await.status, 200),
            _ => {}
        }
    }
    let all: Vec<u64> = (1..=seen.len() as u64).collect();
    assert!(streams > 4 && seen.len() > 750 && seen == all, "{streams} streams: {seen:?}");
}
