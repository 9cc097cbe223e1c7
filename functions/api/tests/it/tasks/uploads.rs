//! Archives that are sent to the object store first.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, Bytes};
use bench_domain::Code;
use bench_state::access::AccessKind;
use bench_tasks::ARCHIVE_BYTES_MAX;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::support::{form, task_zip};
use crate::schema::assert_fits;
use crate::server::Server;

fn announcement(zip: &[u8]) -> serde_json::Value {
    let digits: String = Sha256::digest(zip).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "bytes": zip.len(), "sha256": digits })
}

#[tokio::test]
async fn a_task_is_made_of_an_upload() {
    let server = Server::with(true, &[], |config| config.direct_uploads = true).await;
    let zip = task_zip("x", &[]);
    let reply = server.order("/api/tasks/uploads", &[], &announcement(&zip)).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let upload = reply.json();
    let key = upload["key"].as_str().unwrap();
    assert!(upload["upload_url"].as_str().unwrap().contains(key) && upload["expires"].is_string());
    assert_eq!(upload["method"], "PUT");
    let body =
        json!({ "upload": key, "name": "big", "agent": "oracle", "num_runs": 2, "file_name": "../big.zip" });
    let missing = server.order("/api/tasks", &[], &body).await;
    assert_eq!((missing.status.as_u16(), missing.code()), (404, Some(Code::UploadNotFound)));
    let object = format!("uploads/local/{key}");
    server.api.blobs.put(&object, zip.clone().into(), "application/zip").await.unwrap();
    let task = server.order("/api/tasks", &[], &body).await;
    assert_eq!(task.status, 200, "{}", task.text);
    let task = task.json();
    assert_eq!(
        (&task["name"], &task["num_runs"], &task["original_filename"]),
        (&json!("big"), &json!(2), &json!("../big.zip"))
    );
    assert!(server.api.blobs.head(&object).await.unwrap().is_none(), "the upload is deleted after its use");
    let again = server.order("/api/tasks", &[], &body).await;
    assert_eq!(again.status, 404);

    server.api.blobs.put(&object, b"no archive".to_vec().into(), "application/zip").await.unwrap();
    let refused = server.order("/api/tasks", &[], &body).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (400, Some(Code::TaskRefused)));
    for key in ["../../x", "task-", "task-../x", "verify-3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", ""] {
        let reply = server.order("/api/tasks", &[], &json!({ "upload": key, "name": "x" })).await;
        assert_eq!(reply.status, 404, "{key}: {}", reply.text);
    }
    let problems = server.order("/api/tasks", &[], &json!({ "num_runs": 0, "nme": "x" })).await.problems();
    assert_eq!(problems, ["missing", "missing", "greater_than_equal", "extra_forbidden"]);
}

#[tokio::test]
async fn announcements_are_checked() {
    let server = Server::with(true, &[], |config| config.direct_uploads = true).await;
    for (body, kinds) in [
        (json!({}), vec!["missing", "missing"]),
        (json!({ "bytes": 104_857_601_u64, "sha256": "0".repeat(64) }), vec!["less_than_equal"]),
        (json!({ "bytes": 1, "sha256": "xyz" }), vec!["value_error"]),
    ] {
        assert_eq!(server.order("/api/tasks/uploads", &[], &body).await.problems(), kinds, "{body}");
    }
    let none = Server::local().await.order("/api/tasks/uploads", &[], &announcement(b"x")).await;
    assert_eq!((none.status.as_u16(), none.code()), (404, Some(Code::UploadsNotOffered)));
}

#[tokio::test]
async fn an_upload_belongs_to_its_caller() {
    let server = Server::with(false, &[], |config| config.direct_uploads = true).await;
    let mut owners = Vec::new();
    for key in ["key-a", "key-b"] {
        owners.push(server.list_with(AccessKind::Key, key, |entry| entry.tasks = true).await.owner);
    }
    let (a, b) = ([("authorization", "Bearer key-a")], [("authorization", "Bearer key-b")]);
    let zip = task_zip("x", &[]);
    let key = server.order("/api/tasks/uploads", &a, &announcement(&zip)).await.json()["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let object = format!("uploads/key-{}/{key}", owners[0]);
    server.api.blobs.put(&object, zip.into(), "application/zip").await.unwrap();
    let body = json!({ "upload": key, "name": "x" });
    assert_eq!(server.order("/api/tasks", &b, &body).await.status, 404);
    assert_eq!(server.order("/api/tasks", &a, &body).await.status, 200);
}

/// Archives have their own limit, not that of other request bodies, which is 2 MB.
#[tokio::test]
async fn an_archive_of_some_megabytes_is_accepted() {
    let server = Server::local().await;
    // Text that doesn't compress: digits of a generator.
    let mut number = 1_u64;
    let noise: String = (0..5_000_000)
        .map(|_| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b' ' + u8::try_from((number >> 33) % 95).unwrap())
        })
        .collect();
    let zip = task_zip("x", &[("fix-it/environment/noise.txt", &noise)]);
    assert!(zip.len() > 3_000_000, "{}", zip.len());
    let reply = server.upload("name=large&agent=oracle", &[], &zip).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

const PIECE_BYTES: u64 = 1 << 20;

/// Returns a form of unknown length with a file of so many pieces and bytes, and the number of pieces that were read.
fn streamed_form(pieces: u64, bytes: usize) -> (Body, Arc<AtomicU64>) {
    let read = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&read);
    let whole = form("file", Some("t.zip"), &vec![b'x'; bytes]);
    let start = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    let (head, rest) = whole.split_at(start);
    let (head, rest) = (Bytes::copy_from_slice(head), Bytes::copy_from_slice(rest));
    let piece = Bytes::from(vec![b'x'; usize::try_from(PIECE_BYTES).unwrap()]);
    let pieces = stream::iter(0..pieces).map(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        piece.clone()
    });
    let all = stream::iter([head]).chain(pieces).chain(stream::iter([rest]));
    (Body::from_stream(all.map(Ok::<_, Infallible>)), read)
}

/// A client that streams an archive announces no length.
#[tokio::test]
async fn an_archive_of_unknown_length_is_refused_while_it_is_read() {
    let server = Server::local().await;
    let most = ARCHIVE_BYTES_MAX / PIECE_BYTES;
    for path in ["/api/tasks?name=x", "/api/tasks/check"] {
        // A byte too many for the archive, and an endless body.
        for (pieces, bytes) in [(most, 1), (100 * most, 0)] {
            let (body, read) = streamed_form(pieces, bytes);
            let reply = server.send_form(path, &[], body).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (400, Some(Code::TaskRefused)),
                "{}",
                reply.text
            );
            assert_eq!(reply.json()["refusal"]["code"], "archive_too_large");
            assert_eq!(reply.detail(), "File too large. Maximum size is 100MB");
            // A piece may be on its way when the limit is reached.
            let read = read.load(Ordering::SeqCst);
            assert!((most..=most + 1).contains(&read), "{path}: {read} MiB of {pieces} were read");
        }
    }
    assert_eq!(server.get("/api/tasks?all=true").await.json(), json!([]));
}

#[tokio::test]
async fn the_answer_names_an_earlier_task_with_the_same_files() {
    let server = Server::local().await;
    let zip = task_zip("x", &[]);
    let first = server.upload("name=a&agent=oracle", &[], &zip).await.json();
    assert_eq!(first["same_files_as"], Value::Null);
    // The file name and what the uploader says differ, the files don't.
    let again = server.upload("name=b&agent=nop", &[], &zip).await.json();
    assert_eq!((&again["id"], &again["same_files_as"]), (&json!(2), &json!(1)));
    let other = server.upload("name=c", &[], &task_zip("y", &[])).await.json();
    assert_eq!(other["same_files_as"], Value::Null);
    let document = server.get("/openapi.json").await.json();
    assert_fits(&document, "AddedTask", &again);
}

/// Nobody learns which files others have uploaded.
#[tokio::test]
async fn tasks_of_others_are_not_named() {
    let server = Server::with(false, &[], |config| config.direct_uploads = true).await;
    for key in ["key-a", "key-b"] {
        server.list_with(AccessKind::Key, key, |entry| entry.tasks = true).await;
    }
    let zip = task_zip("x", &[]);
    for (key, expected) in [("key-a", Value::Null), ("key-b", Value::Null), ("key-b", json!(2))] {
        let key = format!("Bearer {key}");
        let task = server.upload("name=x", &[("authorization", &key)], &zip).await.json();
        assert_eq!(task["same_files_as"], expected, "{task}");
    }
}

#[tokio::test]
async fn keys_without_effect_are_warned_of() {
    let server = Server::local().await;
    let zip = task_zip("x", &[("fix-it/task.toml", "[agent]\ntimout_sec = 5\n[metadata]\nanything = 1\n")]);
    let expected = json!([
        "`task.toml` line 2: `agent.timout_sec` has no effect, since the format has no such key; did you mean `timeout_sec`?"
    ]);
    assert_eq!(server.upload("name=x", &[], &zip).await.json()["warnings"], expected);
    let checked = server.send_form("/api/tasks/check", &[], form("file", Some("x.zip"), &zip)).await.json();
    assert_eq!(checked["warnings"], expected);
    let document = server.get("/openapi.json").await.json();
    assert_fits(&document, "CheckedTask", &checked);
}

/// `bench run --task` stores tasks of which nobody orders episodes here.
#[tokio::test]
async fn tasks_that_are_stored_for_a_run_are_in_no_list_and_no_count() {
    let server = Server::local().await;
    let zip = task_zip("x", &[]);
    let stored = server.upload("name=a&agent=oracle&listed=false", &[], &zip).await.json();
    assert_eq!(stored["listed"], false);
    assert_eq!(server.get("/api/tasks").await.json(), json!([]));
    assert_eq!(server.get("/api/tasks?status=pending").await.json(), json!([]));
    assert_eq!(server.get("/api/stats").await.json()["tasks"]["total"], 0);
    let all = server.get("/api/tasks?all=true").await.json();
    assert_eq!(
        (&all[0]["id"], &all[0]["listed"], all.as_array().unwrap().len()),
        (&json!(1), &json!(false), 1)
    );
    // It can be ordered, shown and removed like all others, and added to the lists.
    let run = server.order("/api/runs", &[], &json!({ "tasks": [1], "agent": "oracle" })).await;
    assert_eq!(run.status, 201, "{}", run.text);
    assert_eq!(server.task_view(1).await["name"], "a");
    let added = server.upload("name=a&agent=oracle", &[], &zip).await.json();
    assert_eq!((&added["same_files_as"], &added["listed"]), (&json!(1), &json!(true)));
    assert_eq!(server.get("/api/tasks").await.json()[0]["id"], 2);
    assert_eq!(server.upload("name=a&listed=maybe", &[], &zip).await.problems(), ["bool_type"]);
}

#[tokio::test]
async fn tasks_of_agents_that_ask_no_model_have_none() {
    let server = Server::local().await;
    for (agent, expected) in [("oracle", ""), ("nop", ""), ("bash", "a/b"), ("claude-code", "a/b")] {
        let task =
            server.upload(&format!("name=x&model=a/b&agent={agent}"), &[], &task_zip("x", &[])).await.json();
        assert_eq!(task["model"], expected, "{agent}");
        assert_eq!(server.task_view(task["id"].as_u64().unwrap()).await["model"], expected);
    }
}
