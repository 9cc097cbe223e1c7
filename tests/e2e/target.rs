//! Stack that the suite runs against.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `BENCH_E2E_URL` | address of the API without a trailing slash; if unset, the suite starts the embedded stack |
//! | `BENCH_E2E_ADMIN_SECRET` | the operator's secret of that stack |
//! | `BENCH_E2E_MODEL_LOG` | log file of a model server started with `--serve-model PORT`, which the functions ask |
//! | `BENCH_E2E_TABLE`, `BENCH_E2E_CREDENTIALS_TABLE`, `BENCH_E2E_BUCKET` | names of the tables for state and keys, and of the bucket |
//! | `BENCH_QUEUE_PLANS_URL`, `BENCH_QUEUE_ITEMS_URL`, `BENCH_QUEUE_FINISHES_URL` | addresses of the queues |
//! | `BENCH_E2E_MAINTENANCE` | true: the server is in maintenance, and only scenarios for that run |
//! | `BENCH_E2E_DEPLOYS` | true: the stack is deployed again meanwhile, and reads that a deployment interrupted are repeated |
//! | `BENCH_E2E_NOTES` | file to which the suite writes texts to look for in the logs, one JSON object per line |
//!
//! The SDK finds AWS itself through its environment (`AWS_ENDPOINT_URL`, `AWS_REGION`, credentials).

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use bench_blobs::Blobs;
use bench_queue::Queues;
use bench_tests::conversation::right_reply;
use bench_tests::files::files_with;
use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use serde_json::Value;

/// A model that answers `A` to everything.
pub(crate) const ANSWERS_A: &str = "openai-compatible/answers-a";
/// A judge that accepts everything.
pub(crate) const ACCEPTS: &str = "openai-compatible/accepts";
/// A model that never answers.
pub(crate) const HANGS: &str = "openai-compatible/hangs";
/// A model that answers slowly.
pub(crate) const SLOW: &str = "openai-compatible/slow";

/// An agent that solves [`bench_tests::conversation::TASK`] with [`CUSTOMER`].
pub(crate) const SUPPORTS: &str = "openai-compatible/supports";
/// A user simulator.
pub(crate) const CUSTOMER: &str = "openai-compatible/customer";

/// A stack, and what its operator knows about it.
pub(crate) struct Target {
    /// Address of the API, without a trailing slash.
    pub(crate) base_url: String,
    pub(crate) admin_secret: String,
    pub(crate) model: ModelEndpoint,
    pub(crate) aws: AwsServices,
    pub(crate) http: reqwest::Client,
    pub(crate) is_in_maintenance: bool,
    /// True if a deployment may replace functions during a response.
    pub(crate) is_redeployed: bool,
    /// Maximum wait for a condition.
    pub(crate) patience: Duration,
    notes: Option<Mutex<std::fs::File>>,
}

/// Services behind the stack, with the operator's access.
pub(crate) struct AwsServices {
    pub(crate) queues: Queues,
    pub(crate) blobs: Blobs,
    pub(crate) stored: RawStorage,
}

/// Raw storage that can be searched.
pub(crate) enum RawStorage {
    /// Files of the embedded services.
    Files(PathBuf),
    /// Tables.
    Tables(aws_sdk_dynamodb::Client, Vec<String>),
}

impl Target {
    /// Returns the deployed stack that the variables name.
    pub(crate) async fn from_vars() -> Option<Self> {
        let base_url = var("BENCH_E2E_URL")?;
        let required = |name: &str| var(name).unwrap_or_else(|| panic!("{name} is not set"));
        let config = sdk_config().await;
        let tables = ["BENCH_E2E_TABLE", "BENCH_E2E_CREDENTIALS_TABLE"].map(required).to_vec();
        let aws = AwsServices {
            queues: Queues::from_vars(&config, var),
            blobs: Blobs::new(&config, required("BENCH_E2E_BUCKET")),
            stored: RawStorage::Tables(aws_sdk_dynamodb::Client::new(&config), tables),
        };
        let notes = var("BENCH_E2E_NOTES").map(|path| {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            Mutex::new(file.expect("BENCH_E2E_NOTES can be written"))
        });
        let mut target = Self::new(
            base_url,
            required("BENCH_E2E_ADMIN_SECRET"),
            ModelEndpoint::Served(required("BENCH_E2E_MODEL_LOG").into()),
            aws,
        );
        target.is_in_maintenance = var("BENCH_E2E_MAINTENANCE").as_deref() == Some("true");
        target.is_redeployed = var("BENCH_E2E_DEPLOYS").as_deref() == Some("true");
        // A message that can't be handled is retried for seven minutes before it is a dead letter, and dead letters are
        // received every five minutes.
        target.patience = Duration::from_secs(1_080);
        target.notes = notes;
        Some(target)
    }

    pub(crate) fn new(
        base_url: String,
        admin_secret: String,
        model: ModelEndpoint,
        aws: AwsServices,
    ) -> Self {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()
            .expect("a client can be made");
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            admin_secret,
            model,
            aws,
            http,
            is_in_maintenance: false,
            is_redeployed: false,
            patience: Duration::from_secs(120),
            notes: None,
        }
    }

    /// Writes a note for the script that reads the deployed functions' logs.
    pub(crate) fn note(&self, note: &Value) {
        if let Some(notes) = &self.notes {
            writeln!(notes.lock().unwrap(), "{note}").unwrap();
        }
    }

    /// Returns true if a run has no objects left.
    pub(crate) async fn is_gone(&self, run: &str) -> bool {
        let id = run.parse().expect("a run's id");
        for prefix in [bench_blobs::bodies_prefix(id), bench_blobs::exports_prefix(id)] {
            if !self.aws.blobs.list(&prefix, None).await.expect("objects can be listed").0.is_empty() {
                return false;
            }
        }
        true
    }

    /// Returns the names of files or tables that contain a text in plain form.
    pub(crate) async fn find_text(&self, text: &str) -> Vec<String> {
        match &self.aws.stored {
            RawStorage::Files(folder) => files_with(folder, text),
            RawStorage::Tables(client, tables) => {
                let mut found = Vec::new();
                for table in tables {
                    let mut pages = client.scan().table_name(table).into_paginator().send();
                    while let Some(page) = pages.next().await {
                        let page = page.expect("the table can be read");
                        if page.items().iter().flat_map(|item| item.values()).any(|value| has(value, text)) {
                            found.push(table.clone());
                        }
                    }
                }
                found
            }
        }
    }
}

fn has(value: &AttributeValue, text: &str) -> bool {
    match value {
        AttributeValue::S(value) => value.contains(text),
        AttributeValue::B(value) => memchr::memmem::find(value.as_ref(), text.as_bytes()).is_some(),
        AttributeValue::Ss(values) => values.iter().any(|value| value.contains(text)),
        AttributeValue::L(values) => values.iter().any(|value| has(value, text)),
        AttributeValue::M(values) => {
            values.iter().any(|(name, value)| name.contains(text) || has(value, text))
        }
        _ => false,
    }
}

/// Model server of the suite.
pub(crate) enum ModelEndpoint {
    /// A server in this process.
    Own(ModelServer),
    /// A server elsewhere that logs the key of each question, one per line.
    Served(PathBuf),
}

impl ModelEndpoint {
    /// Returns the number of questions that came with this key.
    pub(crate) fn question_count_with(&self, key: &str) -> usize {
        match self {
            Self::Own(server) => {
                server.log().into_iter().filter(|request| request.key.as_deref() == Some(key)).count()
            }
            Self::Served(log) => {
                let text = std::fs::read_to_string(log).unwrap_or_default();
                text.lines().filter(|line| *line == key).count()
            }
        }
    }
}

/// Answers as the requested model.
fn rule(request: &ModelRequest) -> Reply {
    match request.body["model"].as_str() {
        Some("accepts") => Reply::Text("A".to_owned()),
        Some("hangs") => Reply::Hang(Duration::from_secs(3_600)),
        Some("refuses") => {
            let key = request.key.clone().unwrap_or_default();
            Reply::Status(401, format!(r#"{{"error":{{"message":"no such key: {key}"}}}}"#), Vec::new())
        }
        Some("supports") => right_reply(request, false),
        Some("customer") => right_reply(request, true),
        Some("slow") => Reply::Later(Duration::from_secs(1), "The answer is (A).".to_owned()),
        _ => Reply::Text("The answer is (A).".to_owned()),
    }
}

/// Starts the suite's models on a free port of this machine.
pub(crate) async fn model() -> ModelServer {
    ModelServer::start(Duration::ZERO, Arc::new(rule)).await.expect("the model server starts")
}

/// Serves the models to others until the process is ended, and logs the keys it received.
pub(crate) async fn serve_model(port: u16) {
    let path = var("BENCH_E2E_MODEL_LOG").expect("BENCH_E2E_MODEL_LOG is set");
    let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let log = Mutex::new(log.expect("BENCH_E2E_MODEL_LOG can be written"));
    let rule = move |request: &ModelRequest| {
        writeln!(log.lock().unwrap(), "{}", request.key.as_deref().unwrap_or_default()).unwrap();
        rule(request)
    };
    let _server =
        ModelServer::start_on(port, Duration::ZERO, Arc::new(rule)).await.expect("the port is free");
    std::future::pending().await
}

fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Loads the SDK's configuration from the environment, with TLS by rustls and ring.
async fn sdk_config() -> aws_types::SdkConfig {
    let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    aws_config::defaults(aws_config::BehaviorVersion::latest()).http_client(http).load().await
}
