//! A sandbox host that speaks Sandy's protocol and starts no processes: every command is answered from a script.
//!
//! Each sandbox has a terminal that shows what was typed, and runs commands by naming them. What an agent does there is
//! logged once per operation, as a host with durable operations does it once. An operation that is requested again must be
//! the same.

mod request;
mod script;
pub mod task;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use request::{Request, RequestKind, RunRequest};
pub use script::CHANGE;

/// Time by which an answer about a running operation comes later than the caller asked, so that no call comes too early.
const LATE: Duration = Duration::from_millis(5);

/// A running host. Stops when it is dropped.
pub struct ScriptedHost {
    address: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

type Observer = Box<dyn Fn(&'static str) + Send + Sync>;

/// Sandboxes and their operations.
struct Shared {
    /// Number of answers that each operation is running.
    polls: u32,
    /// Operations, by sandbox and job.
    sandboxes: Mutex<HashMap<String, HashMap<String, Requested>>>,
    created: AtomicU64,
    /// Number of requests for sandboxes for which there is no room.
    full: AtomicU64,
    calls: AtomicU64,
    /// First command that the host could not answer.
    problem: Mutex<Option<String>>,
    /// What agents did.
    acts: Mutex<Vec<Act>>,
    /// Observer of all requests.
    observer: OnceLock<Observer>,
    /// Operations of the runner and of agents that were asked for, with their sandboxes, in order, each once.
    jobs: Mutex<Vec<(String, String)>>,
    /// Operations during which their container ends.
    ends: Mutex<ContainerEnds>,
}

/// Operations during which their container ends.
#[derive(Default)]
struct ContainerEnds {
    /// End of the names of their jobs.
    job: &'static str,
    /// Number of those that are still to come.
    left: u64,
    /// Ends so far, by job and sandbox.
    ended: HashSet<(String, String)>,
}

/// An operation that was requested.
struct Requested {
    /// Answers so far that it is running.
    polls: u32,
    /// Hash of what was sent, by which another request under the same name is noticed.
    hash: u64,
}

/// An operation of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// Sandbox.
    pub sandbox: String,
    /// Name of the operation's job.
    pub job: String,
    /// What was typed, or the command.
    pub text: String,
    done: Value,
}

type Answer = (StatusCode, Json<Value>);

impl ScriptedHost {
    /// Starts a host on a free port, on which every operation is running for the first `polls` calls about it.
    pub async fn start(polls: u32) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            polls,
            sandboxes: Mutex::default(),
            created: AtomicU64::new(0),
            full: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            problem: Mutex::default(),
            acts: Mutex::default(),
            jobs: Mutex::default(),
            ends: Mutex::default(),
            observer: OnceLock::new(),
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
    pub fn base_url(&self) -> &str {
        &self.address
    }

    /// Returns the number of commands that were run.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// Calls a function at the beginning of each request, with the kind of the request. Only the first function is kept.
    pub fn watch(&self, observer: impl Fn(&'static str) + Send + Sync + 'static) {
        drop(self.shared.observer.set(Box::new(observer)));
    }

    /// Returns what agents did, in order.
    pub fn acts(&self) -> Vec<Act> {
        self.shared.acts().clone()
    }

    /// Returns the names of all operations' jobs, ordered by their first request.
    pub fn jobs(&self) -> Vec<String> {
        self.shared.jobs().iter().map(|(_, job)| job.clone()).collect()
    }

    /// Returns the names of the operations' jobs in each sandbox that has any, both ordered by their first request.
    pub fn jobs_by_sandbox(&self) -> Vec<Vec<String>> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for (sandbox, job) in self.shared.jobs().iter() {
            match all.iter_mut().find(|(known, _)| known == sandbox) {
                Some((_, jobs)) => jobs.push(job.clone()),
                None => all.push((sandbox.clone(), vec![job.clone()])),
            }
        }
        all.into_iter().map(|(_, jobs)| jobs).collect()
    }

    /// Returns the number of sandboxes so far.
    pub fn created(&self) -> u64 {
        self.shared.created.load(Ordering::Relaxed)
    }

    /// Has no room for the next sandboxes that are requested.
    pub fn fill(&self, requests: u64) {
        self.shared.full.store(requests, Ordering::Relaxed);
    }

    /// Ends the container during the next operations whose jobs have names that end like this.
    pub fn end_containers(&self, job: &'static str, times: u64) {
        *self.shared.ends() = ContainerEnds { job, left: times, ended: HashSet::new() };
    }

    /// Loses all sandboxes, as after a restart of the host.
    pub fn lose_all(&self) {
        self.shared.sandboxes().clear();
    }

    /// Returns the number of sandboxes that weren't ended.
    pub fn open_sandboxes(&self) -> usize {
        self.shared.sandboxes().len()
    }

    /// Returns a sentence about the first command that the script has no answer to.
    pub fn problem(&self) -> Option<String> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ScriptedHost {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn note(&self, request: &'static str) {
        if let Some(observer) = self.observer.get() {
            observer(request);
        }
    }

    fn sandboxes(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, Requested>>> {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acts(&self) -> MutexGuard<'_, Vec<Act>> {
        self.acts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> MutexGuard<'_, ContainerEnds> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the container ends during this operation.
    fn ends_container(&self, sandbox: &str, job: &str) -> bool {
        let mut ends = self.ends();
        let operation = (sandbox.to_owned(), job.to_owned());
        if ends.left > 0 && job.ends_with(ends.job) && ends.ended.insert(operation.clone()) {
            ends.left -= 1;
        }
        ends.ended.contains(&operation)
    }

    /// Carries out an operation of an agent once. Returns its result; `None` for operations of the runner.
    fn act(&self, sandbox: &str, run: &RunRequest) -> anyhow::Result<Option<Value>> {
        if !run.job.contains("-do-") {
            return Ok(None);
        }
        let request = run.operation()?;
        let mut acts = self.acts();
        if let Some(known) = acts.iter().find(|act| act.sandbox == sandbox && act.job == run.job) {
            return Ok(Some(known.done.clone()));
        }
        let text = script::act_text(&request);
        let typed = acts.iter().filter(|act| act.sandbox == sandbox).map(|act| act.text.as_str());
        let done = script::act_result(&request, &typed.chain([text.as_str()]).collect::<String>());
        acts.push(Act { sandbox: sandbox.to_owned(), job: run.job.clone(), text, done: done.clone() });
        Ok(Some(done))
    }

    /// Counts a call about an operation. Returns true if the operation is still running.
    fn poll(&self, sandbox: &str, run: &RunRequest) -> anyhow::Result<bool> {
        let mut sandboxes = self.sandboxes();
        let Some(jobs) = sandboxes.get_mut(sandbox) else { return Ok(false) };
        let mut hasher = DefaultHasher::new();
        run.bundle().hash(&mut hasher);
        let hash = hasher.finish();
        let known = jobs.entry(run.job.clone()).or_insert_with(|| {
            self.jobs().push((sandbox.to_owned(), run.job.clone()));
            Requested { polls: 0, hash }
        });
        anyhow::ensure!(known.hash == hash, "operation `{}` was repeated with another request", run.job);
        let is_running = known.polls < self.polls;
        known.polls += u32::from(is_running);
        Ok(is_running)
    }
}

async fn create(State(shared): State<Arc<Shared>>) -> Answer {
    shared.note("create");
    let full = shared.full.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if full.is_ok() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "detail": "all sandboxes are in use" })));
    }
    let number = shared.created.fetch_add(1, Ordering::Relaxed) + 1;
    let id = format!("sb-{number}");
    shared.sandboxes().insert(id.clone(), HashMap::new());
    (StatusCode::CREATED, Json(json!({ "sandboxId": id })))
}

async fn exists(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer {
    shared.note("exists");
    match shared.sandboxes().contains_key(&id) {
        true => (StatusCode::OK, Json(json!({ "sandboxId": id }))),
        false => not_found(),
    }
}

/// Receives a file. It is dropped, since nothing reads it again.
async fn write(State(shared): State<Arc<Shared>>, Path(id): Path<String>, _body: Bytes) -> Answer {
    shared.note("write");
    match shared.sandboxes().contains_key(&id) {
        true => (StatusCode::OK, Json(json!({ "success": true }))),
        false => not_found(),
    }
}

async fn terminate(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer {
    shared.note("terminate");
    match shared.sandboxes().remove(&id) {
        Some(_) => (StatusCode::OK, Json(json!({ "success": true }))),
        None => not_found(),
    }
}

fn not_found() -> Answer {
    (StatusCode::NOT_FOUND, Json(json!({ "detail": "Sandbox not found" })))
}

async fn exec(State(shared): State<Arc<Shared>>, Path(id): Path<String>, Json(body): Json<Value>) -> Answer {
    shared.note("exec");
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
    if shared.poll(sandbox, run)? {
        tokio::time::sleep(run.wait + LATE).await;
        return Ok(script::running_answer(mark));
    }
    let number = sandbox.trim_start_matches("sb-").parse()?;
    let record = match shared.ends_container(sandbox, &run.job) {
        true => Some(script::container_ended()),
        false => shared.act(sandbox, run)?.map(|done| json!({ "done": done })),
    };
    script::over_answer(mark, run, number, record)
}
