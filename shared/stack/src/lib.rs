//! The whole system in one process: the embedded services, every function, and one port.
//!
//! In the cloud, Lambda and the template connect the functions. Here queues drive the functions, HTTP functions share a
//! router, and timers start the scheduler's tasks. The functions are the same.

mod attach;
mod built_in;
mod direct;
mod disk;
mod holds;
mod keys;
mod mappings;
mod open;
mod options;
mod owner;
pub mod sandboxes;
mod socket;
mod timers;

pub use self::attach::{AttachError, Hold, HoldEvent};
pub use self::built_in::BuiltInSandboxes;
pub use self::disk::is_disk_full;
pub use self::holds::HoldGuard;
pub use self::keys::{key_ring_from_vars, keys_dir};
pub use self::options::{
    CONCURRENCY_DEFAULT, CONCURRENCY_MAX, KeyWrapperFactory, OnWait, SettingError, StackOptions,
};
pub use self::owner::{OwnEndpoint, Owner};

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use axum::Router;
use bench_api::Api;
use bench_blobs::Blobs;
use bench_datasets::Library;
use bench_dead_letters::DeadLetters;
use bench_domain::run::AuthMode;
use bench_domain::{ModelRole, RunId, RunStatus};
use bench_embedded::Embedded;
use bench_embedded::host::Host;
use bench_exports::Exports;
use bench_finisher::Finisher;
use bench_inference::{EndpointError, InferenceConfig, Provider};
use bench_pipeline::Pipeline;
use bench_planner::Planner;
use bench_queue::{QueueName, Queues};
use bench_runs::Orders;
use bench_sandy::SandyConfig;
use bench_scheduler::Scheduler;
use bench_state::credentials::Credentials;
use bench_state::{RunFilter, Scope, State, StateError};
use tokio_util::task::AbortOnDropHandle;

use self::attach::Attachment;
use self::disk::DiskGuard;
use self::holds::Holds;
use self::mappings::RESERVE;
use self::owner::{digest, session_address};
use self::socket::SocketServer;
use self::timers::TaskTimers;

/// Version of this program in runs and exports.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An opened system.
pub struct Stack {
    /// The AWS services.
    pub embedded: Embedded,
    /// Runs and samples.
    pub state: State,
    /// Messages.
    pub queues: Queues,
    /// Bodies, datasets, exports.
    pub blobs: Blobs,
    /// Callers' keys.
    pub credentials: Credentials,
    /// Datasets.
    pub library: Library,
    /// Service that makes runs, for the API and for callers in this process.
    pub orders: Arc<Orders>,
    /// Functions of the API, for callers in this process.
    pub api: Arc<Api>,
    /// Functions of the exports, for callers in this process.
    pub exports: Arc<Exports>,
    /// Address of the bucket for programs on this machine.
    pub s3_address: Option<SocketAddr>,
    s3_server: Option<AbortOnDropHandle<()>>,
    sandy: SandyConfig,
    sandboxes: Option<BuiltInSandboxes>,
    concurrency: usize,
    /// Number of queues whose messages find no place, for a sandbox host on another machine.
    places_wanted: Option<Arc<AtomicUsize>>,
    answer_time: Duration,
    sync_models: bool,
    scope: Scope,
    functions: Functions,
    running: Option<Running>,
    inference: InferenceConfig,
    sharing: Sharing,
}

/// Relation to other processes that use the data directory.
enum Sharing {
    /// They can't use it.
    Alone,
    /// They use it over the socket of this process, which owns the directory.
    Owner { holds: Holds, socket: Option<SocketServer> },
    /// One of them owns it.
    Attached(Attachment),
}

struct Functions {
    planner: Arc<Planner>,
    worker: Arc<Pipeline>,
    turns: Arc<Pipeline>,
    finisher: Arc<Finisher>,
    dead_letters: Arc<DeadLetters>,
    scheduler: Arc<Scheduler>,
}

struct Running {
    host: Host,
    /// Dropping this ends the tasks.
    timers: TaskTimers,
    _disk: DiskGuard,
}

impl Stack {
    /// Returns the process that owns the data directory, unless that is this process.
    pub fn owner(&self) -> Option<&Owner> {
        match &self.sharing {
            Sharing::Attached(attachment) => Some(&attachment.owner),
            Sharing::Alone | Sharing::Owner { .. } => None,
        }
    }

    /// Makes the owner of the data directory work on runs until the hold is dropped. At most `concurrency` of their
    /// samples are in progress at once, in addition to those of other commands. An owner that isn't started works on none.
    /// Returns `None` if the directory isn't shared.
    pub async fn hold(&self, runs: &[RunId], concurrency: usize) -> Option<Hold> {
        match &self.sharing {
            Sharing::Alone => None,
            Sharing::Owner { holds, .. } => Some(Hold::Here(holds.hold(runs.to_vec(), concurrency, false))),
            Sharing::Attached(attachment) => Some(attachment.hold(runs.to_vec(), concurrency).await),
        }
    }

    /// Returns the number of runs that this process works on for other processes.
    pub fn runs_of_others(&self) -> usize {
        match &self.sharing {
            Sharing::Owner { holds, .. } => holds.runs_of_others(),
            Sharing::Alone | Sharing::Attached(_) => 0,
        }
    }

    /// Returns a provider's address and key for an order, if another process works on the run: it or a later one may have
    /// others in its variables. `None` if this process works on it.
    ///
    /// # Errors
    /// Returns an error if a setting is missing.
    pub fn own_endpoint(&self, provider: &'static Provider) -> Result<Option<OwnEndpoint>, EndpointError> {
        if self.owner().is_none() {
            return Ok(None);
        }
        let endpoint = self.inference.endpoint(provider)?;
        let base_url = self.own_base_url(provider).filter(|url| Some(*url) != provider.default_base_url);
        Ok(Some(OwnEndpoint { base_url: base_url.map(str::to_owned), key: endpoint.key().cloned() }))
    }

    fn own_base_url(&self, provider: &Provider) -> Option<&str> {
        self.inference.provider(provider)?.base_url.as_deref()
    }

    /// Returns a provider of a stored run that the process that would work on it has at another address, or with another
    /// key, than this process: the run must not continue there. `None` if this process would work on it.
    ///
    /// # Errors
    /// Returns an error if the run can't be read.
    pub async fn conflicting_provider(&self, run: RunId) -> Result<Option<&'static Provider>, StateError> {
        let Some(owner) = self.owner() else { return Ok(None) };
        let Some(record) = self.state.run(run).await? else { return Ok(None) };
        let conflicts = |role| {
            let (model, auth) = record.spec.asked_model(role)?;
            let provider = Provider::from_name(&model.provider).filter(|_| model.base_url.is_none())?;
            let is_same = match auth {
                AuthMode::ApiKey => {
                    owner.base_urls.get(provider.name).map(String::as_str) == self.own_base_url(provider)
                }
                AuthMode::Idp => {
                    owner.session_addresses.get(provider.name)
                        == session_address(&self.inference, provider).as_ref()
                }
                AuthMode::System => {
                    let own = self.inference.endpoint(provider).ok();
                    let own = own.map(|endpoint| digest(&endpoint, self.embedded.credentials()));
                    owner.endpoints.get(provider.name) == own.as_ref()
                }
            };
            (!is_same).then_some(provider)
        };
        Ok(ModelRole::ALL.into_iter().find_map(conflicts))
    }

    /// Returns the scheduler, for callers that don't want to wait for its timers.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.functions.scheduler
    }

    /// Returns the address of the sandbox host: the server that `SANDY_BASE_URL` names, else the stack's own host.
    pub fn sandy_config(&self) -> SandyConfig {
        self.sandy.clone()
    }

    /// Returns true if the sandboxes are this stack's own, so that they end with it.
    pub const fn has_own_sandboxes(&self) -> bool {
        self.sandboxes.is_some()
    }

    /// Returns a router with all HTTP functions.
    pub fn router(&self) -> Router {
        self.router_with(|router| router)
    }

    /// Returns a router with all HTTP functions and what `add` adds, such as the page.
    pub fn router_with(&self, add: impl FnOnce(Router) -> Router) -> Router {
        http_functions(&self.api, &self.exports, add)
    }

    /// Tells other processes that use the data directory the address at which this one serves the page to this machine.
    /// Does nothing if the directory isn't shared.
    pub fn announce(&self, address: &str) {
        if let Sharing::Owner { socket: Some(socket), .. } = &self.sharing {
            socket.announce(address);
        }
    }

    /// Lets the queues drive the functions. Open runs in the stack's scope continue immediately.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        if let Some(owner) = self.owner() {
            anyhow::bail!(
                "process {} (`{}`) works on the runs of this data directory",
                owner.pid,
                owner.command
            );
        }
        // Must happen before any message is received, so that messages of other runs stay in the queues untouched.
        let interrupted = self.interrupted_runs().await?;
        self.embedded.pause_groups(interrupted.iter().map(ToString::to_string).collect()).await?;
        let client = self.embedded.queue_client(self.queues.client().clone());
        let host = Host::start(&client, self.mappings()?);
        if let Sharing::Owner { holds, .. } = &self.sharing {
            holds.set_capacity(host.capacity());
        }
        self.functions.scheduler.resume().await?;
        self.running = Some(Running {
            host,
            timers: TaskTimers::start_reconciliation(&self.functions.scheduler),
            _disk: DiskGuard::start(&self.embedded, self.scope != Scope::Foreground),
        });
        Ok(())
    }

    /// Returns the open runs that this stack doesn't work on.
    async fn interrupted_runs(&self) -> anyhow::Result<Vec<RunId>> {
        let mut interrupted = Vec::new();
        for status in [RunStatus::Running, RunStatus::Queued] {
            let filter = RunFilter { status: Some(status), ..RunFilter::default() };
            for run in self.state.list_runs(&filter, 0, u64::MAX).await?.runs {
                let record = self.state.run(run).await?;
                interrupted.extend(record.filter(|record| !self.state.works_on(record)).map(|_| run));
            }
        }
        Ok(interrupted)
    }

    /// Starts to serve schedules, for processes that keep running. Does nothing if the stack isn't started.
    pub fn serve_schedules(&mut self) {
        if let Some(running) = &mut self.running {
            running.timers.serve(&self.functions.scheduler, self.sync_models);
        }
    }

    /// Removes the stored data of deleted runs. For processes that do no work: otherwise it would stay until the next
    /// process that works on the queues.
    pub async fn clear_up_deleted(&self, runs: &[RunId]) -> anyhow::Result<()> {
        for run in runs {
            self.functions.finisher.clear_up_deleted(*run).await?;
        }
        Ok(())
    }

    /// Accepts no more work, and waits up to `grace` for invocations in progress. Returns true if all of them ended.
    /// The services stay open.
    pub async fn drain(&mut self, grace: Duration) -> bool {
        if let Sharing::Owner { holds, .. } = &self.sharing {
            holds.end();
        }
        match &mut self.running {
            Some(running) => running.host.drain(grace).await,
            None => true,
        }
    }

    /// Returns the number of samples that this process works on now; 0 if it can't be read.
    pub async fn samples_in_progress(&self) -> u64 {
        let mut samples = 0;
        for queue in [QueueName::Items, QueueName::Turns] {
            samples += self.queues.depth(queue).await.map_or(0, |depth| depth.in_flight);
        }
        samples
    }

    /// Returns the maximum time for which a process works on a sample at once.
    pub fn sample_time(&self) -> Duration {
        self.answer_time + 2 * RESERVE
    }

    /// Aborts the invocations in progress. The next start continues their work.
    pub async fn abort(&mut self) {
        if let Some(running) = &mut self.running {
            running.host.stop(Duration::ZERO).await;
        }
    }

    /// Accepts no more work, waits up to `grace` for invocations in progress, and closes the services. The next start
    /// continues unfinished work.
    pub async fn stop(mut self, grace: Duration) {
        if let Sharing::Owner { holds, .. } = &self.sharing {
            holds.end();
        }
        if let Some(mut running) = self.running.take() {
            drop(running.timers);
            running.host.stop(grace).await;
        }
        self.functions.worker.flush().await;
        self.functions.turns.flush().await;
        if let Some(sandboxes) = self.sandboxes.take() {
            sandboxes.stop().await;
        }
        if let Some(server) = self.s3_server.take() {
            // The server keeps the bucket's folder in use until its task has ended.
            server.abort();
            let _ = server.await;
        }
        if let Sharing::Owner { socket: Some(socket), .. } = self.sharing {
            // Commands that hear of the end take over, so everything else must have ended before.
            socket.stop().await;
        }
        self.embedded.close();
    }
}

/// Returns a router with all HTTP functions.
fn http_functions(api: &Arc<Api>, exports: &Arc<Exports>, add: impl FnOnce(Router) -> Router) -> Router {
    let routes = bench_api::routes(Arc::clone(api)).merge(bench_exports::router(Arc::clone(exports)));
    bench_web::finish_around(routes, api.config.server.clone(), add)
}
