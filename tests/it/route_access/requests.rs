//! A valid request to each route.

use std::io::{Cursor, Write};

use bench_domain::{RunId, Visibility};
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::site::Site;

const BOUNDARY: &str = "-----boundary";
const JSON: &str = "application/json";

pub(super) struct Request {
    pub(super) method: String,
    pub(super) uri: String,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    fn json(method: &str, uri: impl Into<String>, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self { method: method.to_owned(), uri: uri.into(), content_type: JSON.to_owned(), body }
    }

    fn empty(method: &str, uri: impl Into<String>) -> Self {
        Self { method: method.to_owned(), uri: uri.into(), content_type: String::new(), body: Vec::new() }
    }

    /// Sends a file as a form.
    fn form(uri: &str, name: &str, file: &[u8]) -> Self {
        let mut body = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             content-type: application/zip\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(file);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        Self { method: "POST".to_owned(), uri: uri.to_owned(), content_type, body }
    }
}

/// Visibility of the run that a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Public,
    Unlisted,
    Private,
    /// There is no such run.
    Missing,
}

impl Content {
    const fn visibility(self) -> Option<Visibility> {
        match self {
            Self::Public => Some(Visibility::Public),
            Self::Unlisted => Some(Visibility::Unlisted),
            Self::Private => Some(Visibility::Private),
            Self::Missing => None,
        }
    }
}

/// Things of the owner that a request is about: new ones where the request may change them.
#[derive(Debug, Default)]
pub(super) struct Target {
    run: String,
    schedule: String,
    task: String,
    episode: String,
    agent: String,
    entry: String,
    code_task: String,
}

fn order_body() -> Value {
    json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "subset_count": 1, "demo": true })
}

fn schedule_body(site: &Site) -> Value {
    let mut body = order_body();
    body["name"] = format!("schedule {}", site.number()).into();
    body["cron"] = "0 3 1 1 *".into();
    body["time_zone"] = "UTC".into();
    body
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        archive.start_file(*path, SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn task_form(uri: &str) -> Request {
    let files = [
        ("lines/task.toml", ""),
        ("lines/instruction.md", "Count the lines."),
        ("lines/environment/Dockerfile", "FROM debian:bookworm\n"),
        ("lines/tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n"),
        ("lines/solution/solve.sh", "true\n"),
    ];
    Request::form(uri, "lines.zip", &archive(&files))
}

fn agent_form(site: &Site) -> Request {
    let config = format!("name = \"tiny-{}\"\nrun = \"true\"\n", site.number());
    Request::form("/api/agents", "tiny.zip", &archive(&[("agent.toml", &config)]))
}

fn id_of(made: &Value) -> String {
    match &made["id"] {
        Value::String(id) => id.clone(),
        id => id.to_string(),
    }
}

impl Target {
    pub(super) async fn new(site: &Site, method: &str, path: &str, content: Content) -> Self {
        let mut target = Self::default();
        if path.starts_with("/api/runs/{run_id}") || path.starts_with("/api/admin/runs/") {
            let run = match content.visibility() {
                None => RunId::random(),
                Some(visibility) if path.ends_with("/cancel") => site.queued(visibility).await,
                Some(visibility) if path.ends_with("/requeue") || method == "DELETE" => {
                    site.canceled(visibility).await
                }
                Some(visibility) => site.finished(visibility),
            };
            target.run = run.to_string();
        }
        if path.contains("{schedule_id}") {
            let made = Request::json("POST", "/api/schedules", &schedule_body(site));
            target.schedule = id_of(&site.as_owner(made).await);
        }
        if path.starts_with("/api/tasks/{task_id}") {
            target.task =
                id_of(&site.as_owner(task_form("/api/tasks?name=lines&agent=nop&num_runs=1")).await);
            if path.contains("{run_id}") || path.ends_with("/retry") {
                let start = format!("/api/tasks/{}/execute-async", target.task);
                site.as_owner(Request::json("POST", start, &json!({}))).await;
                let episodes = format!("/api/tasks/{}/runs", target.task);
                target.episode = id_of(&site.as_owner(Request::empty("GET", episodes)).await[0]);
            }
            if path.ends_with("/retry") {
                let runs = format!("/api/runs?task={}", target.task);
                let run = id_of(&site.as_owner(Request::empty("GET", runs)).await["runs"][0]);
                site.as_owner(Request::json("POST", format!("/api/runs/{run}/cancel"), &json!({}))).await;
            }
        }
        if path.starts_with("/api/benchmarks/") {
            let listed = site.as_owner(Request::empty("GET", "/api/benchmarks/code_lab/tasks")).await;
            target.code_task = listed["tasks"][0]["task_id"].as_str().unwrap().to_owned();
        }
        if path.contains("{agent_id}") {
            target.agent = id_of(&site.as_owner(agent_form(site)).await);
        }
        if path.contains("{entry}") {
            let body = json!({ "name": format!("entry {}", site.number()) });
            target.entry = id_of(&site.as_admin(Request::json("POST", "/api/admin/access", &body)).await);
        }
        target
    }
}

/// Returns a valid request to a route.
pub(super) fn request_to(site: &Site, method: &str, path: &str, target: &Target) -> Request {
    let is_of_task = path.starts_with("/api/tasks/");
    let uri = path
        .replace("{run_id}", if is_of_task { &target.episode } else { &target.run })
        .replace("{other_id}", &site.finished(Visibility::Public).to_string())
        .replace("{schedule_id}", &target.schedule)
        .replace("{task_id}", if is_of_task { &target.task } else { &target.code_task })
        .replace("{agent_id}", &target.agent)
        .replace("{entry}", &target.entry)
        .replace("{benchmark_name}", if path.starts_with("/api/runs/") { "mmlu_pro" } else { "code_lab" });
    assert!(!uri.contains('{'), "{method} {path} has a parameter that this test doesn't know");
    if method == "GET" || method == "DELETE" {
        let query = match path.rsplit('/').next().unwrap_or_default() {
            "index" | "log" | "turns" | "artifacts" if path.starts_with("/api/runs/") => {
                "?benchmark=mmlu_pro"
            }
            "events" => "?cursor=0",
            _ => "",
        };
        return Request::empty(method, format!("{uri}{query}"));
    }
    match path {
        "/api/runs" | "/api/runs/api" | "/api/runs/estimate" => Request::json(method, uri, &order_body()),
        "/api/runs/{run_id}" => Request::json(method, uri, &json!({ "tags": ["walked"] })),
        "/api/schedules" => Request::json(method, uri, &schedule_body(site)),
        "/api/schedules/{schedule_id}" => Request::json(method, uri, &json!({ "enabled": true })),
        "/api/admin/access" => {
            Request::json(method, uri, &json!({ "name": format!("caller {}", site.number()) }))
        }
        "/api/tasks" => task_form("/api/tasks?name=lines&agent=nop"),
        "/api/tasks/check" => task_form("/api/tasks/check"),
        "/api/agents" => agent_form(site),
        "/api/exports/verify" => Request::form(path, "archive.zip", &archive(&[("a", "b")])),
        "/api/tasks/uploads" => Request::json(method, uri, &upload_body(&json!({}))),
        "/api/uploads" => Request::json(method, uri, &upload_body(&json!({ "purpose": "verify" }))),
        _ if path.ends_with("/execute") || path.ends_with("/execute-one") => {
            Request::json(method, format!("{uri}?timeout_seconds=1"), &json!({}))
        }
        _ => Request::json(method, uri, &json!({})),
    }
}

fn upload_body(more: &Value) -> Value {
    let mut body = json!({ "bytes": 10, "sha256": "0".repeat(64) });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}
