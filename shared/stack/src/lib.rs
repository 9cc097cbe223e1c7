//! The whole system in one process: the embedded services, every function, and one port.
//!
//! In the cloud, Lambda and the template connect the functions. Here queues drive the functions, HTTP functions share a
//! router, and timers start the scheduler's tasks. The functions are the same.

mod built_in;
mod keys;
mod mappings;
mod options;
pub mod sandboxes;
mod timers;

pub use self::keys::{key_ring_from_vars, keys_dir};
pub use self::options::{
    CONCURRENCY_DEFAULT, CONCURRENCY_MAX, KeyWrapperFactory, SettingError, StackOptions,
};

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use bench_api::{Api, ApiConfig};
use bench_blobs::Blobs;
use bench_datasets::{Library, LibraryConfig, Progress};
use bench_dead_letters::DeadLetters;
use bench_domain::{RunId, RunStatus};
use bench_embedded::host::Host;
use bench_embedded::{Embedded, EmbeddedOptions};
use bench_exports::{Exports, ExportsConfig};
use bench_finisher::Finisher;
use bench_http_server::Limits;
use bench_inference::{ChatClient, InferenceConfig};
use bench_pipeline::{Ledgers, Pipeline, PipelineConfig, SandboxHost, Services};
use bench_planner::Planner;
use bench_queue::{QueueSettings, Queues};
use bench_runs::Orders;
use bench_sandy::SandyConfig;
use bench_scheduler::{Scheduler, SchedulerConfig};
use bench_state::credentials::{Credentials, KeyWrapper, LocalKey, OwnerKey};
use bench_state::{RunFilter, State};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use self::built_in::BuiltInSandboxes;
use self::keys::{key_ring, master_key};
use self::mappings::{LONG_INVOCATION, RESERVE};
use self::sandboxes::{FILES, SandboxSettings};
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
    answer_time: Duration,
    sync_models: bool,
    functions: Functions,
    running: Option<Running>,
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
}

struct SharedProgress(Arc<dyn Progress>);

impl Progress for SharedProgress {
    fn step(&self, step: bench_datasets::Step<'_>) {
        self.0.step(step);
    }
}

impl Stack {
    /// Opens the services and creates what is missing. No function works yet.
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
        let embedded = Embedded::open(embedded)?;
        let concurrency = options.concurrency.clamp(1, CONCURRENCY_MAX);
        let (sandy, sandboxes) =
            open_sandboxes(&options.data_dir, options.sandbox_helper, concurrency, var).await?;
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
        let scope = options.scope;
        let state_of = |function| State::new(&of(function), TABLE, embedded.epoch()).scoped(scope);
        let state = State::new(&config, TABLE, embedded.epoch()).scoped(scope);
        state.ensure_table().await?;
        let queues = Queues::create(&config, QUEUE_PREFIX, settings).await?;
        let queues_of = |function| queues.with_config(&of(function));
        let mut blobs = Blobs::new(&config, BUCKET);
        blobs.ensure_bucket().await?;
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
        credentials.ensure_table().await?;
        let credentials_of = |function| credentials_of(&of(function));
        let is_benchmark = |name: &str| bench_benchmarks::find(name).is_some();
        let library_config =
            LibraryConfig::from_vars(options.data_dir.join("downloads"), options.vars.clone(), is_benchmark)
                .map_err(SettingError::new)?;
        let library_of = |function| Library::new(blobs_of(function), library_config.clone());
        let mut api_config = ApiConfig::from_vars(var, options.local, VERSION).map_err(SettingError::new)?;
        api_config.item_concurrency = worker_config.identity.item_concurrency;
        api_config.sandy = sandy.clone();
        let api = Api::new(
            state_of("api"),
            queues_of("api"),
            blobs_of("api"),
            credentials_of("api"),
            library_of("api"),
            Arc::clone(&owners),
            api_config,
        );
        // A resumed run's messages are delivered again.
        let queued = embedded.clone();
        let api = Arc::new(api.on_resume(move |run| queued.resume_group(run.to_string())));
        let exports_config = ExportsConfig {
            gated: bench_benchmarks::gated(),
            git_sha: option_env!("BENCH_GIT_SHA").map(str::to_owned),
            // The S3 listener uses loopback, so only programs on this machine can reach it.
            direct_uploads: s3_address.is_some(),
            ..ExportsConfig::new(VERSION, api.access.clone())
        };
        let keys = key_ring(&options.data_dir, var)?;
        let exports =
            Arc::new(Exports::new(state_of("exports"), blobs_of("exports"), Ok(keys), exports_config));
        let mut scheduler_config =
            SchedulerConfig::from_vars(var, options.local, VERSION).map_err(SettingError::new)?;
        scheduler_config.sandy = sandy.clone();
        // The lists are public, but only useful if their models can be called.
        let listed = &scheduler_config.runs.inference;
        let sync_models = scheduler_config.sync_models
            && listed.public_lists().any(|(provider, _)| listed.is_configured(provider));
        let ledgers = Ledgers::default();
        let sandbox_host = || {
            let host = SandboxHost::new(sandy.clone());
            match sandboxes.is_some() {
                true => host.on_this_machine(options.data_dir.join(FILES)),
                false => host,
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
            answer_time: worker_config.answer_time.longest(),
            sync_models,
            functions,
            running: None,
        })
    }

    /// Returns the scheduler, for callers that don't want to wait for its timers.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.functions.scheduler
    }

    /// Returns the address of the sandbox host: the server that `SANDY_BASE_URL` names, else the stack's own host.
    pub fn sandy_config(&self) -> SandyConfig {
        self.sandy.clone()
    }

    /// Returns a router with all HTTP functions.
    pub fn router(&self) -> Router {
        let routes = bench_api::routes(Arc::clone(&self.api));
        let routes = routes.merge(bench_exports::router(Arc::clone(&self.exports)));
        bench_web::finish(routes, self.api.config.server.clone())
    }

    /// Lets the queues drive the functions. Open runs in the stack's scope continue immediately.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        // Must happen before any message is received, so that messages of other runs stay in the queues untouched.
        let interrupted = self.interrupted_runs().await?;
        self.embedded.pause_groups(interrupted.iter().map(ToString::to_string).collect()).await?;
        let host = Host::start(self.queues.client(), self.mappings()?);
        self.functions.scheduler.resume().await?;
        self.running =
            Some(Running { host, timers: TaskTimers::start_reconciliation(&self.functions.scheduler) });
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

    /// Accepts no more work, and waits up to `grace` for invocations in progress. Returns true if all of them ended.
    /// The services stay open.
    pub async fn drain(&mut self, grace: Duration) -> bool {
        match &mut self.running {
            Some(running) => running.host.drain(grace).await,
            None => true,
        }
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
        self.embedded.close();
    }
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
