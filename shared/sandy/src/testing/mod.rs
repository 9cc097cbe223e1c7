//! A local server that speaks Sandy's API over plain processes: as well as it can, or as badly as a test wants.
//!
//! Its sandboxes keep nothing apart: they are folders and processes of the user who runs the test. It counts calls,
//! and knows which sandboxes were made and not ended.

mod http;
mod place;
mod serve;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::place::Place;
use crate::{Sandy, SandyConfig, Timing};

/// The key that it takes.
pub const KEY: &str = "sandy-test-key";

/// What can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A new sandbox.
    Create,
    /// A command.
    Exec,
    /// A file.
    Write,
    /// The end of a sandbox.
    Terminate,
    /// Whether a sandbox is there.
    Exists,
    /// What the host has.
    Resources,
    /// How busy it was.
    Metrics,
    /// What sandboxes use.
    Stats,
    /// Not of the API: a file of [`Options::files`], for downloads.
    File,
}

/// One call, as far as rules need it.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is called.
    pub endpoint: Endpoint,
    /// About which sandbox.
    pub sandbox: Option<String>,
    /// Calls of this endpoint before this one.
    pub before: u64,
    /// Calls about this sandbox before this one.
    pub of_sandbox_before: u64,
    /// Calls of any kind before this one.
    pub total_before: u64,
    /// The request's JSON.
    pub body: Value,
}

/// How a call is answered.
#[derive(Debug, Clone)]
pub enum Fault {
    /// As it should be.
    None,
    /// With a status, a body and headers; nothing is done.
    Status(u16, String, Vec<(&'static str, String)>),
    /// With 200 and something that is no answer; nothing is done.
    Garbage,
    /// It is done, and the answer has no `exitCode` (or `sandboxId`).
    NoExitCode,
    /// Nothing is done or said for this long, then the connection is closed.
    Hang(Duration),
    /// It is done, and said after this long.
    Late(Duration),
    /// The connection is closed, and nothing is done.
    Drop,
    /// It is done, and the connection is closed without an answer, or in the middle of a file.
    DropAfter,
    /// It is done twice, at the same time where it is a command; the answer is of one of the two.
    Twice,
    /// The sandbox is no more from now on: 404.
    Lose,
    /// A command is not run: its sandbox is still starting.
    NotReady,
}

/// Decides about a call.
pub type Rule = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;

/// What the server is like.
#[derive(Clone, Default)]
pub struct Options {
    /// How calls are answered; all as they should be when `None`.
    pub rule: Option<Rule>,
    /// Sandboxes at once; more are refused with 503.
    pub capacity: Option<usize>,
    /// Folder with files by their SHA-256, that its sandboxes see.
    pub shared: Option<PathBuf>,
    /// Files by name, to be downloaded at [`SandyServer::file_url`].
    pub files: HashMap<String, Vec<u8>>,
    /// Put before `PATH` in its sandboxes.
    pub path: Option<PathBuf>,
    /// Characters of a command's output that it tells; all when `None`.
    pub output_max: Option<usize>,
    /// Variables of its sandboxes beside the usual ones. `$HOME` in a value is the working folder.
    pub vars: Vec<(String, String)>,
}

/// A running server. When it is dropped it ends, and so do all its processes.
pub struct SandyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: Mutex<JoinHandle<()>>,
}

/// What every connection knows.
struct Shared {
    options: Options,
    root: TempDir,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    places: HashMap<String, Arc<Place>>,
    /// Sandboxes whose ids somebody was told.
    told: Vec<String>,
    made: u64,
    total: u64,
    of_endpoint: HashMap<Endpoint, u64>,
    of_sandbox: HashMap<String, u64>,
    log: Vec<Call>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SandyServer {
    /// A server on a free port of the loopback interface.
    ///
    /// # Errors
    /// When there is no port or no folder for it.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let root = TempDir::new()?;
        let shared = Arc::new(Shared { options, root, state: Mutex::default() });
        let task = Mutex::new(serve::spawn(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task })
    }

    /// A server that answers as this rule says.
    ///
    /// # Errors
    /// As [`SandyServer::start`].
    pub async fn ruled(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> std::io::Result<Self> {
        Self::start(Options { rule: Some(Arc::new(rule)), ..Options::default() }).await
    }

    /// What to set `SANDY_BASE_URL` to; `SANDY_API_KEY` is [`KEY`].
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where a file of [`Options::files`] is downloaded.
    pub fn file_url(&self, name: &str) -> String {
        format!("http://{}/files/{name}", self.address)
    }

    /// A client of it, with these time limits.
    ///
    /// # Errors
    /// Never for a server that runs.
    pub fn sandy(&self, timing: Timing) -> Result<Sandy, String> {
        let base_url = self.base_url();
        let config = SandyConfig::from_vars(|name| match name {
            "SANDY_BASE_URL" => Some(base_url.clone()),
            "SANDY_API_KEY" => Some(KEY.to_owned()),
            _ => None,
        })?;
        Ok(Sandy::with_timing(config, timing))
    }

    /// From now on nothing listens any more; calls that are being answered are cut off. Sandboxes live on.
    pub fn down(&self) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).abort();
    }

    /// It listens again, where it did before.
    ///
    /// # Errors
    /// When its port was taken by another.
    pub async fn up(&self) -> std::io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        let task = serve::spawn(listener, Arc::clone(&self.shared));
        let mut held = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *held, task).abort();
        Ok(())
    }

    /// Calls of an endpoint so far.
    pub fn calls(&self, endpoint: Endpoint) -> u64 {
        self.shared.state().of_endpoint.get(&endpoint).copied().unwrap_or_default()
    }

    /// Every call so far, in order.
    pub fn log(&self) -> Vec<Call> {
        self.shared.state().log.clone()
    }

    /// Sandboxes made so far.
    pub fn made(&self) -> u64 {
        self.shared.state().made
    }

    /// Sandboxes that are there and whose ids were told to somebody: whoever was told has to end them.
    pub fn open(&self) -> Vec<String> {
        let state = self.shared.state();
        let mut open: Vec<String> =
            state.told.iter().filter(|id| state.places.contains_key(*id)).cloned().collect();
        open.sort();
        open
    }

    /// Sandboxes that are there and whose ids nobody was told: their answers were lost.
    pub fn untold(&self) -> Vec<String> {
        let state = self.shared.state();
        let mut untold: Vec<String> =
            state.places.keys().filter(|id| !state.told.contains(id)).cloned().collect();
        untold.sort();
        untold
    }

    /// Working folder of a sandbox.
    pub fn folder(&self, sandbox: &str) -> Option<PathBuf> {
        self.shared.state().places.get(sandbox).map(|place| place.folder().to_owned())
    }

    /// Ends a sandbox, as a host does that needs the room.
    pub fn lose(&self, sandbox: &str) {
        serve::lose(&self.shared, Some(sandbox));
    }
}

impl Drop for SandyServer {
    fn drop(&mut self) {
        self.down();
        let places = std::mem::take(&mut self.shared.state().places);
        for place in places.values() {
            place.end();
        }
    }
}
