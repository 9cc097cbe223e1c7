//! Serves the embedded services on a socket, for functions in separate processes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use bench_embedded::http::{Connections, serve};
use bench_embedded::{ACCOUNT_ID, Durability, KMS_KEY_ID, REGION, Recorder};
use bench_queue::QueueName;
use bench_stack::{Stack, StackOptions};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// File with all root certificates of this machine. Without this variable, the SDK reads the folder next to it as
/// well, which adds a millisecond or two to a start (`docs/speed.md`). On Lambda it is
/// `/etc/pki/tls/certs/ca-bundle.crt`.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Key in `bench-owners` that functions use to identify owners.
pub const OWNER_KEY: &str = "an owner key for tests, of 32 characters at least";

/// Secrets in Secrets Manager.
const SECRETS: [(&str, &str); 4] = [
    ("bench-owners", r#"{"BENCH_OWNER_KEY":"an owner key for tests, of 32 characters at least"}"#),
    ("bench-admin", r#"{"ADMIN_SECRET":"an admin secret for tests"}"#),
    ("bench-operator", "{}"),
    (
        "bench-signing",
        r#"{"BENCH_SIGNING_PRIVATE_KEY":"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"}"#,
    ),
];

/// A stack whose services listen on loopback. Stops when it is dropped.
pub struct AwsEndpoint {
    /// The stack, whose tables, queues and bucket the functions use.
    pub stack: Stack,
    /// Counts the connections that functions open.
    pub connections: Connections,
    url: String,
    task: JoinHandle<()>,
}

impl AwsEndpoint {
    /// Opens a stack in a folder and listens on a free port.
    ///
    /// # Errors
    /// Fails if the stack can't be opened or no port is free.
    pub async fn start(dir: &Path, recorder: Option<Recorder>) -> anyhow::Result<Self> {
        let mut options = StackOptions::new(dir);
        options.durability = Durability::Normal;
        options.recorder = recorder;
        options.key_wrapper = Some(crate::kms_wrapper(KMS_KEY_ID));
        options.vars = [("HF_HUB_OFFLINE".to_owned(), "1".to_owned())].into();
        options.secrets = SECRETS.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let stack = Stack::open(options).await?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("binding the AWS endpoint")?;
        let url = format!("http://{}", listener.local_addr()?);
        let connections = Connections::default();
        let (embedded, counted) = (stack.embedded.clone(), connections.clone());
        let task = tokio::spawn(async move {
            let _ = serve(&embedded, listener, counted).await;
        });
        Ok(Self { stack, connections, url, task })
    }

    /// Returns the environment of a function, as the template defines it.
    ///
    /// # Errors
    /// Fails if the stack lacks a queue.
    pub fn vars(&self, function: &str) -> anyhow::Result<BTreeMap<String, String>> {
        let keys = self.stack.embedded.credentials();
        let queue = |name| anyhow::Ok(self.stack.queues.url(name)?.to_owned());
        let secrets = match function {
            "bench-api" => "bench-owners,bench-admin,bench-operator",
            "bench-exports" => "bench-signing,bench-owners,bench-admin",
            "bench-planner" | "bench-worker" | "bench-turns" | "bench-scheduler" => "bench-operator",
            _ => "",
        };
        let vars = [
            ("AWS_ENDPOINT_URL", self.url.clone()),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_ACCESS_KEY_ID", keys.access_key_id.clone()),
            ("AWS_SECRET_ACCESS_KEY", keys.secret_access_key.clone()),
            ("BENCH_TABLE", self.stack.state.table().to_owned()),
            ("BENCH_BUCKET", self.stack.blobs.bucket().to_owned()),
            ("BENCH_CREDENTIALS_TABLE", "bench-runner-credentials".to_owned()),
            ("BENCH_QUEUE_PLANS_URL", queue(QueueName::Plans)?),
            ("BENCH_QUEUE_ITEMS_URL", queue(QueueName::Items)?),
            ("BENCH_QUEUE_TURNS_URL", queue(QueueName::Turns)?),
            ("BENCH_QUEUE_FINISHES_URL", queue(QueueName::Finishes)?),
            ("BENCH_KMS_KEY_ID", KMS_KEY_ID.to_owned()),
            ("BENCH_TOPIC_ARN", format!("arn:aws:sns:{REGION}:{ACCOUNT_ID}:bench")),
            ("BENCH_METRICS_NAMESPACE", "Bench".to_owned()),
            ("BENCH_SECRETS", secrets.to_owned()),
            ("SSL_CERT_FILE", CERTIFICATES.to_owned()),
            ("HF_HUB_OFFLINE", "1".to_owned()),
            ("SKIP_MODEL_SYNC", "true".to_owned()),
        ];
        let vars = vars.into_iter().filter(|(_, value)| !value.is_empty());
        Ok(vars.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns the URL of the services.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for AwsEndpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}
