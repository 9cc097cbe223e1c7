//! Opens the services and functions of a stack.

use std::net::Ipv4Addr;
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
use bench_embedded::socket::SocketListener;
use bench_embedded::{ENDPOINT, Embedded, EmbeddedError, EmbeddedOptions};
use bench_exports::{Exports, ExportsConfig};
use bench_finisher::Finisher;
use bench_http_server::Limits;
use bench_inference::{ChatClient, InferenceConfig};
use bench_pipeline::{Ledgers, Pipeline, PipelineConfig, SandboxHost, Services};
use bench_planner::Planner;
use bench_queue::{QueueSettings, Queues};
use bench_sandy::SandyConfig;
use bench_scheduler::{Scheduler, SchedulerConfig};
use bench_state::credentials::{Credentials, KeyWrapper, LocalKey, OwnerKey};
use bench_state::{Origin, Scope, State};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::attach::{Attachment, build, open_or_attach};
use super::built_in::BuiltInSandboxes;
use super::direct::EmbeddedTable;
use super::holds::Holds;
use super::keys::{key_ring, master_key};
use super::mappings::{LONG_INVOCATION, RESERVE};
use super::owner::{base_urls, endpoint_digests, session_addresses};
use super::sandboxes::{FILES, SandboxSettings};
use super::socket::SocketServer;
use super::{
    CONCURRENCY_MAX, Functions, Owner, SettingError, Sharing, Stack, StackOptions, VERSION, http_functions,
};

/// Name of the table on the embedded stack. Names of table, bucket and queues are fixed, since nothing else uses these
/// services.
const TABLE: &str = "bench-runner";
const CREDENTIALS_TABLE: &str = "bench-runner-credentials";
const BUCKET: &str = "bench-runner";
const QUEUE_PREFIX: &str = "bench-";
/// Maximum number of connections to the bucket's listener, from `bench` and from programs of this machine that have a
/// presigned address.
const S3_CONNECTIONS_MAX: usize = 128;

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
        worker_config.groups_commits = options.groups_commits;
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
        let state_of = |function| {
            let state = scoped(State::new(&of(function), TABLE, embedded.epoch()));
            match embedded.direct_tables_for(function) {
                Some(tables) => state.with_direct_table(Arc::new(EmbeddedTable(tables))),
                None => state,
            }
        };
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
            let blobs = match embedded.connector_for(function) {
                Some(connector) => blobs.with_unsigned_requests(connector, ENDPOINT),
                None => blobs,
            };
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
            }
            .with_public_address(var("FRONTEND_URL").as_deref());
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
                shards_max: if options.groups_commits { 1 } else { u32::MAX },
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
                    session_addresses: session_addresses(&inference),
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
    Ok((built_in.config().clone(), Some(built_in)))
}
