//! Terminal tasks, from their upload to their removal. The suite's sandbox host has no container engine.

use std::io::{Cursor, Write};

use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::call::{Caller, number, sha256_hex};
use crate::target::Target;

pub(super) async fn uploaded_ordered_and_removed(target: &Target) {
    let small = task_archive("Count the lines.");
    let task = target.send(upload_form(target, Caller::Admin, &small)).await.expect(200);
    let task = format!("/api/tasks/{}", number(&task, "id"));
    target.send(upload_form(target, Caller::Nobody, &small)).await.detail(401);

    let large = task_archive("Count the words.");
    let order = json!({ "bytes": large.len(), "sha256": sha256_hex(&large) });
    let place = target.post("/api/tasks/uploads", Caller::Admin, &order).await.expect(200);
    target.put_upload(&place["upload_url"], &place["headers"], large).await;
    let named = json!({ "upload": place["key"], "name": "words", "agent": "nop" });
    let second = target.post("/api/tasks", Caller::Admin, &named).await.expect(200);
    let listed = target.get_by("/api/tasks?limit=100", Caller::Admin).await.expect(200);
    let ids: Vec<u64> = listed.as_array().unwrap().iter().map(|task| number(task, "id")).collect();
    assert!(ids.contains(&number(&second, "id")), "{listed:#}");
    assert_eq!(target.download(Caller::Admin, &format!("{task}/archive")).await, small);

    let order = json!({ "tasks": [number(&second, "id")], "agent": "nop", "samples": 2 });
    let run = target.order(Caller::Admin, order).await;
    let failed = target.wait_for_end(&run, "failed").await;
    let why = failed["error_message"].as_str().unwrap_or_default();
    assert!(why.contains("container engine"), "{failed:#}");

    custom_agent(target, number(&second, "id")).await;

    for task in [task, format!("/api/tasks/{}", number(&second, "id"))] {
        target.delete(&task, Caller::Admin).await.expect(200);
        target.get_by(&task, Caller::Admin).await.detail(404);
    }
}

/// Uploads an agent, orders an episode of it, and removes it.
async fn custom_agent(target: &Target, task: u64) {
    let archive = archive(&[("agent.toml", "name = \"tiny\"\nrun = \"true\"\n")]);
    let form = Form::new().part("file", Part::bytes(archive.clone()).file_name("tiny.zip"));
    let upload = target.request(Method::POST, "/api/agents", Caller::Admin).multipart(form);
    let agent = target.send(upload).await.expect(200);
    let id = agent["id"].as_str().unwrap();
    let order = json!({
        "tasks": [task], "agent": "custom", "agent_options": { "content_hash": id }, "samples": 1,
    });
    let run = target.order(Caller::Admin, order).await;
    let failed = target.wait_for_end(&run, "failed").await;
    let why = failed["error_message"].as_str().unwrap_or_default();
    assert!(why.contains("container engine"), "{failed:#}");
    let agent = format!("/api/agents/custom/{id}");
    assert_eq!(target.download(Caller::Admin, &format!("{agent}/archive")).await, archive);
    target.delete(&agent, Caller::Admin).await.expect(200);
    target.get_by(&agent, Caller::Admin).await.detail(404);
}

/// Returns a request that uploads an archive as a form.
fn upload_form(target: &Target, caller: Caller<'_>, archive: &[u8]) -> RequestBuilder {
    let form = Form::new().part("file", Part::bytes(archive.to_vec()).file_name("lines.zip"));
    target.request(Method::POST, "/api/tasks?name=lines&agent=nop", caller).multipart(form)
}

/// Returns the archive of a task with this instruction.
fn task_archive(instruction: &str) -> Vec<u8> {
    archive(&[
        ("lines/task.toml", ""),
        ("lines/instruction.md", instruction),
        ("lines/environment/Dockerfile", "FROM debian:bookworm\n"),
        ("lines/tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n"),
        ("lines/solution/solve.sh", "true\n"),
    ])
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        archive.start_file(*path, SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
