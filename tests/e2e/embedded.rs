//! Serves the embedded stack on a port, as a server open to all callers.

use bench_embedded::{Durability, Permission, Recorder};
use bench_sandy::testing::{KEY, Options, SandyServer};
use bench_scheduler::Scheduler;
use bench_stack::{Stack, StackOptions};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::target::{AwsServices, ModelEndpoint, RawStorage, Target, model};

/// Time limit for work in progress when a stack is stopped.
const GRACE: Duration = Duration::from_secs(10);

/// Offset of the schedules' clock, so that a scenario doesn't wait for the minute of a planned time.
const CLOCK_AHEAD: Duration = Duration::from_secs(130);
const TICK_EVERY: Duration = Duration::from_millis(500);

/// A running embedded stack.
pub(crate) struct Embedded {
    stack: Stack,
    ticks: AbortOnDropHandle<()>,
    server: AbortOnDropHandle<()>,
    recorded: Arc<Mutex<BTreeSet<Permission>>>,
    /// Runs code while the stack is open.
    _sandboxes: SandyServer,
    dir: tempfile::TempDir,
}

impl Embedded {
    /// Starts a new stack. Returns the target to reach it and the stack.
    pub(crate) async fn start() -> (Target, Self) {
        let dir = tempfile::tempdir().unwrap();
        let model = model().await;
        let recorded = Arc::new(Mutex::new(BTreeSet::new()));
        let rights = Arc::clone(&recorded);
        let recorder = Recorder::for_permissions(move |right| {
            rights.lock().unwrap().insert(right);
        });
        let sandboxes = SandyServer::start(Options::default()).await.unwrap();
        let mut vars = vars(&model.base_url());
        vars.insert("SANDY_BASE_URL".to_owned(), sandboxes.base_url());
        vars.insert("SANDY_API_KEY".to_owned(), KEY.to_owned());
        let mut stack = open(dir.path(), 16, Some(recorder), vars).await;
        stack.start().await.unwrap();
        let (base_url, server) = serve(&stack).await;
        let ticks = AbortOnDropHandle::new(tokio::spawn(run_scheduler_ticks(Arc::clone(stack.scheduler()))));
        let aws = AwsServices {
            queues: stack.queues.clone(),
            blobs: stack.blobs.clone(),
            stored: RawStorage::Files(dir.path().join("data")),
        };
        let target = Target::new(base_url, ADMIN_SECRET.to_owned(), ModelEndpoint::Own(model), aws);
        (target, Self { stack, ticks, server, recorded, _sandboxes: sandboxes, dir })
    }

    /// Runs the hourly and five-minute tasks, stops the stack, and returns the permissions that its functions needed.
    pub(crate) async fn finish(self) -> BTreeSet<Permission> {
        drop(self.ticks);
        let scheduler = self.stack.scheduler();
        for task in ["reconcile", "reap"] {
            scheduler.handle(&json!({ "task": task }), bench_clock::now()).await.unwrap();
        }
        drop(self.server);
        self.stack.stop(GRACE).await;
        drop(self.dir);
        std::mem::take(&mut *self.recorded.lock().unwrap())
    }
}

/// Ticks the scheduler in place of EventBridge.
async fn run_scheduler_ticks(scheduler: Arc<Scheduler>) {
    loop {
        let now = bench_clock::now().plus(CLOCK_AHEAD);
        scheduler.handle(&json!({ "task": "tick" }), now).await.unwrap();
        tokio::time::sleep(TICK_EVERY).await;
    }
}

/// The operator's secret.
pub(crate) const ADMIN_SECRET: &str = "admin-4be1d0a7c2";

/// Returns the variables of the functions.
pub(crate) fn vars(model_url: &str) -> BTreeMap<String, String> {
    BTreeMap::from_iter(
        [
            ("ADMIN_SECRET", ADMIN_SECRET),
            ("HF_HUB_OFFLINE", "1"),
            ("SKIP_MODEL_SYNC", "true"),
            ("OPENAI_COMPATIBLE_BASE_URL", model_url),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    )
}

/// Opens a stack that doesn't assume loopback, so that callers must authenticate.
pub(crate) async fn open(
    dir: &Path,
    concurrency: usize,
    recorder: Option<Recorder>,
    vars: BTreeMap<String, String>,
) -> Stack {
    let mut options = StackOptions::new(dir.join("data"));
    options.key_wrapper = Some(bench_tests::kms_wrapper(crate::rights::KMS_KEY));
    options.durability = Durability::Normal;
    options.concurrency = concurrency;
    options.retry_delay = Duration::ZERO;
    options.local = false;
    options.s3_listener = true;
    options.recorder = recorder;
    options.vars = vars;
    Stack::open(options).await.unwrap()
}

/// Serves the stack's HTTP functions on a free port.
pub(crate) async fn serve(stack: &Stack) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = stack.router();
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (format!("http://{address}"), AbortOnDropHandle::new(server))
}
