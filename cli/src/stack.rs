//! The whole system in one process: the embedded services, every function, one port.
//!
//! What Lambda and the template do in the cloud happens here: queues drive the functions, HTTP
//! functions share a router, the scheduler is woken by the clock. The functions are the same.

mod sandboxes;
mod wakes;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::Router;
use bench_api::{Api, ApiConfig};
use bench_blobs::Blobs;
use bench_datasets::{Library, LibraryConfig, NoProgress, Progress};
use bench_dead_letters::DeadLetters;
use bench_domain::{RunId, RunStatus};
use bench_embedded::host::{Handler, Host, Mapping};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Faults, Recorder};
use bench_exports::{Exports, ExportsConfig};
use bench_finisher::Finisher;
use bench_http_server::Limits;
use bench_inference::{ChatClient, InferenceConfig, ProviderKind};
use bench_lambda::{Deadline, KmsKey, SqsBatchResponse, SqsEvent};
use bench_pipeline::{Ledgers, PipelineConfig, SandboxHost, Services, Turns, Worker};
use bench_planner::Planner;
use bench_queue::{QueueName, QueueSettings, Queues};
use bench_sandy::SandyConfig;
use bench_scheduler::{Scheduler, SchedulerConfig};
use bench_signing::{KeyRing, RingConfig};
use bench_state::credentials::{Credentials, KEY_BYTES, KeyWrapper, LocalKey, OwnerKey};
use bench_state::{RunFilter, Scope, State};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use self::sandboxes::BuiltIn;
use self::wakes::Wakes;
use crate::sandboxes::{FILES, SandboxSettings};

/// Version of this program, as runs and exports name it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Names of table, bucket and queues on the embedded stack: nobody else is there.
const TABLE: &str = "bench-runner";
const CREDENTIALS_TABLE: &str = "bench-runner-credentials";
const BUCKET: &str = "bench-runner";
const QUEUE_PREFIX: &str = "bench-";
/// Samples worked on at once unless said otherwise.
pub const CONCURRENCY_DEFAULT: usize = 16;
/// Connections to the bucket's listener: `bench`, and programs of this machine that have a presigned address.
const S3_CONNECTIONS_MAX: usize = 128;
/// Upper bound of samples worked on at once.
pub const CONCURRENCY_MAX: usize = 2_000;
/// How long planning or closing a run may take: a large dataset is downloaded within it.
const LONG_INVOCATION: Duration = Duration::from_secs(3_600);
/// How long a dead letter may take.
const SHORT_INVOCATION: Duration = Duration::from_secs(300);
/// What an invocation has besides its answers' time limit.
const RESERVE: Duration = Duration::from_secs(60);

/// How a stack is opened.
pub struct StackOptions {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Faults to inject; for tests.
    pub faults: Option<Faults>,
    /// Observer of every call to the services; for tests.
    pub recorder: Option<Recorder>,
    /// Secrets that Secrets Manager holds, by name; for functions that run in processes of their own.
    pub secrets: BTreeMap<String, String>,
    /// Samples worked on at once.
    pub concurrency: usize,
    /// Hears of dataset downloads.
    pub progress: Arc<dyn Progress>,
    /// Bound to loopback: whoever sits at this machine needs no key.
    pub local: bool,
    /// The runs that it works on. The others of the data directory stay as they are: not asked, not paid for.
    pub scope: Scope,
    /// When a message that failed comes again the first time; shorter for tests.
    pub again: Duration,
    /// Lets programs on this machine reach the bucket, on a free loopback port: presigned addresses work there.
    pub s3_listener: bool,
    /// Program that the built-in sandbox host runs as its helper; this program itself where it is not said. For tests,
    /// whose own program is no `bench`.
    pub sandbox_helper: Option<PathBuf>,
    /// Variables of the environment, as every function reads them.
    pub vars: BTreeMap<String, String>,
}

impl StackOptions {
    /// The defaults, with the variables of this process.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            durability: Durability::Full,
            faults: None,
            recorder: None,
            secrets: BTreeMap::new(),
            concurrency: CONCURRENCY_DEFAULT,
            progress: Arc::new(NoProgress),
            local: true,
            scope: Scope::Server,
            again: QueueSettings::default().again,
            s3_listener: false,
            sandbox_helper: None,
            vars: std::env::vars().collect(),
        }
    }
}

/// The system, opened.
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
    /// The API's functions, for callers in this process.
    pub api: Arc<Api>,
    /// The exports' functions, for callers in this process.
    pub exports: Arc<Exports>,
    /// Where the bucket answers to programs on this machine.
    pub s3_address: Option<SocketAddr>,
    s3_server: Option<AbortOnDropHandle<()>>,
    sandy: SandyConfig,
    sandboxes: Option<BuiltIn>,
    concurrency: usize,
    answer_time: Duration,
    sync_models: bool,
    functions: Functions,
    running: Option<Running>,
}

struct Functions {
    planner: Arc<Planner>,
    worker: Arc<Worker>,
    turns: Arc<Turns>,
    finisher: Arc<Finisher>,
    dead_letters: Arc<DeadLetters>,
    scheduler: Arc<Scheduler>,
}

struct Running {
    host: Host,
    /// End when they are dropped.
    wakes: Wakes,
}

struct Shared(Arc<dyn Progress>);

impl Progress for Shared {
    fn step(&self, step: bench_datasets::Step<'_>) {
        self.0.step(step);
    }
}

impl Stack {
    /// Opens the services and makes what is not there. No work is done yet.
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
        let mut worker_config = PipelineConfig::from_vars(var)?;
        worker_config.identity.item_concurrency = concurrency as u64;
        let inference = InferenceConfig::from_vars(var)?;
        let timeout = worker_config.answer_time.longest() + 2 * RESERVE;
        let settings = QueueSettings {
            visibility_timeout: 6 * timeout.max(LONG_INVOCATION).min(Duration::from_secs(7_200)),
            again: options.again,
            ..QueueSettings::default()
        };
        // Each function has clients of its own: a recorder can tell who calls.
        let of = |function| embedded.sdk_config_for(function);
        let scope = options.scope;
        let state_of = |function| State::new(&of(function), TABLE, embedded.epoch()).scoped(scope);
        let state = State::new(&config, TABLE, embedded.epoch()).scoped(scope);
        state.ensure_table().await?;
        let queues = Queues::create(&config, QUEUE_PREFIX, settings).await?;
        let queues_of = |function| queues.through(&of(function));
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
            blobs = blobs.presigned_at(&format!("http://{address}"));
            s3_address = Some(address);
        }
        let blobs_of = |function| {
            let blobs = Blobs::new(&of(function), BUCKET);
            match s3_address {
                Some(address) => blobs.presigned_at(&format!("http://{address}")),
                None => blobs,
            }
        };
        let master = master_key(&options.data_dir)?;
        let owners = Arc::new(OwnerKey::of_master(&master));
        // With a KMS key callers' keys are protected as they are deployed, by the KMS in this process.
        let local = Arc::new(LocalKey::new(&master)?);
        let kms_key = var("BENCH_KMS_KEY_ID");
        let credentials_of = |config: &_| {
            let wrapper: Arc<dyn KeyWrapper> = match &kms_key {
                Some(key_id) => Arc::new(KmsKey::new(config, key_id.clone())),
                None => Arc::clone(&local) as _,
            };
            Credentials::new(config, CREDENTIALS_TABLE, wrapper)
        };
        let credentials = credentials_of(&config);
        credentials.ensure_table().await?;
        let credentials_of = |function| credentials_of(&of(function));
        let library_config =
            LibraryConfig::from_vars(options.data_dir.join("downloads"), options.vars.clone());
        let library_of = |function| Library::new(blobs_of(function), library_config.clone());
        let mut api_config = ApiConfig::from_vars(var, options.local, VERSION).map_err(anyhow::Error::msg)?;
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
        // Its messages are handed out again.
        let queued = embedded.clone();
        let api = Arc::new(api.on_resume(move |run| queued.resume_group(run.to_string())));
        let exports_config = ExportsConfig {
            gated: bench_benchmarks::gated(),
            git_sha: option_env!("BENCH_GIT_SHA").map(str::to_owned),
            // The S3 listener is on loopback: only who sits at this machine can reach it.
            direct_uploads: s3_address.is_some(),
            ..ExportsConfig::new(VERSION, api.access.clone())
        };
        let keys = key_ring(&options.data_dir, var)?;
        let exports =
            Arc::new(Exports::new(state_of("exports"), blobs_of("exports"), Ok(keys), exports_config));
        let mut scheduler_config = SchedulerConfig::from_vars(var, options.local, VERSION, &of("scheduler"))?;
        scheduler_config.sandy = sandy.clone();
        // The list is public, but of use only to who can ask its models.
        let sync_models =
            scheduler_config.sync_models && scheduler_config.inference.is_configured(ProviderKind::Chutes);
        let ledgers = Ledgers::default();
        let services_of = |function| Services {
            state: state_of(function),
            queues: queues_of(function),
            blobs: blobs_of(function),
            credentials: credentials_of(function),
            chat: ChatClient::new(inference.http_options()),
            inference: inference.clone(),
            ledgers: ledgers.clone(),
        };
        let mut turns_config = worker_config.clone();
        // Operators tell them apart by their names.
        turns_config.identity.worker_id.push_str("/turns");
        let mut sandbox_host = SandboxHost::new(sandy.clone());
        if sandboxes.is_some() {
            sandbox_host = sandbox_host.on_this_machine(options.data_dir.join(FILES));
        }
        let functions = Functions {
            planner: Arc::new(Planner {
                state: state_of("planner"),
                queues: queues_of("planner"),
                library: library_of("planner"),
                progress: Box::new(Shared(options.progress)),
            }),
            worker: Arc::new(Worker::new(services_of("worker"), worker_config.clone())),
            turns: Arc::new(Turns::new(services_of("turns"), turns_config, sandbox_host)),
            finisher: Arc::new(Finisher {
                state: state_of("finisher"),
                queues: queues_of("finisher"),
                blobs: blobs_of("finisher"),
                credentials: credentials_of("finisher"),
            }),
            dead_letters: Arc::new(DeadLetters {
                state: state_of("dead-letters"),
                queues: queues_of("dead-letters"),
                after_outage: 6 * options.again,
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

    /// The scheduler, for who does not want to wait for its clock.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.functions.scheduler
    }

    /// Where sandboxes are made: by the server that `SANDY_BASE_URL` names, else by the stack's own host.
    pub fn sandy_config(&self) -> SandyConfig {
        self.sandy.clone()
    }

    /// All HTTP functions behind one address.
    pub fn router(&self) -> Router {
        let routes = bench_api::routes(Arc::clone(&self.api));
        let routes = routes.merge(bench_exports::router(Arc::clone(&self.exports)));
        bench_web::finish(routes, self.api.config.server.clone())
    }

    /// Lets the queues drive the functions. What was open goes on at once, as far as it is in the stack's scope.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        // Before anything is received: messages of other runs stay in the queues untouched.
        let interrupted = self.interrupted().await?;
        self.embedded.pause_groups(interrupted.iter().map(ToString::to_string).collect()).await?;
        let host = Host::start(self.queues.client(), self.mappings()?);
        self.functions.scheduler.resume().await?;
        self.running = Some(Running { host, wakes: Wakes::reconciling(&self.functions.scheduler) });
        Ok(())
    }

    /// The open runs that this stack does not work on.
    async fn interrupted(&self) -> anyhow::Result<Vec<RunId>> {
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

    /// Serves schedules from now on: for a process that stays. What is not started is not served.
    pub fn serve_schedules(&mut self) {
        if let Some(running) = &mut self.running {
            running.wakes.serve(&self.functions.scheduler, self.sync_models);
        }
    }

    /// Takes no more work and waits up to `grace` for what is being worked on. Returns whether all of it has ended. The
    /// services stay open.
    pub async fn settle(&mut self, grace: Duration) -> bool {
        match &mut self.running {
            Some(running) => running.host.settle(grace).await,
            None => true,
        }
    }

    /// Ends what is being worked on now. It goes on at the next start.
    pub async fn break_off(&mut self) {
        if let Some(running) = &mut self.running {
            running.host.stop(Duration::ZERO).await;
        }
    }

    /// Takes no more work, gives what is being worked on up to `grace`, and closes the services. What was
    /// not finished goes on at the next start.
    pub async fn stop(mut self, grace: Duration) {
        if let Some(mut running) = self.running.take() {
            drop(running.wakes);
            running.host.stop(grace).await;
        }
        self.functions.worker.flush().await;
        self.functions.turns.flush().await;
        if let Some(sandboxes) = self.sandboxes.take() {
            sandboxes.stop().await;
        }
        if let Some(server) = self.s3_server.take() {
            // It holds the bucket's folder until it has really ended.
            server.abort();
            let _ = server.await;
        }
        self.embedded.close();
    }

    fn mappings(&self) -> anyhow::Result<Vec<Mapping>> {
        let functions = &self.functions;
        let (planner, worker) = (Arc::clone(&functions.planner), Arc::clone(&functions.worker));
        let (turns, finisher) = (Arc::clone(&functions.turns), Arc::clone(&functions.finisher));
        let mapping = |name, queue, handler, concurrency, timeout| {
            let queue_url = self.queues.url(queue)?.to_owned();
            anyhow::Ok(Mapping { name, queue_url, handler, batch_size: 1, concurrency, timeout })
        };
        let answers = self.answer_time + 2 * RESERVE;
        let mut mappings = vec![
            mapping(
                "planner",
                QueueName::Plans,
                handler(
                    planner,
                    |planner, event, deadline| async move { planner.handle(event, deadline).await },
                ),
                4,
                LONG_INVOCATION,
            )?,
            mapping(
                "worker",
                QueueName::Items,
                handler(
                    worker,
                    |worker, event, deadline| async move { worker.handle(event, deadline).await },
                ),
                self.concurrency,
                answers,
            )?,
            mapping(
                "turns",
                QueueName::Turns,
                handler(turns, |turns, event, deadline| async move { turns.handle(event, deadline).await }),
                self.concurrency,
                answers,
            )?,
            mapping(
                "finisher",
                QueueName::Finishes,
                handler(finisher, |finisher, event, deadline| async move {
                    finisher.handle(event, deadline).await
                }),
                2,
                LONG_INVOCATION,
            )?,
        ];
        for queue in QueueName::ALL {
            let dead_letters = Arc::clone(&functions.dead_letters);
            let handler = handler(dead_letters, |dead_letters, event, deadline| async move {
                dead_letters.handle(event, deadline).await
            });
            let queue_url = self.queues.dead_letter_url(queue)?;
            mappings.push(Mapping {
                name: "dead-letters",
                queue_url,
                handler,
                batch_size: 10,
                concurrency: 10,
                timeout: SHORT_INVOCATION,
            });
        }
        Ok(mappings)
    }
}

/// Where sandboxes are made, and the host that makes them if it is the stack's own.
async fn open_sandboxes(
    data_dir: &Path,
    helper: Option<PathBuf>,
    concurrency: usize,
    var: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<(SandyConfig, Option<BuiltIn>)> {
    if var("SANDY_BASE_URL").is_some() {
        return Ok((SandyConfig::from_vars(var).map_err(anyhow::Error::msg)?, None));
    }
    let built_in = BuiltIn::open(SandboxSettings::from_vars(data_dir, helper, var)?, concurrency).await?;
    Ok((built_in.config.clone(), Some(built_in)))
}

/// A function as the host calls it.
fn handler<T, F, Fut>(function: Arc<T>, call: F) -> Handler
where
    T: Send + Sync + 'static,
    F: Fn(Arc<T>, SqsEvent, Deadline) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = SqsBatchResponse> + Send + 'static,
{
    Arc::new(move |event, until| Box::pin(call(Arc::clone(&function), event, Deadline(until))))
}

/// Where this installation's signing keys are.
pub fn keys_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("keys")
}

/// The keys of the environment when it names any, else those of the data directory.
fn key_ring(data_dir: &Path, var: impl Fn(&str) -> Option<String>) -> anyhow::Result<KeyRing> {
    let (private, public) = (var("BENCH_SIGNING_PRIVATE_KEY"), var("BENCH_SIGNING_PUBLIC_KEY"));
    if private.is_none() && public.is_none() {
        let dir = keys_dir(data_dir);
        return KeyRing::open(&dir, jiff::Timestamp::now())
            .with_context(|| format!("could not open the signing keys in {}", dir.display()));
    }
    let old = var("BENCH_SIGNING_OLD_PUBLIC_KEYS");
    Ok(KeyRing::from_config(&RingConfig {
        private_key: private.as_deref(),
        public_key: public.as_deref(),
        old_public_keys: old.as_deref(),
        valid_from: None,
    })?)
}

/// The key that protects callers' keys: made on the first start, readable by its owner alone.
fn master_key(data_dir: &Path) -> anyhow::Result<[u8; KEY_BYTES]> {
    let path = data_dir.join("master.key");
    let shown = path.display();
    if !path.exists() {
        // Under another name first: a key that is there is whole. The data directory's lock keeps others out.
        let key = LocalKey::generate()?;
        let new = data_dir.join("master.key.new");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .with_context(|| format!("could not write {shown}"))?;
        file.write_all(&key)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&new, &path))
            .with_context(|| format!("could not write {shown}"))?;
    }
    let mode = fs::metadata(&path).with_context(|| format!("could not read {shown}"))?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("{shown} can be read by others: run `chmod 600 {shown}`");
    }
    let key = fs::read(&path).with_context(|| format!("could not read {shown}"))?;
    key.try_into().map_err(|_| {
        anyhow::anyhow!("{shown} is damaged: remove it; keys of open runs must then be given again")
    })
}
