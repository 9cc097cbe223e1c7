//! Runs the functions' real binaries with our own Lambda Runtime API.
//!
//! Cargo builds them with the development profile (`bench_tests::functions`). They use the embedded services through
//! a socket, as they would use AWS.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_datasets::NoProgress;
use bench_domain::run::{DatasetChoice, Owner};
use bench_domain::{RunId, RunStatus, Secret};
use bench_runs::{Order, Orderer, TrustedSettings};
use bench_state::credentials::OwnerKey;
use bench_state::{EventKind, NewEvent};
use bench_tests::endpoint::{AwsEndpoint, OWNER_KEY};
use bench_tests::events;
use bench_tests::functions::{FUNCTIONS, Function, build};
use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use bench_tests::runtime_api::{RuntimeApi, StreamedAnswer};
use tokio::time::timeout;

use crate::support::{data, runtime};

/// Maximum wait for anything: a safety limit, not a performance goal.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A service endpoint with its own folder, and the binaries.
struct Deployment {
    aws: AwsEndpoint,
    binaries: BTreeMap<String, PathBuf>,
    dir: tempfile::TempDir,
}

impl Deployment {
    async fn new() -> Self {
        let binaries = tokio::task::spawn_blocking(|| build("dev")).await.unwrap().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let aws = AwsEndpoint::start(&dir.path().join("data"), None).await.unwrap();
        Self { aws, binaries, dir }
    }

    fn vars(&self, function: &str, more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let mut vars = self.aws.vars(function).unwrap();
        vars.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        vars
    }

    async fn start(&self, function: &str, vars: &BTreeMap<String, String>) -> (RuntimeApi, Function) {
        let runtime = RuntimeApi::start().await.unwrap();
        let function = Function::start(&self.binaries[function], &runtime, vars).unwrap();
        (runtime, function)
    }

    /// Orders a run with this number of items.
    async fn order(&self, items: usize, model: &ModelServer) -> RunId {
        let file = data::mmlu_pro(self.dir.path(), items);
        self.order_of("mmlu_pro", &file, model, Orderer::local()).await
    }

    /// Orders a run of the items in a file.
    async fn order_of(&self, benchmark: &str, file: &Path, model: &ModelServer, orderer: Orderer) -> RunId {
        let stack = &self.aws.stack;
        let found = bench_benchmarks::find(benchmark).unwrap();
        let imported = stack.library.import_local(found, file, &NoProgress).await.unwrap();
        let local = DatasetChoice::Local { revision: imported.used.revision };
        let order = Order {
            model: "openai-compatible/m".into(),
            benchmarks: Some(vec![benchmark.to_owned()]),
            subset: bench_domain::Subset { pct: 100, ..bench_domain::Subset::default() },
            trusted: TrustedSettings {
                base_url: Some(model.base_url()),
                datasets: BTreeMap::from([(benchmark.parse().unwrap(), local)]),
                ..TrustedSettings::default()
            },
            ..Order::default()
        };
        let created = stack.orders.create(order, orderer).await.unwrap();
        created.run.run.spec.id
    }

    /// Waits until a run has succeeded.
    async fn wait_for_success(&self, run: RunId) {
        let begun = Instant::now();
        loop {
            let found = self.aws.stack.state.run(run).await.unwrap().unwrap();
            match found.state.status() {
                RunStatus::Succeeded => return,
                status => assert!(status.is_open(), "{:?}", found.state),
            }
            assert!(begun.elapsed() < 2 * TIMEOUT, "the run does not end");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Returns the next piece of a stream as text.
async fn next_text(stream: &mut StreamedAnswer) -> String {
    let piece = timeout(TIMEOUT, stream.next()).await.unwrap_or_else(|_| panic!("nothing comes")).unwrap();
    let piece = piece.unwrap_or_else(|| panic!("the stream has ended"));
    String::from_utf8(piece.bytes.to_vec()).unwrap()
}

/// Reads until a text has arrived. Ignores everything before it.
async fn read_until(stream: &mut StreamedAnswer, text: &str) {
    let mut seen = String::new();
    while !seen.contains(text) {
        seen.push_str(&next_text(stream).await);
    }
}

#[test]
fn events_reach_a_watcher_during_the_run() {
    runtime().block_on(async {
        let deployment = Deployment::new().await;
        let model =
            ModelServer::start(Duration::ZERO, Arc::new(|_: &ModelRequest| Reply::Nothing)).await.unwrap();
        let run = deployment.order(3, &model).await;
        let vars = deployment.vars("bench-api", &[("BENCH_STREAMING", "true")]);
        let (lambda, function) = deployment.start("bench-api", &vars).await;
        let event = events::http("GET", &format!("/api/runs/{run}/events"), &[], None);
        let stream = timeout(TIMEOUT, lambda.offer(&event).wait_for_stream()).await;
        let mut stream = stream.unwrap_or_else(|_| panic!("{}", function.output().unwrap())).unwrap();
        assert_eq!(stream.prelude["statusCode"], 200);
        let kind = stream.prelude["headers"]["content-type"].as_str().unwrap();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        read_until(&mut stream, "Run created").await;
        // Each is written only after the previous one has arrived: so they arrive one by one, and before the end.
        for number in 1..=3 {
            let text = format!("Something happened {number}");
            let event = NewEvent::new(EventKind::BenchmarkProgress, text.clone());
            deployment.aws.stack.state.add_event(run, &event, bench_clock::now()).await.unwrap();
            read_until(&mut stream, &text).await;
        }
        bench_api::cancel_run(&deployment.aws.stack.api, run).await.unwrap();
        read_until(&mut stream, "event: done").await;
        assert_eq!(timeout(TIMEOUT, stream.next()).await.unwrap().unwrap(), None);
        // The function accepts the next event.
        timeout(TIMEOUT, lambda.wait_for_request(2)).await.unwrap().unwrap();
    });
}

#[test]
fn without_streaming_the_same_request_is_answered_at_once() {
    runtime().block_on(async {
        let deployment = Deployment::new().await;
        let model =
            ModelServer::start(Duration::ZERO, Arc::new(|_: &ModelRequest| Reply::Nothing)).await.unwrap();
        let run = deployment.order(3, &model).await;
        let (lambda, _function) = deployment.start("bench-api", &deployment.vars("bench-api", &[])).await;
        let event = events::http("GET", &format!("/api/runs/{run}/events"), &[], None);
        let answer = timeout(TIMEOUT, lambda.invoke(&event)).await.unwrap().unwrap().body;
        assert_eq!(answer["statusCode"], 200, "{answer}");
        let body = answer["body"].as_str().unwrap();
        assert!(body.contains("Run created") && body.contains("retry:"), "{body}");
    });
}

#[test]
fn a_large_archive_arrives_in_pieces() {
    /// Exceeds the size that Lambda allows in one piece, even compressed.
    const ANSWER_BYTES: usize = 400_000;
    const ITEMS: usize = 50;
    runtime().block_on(async {
        let mut deployment = Deployment::new().await;
        let rule = |request: &ModelRequest| {
            Reply::Text(incompressible_text(&request.item, ANSWER_BYTES) + &data::right_answer(&request.item))
        };
        let model = ModelServer::start(Duration::ZERO, Arc::new(rule)).await.unwrap();
        let run = deployment.order(ITEMS, &model).await;
        deployment.aws.stack.start().await.unwrap();
        deployment.wait_for_success(run).await;
        let vars = deployment.vars("bench-exports", &[("BENCH_STREAMING", "true")]);
        let (lambda, function) = deployment.start("bench-exports", &vars).await;
        let event = events::http("GET", &format!("/api/runs/{run}/export?format=zip"), &[], None);
        let mut stream = loop {
            let stream = timeout(TIMEOUT, lambda.offer(&event).wait_for_stream()).await;
            let stream = stream.unwrap_or_else(|_| panic!("{}", function.output().unwrap())).unwrap();
            // On a busy machine, building the export takes longer than a request waits.
            if stream.prelude["statusCode"] != 202 {
                break stream;
            }
        };
        assert_eq!(stream.prelude["statusCode"], 200, "{}", stream.prelude);
        let length = stream.prelude["headers"]["content-length"].as_str().map(str::to_owned);
        let (mut archive, mut pieces) = (Vec::new(), 0);
        while let Some(piece) = timeout(TIMEOUT, stream.next()).await.unwrap().unwrap() {
            assert!(piece.bytes.len() < 1_000_000, "a piece of {} bytes", piece.bytes.len());
            archive.extend_from_slice(&piece.bytes);
            pieces += 1;
        }
        assert!(archive.len() > 6 * 1024 * 1024 && pieces > 6, "{} bytes in {pieces}", archive.len());
        if let Some(length) = length {
            assert_eq!(length, archive.len().to_string());
        }
        let same = buffered_location(&deployment, run).await;
        assert!(same.starts_with("http"), "in one piece it is too large and must be elsewhere: {same}");
        assert!(archive.starts_with(b"PK"), "no archive");
    });
}

/// CloudFront signs requests to the function URL, which replaces the viewer's `Authorization`.
#[test]
fn a_private_export_reaches_its_owner_through_cloudfront_only() {
    const COPY: &str = "x-bench-authorization";
    runtime().block_on(async {
        let mut deployment = Deployment::new().await;
        let rule = |_: &ModelRequest| Reply::Text("Answer: A".to_owned());
        let model = ModelServer::start(Duration::ZERO, Arc::new(rule)).await.unwrap();
        let owner = OwnerKey::from_text(OWNER_KEY).unwrap().owner_of(&Secret::new("sk-owner").unwrap());
        let orderer = Orderer { owner: Owner::Key(owner), ..Orderer::local() };
        let file = data::gpqa_diamond(deployment.dir.path(), 2);
        let run = deployment.order_of("gpqa_diamond", &file, &model, orderer).await;
        deployment.aws.stack.start().await.unwrap();
        deployment.wait_for_success(run).await;
        let path = format!("/api/runs/{run}/export");

        let vars = deployment.vars("bench-exports", &[("BENCH_STREAMING", "true")]);
        let (lambda, function) = deployment.start("bench-exports", &vars).await;
        for (headers, status) in [
            (&[][..], 401),
            (&[(COPY, "Bearer sk-other")][..], 403),
            (&[(COPY, "Bearer sk-owner")][..], 200),
            (&[("x-admin-secret", "wrong")][..], 401),
        ] {
            let event = events::sign(events::http("GET", &path, headers, None));
            let stream = timeout(TIMEOUT, lambda.offer(&event).wait_for_stream()).await;
            let mut stream = stream.unwrap_or_else(|_| panic!("{}", function.output().unwrap())).unwrap();
            assert_eq!(stream.prelude["statusCode"], status, "{headers:?}: {}", stream.prelude);
            let mut text = String::new();
            while let Some(piece) = timeout(TIMEOUT, stream.next()).await.unwrap().unwrap() {
                text.push_str(&String::from_utf8_lossy(&piece.bytes));
            }
            assert_eq!(text.contains("xylograph"), status == 200, "{headers:?}: {text}");
        }
        // Behind API Gateway, callers send their own header, and the copy identifies nobody.
        let (lambda, _function) =
            deployment.start("bench-exports", &deployment.vars("bench-exports", &[])).await;
        for (headers, status) in [
            (&[(COPY, "Bearer sk-owner")][..], 401),
            (&[(COPY, "Bearer sk-owner"), ("authorization", "Bearer sk-other")][..], 403),
            (&[("authorization", "Bearer sk-owner")][..], 200),
        ] {
            let event = events::http("GET", &path, headers, None);
            let answer = timeout(TIMEOUT, lambda.invoke(&event)).await.unwrap().unwrap().body;
            assert_eq!(answer["statusCode"], status, "{headers:?}: {answer}");
        }
    });
}

/// Returns the location of the same archive for clients that can't use a stream.
async fn buffered_location(deployment: &Deployment, run: RunId) -> String {
    let (lambda, _function) = deployment.start("bench-exports", &deployment.vars("bench-exports", &[])).await;
    let event = events::http("GET", &format!("/api/runs/{run}/export?format=zip"), &[], None);
    let answer = timeout(TIMEOUT, lambda.invoke(&event)).await.unwrap().unwrap().body;
    assert_eq!(answer["statusCode"], 307, "{answer}");
    answer["headers"]["location"].as_str().unwrap().to_owned()
}

/// Returns a text that compresses badly, different for each item.
fn incompressible_text(item: &str, bytes: usize) -> String {
    let mut state = data::number(item) as u64 + 1;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("{:x} ", state >> 16));
    }
    text
}

#[test]
fn a_missing_variable_stops_a_function_at_init_with_its_name() {
    runtime().block_on(async {
        let deployment = Deployment::new().await;
        for (function, variables) in [
            ("bench-api", &["BENCH_TABLE", "BENCH_BUCKET", "BENCH_CREDENTIALS_TABLE", "BENCH_SECRETS"][..]),
            ("bench-exports", &["BENCH_TABLE", "BENCH_BUCKET", "BENCH_SECRETS"]),
            ("bench-planner", &["BENCH_TABLE", "BENCH_BUCKET"]),
            ("bench-worker", &["BENCH_TABLE", "BENCH_BUCKET", "BENCH_CREDENTIALS_TABLE"]),
            ("bench-turns", &["BENCH_TABLE", "BENCH_BUCKET", "BENCH_CREDENTIALS_TABLE"]),
            ("bench-finisher", &["BENCH_TABLE", "BENCH_BUCKET", "BENCH_CREDENTIALS_TABLE"]),
            ("bench-dead-letters", &["BENCH_TABLE"]),
            ("bench-scheduler", &["BENCH_TABLE"]),
        ] {
            for variable in variables {
                let mut vars = deployment.vars(function, &[]);
                assert!(vars.remove(*variable).is_some());
                // The function misses one field of the secret, and names that field.
                let named = if *variable == "BENCH_SECRETS" { "BENCH_OWNER_KEY" } else { variable };
                let (lambda, mut process) = deployment.start(function, &vars).await;
                let status = process.end(TIMEOUT).await.unwrap();
                let output = process.output().unwrap();
                assert!(!status.success(), "{function} without {variable}: {output}");
                assert!(output.contains(named), "{function} without {variable}: {output}");
                assert_eq!(lambda.request_count(), 0, "{function} without {variable} asked for an event");
            }
        }
    });
}

#[test]
fn a_secret_that_is_not_there_stops_a_function_with_its_name() {
    runtime().block_on(async {
        let deployment = Deployment::new().await;
        let vars = deployment.vars("bench-worker", &[("BENCH_SECRETS", "bench-operator,bench-absent")]);
        let (_lambda, mut process) = deployment.start("bench-worker", &vars).await;
        assert!(!process.end(TIMEOUT).await.unwrap().success());
        let output = process.output().unwrap();
        for named in ["bench-absent", "secretsmanager:GetSecretValue"] {
            assert!(output.contains(named), "{output}");
        }
    });
}

#[test]
fn an_unreadable_event_is_an_error_and_the_function_continues() {
    runtime().block_on(async {
        let deployment = Deployment::new().await;
        for function in FUNCTIONS {
            let (lambda, mut process) = deployment.start(function, &deployment.vars(function, &[])).await;
            for unreadable in ["{\"Records\": [", "", "\u{0}"] {
                let failure = timeout(TIMEOUT, lambda.offer_text(unreadable).failure()).await;
                let failure = failure.unwrap_or_else(|_| panic!("{}", process.output().unwrap())).unwrap();
                assert!(!failure.message.is_empty(), "{function}");
            }
            assert!(process.is_running(), "{function} ended: {}", process.output().unwrap());
            let good = match function {
                "bench-api" | "bench-exports" => events::http("GET", "/no/such/path", &[], None),
                "bench-scheduler" => events::schedule("reconcile"),
                "bench-dead-letters" => events::schedule("drain"),
                _ => events::sqs("bench-plans", &[]),
            };
            let answer = timeout(TIMEOUT, lambda.invoke(&good)).await;
            answer.unwrap_or_else(|_| panic!("{function}: {}", process.output().unwrap())).unwrap();
        }
    });
}
