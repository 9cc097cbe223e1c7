//! The whole system in one process: the embedded services, every function, and one port.
//!
//! In the cloud, Lambda and the template connect the functions. Here queues drive the functions, HTTP functions share a
//! router, and timers start the scheduler's tasks. The functions are the same.

mod attach;
mod built_in;
mod disk;
mod holds;
mod keys;
mod mappings;
mod options;
mod owner;
pub mod sandboxes;
mod socket;
mod timers;

pub use self::attach::{AttachError, Hold, HoldEvent};
pub use self::disk::is_disk_full;
pub use self::holds::HoldGuard;
pub use self::keys::{key_ring_from_vars, keys_dir};
pub use self::options::{
    CONCURRENCY_DEFAULT, CONCURRENCY_MAX, KeyWrapperFactory, OnWait, SettingError, StackOptions,
};
pub use self::owner::{OwnEndpoint, Owner};

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use bench_api::{Api, ApiConfig};
use bench_blobs::Blobs;
use bench_datasets::{Library, LibraryConfig, Progress};
use bench_dead_letters::DeadLetters;
use bench_domain::run::{AuthMode, ModelRef};
use bench_domain::{RunId, RunStatus};
use bench_embedded::host::Host;
use bench_embedded::socket::SocketListener;
use bench_embedded::{Embedded, EmbeddedError, EmbeddedOptions};
use bench_exports::{Exports, ExportsConfig};
use bench_finisher::Finisher;
use bench_http_server::Limits;
use bench_inference::{ChatClient, EndpointError, InferenceConfig, Provider};
use bench_pipeline::{Ledgers, Pipeline, PipelineConfig, SandboxHost, Services};
use bench_planner::Planner;
use bench_queue::{QueueName, QueueSettings, Queues};
use bench_runs::Orders;
use bench_sandy::SandyConfig;
use bench_scheduler::{Scheduler, SchedulerConfig};
use bench_state::credentials::{Credentials, KeyWrapper, LocalKey, OwnerKey};
use bench_state::{Origin, RunFilter, Scope, State, StateError};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use self::attach::{Attachment, build, open_or_attach};
use self::built_in::BuiltInSandboxes;
use self::disk::DiskGuard;
use self::holds::Holds;
use self::keys::{key_ring, master_key};
use self::mappings::{LONG_INVOCATION, RESERVE};
use self::owner::{base_urls, digest, endpoint_digests};
use self::sandboxes::{FILES, SandboxSettings};
use self::socket::SocketServer;
use self::timers::TaskTimers;

/// Version of this program in runs and exports.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Name of the table on the embedded stack. Names of table, bucket and queues are fixed, since nothing else uses these
/// services.
const TABLE: &str = "bench-runner";
const CREDENTIALS_TABLE: &str = "bench-runner-credentials";
const BUCKET: &str = "bench-runner";
const QUEUE_PREFIX: &str = "bench-";
/// Maximum number of connections to the bucket's listener, from `bench` and from programs of this machine that have a
/// presigned address.
const S3_CONNECTIONS_MAX: usize = 128;

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

struct SharedProgress(Arc<dyn Progress>);

impl Progress for SharedProgress {
    fn step(&self, step: bench_datasets::Step<'_>) {
        self.0.step(step);
    }
}

impl Stack {
    /// Opens the services and creates what is missing. No function works yet.
    ///
    /// If another process owns the data directory and [`StackOptions::shares`] is set, the stack uses that process's
    /// services, and can't be started.
    pub async fn open(options: StackOptions) -> anyhow::Result<Self> {
        let var = |name: &str| options.vars.get(name).filter(|value| !value.trim().is_empty()).cloned();
        let mut embedded = EmbeddedOptions::new(&options.data_dir).durability(options.durability);
        if let Some(faults) = options.faults {
            embedded = embedded.faults(faults);
        }
        if let Some(recorder) = options.recorder {
            embedded = embedded.recorder(recorder);
        }
        for (name, value) in options.secrets {
            embedded = embedded.secret(name, value);
        }
        let (embedded, attachment) = match options.shares {
            true => open_or_attach(&embedded.shares(true), options.on_wait.as_ref()).await?,
            false => (Embedded::open(embedded)?, None),
        };
        let concurrency = options.concurrency.clamp(1, CONCURRENCY_MAX);
        let (sandy, sandboxes) = match &attachment {
            Some(Attachment { owner, .. }) => (owner.sandy().map_err(SettingError::new)?, None),
            None => open_sandboxes(&options.data_dir, options.sandbox_helper, concurrency, var).await?,
        };
        let config = embedded.sdk_config();
        let mut worker_config = PipelineConfig::from_vars(var).map_err(SettingError::new)?;
        worker_config.identity.item_concurrency = concurrency as u64;
        let inference = InferenceConfig::from_vars(var).map_err(SettingError::new)?;
        let timeout = worker_config.answer_time.longest() + 2 * RESERVE;
        let settings = QueueSettings {
            visibility_timeout: 6 * timeout.max(LONG_INVOCATION).min(Duration::from_secs(7_200)),
            retry_delay: options.retry_delay,
            ..QueueSettings::default()
        };
        // Each function has its own clients, so that a recorder can tell callers apart.
        let of = |function| embedded.sdk_config_for(function);
        let scoped = |state: State| match &attachment {
            None => state.scoped(options.scope),
            Some(Attachment { owner, .. }) => {
                // The owner works on the runs of commands, but not on those that are meant for a server.
                let origin = match options.scope {
                    Scope::Foreground => Origin::Foreground { start: embedded.epoch() },
                    Scope::Server | Scope::All => Origin::Server,
                };
                state.scoped(owner.scope()).with_origin(origin)
            }
        };
        // Commands store it with their runs, so that it still holds when they are resumed.
        let scoped = |state: State| match options.scope {
            Scope::Foreground => {
                scoped(state).with_concurrency(u32::try_from(concurrency).unwrap_or(u32::MAX))
            }
            Scope::Server | Scope::All => scoped(state),
        };
        let state_of = |function| scoped(State::new(&of(function), TABLE, embedded.epoch()));
        let state = scoped(State::new(&config, TABLE, embedded.epoch()));
        let queues = match &attachment {
            None => {
                state.ensure_table().await?;
                Queues::create(&config, QUEUE_PREFIX, settings).await?
            }
            Some(_) => Queues::find(&config, QUEUE_PREFIX, options.retry_delay).await?,
        };
        let queues_of = |function| queues.with_config(&of(function));
        let mut blobs = Blobs::new(&config, BUCKET);
        if attachment.is_none() {
            blobs.ensure_bucket().await?;
        }
        let (mut s3_address, mut s3_server) = (None, None);
        if let Some(endpoint) = embedded.s3().filter(|_| options.s3_listener) {
            let listener =
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port for S3")?;
            let address = listener.local_addr().context("could not read the address of S3")?;
            let router = Router::new().fallback_service(endpoint.listening());
            let limits = Limits::within_this_machine(S3_CONNECTIONS_MAX);
            let server = bench_http_server::serve(listener, router, limits, std::future::pending());
            s3_server = Some(AbortOnDropHandle::new(tokio::spawn(server)));
            blobs = blobs.with_presign_endpoint(&format!("http://{address}"));
            s3_address = Some(address);
        }
        let blobs_of = |function| {
            let blobs = Blobs::new(&of(function), BUCKET);
            match s3_address {
                Some(address) => blobs.with_presign_endpoint(&format!("http://{address}")),
                None => blobs,
            }
        };
        let master = master_key(&options.data_dir)?;
        let owners = Arc::new(OwnerKey::from_master_key(&master));
        let local = Arc::new(LocalKey::new(&master)?);
        let credentials_of = |config: &_| {
            let wrapper: Arc<dyn KeyWrapper> = match &options.key_wrapper {
                Some(wrapper_for) => wrapper_for(config),
                None => Arc::clone(&local) as _,
            };
            Credentials::new(config, CREDENTIALS_TABLE, wrapper)
        };
        let credentials = credentials_of(&config);
        if attachment.is_none() {
            credentials.ensure_table().await?;
        }
        let credentials_of = |function| credentials_of(&of(function));
        let is_benchmark = |name: &str| bench_benchmarks::find(name).is_some();
        let library_config =
            LibraryConfig::from_vars(options.data_dir.join("downloads"), options.vars.clone(), is_benchmark)
                .map_err(SettingError::new)?;
        let library_of = |function| Library::new(blobs_of(function), library_config.clone());
        let api_for = |local| {
            let mut config = ApiConfig::from_vars(var, local, VERSION).map_err(SettingError::new)?;
            config.item_concurrency = worker_config.identity.item_concurrency;
            config.sandy = sandy.clone();
            config.direct_uploads = s3_address.is_some();
            let api = Api::new(
                state_of("api"),
                queues_of("api"),
                blobs_of("api"),
                credentials_of("api"),
                library_of("api"),
                Arc::clone(&owners),
                config,
            );
            // A resumed run's messages are delivered again.
            let (queued, attachment) = (embedded.clone(), attachment.clone());
            anyhow::Ok(Arc::new(api.on_resume(move |run| {
                let (queued, attachment) = (queued.clone(), attachment.clone());
                async move {
                    match attachment {
                        Some(attachment) => attachment.resume_group(run).await,
                        None => queued.resume_group(run.to_string()),
                    }
                }
            })))
        };
        let exports_for = |api: &Api| {
            let config = ExportsConfig {
                git_sha: option_env!("BENCH_GIT_SHA").map(str::to_owned),
                // The S3 listener uses loopback, so only programs on this machine can reach it.
                direct_uploads: s3_address.is_some(),
                ..ExportsConfig::new(VERSION, api.access.clone())
            };
            let keys = key_ring(&options.data_dir, var)?;
            anyhow::Ok(Arc::new(Exports::new(state_of("exports"), blobs_of("exports"), Ok(keys), config)))
        };
        let api = api_for(options.local)?;
        let exports = exports_for(&api)?;
        let mut scheduler_config =
            SchedulerConfig::from_vars(var, options.local, VERSION).map_err(SettingError::new)?;
        scheduler_config.sandy = sandy.clone();
        // The lists are public, but only useful if their models can be called.
        let listed = &scheduler_config.runs.inference;
        let sync_models = scheduler_config.sync_models
            && listed.public_lists().any(|(provider, _)| listed.is_configured(provider));
        let ledgers = Ledgers::default();
        // Such a host may have many more sandboxes than this process has places.
        let is_remote = sandboxes.is_none() && sandy.address_and_key().is_some();
        let places_wanted = is_remote.then(Arc::<AtomicUsize>::default);
        let sandbox_host = || {
            let host = SandboxHost::new(sandy.clone()).with_requests_max(concurrency / 2);
            match &places_wanted {
                _ if sandboxes.is_some() => host.on_this_machine(options.data_dir.join(FILES)),
                Some(places_wanted) => host.with_places_wanted(Arc::clone(places_wanted)),
                None => host,
            }
        };
        let services_of = |function| Services {
            state: state_of(function),
            queues: queues_of(function),
            blobs: blobs_of(function),
            credentials: credentials_of(function),
            chat: ChatClient::new(inference.http_options()),
            inference: inference.clone(),
            ledgers: ledgers.clone(),
            sandboxes: sandbox_host(),
        };
        let mut turns_config = worker_config.clone();
        // Operators tell the two workers apart by their ids.
        turns_config.identity.worker_id.push_str("/turns");
        let functions = Functions {
            planner: Arc::new(Planner {
                state: state_of("planner"),
                queues: queues_of("planner"),
                library: library_of("planner"),
                progress: Box::new(SharedProgress(options.progress)),
            }),
            worker: Arc::new(Pipeline::new(services_of("worker"), worker_config.clone())),
            turns: Arc::new(Pipeline::new(services_of("turns"), turns_config)),
            finisher: Arc::new(Finisher {
                state: state_of("finisher"),
                queues: queues_of("finisher"),
                blobs: blobs_of("finisher"),
                credentials: credentials_of("finisher"),
            }),
            dead_letters: Arc::new(DeadLetters {
                state: state_of("dead-letters"),
                queues: queues_of("dead-letters"),
                after_outage: 6 * options.retry_delay,
            }),
            scheduler: Arc::new(Scheduler::new(
                state_of("scheduler"),
                queues_of("scheduler"),
                credentials_of("scheduler"),
                scheduler_config,
            )),
        };
        let sharing = match &attachment {
            Some(attachment) => Sharing::Attached(attachment.clone()),
            None if !options.shares => Sharing::Alone,
            None => {
                // Requests over the socket count as the command line of the same user, even if other machines can reach the server.
                let (api, exports) = match options.local {
                    true => (Arc::clone(&api), Arc::clone(&exports)),
                    false => {
                        let api = api_for(true)?;
                        (Arc::clone(&api), exports_for(&api)?)
                    }
                };
                let owner = Owner {
                    pid: std::process::id(),
                    command: options.command,
                    version: build(),
                    epoch: embedded.epoch(),
                    works: options.works,
                    serves: options.scope == Scope::Server,
                    address: None,
                    endpoints: endpoint_digests(&inference, embedded.credentials()),
                    base_urls: base_urls(&inference),
                    sandboxes: sandy
                        .address_and_key()
                        .map(|(address, key)| (address.to_owned(), key.expose().to_owned())),
                };
                share(&options.data_dir, &embedded, owner, api, &exports)?
            }
        };
        Ok(Self {
            library: Library::new(blobs.clone(), library_config.clone()),
            embedded,
            state,
            queues,
            blobs,
            credentials,
            orders: Arc::clone(&api.orders),
            api,
            exports,
            s3_address,
            s3_server,
            sandy,
            sandboxes,
            concurrency,
            places_wanted,
            answer_time: worker_config.answer_time.longest(),
            sync_models,
            scope: options.scope,
            functions,
            running: None,
            inference,
            sharing,
        })
    }

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
        let spec = &record.spec;
        let judge = spec.judge.as_ref().map(|judge| (&judge.model, judge.auth));
        let conflicts = |(model, auth): (&ModelRef, AuthMode)| {
            let provider = Provider::from_name(&model.provider).filter(|_| model.base_url.is_none())?;
            let is_same = match auth {
                AuthMode::ApiKey => {
                    owner.base_urls.get(provider.name).map(String::as_str) == self.own_base_url(provider)
                }
                AuthMode::System => {
                    let own = self.inference.endpoint(provider).ok();
                    let own = own.map(|endpoint| digest(&endpoint, self.embedded.credentials()));
                    owner.endpoints.get(provider.name) == own.as_ref()
                }
            };
            (!is_same).then_some(provider)
        };
        Ok(conflicts((&spec.model, spec.auth)).or_else(|| judge.and_then(conflicts)))
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
        let host = Host::start(self.queues.client(), self.mappings()?);
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

/// Listens on the socket of the data directory, if its file system has sockets.
fn share(
    data_dir: &Path,
    embedded: &Embedded,
    owner: Owner,
    api: Arc<Api>,
    exports: &Arc<Exports>,
) -> Result<Sharing, EmbeddedError> {
    let holds = Holds::new(Arc::clone(&api), embedded.clone());
    let listener = match SocketListener::bind(data_dir) {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::info!(%error, "Other commands can't use the data directory meanwhile: {error}");
            embedded.cannot_share()?;
            None
        }
    };
    let socket = listener.map(|listener| {
        let functions = http_functions(&api, exports, |router| router);
        SocketServer::start(listener, owner, holds.clone(), embedded, functions)
    });
    Ok(Sharing::Owner { holds, socket })
}

/// Returns a router with all HTTP functions.
fn http_functions(api: &Arc<Api>, exports: &Arc<Exports>, add: impl FnOnce(Router) -> Router) -> Router {
    let routes = bench_api::routes(Arc::clone(api)).merge(bench_exports::router(Arc::clone(exports)));
    bench_web::finish_around(routes, api.config.server.clone(), add)
}

/// Returns the configuration for calls to the sandbox host, and the host itself if it is the stack's own.
async fn open_sandboxes(
    data_dir: &Path,
    helper: Option<PathBuf>,
    concurrency: usize,
    var: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<(SandyConfig, Option<BuiltInSandboxes>)> {
    if var("SANDY_BASE_URL").is_some() {
        return Ok((SandyConfig::from_vars(var).map_err(SettingError::new)?, None));
    }
    let built_in =
        BuiltInSandboxes::open(SandboxSettings::from_vars(data_dir, helper, var)?, concurrency).await?;
    Ok((built_in.config.clone(), Some(built_in)))
}
