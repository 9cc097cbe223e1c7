//! Initialization of a function, before its first event.
//!
//! All clients share one SDK configuration and its connections. Init calls each service that the function will need, so
//! that the first event pays no DNS, TCP and TLS. These calls run concurrently with the reading of secrets. Error
//! responses are fine, since they also leave the connection open. Init doesn't wait longer than [`CONNECT_WAIT`]; the
//! first event does the rest.
//!
//! KMS is left out on purpose: it is called once per run and environment, and every call adds an entry to the account's
//! audit log.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_types::SdkConfig;
#[cfg(feature = "blobs")]
use bench_blobs::Blobs;
use bench_queue::{QueueName, Queues};
use bench_state::State;
use futures_util::future::join_all;

use crate::metrics;
use crate::vars::Vars;

/// Maximum time that init waits for connections.
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// Timeout of a TCP and TLS handshake, which takes milliseconds within a region.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout for the start of a service's response. The slowest is S3 when it receives a part of 5 MiB.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of attempts per call, unless a client overrides it. With the SDK's waits (doubling from up to one
/// second), a call outlasts throttling of about ten seconds.
const TRIES_MAX: u32 = 6;
/// Time after which an idle connection is dropped, close to the time after which services close theirs. After an
/// environment was frozen, the services have closed its connections. The HTTP client or the SDK's retry then repeats
/// the call on a new connection.
const IDLE: Duration = Duration::from_secs(50);

/// Service to connect to during init, with a call that the function's role allows anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmService {
    /// DynamoDB, by `GetItem` of a missing key.
    Table,
    /// S3, by `HeadObject` of a missing key.
    #[cfg(feature = "blobs")]
    Bucket,
    /// SQS, by `GetQueueAttributes` of the queue that drives the function.
    Queue(QueueName),
    /// SQS, by `GetQueueAttributes` of a queue's dead-letter queue.
    DeadLetters(QueueName),
}

/// Result of a function's init.
#[derive(Debug, Clone)]
pub struct Init {
    /// Configuration of every AWS client.
    pub aws: SdkConfig,
    /// Variables of the function, including secrets.
    pub vars: Vars,
}

impl Init {
    /// Starts logs and metrics, reads variables and secrets, and opens connections.
    ///
    /// # Errors
    /// Names the secret that can't be read. The function then ends, and Lambda logs the error.
    pub async fn start(warm: &[WarmService]) -> anyhow::Result<Self> {
        init_tracing();
        let environment = Vars::from_env();
        if let Some(namespace) = environment.get("BENCH_METRICS_NAMESPACE") {
            let function = environment.get("AWS_LAMBDA_FUNCTION_NAME");
            metrics::start(&namespace, function.as_deref().unwrap_or("unknown"));
        }
        let aws = sdk_config().await;
        // The names of table, bucket and queues aren't secrets, so the environment has them.
        let connected = connect(&aws, &environment, warm);
        let (vars, ()) = futures_util::join!(environment.clone().with_secrets(&aws), connected);
        Ok(Self { aws, vars: vars? })
    }
}

/// Writes logs as JSON lines, filtered by `RUST_LOG` (default `info`).
fn init_tracing() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().json().with_env_filter(filter).with_current_span(false).without_time().init();
}

/// Loads the SDK's configuration from the environment, with TLS by rustls and ring.
///
/// Uses standard retries: throttles and broken connections are retried with growing, jittered waits. The adaptive mode
/// would hold back all calls of a client for the throttling of one table key. A stream without data for five seconds is
/// ended and read again.
async fn sdk_config() -> SdkConfig {
    let http =
        Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).pool_idle_timeout(IDLE).build_https();
    let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT);
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(http)
        .timeout_config(timeouts.build())
        .retry_config(RetryConfig::standard().with_max_attempts(TRIES_MAX))
        .stalled_stream_protection(StalledStreamProtectionConfig::enabled().build())
        .load()
        .await
}

/// Calls each service once. Never fails, since the first event reports any problem.
async fn connect(aws: &SdkConfig, vars: &Vars, warm: &[WarmService]) {
    let calls = warm.iter().filter_map(|service| call(aws, vars, *service));
    if tokio::time::timeout(CONNECT_WAIT, join_all(calls)).await.is_err() {
        tracing::info!("Connections are not open after {CONNECT_WAIT:?}; the first event waits for them");
    }
}

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

fn call(aws: &SdkConfig, vars: &Vars, service: WarmService) -> Option<Call> {
    let answered = move |answer: Result<(), String>| {
        if let Err(error) = answer {
            tracing::debug!(service = ?service, error, "The call that opens a connection was refused");
        }
    };
    Some(match service {
        WarmService::Table => {
            let state = State::new(aws, vars.get("BENCH_TABLE")?, 0);
            Box::pin(async move { answered(state.touch().await.map_err(|error| error.to_string())) })
        }
        #[cfg(feature = "blobs")]
        WarmService::Bucket => {
            let blobs = Blobs::new(aws, vars.get("BENCH_BUCKET")?);
            Box::pin(async move {
                answered(blobs.head("no/such/object").await.map(drop).map_err(|error| error.to_string()));
            })
        }
        WarmService::Queue(name) | WarmService::DeadLetters(name) => {
            let queues = Queues::from_vars(aws, vars.lookup());
            queues.url(name).ok()?;
            Box::pin(async move {
                let depth = match service {
                    WarmService::DeadLetters(_) => queues.dead_depth(name).await,
                    _ => queues.depth(name).await,
                };
                answered(depth.map(drop).map_err(|error| error.to_string()));
            })
        }
    })
}
