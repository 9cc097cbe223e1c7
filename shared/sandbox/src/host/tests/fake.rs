//! Sandboxes that are none: they keep count, and take as long as they are told by the test's clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::host::{HostConfig, SandboxHost};
use crate::isolation::{Exec, Form, Isolation, IsolationError, Limits, Output, Sandbox, Usage};

/// Makes fakes, and counts them.
pub(super) struct Fakes {
    pub(super) form: Form,
    /// How long making one takes.
    pub(super) making: Duration,
    /// How long ending one takes.
    pub(super) ending: Duration,
    /// What making one comes to instead.
    pub(super) failure: Option<IsolationError>,
    pub(super) counts: Arc<Counts>,
}

#[derive(Default)]
pub(super) struct Counts {
    /// That exist.
    pub(super) alive: AtomicUsize,
    /// The most that existed at one time.
    pub(super) most: AtomicUsize,
    /// That were made.
    pub(super) made: AtomicUsize,
    /// Commands as they came.
    pub(super) commands: Mutex<Vec<Exec>>,
    /// All fakes, in the order of making.
    pub(super) all: Mutex<Vec<Arc<Fake>>>,
}

impl Counts {
    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }
}

pub(super) struct Fake {
    counts: Arc<Counts>,
    ending: Duration,
    over: AtomicBool,
    /// What its guard says when it is asked why.
    pub(super) limit: std::sync::OnceLock<String>,
    ended: AtomicBool,
    /// Processors that it uses all the time.
    pub(super) cores: Mutex<Option<f64>>,
    /// Memory that it uses, in bytes.
    pub(super) memory_bytes: Mutex<u64>,
    made: Instant,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Fake {
    /// Its first process is killed.
    pub(super) fn kill(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(super) fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.files.lock().unwrap().get(path).cloned()
    }
}

impl Default for Fakes {
    fn default() -> Self {
        let holds = vec!["nothing at all".to_owned()];
        Self {
            form: Form { name: "fake", holds, lacks: vec!["It holds nothing.".to_owned()] },
            making: Duration::ZERO,
            ending: Duration::ZERO,
            failure: None,
            counts: Arc::default(),
        }
    }
}

impl Fakes {
    pub(super) fn host(self, config: HostConfig) -> (Arc<SandboxHost>, Arc<Counts>) {
        let counts = Arc::clone(&self.counts);
        (SandboxHost::new(Arc::new(self), HostConfig { memory_reserve_bytes: 0, ..config }), counts)
    }
}

#[async_trait]
impl Isolation for Fakes {
    fn form(&self) -> &Form {
        &self.form
    }

    async fn create(&self, _: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        tokio::time::sleep(self.making).await;
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let fake = Arc::new(Fake {
            counts: Arc::clone(&self.counts),
            ending: self.ending,
            over: AtomicBool::new(false),
            limit: std::sync::OnceLock::new(),
            ended: AtomicBool::new(false),
            cores: Mutex::new(Some(0.0)),
            memory_bytes: Mutex::new(1 << 20),
            made: Instant::now(),
            files: Mutex::default(),
        });
        self.counts.made.fetch_add(1, Ordering::SeqCst);
        let alive = self.counts.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.counts.most.fetch_max(alive, Ordering::SeqCst);
        self.counts.all.lock().unwrap().push(Arc::clone(&fake));
        Ok(fake)
    }
}

#[async_trait]
impl Sandbox for Fake {
    /// `sleep MS` takes so long; `fail` fails; anything else is printed.
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

    fn over_limit(&self) -> Option<&str> {
        let limit = self.limit.get().filter(|_| self.ended.load(Ordering::SeqCst));
        limit.map(String::as_str)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn end(&self) {
        tokio::time::sleep(self.ending).await;
        self.over.store(true, Ordering::SeqCst);
        if !self.ended.swap(true, Ordering::SeqCst) {
            self.counts.alive.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
