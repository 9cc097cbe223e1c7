//! Measures the worker with full batches of samples: memory, CPU time, and the duration of invocations besides the model's time.
//!
//! The model answers only when all questions of a batch have arrived, so that all prompts and answers are in memory at once, and the
//! CPU time before the answers can be told from the rest.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use axum::body::Body;
use axum::http::Request;
use bench_datasets::NoProgress;
use bench_domain::run::DatasetChoice;
use bench_domain::{RunId, Subset};
use bench_queue::{BATCH_MAX, QueueName};
use bench_runs::{Order, Orderer, TrustedSettings};
use bench_tests::endpoint::AwsEndpoint;
use bench_tests::events;
use bench_tests::functions::Function;
use bench_tests::items::ten_option_items;
use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use bench_tests::runtime_api::RuntimeApi;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tower::ServiceExt;

const BENCHMARK: &str = "mmlu_pro";
/// Samples of an invocation, as in the template.
const BATCH: usize = bench_cost::WORKER_BATCH as usize;
/// Invocations of each process. The first one loads the dataset and the run.
const BATCHES: usize = 4;
/// Time limit of the function, as in the template.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(900);
/// Time limit for one step.
const TIMEOUT: Duration = Duration::from_secs(120);
const MIB: f64 = 1024.0 * 1024.0;

/// Sizes of prompts and answers.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    name: &'static str,
    /// Sentences of an item and of each of its five worked examples.
    sentences: usize,
    /// Bytes of an answer.
    answer_bytes: usize,
    /// Bytes of a delta. Each delta is an event of the stream.
    delta_bytes: usize,
    /// Samples per item.
    samples: usize,
    /// Bytes of an item that aren't part of its prompt, and don't become shorter by compression.
    unasked_bytes: usize,
}

const USUAL: Scenario = Scenario {
    name: "usual",
    sentences: 4,
    answer_bytes: 6_000,
    delta_bytes: 4,
    samples: 1,
    unasked_bytes: 0,
};

/// Large items are like those of LiveCodeBench, whose tests have 4.3 MB on average. The last scenario is just below the maximum
/// size of an answer, 16 MiB.
const SCENARIOS: [Scenario; 6] = [
    USUAL,
    Scenario { name: "large items", samples: 10, unasked_bytes: 4_300_000, ..USUAL },
    Scenario { name: "long answers", answer_bytes: 130_000, ..USUAL },
    Scenario { name: "long prompts", sentences: 1_200, answer_bytes: 600_000, delta_bytes: 64, ..USUAL },
    Scenario { name: "huge answers", sentences: 1_200, answer_bytes: 8 << 20, delta_bytes: 1 << 16, ..USUAL },
    Scenario {
        name: "at the limit",
        sentences: 1_200,
        answer_bytes: 15 << 20,
        delta_bytes: 1 << 16,
        ..USUAL
    },
];

#[derive(Debug, Default)]
struct Measured {
    /// CPU milliseconds of each invocation until the last question arrived at the model.
    before_ms: Vec<f64>,
    /// CPU milliseconds of each invocation after that.
    after_ms: Vec<f64>,
    /// Duration of each invocation without the time between the last question and the first answer.
    own_ms: Vec<f64>,
    peak_mib: f64,
    prompt_bytes: usize,
}

/// Measures all scenarios and prints a table.
pub(crate) async fn measure_and_print(
    binaries: &BTreeMap<String, PathBuf>,
    dir: &Path,
) -> anyhow::Result<()> {
    println!(
        "\nThe worker with {BATCH} samples at once; an invocation's first and later ones, without the model's time\n"
    );
    println!(
        "{:<14} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "samples",
        "prompt KB",
        "answer KB",
        "events",
        "first ms",
        "later ms",
        "CPU 1st",
        "CPU before",
        "CPU after",
        "peak MiB"
    );
    for scenario in SCENARIOS {
        let folder = dir.join(scenario.name.replace(' ', "-"));
        let measured = measure(scenario, binaries, &folder).await.with_context(|| scenario.name)?;
        let later = |values: &[f64]| {
            let later = values.get(1..).unwrap_or_default();
            later.iter().sum::<f64>() / later.len() as f64
        };
        let first = |values: &[f64]| values.first().copied().unwrap_or(f64::NAN);
        println!(
            "{:<14} {:>9} {:>9} {:>7} {:>9.0} {:>9.0} {:>9.0} {:>10.0} {:>9.0} {:>9.1}",
            scenario.name,
            measured.prompt_bytes / 1_000,
            scenario.answer_bytes / 1_000,
            scenario.answer_bytes / scenario.delta_bytes,
            first(&measured.own_ms),
            later(&measured.own_ms),
            first(&measured.before_ms) + first(&measured.after_ms),
            later(&measured.before_ms),
            later(&measured.after_ms),
            measured.peak_mib,
        );
    }
    println!(
        "\nCPU: milliseconds of an invocation until its last question has arrived at the model, and after that."
    );
    Ok(())
}

async fn measure(
    scenario: Scenario,
    binaries: &BTreeMap<String, PathBuf>,
    dir: &Path,
) -> anyhow::Result<Measured> {
    let aws = AwsEndpoint::start(&dir.join("data"), None).await?;
    let asked = Arc::new(AtomicUsize::new(0));
    let prompt_bytes = Arc::new(AtomicUsize::new(0));
    let (is_time, wait) = tokio::sync::watch::channel(false);
    let answer: Reply = answer(scenario);
    let rule = {
        let (asked, prompt_bytes) = (Arc::clone(&asked), Arc::clone(&prompt_bytes));
        move |request: &ModelRequest| {
            prompt_bytes.fetch_max(request.body.to_string().len(), Ordering::Relaxed);
            asked.fetch_add(1, Ordering::Relaxed);
            Reply::Held(wait.clone(), Box::new(answer.clone()))
        }
    };
    let model = ModelServer::start(Duration::ZERO, Arc::new(rule)).await?;
    let run = order(&aws, &model, scenario, dir).await?;
    plan(&aws, binaries).await?;

    let runtime = RuntimeApi::start().await?;
    let binary = binaries.get("bench-worker").context("bench-worker was not built")?;
    let mut function = Function::start(binary, &runtime, &aws.vars("bench-worker")?)?;
    let ready = tokio::time::timeout(TIMEOUT, runtime.wait_for_request(1)).await;
    ready.with_context(|| function.output().unwrap_or_default())??;
    let mut measured = Measured::default();
    for batch in 1..=BATCHES {
        let bodies = receive(&aws, QueueName::Items, BATCH).await?;
        ensure!(bodies.len() == BATCH, "{} messages", bodies.len());
        let event = events::sqs("bench-items", &bodies.iter().map(String::as_str).collect::<Vec<_>>());
        is_time.send_replace(false);
        let (cpu, start) = (function.cpu_time()?, Instant::now());
        let invocation = runtime.offer_within(event.to_string(), FUNCTION_TIMEOUT);
        while asked.load(Ordering::Relaxed) < BATCH * batch {
            if start.elapsed() > TIMEOUT || !function.is_running() {
                bail!("{}{}", function.output()?, results(&aws, &run).await?);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The function may still be sending or reading; it waits for the model soon.
        let before = start.elapsed();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let waiting = function.cpu_time()?;
        let released = Instant::now();
        is_time.send_replace(true);
        let answered = tokio::time::timeout(TIMEOUT, invocation.answer()).await;
        let answered = answered.with_context(|| function.output().unwrap_or_default())??.body;
        let own = before + released.elapsed();
        ensure!(answered["batchItemFailures"].as_array().is_some_and(Vec::is_empty), "{answered}");
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        measured.own_ms.push(ms(own));
        measured.before_ms.push(ms(waiting - cpu));
        measured.after_ms.push(ms(function.cpu_time()? - waiting));
    }
    measured.peak_mib = function.peak_kib()? as f64 * 1024.0 / MIB;
    measured.prompt_bytes = prompt_bytes.load(Ordering::Relaxed);
    Ok(measured)
}

fn answer(scenario: Scenario) -> Reply {
    let right = "The answer is (B).";
    let mut text = "word ".repeat(scenario.answer_bytes / 5);
    text.push_str(right);
    let bytes = text.as_bytes();
    let deltas: Vec<&[u8]> = bytes.chunks(scenario.delta_bytes).collect();
    Reply::deltas(&deltas, r#"{"prompt_tokens":100,"completion_tokens":1500,"total_tokens":1600}"#)
}

async fn order(
    aws: &AwsEndpoint,
    model: &ModelServer,
    scenario: Scenario,
    dir: &Path,
) -> anyhow::Result<RunId> {
    let file = dir.join("items.jsonl");
    std::fs::write(&file, items(scenario)?)?;
    let benchmark = bench_benchmarks::find(BENCHMARK).context("there is no such benchmark")?;
    let taken = aws.stack.library.import_local(benchmark, &file, &NoProgress).await?;
    let local = DatasetChoice::Local { revision: taken.used.revision };
    let order = Order {
        model: "openai-compatible/m".to_owned(),
        benchmarks: Some(vec![BENCHMARK.to_owned()]),
        subset: Subset { pct: 100, ..Subset::default() },
        samples: Some(u32::try_from(scenario.samples)?),
        trusted: TrustedSettings {
            base_url: Some(model.base_url()),
            datasets: BTreeMap::from([(BENCHMARK.parse()?, local)]),
            ..TrustedSettings::default()
        },
        ..Order::default()
    };
    let ordered = aws.stack.orders.create(order, Orderer::local()).await;
    let created = ordered.map_err(|error| anyhow::anyhow!("the order was refused: {error}"))?;
    Ok(created.run.run.spec.id)
}

/// Returns the lines of a file with the items of all batches.
fn items(scenario: Scenario) -> anyhow::Result<String> {
    let lines = ten_option_items(BATCH * BATCHES / scenario.samples, scenario.sentences);
    if scenario.unasked_bytes == 0 {
        return Ok(lines);
    }
    let mut random = StdRng::seed_from_u64(7);
    let mut file = String::new();
    for line in lines.lines() {
        let mut row: Value = serde_json::from_str(line)?;
        // Worked examples are parts of every prompt.
        if row["cot_content"] == "" {
            let text = (0..scenario.unasked_bytes).map(|_| char::from(random.random_range(b'#'..=b'z')));
            row["src"] = text.collect::<String>().into();
        }
        writeln!(file, "{row}")?;
    }
    Ok(file)
}

/// Returns the run's results so far, as text.
async fn results(aws: &AwsEndpoint, run: &RunId) -> anyhow::Result<String> {
    let request = Request::get(format!("/api/runs/{run}/benchmarks/{BENCHMARK}"))
        .header("host", "localhost")
        .body(Body::empty())?;
    let response = aws.stack.router().oneshot(request).await?;
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Plans the run with the real planner.
async fn plan(aws: &AwsEndpoint, binaries: &BTreeMap<String, PathBuf>) -> anyhow::Result<()> {
    let runtime = RuntimeApi::start().await?;
    let binary = binaries.get("bench-planner").context("bench-planner was not built")?;
    let function = Function::start(binary, &runtime, &aws.vars("bench-planner")?)?;
    let bodies = receive(aws, QueueName::Plans, 1).await?;
    let event = events::sqs("bench-plans", &bodies.iter().map(String::as_str).collect::<Vec<_>>());
    let planned = tokio::time::timeout(TIMEOUT, runtime.invoke(&event)).await;
    let planned = planned.with_context(|| function.output().unwrap_or_default())??.body;
    ensure!(
        planned["batchItemFailures"].as_array().is_some_and(Vec::is_empty),
        "{planned}: {}",
        function.output()?
    );
    Ok(())
}

/// Receives messages, which stay hidden in their queue.
async fn receive(aws: &AwsEndpoint, queue: QueueName, count: usize) -> anyhow::Result<Vec<String>> {
    let queues = &aws.stack.queues;
    let mut bodies = Vec::new();
    while bodies.len() < count {
        let most = i32::try_from((count - bodies.len()).min(BATCH_MAX))?;
        let receive = queues.client().receive_message().queue_url(queues.url(queue)?);
        let received = receive.max_number_of_messages(most).wait_time_seconds(5).send().await?;
        let messages = received.messages.unwrap_or_default();
        ensure!(!messages.is_empty(), "queue `{}` has no message", queue.as_str());
        bodies.extend(messages.into_iter().filter_map(|message| message.body));
    }
    Ok(bodies)
}
