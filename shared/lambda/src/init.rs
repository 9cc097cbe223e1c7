//! What a function does once, before its first event.
//!
//! One SDK configuration for all clients, so that they share connections, and a call to each service that the
//! function will need, so that the first event pays no DNS, TCP and TLS. The calls run beside the reading of
//! secrets. An answer that refuses is as good as any, since the connection is then open; one that takes longer
//! than [`CONNECT_WAIT`] is not waited for, and the first event does what is left.
//!
//! KMS is left out on purpose: it is asked once per run and environment, and every call is an entry in the
//! account's audit log.

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

/// How long init waits for connections.
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// How long a TCP and TLS handshake may take. It takes milliseconds within a region.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a service may take to begin its answer. The slowest here is S3 taking an 8 MiB part.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a call is sent at most, unless a client says otherwise. With the SDK's waits (doubling from up to
/// one second) a throttle of some ten seconds is ridden out within the call.
const TRIES_MAX: u32 = 6;
/// How long a connection rests before it is given up. Services close theirs after about that long. An
/// environment that was frozen finds its connections closed by the other side; a call that meets one is sent
/// again on a new connection, by the HTTP client or by the SDK's retry.
const IDLE: Duration = Duration::from_secs(50);

/// A service that a function opens a connection to, by a call that its role allows anyhow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warm {
    /// DynamoDB, by `GetItem` of a key that is not there.
    Table,
    /// S3, by `HeadObject` of a key that is not there.
    #[cfg(feature = "blobs")]
    Bucket,
    /// SQS, by `GetQueueAttributes` of the queue that drives the function.
    Queue(QueueName),
    /// SQS, by `GetQueueAttributes` of a queue's dead-letter queue.
    DeadLetters(QueueName),
}

/// What a function has after its init.
#[derive(Debug, Clone)]
pub struct Init {
    /// The configuration of every AWS client.
    pub aws: SdkConfig,
    /// The function's variables, secrets included.
    pub vars: Vars,
}

impl Init {
    /// Starts logs and metrics, reads variables and secrets, and opens connections.
    ///
    /// # Errors
    /// Names the secret that could not be read. The function then ends, and Lambda's log has the error.
    pub async fn start(warm: &[Warm]) -> anyhow::Result<Self> {
        init_tracing();
        let environment = Vars::of_process();
        if let Some(namespace) = environment.get("BENCH_METRICS_NAMESPACE") {
            let function = environment.get("AWS_LAMBDA_FUNCTION_NAME");
            metrics::start(&namespace, function.as_deref().unwrap_or("unknown"));
        }
        let aws = sdk_config().await;
        // The names of table, bucket and queues are no secrets: they are in the environment.
        let connected = connect(&aws, &environment, warm);
        let (vars, ()) = futures_util::join!(environment.clone().with_secrets(&aws), connected);
        Ok(Self { aws, vars: vars? })
    }
}

/// Logs as JSON lines, filtered by `RUST_LOG` (default `info`).
fn init_tracing() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().json().with_env_filter(filter).with_current_span(false).without_time().init();
}

/// The SDK's configuration from the environment, with TLS by rustls and ring.
///
/// Retries are the standard ones: throttles and broken connections, with growing, jittered waits. The adaptive
/// mode is not used, since it holds back all calls of a client for the throttling of one table key. A stream
/// that stands still for five seconds is ended and read again.
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

/// Calls each service once. Never fails: what is wrong shows at the first event, with its error.
async fn connect(aws: &SdkConfig, vars: &Vars, warm: &[Warm]) {
    let calls = warm.iter().filter_map(|service| call(aws, vars, *service));
    if tokio::time::timeout(CONNECT_WAIT, join_all(calls)).await.is_err() {
        tracing::info!("Connections are not open after {CONNECT_WAIT:?}; the first event waits for them");
    }
}

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

fn call(aws: &SdkConfig, vars: &Vars, service: Warm) -> Option<Call> {
    let answered = move |answer: Result<(), String>| {
        if let Err(error) = answer {
            tracing::debug!(service = ?service, error, "The call that opens a connection was refused");
        }
    };
    Some(match service {
        Warm::Table => {
            let state = State::new(aws, vars.get("BENCH_TABLE")?, 0);
            Box::pin(async move { answered(state.touch().await.map_err(|error| error.to_string())) })
        }
        #[cfg(feature = "blobs")]
        Warm::Bucket => {
            let blobs = Blobs::new(aws, vars.get("BENCH_BUCKET")?);
            Box::pin(async move {
                answered(blobs.head("no/such/object").await.map(drop).map_err(|error| error.to_string()));
            })
        }
        Warm::Queue(name) | Warm::DeadLetters(name) => {
            let queues = Queues::from_vars(aws, vars.lookup());
            queues.url(name).ok()?;
            Box::pin(async move {
                let depth = match service {
                    Warm::DeadLetters(_) => queues.dead_depth(name).await,
                    _ => queues.depth(name).await,
                };
                answered(depth.map(drop).map_err(|error| error.to_string()));
            })
        }
    })
}
