//! A sandbox host that speaks Sandy's protocol and starts no processes: every command is answered from a script.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::request::{Request, RequestKind, RunRequest};
use crate::script;

/// Time by which an answer about a running operation comes later than the caller asked, so that no call comes too early.
const LATE: Duration = Duration::from_millis(5);

/// A running host. Stops when it is dropped.
pub(crate) struct ScriptedHost {
    address: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// Sandboxes and their operations.
struct Shared {
    /// Number of answers that each operation is running.
    polls: u32,
    /// Answers so far that an operation is running, by sandbox and job.
    sandboxes: Mutex<HashMap<String, HashMap<String, u32>>>,
    created: AtomicU64,
    calls: AtomicU64,
    /// First command that the host could not answer.
    problem: Mutex<Option<String>>,
}

type Answer = (StatusCode, Json<Value>);

impl ScriptedHost {
    /// Starts a host on a free port, on which every operation is running for the first `polls` calls about it.
    pub(crate) async fn start(polls: u32) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            polls,
            sandboxes: Mutex::default(),
            created: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            problem: Mutex::default(),
        });
        let routes = Router::new()
            .route("/api/resources", get(async || Json(json!({ "canCreateSandbox": true }))))
            .route("/api/sandboxes", post(create))
            .route("/api/sandboxes/{id}", get(exists))
            .route("/api/sandboxes/{id}/exec", post(exec))
            .route("/api/sandboxes/{id}/files/write", post(write))
            .route("/api/sandboxes/{id}/terminate", post(terminate))
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            // Ends with the task only.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, shared, task })
    }

    /// Returns the value of `SANDY_BASE_URL`.
    pub(crate) fn base_url(&self) -> &str {
        &self.address
    }

    /// Returns the number of commands that were run.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// Returns the number of sandboxes that weren't ended.
    pub(crate) fn open_sandboxes(&self) -> usize {
        self.shared.sandboxes().len()
    }

    /// Returns a sentence about the first command that the script has no answer to.
    pub(crate) fn problem(&self) -> Option<String> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ScriptedHost {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn sandboxes(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, u32>>> {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call about an operation. Returns true if the operation is still running.
    fn poll(&self, sandbox: &str, job: &str) -> bool {
        let mut sandboxes = self.sandboxes();
        let Some(jobs) = sandboxes.get_mut(sandbox) else { return false };
        let polls = jobs.entry(job.to_owned()).or_default();
        let is_running = *polls < self.polls;
        *polls += u32::from(is_running);
        is_running
    }
}

async fn create(State(shared): State<Arc<Shared>>) -> Answer {
    let number = shared.created.fetch_add(1, Ordering::Relaxed) + 1;
    let id = format!("sb-{number}");
    shared.sandboxes().insert(id.clone(), HashMap::new());
    (StatusCode::CREATED, Json(json!({ "sandboxId": id })))
}

async fn exists(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer {
    match shared.sandboxes().contains_key(&id) {
        true => (StatusCode::OK, Json(json!({ "sandboxId": id }))),
        false => not_found(),
    }
}

/// Receives a file. It is dropped, since nothing reads it again.
async fn write(State(shared): State<Arc<Shared>>, Path(id): Path<String>, _body: Bytes) -> Answer {
    match shared.sandboxes().contains_key(&id) {
        true => (StatusCode::OK, Json(json!({ "success": true }))),
        false => not_found(),
    }
}

async fn terminate(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer {
    match shared.sandboxes().remove(&id) {
        Some(_) => (StatusCode::OK, Json(json!({ "success": true }))),
        None => not_found(),
    }
}

fn not_found() -> Answer {
    (StatusCode::NOT_FOUND, Json(json!({ "detail": "Sandbox not found" })))
}

async fn exec(State(shared): State<Arc<Shared>>, Path(id): Path<String>, Json(body): Json<Value>) -> Answer {
    if !shared.sandboxes().contains_key(&id) {
        return not_found();
    }
    shared.calls.fetch_add(1, Ordering::Relaxed);
    match output(&shared, &id, body["command"].as_str().unwrap_or_default()).await {
        Ok(stdout) => (StatusCode::OK, Json(json!({ "stdout": stdout, "stderr": "", "exitCode": 0 }))),
        Err(problem) => {
            let problem = format!("{problem:#}");
            let detail = Json(json!({ "detail": problem }));
            shared.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
            (StatusCode::INTERNAL_SERVER_ERROR, detail)
        }
    }
}

async fn output(shared: &Shared, sandbox: &str, command: &str) -> anyhow::Result<String> {
    let Request { mark, kind } = Request::parse(command)?;
    Ok(match kind {
        RequestKind::Unpack => format!("{mark} ready\n"),
        RequestKind::Stop => format!("{mark} stopped\n"),
        RequestKind::Probe => script::query_answer(&mark, &script::facts()),
        RequestKind::Leftovers => script::query_answer(&mark, &json!({ "environments": [] })),
        RequestKind::Remove => script::query_answer(&mark, &json!({ "removed": 1 })),
        RequestKind::Run(run) => operation(shared, sandbox, &mark, &run).await?,
    })
}

async fn operation(shared: &Shared, sandbox: &str, mark: &str, run: &RunRequest) -> anyhow::Result<String> {
    if shared.poll(sandbox, &run.job) {
        tokio::time::sleep(run.wait + LATE).await;
        return Ok(script::running_answer(mark));
    }
    let number = sandbox.trim_start_matches("sb-").parse()?;
    script::over_answer(mark, run, number)
}
