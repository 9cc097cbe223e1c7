//! Compact index of a benchmark's samples.

use crate::schema::assert_fits;
use crate::server::Server;
use bench_blobs::{IndexOf, IndexRow, IndexWriter};
use bench_domain::{Code, Outcome, Position, RunId};
use bench_state::ItemIndex;
use serde_json::json;

/// Writes an index of two rows for a closed benchmark, as the finisher does before it closes it.
async fn write(server: &Server, run: RunId, name: &str) {
    let state = &server.api.state;
    let found = state.run_with_benchmarks(run).await.unwrap().unwrap();
    let record = found.benchmark(name).unwrap();
    let of = IndexOf { run, generation: 1, benchmark: &record.name, items: 2 };
    let mut writer = IndexWriter::new(&server.api.blobs, of);
    for item in 0..2 {
        let row = IndexRow {
            position: Position { item, sample: 0 },
            item_id: "7",
            source_id: Some("own-7"),
            group: Some("law"),
            outcome: Some(Outcome::Correct),
            score: Some(1.0),
            extracted: Some("C"),
            latency_ms: Some(200),
            input_tokens: Some(100),
            output_tokens: Some(10),
            attempts: 1,
            item_hash: Some("0123456789abcdef"),
        };
        writer.add(&row).await.unwrap();
    }
    assert_eq!(writer.finish().await.unwrap(), 1);
    let index = ItemIndex { generation: 1, parts: 1, items: 2 };
    assert!(state.note_item_index(run, record, Some(index)).await.unwrap());
}

#[tokio::test]
async fn an_index_is_read_by_its_parts() {
    let server = Server::local().await;
    let run = server.finished_run(&[Outcome::Correct; 2]).await;
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(view["benchmarks"][0]["index"], json!(null));
    let path = format!("/api/runs/{run}/items/index?benchmark=mmlu_pro");
    assert_eq!(server.get(&path).await.code(), Some(Code::NoItemIndex));
    write(&server, run, "mmlu_pro").await;
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(view["benchmarks"][0]["index"], json!({ "parts": 1, "items": 2 }));
    let reply = server.get(&path).await;
    assert_eq!(reply.headers["content-type"], "application/json");
    assert!(!reply.headers.contains_key("content-encoding"));
    let index = reply.json();
    assert_eq!(index["rows"][1], json!([1, 0, "7", "own-7", 0, 0, 1, "C", 200, 100, 10, 1, "0123456789ab"]));
    assert_eq!((&index["groups"], &index["hidden"]), (&json!(["law"]), &json!(false)));
    let document = server.get("/openapi.json").await.json();
    assert_fits(&document, "ItemIndexView", &index);
    assert_eq!(server.get(&format!("{path}&part=1")).await.problems(), ["value_error"]);
    assert_eq!(server.get(&format!("/api/runs/{run}/items/index")).await.problems(), ["missing"]);
}

#[tokio::test]
async fn answers_of_a_gated_dataset_are_for_its_owner() {
    let server = Server::deployed().await;
    let key = ("authorization", "Bearer key-a");
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["gpqa_diamond"], "demo": true });
    let reply = server.order("/api/runs", &[key], &body).await;
    let run: RunId = reply.json()["id"].as_str().unwrap().parse().unwrap();
    server.plan_from("hub", run, "gpqa_diamond", 2, 1).await;
    for item in 0..2 {
        server.commit(run, "gpqa_diamond", Position { item, sample: 0 }, Outcome::Correct).await;
    }
    server.close(run).await;
    write(&server, run, "gpqa_diamond").await;
    let path = format!("/api/runs/{run}/items/index?benchmark=gpqa_diamond");
    let accept = ("accept-encoding", "gzip");
    let others = server.ask("GET", &path, &[accept], "").await.json();
    assert_eq!((&others["hidden"], &others["rows"][0][7]), (&json!(true), &json!(null)));
    let own = server.ask("GET", &path, &[key], "").await.json();
    assert_eq!((&own["hidden"], &own["rows"][0][7]), (&json!(false), &json!("C")));
}
