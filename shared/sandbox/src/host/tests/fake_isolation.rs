//! Fake sandboxes, which count what happens and take simulated time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::host::{HostConfig, SandboxHost};
use crate::isolation::{EnginePlace, Exec, Form, Isolation, IsolationError, Limits, Output, Sandbox, Usage};

/// Creates fake sandboxes and counts them.
pub(super) struct FakeIsolation {
    pub(super) form: Form,
    /// Time that creating a sandbox takes.
    pub(super) creation_time: Duration,
    /// Time that ending a sandbox takes.
    pub(super) end_time: Duration,
    /// Error that creations return, if set.
    pub(super) failure: Option<IsolationError>,
    /// Folder for the places of sandboxes with a container engine; without it, there are none.
    pub(super) engine_folder: Option<PathBuf>,
    pub(super) counts: Arc<Counts>,
}

#[derive(Default)]
pub(super) struct Counts {
    /// Number of existing sandboxes.
    pub(super) alive: AtomicUsize,
    /// Maximum number of sandboxes that existed at one time.
    pub(super) max_alive: AtomicUsize,
    /// Number of created sandboxes.
    pub(super) created: AtomicUsize,
    /// Commands in the order of arrival.
    pub(super) commands: Mutex<Vec<Exec>>,
    /// All sandboxes in the order of creation.
    pub(super) all: Mutex<Vec<Arc<FakeSandbox>>>,
}

impl Counts {
    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }
}

pub(super) struct FakeSandbox {
    counts: Arc<Counts>,
    end_time: Duration,
    over: AtomicBool,
    /// Exceeded limit that its guard reports.
    pub(super) limit: std::sync::OnceLock<String>,
    ended: AtomicBool,
    pub(super) place: Option<EnginePlace>,
    /// Constant CPU usage, in processors; `None` if unknown.
    pub(super) cores: Mutex<Option<f64>>,
    /// Memory usage, in bytes.
    pub(super) memory_bytes: Mutex<u64>,
    made: Instant,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl FakeSandbox {
    /// Simulates that its first process is killed.
    pub(super) fn kill(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(super) fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.files.lock().unwrap().get(path).cloned()
    }
}

impl Default for FakeIsolation {
    fn default() -> Self {
        let holds = vec!["nothing at all".to_owned()];
        Self {
            form: Form { name: "fake", holds, lacks: vec!["It holds nothing.".to_owned()] },
            creation_time: Duration::ZERO,
            end_time: Duration::ZERO,
            failure: None,
            engine_folder: None,
            counts: Arc::default(),
        }
    }
}

impl FakeIsolation {
    pub(super) fn host(self, config: HostConfig) -> (Arc<SandboxHost>, Arc<Counts>) {
        let counts = Arc::clone(&self.counts);
        (SandboxHost::new(Arc::new(self), HostConfig { memory_reserve_bytes: 0, ..config }), counts)
    }
}

#[async_trait]
impl Isolation for FakeIsolation {
    fn form(&self) -> &Form {
        &self.form
    }

    async fn create(&self, _: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        self.make(None).await
    }

    async fn create_with_engine(&self, _: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        let Some(folder) = &self.engine_folder else {
            return Err(IsolationError::NoEngine("these are fake".to_owned()));
        };
        let number = self.counts.created.load(Ordering::SeqCst);
        self.make(Some(EnginePlace { socket: folder.join(format!("{number}.sock")), workspace: None })).await
    }
}

impl FakeIsolation {
    async fn make(&self, place: Option<EnginePlace>) -> Result<Arc<dyn Sandbox>, IsolationError> {
        tokio::time::sleep(self.creation_time).await;
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let sandbox = Arc::new(FakeSandbox {
            counts: Arc::clone(&self.counts),
            end_time: self.end_time,
            over: AtomicBool::new(false),
            limit: std::sync::OnceLock::new(),
            ended: AtomicBool::new(false),
            place,
            cores: Mutex::new(Some(0.0)),
            memory_bytes: Mutex::new(1 << 20),
            made: Instant::now(),
            files: Mutex::default(),
        });
        self.counts.created.fetch_add(1, Ordering::SeqCst);
        let alive = self.counts.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.counts.max_alive.fetch_max(alive, Ordering::SeqCst);
        self.counts.all.lock().unwrap().push(Arc::clone(&sandbox));
        Ok(sandbox)
    }
}

#[async_trait]
impl Sandbox for FakeSandbox {
    /// `sleep MS` takes that time; `fail` fails; any other command is returned as output.
    async fn exec(&self, exec: &Exec) -> Result<Output, IsolationError> {
        self.counts.commands.lock().unwrap().push(exec.clone());
        let mut output = Output {
            stdout: exec.command.clone().into_bytes(),
            stderr: b"\xff\xfe".to_vec(),
            dropped_bytes: 0,
            exit_code: Some(0),
        };
        if exec.command == "fail" {
            return Err(IsolationError::Failed("no process could be made".to_owned()));
        }
        if let Some(ms) = exec.command.strip_prefix("sleep ") {
            let takes = Duration::from_millis(ms.parse().unwrap());
            tokio::time::sleep(takes.min(exec.timeout)).await;
            if takes >= exec.timeout {
                output.exit_code = None;
            }
        }
        Ok(output)
    }

    async fn write(&self, path: &str, content: &[u8]) -> Result<(), IsolationError> {
        match path {
            "../x" => Err(IsolationError::Path(path.to_owned())),
            "full" => Err(IsolationError::Write("no space left".to_owned())),
            _ => {
                self.files.lock().unwrap().insert(path.to_owned(), content.to_vec());
                Ok(())
            }
        }
    }

    async fn usage(&self) -> Usage {
        let cores = *self.cores.lock().unwrap();
        Usage {
            cpu_seconds: cores.map(|cores| cores * self.made.elapsed().as_secs_f64()),
            memory_bytes: Some(*self.memory_bytes.lock().unwrap()),
            disk_bytes: Some(4_096),
        }
    }

    fn engine_place(&self) -> Option<&EnginePlace> {
        self.place.as_ref()
    }

    fn over_limit(&self) -> Option<&str> {
        let limit = self.limit.get().filter(|_| self.ended.load(Ordering::SeqCst));
        limit.map(String::as_str)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn end(&self) {
        tokio::time::sleep(self.end_time).await;
        self.over.store(true, Ordering::SeqCst);
        if !self.ended.swap(true, Ordering::SeqCst) {
            self.counts.alive.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
