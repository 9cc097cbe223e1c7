//! A local test server with Sandy's API over plain processes. It works correctly, or fails in the ways that a test
//! chooses.
//!
//! Its sandboxes are NOT ISOLATED: they are folders and processes of the user who runs the test. It counts calls, and
//! knows which sandboxes were created and not ended.

mod http;
mod sandbox;
mod server;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::sandbox::TestSandbox;
use crate::{Sandy, SandyConfig, Timing};

/// The key that the server accepts.
pub const KEY: &str = "sandy-test-key";

/// Endpoints of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Creates a sandbox.
    Create,
    /// Runs a command.
    Exec,
    /// Writes a file.
    Write,
    /// Ends a sandbox.
    Terminate,
    /// Returns whether a sandbox exists.
    Exists,
    /// Returns the resources of the host.
    Resources,
    /// Returns the usage of the host over time.
    Metrics,
    /// Returns the usage of sandboxes.
    Stats,
    /// Not part of the API: downloads a file of [`Options::files`].
    File,
}

/// A call, with what rules need to decide about it.
#[derive(Debug, Clone)]
pub struct Call {
    /// The called endpoint.
    pub endpoint: Endpoint,
    /// Id of the sandbox that the call is about.
    pub sandbox: Option<String>,
    /// Number of earlier calls of this endpoint.
    pub before: u64,
    /// Number of earlier calls about this sandbox.
    pub sandbox_before: u64,
    /// Number of earlier calls in total.
    pub total_before: u64,
    /// The request's JSON.
    pub body: Value,
}

/// Answers of the server to a call.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers correctly.
    None,
    /// Answers with this status, body and headers; does nothing.
    Status(u16, String, Vec<(&'static str, String)>),
    /// Answers with 200 and an invalid body; does nothing.
    Garbage,
    /// Does the work, but omits `exitCode` (or `sandboxId`) from the answer.
    NoExitCode,
    /// Waits for this time, then closes the connection; does nothing.
    Hang(Duration),
    /// Does the work, and answers after this time.
    Late(Duration),
    /// Closes the connection; does nothing.
    Drop,
    /// Does the work, and closes the connection without an answer, or in the middle of a file.
    DropAfter,
    /// Does the work twice, concurrently for commands; answers with one of the results.
    Twice,
    /// Ends the sandbox: 404.
    Lose,
    /// Answers that the sandbox is still starting; doesn't run the command.
    NotReady,
}

/// Chooses the fault of each call.
pub type Rule = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;

/// Options of the server.
#[derive(Clone, Default)]
pub struct Options {
    /// Chooses the fault of each call; no faults if `None`.
    pub rule: Option<Rule>,
    /// Maximum number of sandboxes; further ones are refused with 503.
    pub capacity: Option<usize>,
    /// Folder with files named by their SHA-256, which its sandboxes can read.
    pub shared: Option<PathBuf>,
    /// Files by name, for download at [`SandyServer::file_url`].
    pub files: HashMap<String, Vec<u8>>,
    /// Folder to insert at the beginning of `PATH` in its sandboxes.
    pub path: Option<PathBuf>,
    /// Maximum number of characters of a command's output; unlimited if `None`.
    pub output_max: Option<usize>,
    /// Further environment variables of its sandboxes. `$HOME` in a value is replaced by the working folder.
    pub vars: Vec<(String, String)>,
}

/// A running server. Dropping it ends the server and all its processes.
pub struct SandyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: Mutex<JoinHandle<()>>,
}

/// State shared by all connections.
struct Shared {
    options: Options,
    root: TempDir,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sandboxes: HashMap<String, Arc<TestSandbox>>,
    /// Ids of sandboxes that a client has received.
    reported: Vec<String>,
    created: u64,
    total: u64,
    calls_by_endpoint: HashMap<Endpoint, u64>,
    calls_by_sandbox: HashMap<String, u64>,
    log: Vec<Call>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SandyServer {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Errors
    /// If no port or folder is available.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let root = TempDir::new()?;
        let shared = Arc::new(Shared { options, root, state: Mutex::default() });
        let task = Mutex::new(server::spawn(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task })
    }

    /// Starts a server with a rule.
    ///
    /// # Errors
    /// As [`SandyServer::start`].
    pub async fn with_rule(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> std::io::Result<Self> {
        Self::start(Options { rule: Some(Arc::new(rule)), ..Options::default() }).await
    }

    /// Returns the value for `SANDY_BASE_URL`; the one for `SANDY_API_KEY` is [`KEY`].
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the download address of a file of [`Options::files`].
    pub fn file_url(&self, name: &str) -> String {
        format!("http://{}/files/{name}", self.address)
    }

    /// Creates a client of this server with these time limits.
    ///
    /// # Errors
    /// Never, for a running server.
    pub fn sandy(&self, timing: Timing) -> Result<Sandy, String> {
        let base_url = self.base_url();
        let config = SandyConfig::from_vars(|name| match name {
            "SANDY_BASE_URL" => Some(base_url.clone()),
            "SANDY_API_KEY" => Some(KEY.to_owned()),
            _ => None,
        })?;
        Ok(Sandy::with_timing(config, timing))
    }

    /// Stops listening and cuts off calls in progress. Sandboxes keep running.
    pub fn down(&self) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).abort();
    }

    /// Listens again at the same address.
    ///
    /// # Errors
    /// If another process has taken the port.
    pub async fn up(&self) -> std::io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        let task = server::spawn(listener, Arc::clone(&self.shared));
        let mut held = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *held, task).abort();
        Ok(())
    }

    /// Returns the number of calls of an endpoint so far.
    pub fn calls(&self, endpoint: Endpoint) -> u64 {
        self.shared.state().calls_by_endpoint.get(&endpoint).copied().unwrap_or_default()
    }

    /// Returns all calls so far, in order.
    pub fn log(&self) -> Vec<Call> {
        self.shared.state().log.clone()
    }

    /// Returns the number of sandboxes created so far.
    pub fn created_count(&self) -> u64 {
        self.shared.state().created
    }

    /// Returns the existing sandboxes whose ids a client has received and which it therefore must end.
    pub fn open(&self) -> Vec<String> {
        let state = self.shared.state();
        let mut open: Vec<String> =
            state.reported.iter().filter(|id| state.sandboxes.contains_key(*id)).cloned().collect();
        open.sort();
        open
    }

    /// Returns the existing sandboxes whose ids were lost with the answer.
    pub fn unreported(&self) -> Vec<String> {
        let state = self.shared.state();
        let mut unreported: Vec<String> =
            state.sandboxes.keys().filter(|id| !state.reported.contains(id)).cloned().collect();
        unreported.sort();
        unreported
    }

    /// Returns the working folder of a sandbox.
    pub fn folder(&self, sandbox: &str) -> Option<PathBuf> {
        self.shared.state().sandboxes.get(sandbox).map(|sandbox| sandbox.folder().to_owned())
    }

    /// Ends a sandbox, as a host does that needs its resources.
    pub fn lose(&self, sandbox: &str) {
        server::lose(&self.shared, Some(sandbox));
    }
}

impl Drop for SandyServer {
    fn drop(&mut self) {
        self.down();
        let sandboxes = std::mem::take(&mut self.shared.state().sandboxes);
        for sandbox in sandboxes.values() {
            sandbox.end();
        }
    }
}
