//! Counts all requests of a run to AWS.
//!
//! A run is ordered, processed, viewed and exported on the embedded services. Every call of a function is recorded
//! with its bytes and with the units that DynamoDB would charge. Lambda's own calls for functions, which receive and
//! delete messages, are not included.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use axum::body::Body;
use bench_cost::{MeasuredRun, Tallies, Tally};
use bench_datasets::NoProgress;
use bench_domain::run::DatasetChoice;
use bench_domain::{BenchmarkName, RunId, Secret};
use bench_embedded::{CompletedCall, Durability, KMS_KEY_ID, Recorder, Service};
use bench_runs::{Order, Orderer, TrustedSettings};
use bench_stack::{Stack, StackOptions};
use tower::ServiceExt;

use crate::items::ten_option_items;
use crate::model_server::{ModelRequest, ModelServer, Reply};

/// The measured benchmark, with one sample per item.
const BENCHMARK: &str = "mmlu_pro";
const CONCURRENCY: usize = 32;
const TIMEOUT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Size of an answer of about 1,500 tokens.
const ANSWER_BYTES: usize = 6_000;
/// SQS charges a request for each started 64 KB of payload.
const CHUNK_BYTES: f64 = 65_536.0;

type SharedTallies = Arc<Mutex<Tallies>>;

/// Returns a recorder of responses and the tallies that it updates.
fn recorder() -> (Recorder, SharedTallies) {
    let noted = SharedTallies::default();
    let notes = Arc::clone(&noted);
    let recorder = Recorder::for_completed_calls(move |answered| {
        if let Some(function) = answered.call.caller {
            record_call(&mut lock(&notes), function, answered);
        }
    });
    (recorder, noted)
}

fn record_call(tallies: &mut Tallies, function: &str, answered: &CompletedCall<'_>) {
    let service = match answered.call.service {
        Service::DynamoDb => "DynamoDB",
        Service::Sqs => "SQS",
        Service::S3 => "S3",
        Service::Kms => "KMS",
        Service::Sns => "SNS",
        Service::SecretsManager => "SecretsManager",
    };
    let action = format!("{service}.{}", answered.call.action);
    let calls = tallies.entry(function.to_owned()).or_default();
    let tally = calls.entry(action).or_default();
    let (sent, got) = (answered.request_bytes as f64, answered.response_bytes as f64);
    *tally = tally.plus(Tally {
        calls: 1.0,
        request_bytes: sent,
        response_bytes: got,
        read_units: answered.read_units,
        write_units: answered.write_units,
        chunks: if service == "SQS" { (sent / CHUNK_BYTES).ceil().max(1.0) } else { 0.0 },
    });
}

/// Processes a run of this number of items with a caller's key, and counts its calls.
///
/// # Errors
/// Fails if the run doesn't succeed.
pub async fn measure(items: usize, dir: &Path) -> anyhow::Result<MeasuredRun> {
    ensure!(items > 0, "a run has items");
    let (recorder, noted) = recorder();
    let question_bytes = Arc::new(Mutex::new(0.0));
    let bytes = Arc::clone(&question_bytes);
    let rule = move |ask: &ModelRequest| {
        *lock(&bytes) += ask.body.to_string().len() as f64;
        Reply::Text(long_answer(&ask.item))
    };
    let model = ModelServer::start(Duration::ZERO, Arc::new(rule)).await?;
    let mut options = StackOptions::new(dir.join(format!("data-{items}")));
    options.durability = Durability::Normal;
    options.concurrency = CONCURRENCY;
    options.groups_commits = false;
    options.recorder = Some(recorder);
    options.key_wrapper = Some(crate::kms_wrapper(KMS_KEY_ID));
    options.vars = [("HF_HUB_OFFLINE".to_owned(), "1".to_owned())].into();
    let mut stack = Stack::open(options).await?;
    let file = dir.join(format!("items-{items}.jsonl"));
    std::fs::write(&file, ten_option_items(items, 4))?;
    let benchmark = bench_benchmarks::find(BENCHMARK).context("there is no such benchmark")?;
    let taken = stack.library.import_local(benchmark, &file, &NoProgress).await?;
    stack.start().await?;
    let name: BenchmarkName = BENCHMARK.parse()?;
    let order = Order {
        model: "openai-compatible/m".to_owned(),
        benchmarks: Some(vec![BENCHMARK.to_owned()]),
        subset: bench_domain::Subset { pct: 100, ..bench_domain::Subset::default() },
        trusted: TrustedSettings {
            base_url: Some(model.base_url()),
            datasets: BTreeMap::from([(name, DatasetChoice::Local { revision: taken.used.revision })]),
            ..TrustedSettings::default()
        },
        ..Order::default()
    };
    // Discards the calls for opening the stack, which aren't part of a run.
    take_tallies(&noted);
    let key = Secret::new("a-caller-key-of-this-measurement").context("a key is no blank text")?;
    let orderer = Orderer { owner: stack.api.access.owner_of(&key), api_key: Some(key), ..Orderer::local() };
    let created = stack.orders.create(order, orderer).await;
    let created = created.map_err(|error| anyhow::anyhow!("the order was refused: {error}"))?;
    let run = created.run.run.spec.id;
    wait_for_end(&stack, run).await?;
    let counted = take_tallies(&noted);
    get(&stack, &format!("/api/runs/{run}")).await?;
    let poll = take_tallies(&noted);
    let archive = get(&stack, &format!("/api/runs/{run}/export?format=zip")).await?;
    ensure!(archive > 0, "the archive is empty");
    let export = take_tallies(&noted);
    stack.stop(Duration::from_secs(10)).await;
    let question_bytes = *lock(&question_bytes);
    Ok(MeasuredRun { samples: items as u64, run: counted, poll, export, question_bytes })
}

async fn wait_for_end(stack: &Stack, run: RunId) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let found = stack.state.run(run).await?.context("the run is gone")?;
        let unsettled = stack.state.list_unsettled(100).await?;
        if !found.state.status().is_open() && unsettled.iter().all(|left| left.run != run) {
            let status = found.state.status();
            ensure!(status == bench_domain::RunStatus::Succeeded, "the run ended as {status:?}");
            return Ok(());
        }
        if start.elapsed() > TIMEOUT {
            bail!("the run does not end");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Sends a request to the stack as a program on this machine would. Returns the bytes of the response.
async fn get(stack: &Stack, path: &str) -> anyhow::Result<usize> {
    let request = http::Request::get(path).header("host", "localhost").body(Body::empty())?;
    let response = match stack.router().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
    ensure!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&body));
    Ok(body.len())
}

/// Returns a correct answer as long as one with visible reasoning. Each item gets a different text.
fn long_answer(item: &str) -> String {
    let mut text = String::with_capacity(ANSWER_BYTES + 100);
    let mut number: u64 = item.parse().unwrap_or(7);
    while text.len() < ANSWER_BYTES {
        // Words that don't repeat, so that the text compresses about as well as prose.
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("step {} gives {} and so ", number >> 52, (number >> 40) & 0xfff));
    }
    text.push_str("the answer is (B).");
    text
}

fn take_tallies(noted: &SharedTallies) -> Tallies {
    std::mem::take(&mut *lock(noted))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
