//! A stack in its own directory, a model server, and actions on both.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_sqs::types::QueueAttributeName;
use bench_domain::{BenchmarkName, Position, RunId, RunStatus, SampleBody, SampleRef, Secret};
use bench_embedded::{Durability, Recorder};
use bench_queue::{Depth, QueueName};
use bench_sandy::testing::{self, Options, SandyServer};
use bench_scheduler::Scheduler;
use bench_stack::{Stack, StackOptions};
use bench_state::{RunWithBenchmarks, SampleRecord};
use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use bench_tests::scripted_host::ScriptedHost;

/// Maximum wait for anything: a safety limit, not a performance goal.
const TIMEOUT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Settings of a stack.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Number of samples processed at once.
    pub(crate) concurrency: usize,
    /// Faults in their text form.
    pub(crate) faults: &'static str,
    /// Visibility timeout of received messages in seconds. `None` keeps the default of hours.
    pub(crate) visibility_s: Option<u32>,
    /// Response time of the model.
    pub(crate) latency: Duration,
    /// Observer of every call to the services.
    pub(crate) recorder: Option<Recorder>,
    /// Variables in addition to those that all tests set.
    pub(crate) vars: &'static [(&'static str, &'static str)],
    /// If true, KMS protects callers' keys, as in deployed functions.
    pub(crate) kms: bool,
    /// Options of the sandbox host. `None` for no host.
    pub(crate) sandboxes: Option<Options>,
    /// If false, samples are committed and counted as by deployed functions: alone, and in several shards.
    pub(crate) groups_commits: bool,
    /// Number of calls for which each operation of the scripted sandbox host is running. `None` for no such host.
    pub(crate) scripted: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 16,
            faults: "",
            visibility_s: None,
            latency: Duration::ZERO,
            recorder: None,
            vars: &[],
            kms: false,
            sandboxes: None,
            groups_commits: true,
            scripted: None,
        }
    }
}

/// A stack, a model server, and a folder for both.
pub(crate) struct World {
    pub(crate) stack: Stack,
    pub(crate) model: ModelServer,
    /// The sandbox host, if there is one.
    pub(crate) sandboxes: Option<SandyServer>,
    /// The scripted sandbox host, if there is one.
    pub(crate) scripted: Option<ScriptedHost>,
    pub(crate) settings: Settings,
    dir: tempfile::TempDir,
}

/// Way to end a stack before it is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// Completes the work in progress.
    Stopped,
    /// Makes all further calls fail: nothing is finished or recorded.
    Killed,
}

impl World {
    /// Starts a stack with running workers, and a model that answers by `rule`.
    pub(crate) async fn start(
        settings: Settings,
        rule: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let mut world = Self::open(settings, rule).await;
        world.stack.start().await.unwrap();
        world
    }

    /// Opens a stack without running functions, and a model that answers by `rule`.
    pub(crate) async fn open(
        settings: Settings,
        rule: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = ModelServer::start(settings.latency, Arc::new(rule)).await.unwrap();
        let sandboxes = match &settings.sandboxes {
            Some(options) => Some(SandyServer::start(options.clone()).await.unwrap()),
            None => None,
        };
        let scripted = match settings.scripted {
            Some(polls) => Some(ScriptedHost::start(polls).await.unwrap()),
            None => None,
        };
        let host = sandbox_address(sandboxes.as_ref(), scripted.as_ref());
        let stack = open_stack(dir.path(), &settings, host).await;
        Self { stack, model, sandboxes, scripted, settings, dir }
    }

    /// Returns the address of the world's sandbox host.
    pub(crate) fn sandbox_address(&self) -> Option<String> {
        sandbox_address(self.sandboxes.as_ref(), self.scripted.as_ref())
    }

    /// Ends the stack and opens it again in the same directory.
    pub(crate) async fn reopen(self, end: Shutdown) -> Self {
        let Self { stack, model, sandboxes, scripted, settings, dir } = self;
        match end {
            Shutdown::Stopped => stack.stop(Duration::from_secs(10)).await,
            Shutdown::Killed => {
                // The services end first: all further calls fail, as for a process that was killed.
                let embedded = stack.embedded.clone();
                tokio::task::spawn_blocking(move || embedded.close()).await.unwrap();
                drop(stack);
            }
        }
        let host = sandbox_address(sandboxes.as_ref(), scripted.as_ref());
        let mut stack = open_stack(dir.path(), &settings, host).await;
        stack.start().await.unwrap();
        Self { stack, model, sandboxes, scripted, settings, dir }
    }

    /// Returns the folder for a test's own files.
    pub(crate) fn files(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the stack's data directory.
    pub(crate) fn data_dir(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    /// Returns the sandbox host of this world.
    pub(crate) fn sandbox_host(&self) -> &SandyServer {
        self.sandboxes.as_ref().unwrap()
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        self.stack.scheduler()
    }

    /// Repeats an action until it succeeds, since injected faults may hit it.
    pub(crate) async fn retry_until_ok<F, Fut, T, E>(&self, what: &str, act: F) -> T
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Display,
    {
        let mut last = String::new();
        for _ in 0..10 {
            match act().await {
                Ok(done) => return done,
                Err(error) => last = error.to_string(),
            }
        }
        panic!("could not {what}: {last}")
    }

    /// Waits until a condition is true.
    pub(crate) async fn wait_until<F, Fut>(&self, what: &str, is_so: F)
    where
        F: Fn() -> Fut,
        Fut: Future<Output = bool>,
    {
        let start = Instant::now();
        while !is_so().await {
            assert!(start.elapsed() < TIMEOUT, "waited too long for {what}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the stored run.
    pub(crate) async fn stored_run(&self, run: RunId) -> RunWithBenchmarks {
        self.retry_until_ok("read the run", || self.stack.state.run_with_benchmarks(run)).await.unwrap()
    }

    /// Waits for the end of a run and of its cleanup.
    pub(crate) async fn wait_for_end(&self, run: RunId) -> RunStatus {
        self.wait_for_end_with(run, None).await
    }

    /// Waits for the end of a run while reconciliation runs continuously, its grace period scaled from ten minutes to
    /// `grace`.
    pub(crate) async fn wait_for_end_reconciled(&self, run: RunId, grace: Duration) -> RunStatus {
        self.wait_for_end_with(run, Some(grace)).await
    }

    async fn wait_for_end_with(&self, run: RunId, grace: Option<Duration>) -> RunStatus {
        let (start, mut reconciled) = (Instant::now(), Instant::now());
        loop {
            let found = self.stored_run(run).await;
            let unsettled = self.retry_until_ok("list", || self.stack.state.list_unsettled(100)).await;
            if !found.run.state.status().is_open() && unsettled.iter().all(|left| left.run != run) {
                return found.run.state.status();
            }
            if let Some(grace) = grace.filter(|_| reconciled.elapsed() > Duration::from_millis(500)) {
                // The next call repeats failed steps.
                let _ = self.scheduler().reconcile_after(grace).await;
                reconciled = Instant::now();
            }
            assert!(start.elapsed() < TIMEOUT, "the run does not end: {}", self.describe(run).await);
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Describes the stored state of a run, for the message of a failing test.
    async fn describe(&self, run: RunId) -> String {
        let found = self.stored_run(run).await;
        let mut open = Vec::new();
        for benchmark in &found.benchmarks {
            let samples = self.samples(&found, benchmark.name.as_str()).await;
            open.extend(samples.into_iter().filter(|sample| sample.finished.is_none()));
        }
        let depths = self.depths().await;
        format!("{:?}\nqueues {depths:?}\nopen {open:#?}", found.run.state)
    }

    /// Returns all stored samples of a benchmark's plan, in order.
    pub(crate) async fn samples(&self, found: &RunWithBenchmarks, benchmark: &str) -> Vec<SampleRecord> {
        let record = found.benchmark(benchmark).unwrap();
        let Some(plan) = &record.plan else { return Vec::new() };
        let mut samples = Vec::new();
        for shard in 0..plan.shards {
            let mut from = None;
            loop {
                let page = |from| {
                    let state = &self.stack.state;
                    state.shard_page(found.run.spec.id, &record.name, plan.attempt, shard, true, from)
                };
                let (some, next) = self.retry_until_ok("read samples", || page(from)).await;
                samples.extend(some);
                from = next;
                if from.is_none() {
                    break;
                }
            }
        }
        samples.sort_by_key(|sample| sample.position);
        samples
    }

    /// Returns a benchmark's first sample, which has ended, and its body.
    pub(crate) async fn first_sample(&self, run: RunId, benchmark: &str) -> (SampleRecord, SampleBody) {
        let found = self.stored_run(run).await;
        let sample = self.samples(&found, benchmark).await.remove(0);
        let stored = sample.finished.as_ref().and_then(|finished| finished.body.clone()).unwrap();
        let address = Self::sample_ref(&found, benchmark, sample.position);
        let body = self.stack.blobs.get_body(&address, stored.attempt, Some(&stored.sha256)).await.unwrap();
        (sample, body.unwrap().0)
    }

    /// Returns the address of a sample.
    pub(crate) fn sample_ref(found: &RunWithBenchmarks, benchmark: &str, position: Position) -> SampleRef {
        let record = found.benchmark(benchmark).unwrap();
        let plan = record.plan.as_ref().unwrap();
        SampleRef {
            run: found.run.spec.id,
            benchmark: benchmark.parse::<BenchmarkName>().unwrap(),
            plan: plan.attempt,
            shards: plan.shards,
            position,
        }
    }

    /// Returns all queues with their depth and that of their dead-letter queue.
    pub(crate) async fn depths(&self) -> Vec<(QueueName, Depth, Depth)> {
        let mut depths = Vec::new();
        for name in QueueName::ALL {
            let queues = &self.stack.queues;
            let live = self.retry_until_ok("read a queue", || queues.depth(name)).await;
            depths.push((name, live, self.retry_until_ok("read a queue", || queues.dead_depth(name)).await));
        }
        depths
    }

    pub(crate) async fn cancel(&self, run: RunId) {
        bench_api::cancel_run(&self.stack.api, run).await.unwrap();
    }

    pub(crate) async fn delete(&self, run: RunId) {
        bench_api::delete_run(&self.stack.api, run).await.unwrap();
    }

    pub(crate) async fn requeue(&self, run: RunId, key: Option<&str>) {
        bench_api::requeue_run(&self.stack.api, run, key.and_then(Secret::new)).await.unwrap();
    }
}

fn sandbox_address(real: Option<&SandyServer>, scripted: Option<&ScriptedHost>) -> Option<String> {
    real.map(SandyServer::base_url).or_else(|| scripted.map(|host| host.base_url().to_owned()))
}

async fn open_stack(dir: &Path, settings: &Settings, sandboxes: Option<String>) -> Stack {
    let mut last = String::new();
    // Retried, since injected faults apply to the opening, too, and users would start the program again.
    for _ in 0..10 {
        let mut options = StackOptions::new(dir.join("data"));
        options.durability = Durability::Normal;
        options.concurrency = settings.concurrency;
        options.groups_commits = settings.groups_commits;
        options.retry_delay = Duration::ZERO;
        options.recorder = settings.recorder.clone();
        options.faults = (!settings.faults.is_empty()).then(|| settings.faults.parse().unwrap());
        options.key_wrapper = settings.kms.then(|| bench_tests::kms_wrapper(bench_embedded::KMS_KEY_ID));
        options.vars = BTreeMap::from_iter(
            [
                ("HF_HUB_OFFLINE", "1"),
                ("CHUTES_RATE_LIMIT_SLEEP_SECONDS", "0"),
                ("CHUTES_INFERENCE_TIMEOUT_SECONDS", "60"),
                ("WORKER_ITEM_ATTEMPTS", "3"),
            ]
            .iter()
            .chain(settings.vars)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        if let Some(address) = &sandboxes {
            options.vars.insert("SANDY_BASE_URL".to_owned(), address.clone());
            options.vars.insert("SANDY_API_KEY".to_owned(), testing::KEY.to_owned());
        }
        match Stack::open(options).await {
            Ok(stack) => {
                if let Some(seconds) = settings.visibility_s {
                    scale_visibility(&stack, seconds).await;
                }
                return stack;
            }
            // A turn of the previous stack, which is just ending, may still hold the folder.
            Err(error) => last = format!("{error:#}"),
        }
        tokio::time::sleep(POLL_INTERVAL * 5).await;
    }
    panic!("the stack cannot be opened: {last}")
}

async fn scale_visibility(stack: &Stack, seconds: u32) {
    for name in QueueName::ALL {
        for url in [stack.queues.url(name).unwrap().to_owned(), stack.queues.dead_letter_url(name).unwrap()] {
            let client = stack.queues.client();
            let set = || {
                let seconds = seconds.to_string();
                client
                    .set_queue_attributes()
                    .queue_url(&url)
                    .attributes(QueueAttributeName::VisibilityTimeout, seconds)
            };
            while set().send().await.is_err() {}
        }
    }
}
