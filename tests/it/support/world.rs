//! A stack on a directory of its own, a model server, and how tests act on both.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_sqs::types::QueueAttributeName;
use bench_domain::{BenchmarkName, Position, RunId, RunStatus, SampleRef, Secret};
use bench_embedded::{Durability, Recorder};
use bench_queue::{Depth, QueueName};
use bench_sandy::testing::{self, Options, SandyServer};
use bench_scheduler::Scheduler;
use bench_stack::{Stack, StackOptions};
use bench_state::{RunWithBenchmarks, SampleRecord};
use bench_tests::model_server::{Ask, ModelServer, Reply};

/// Longest wait for anything: a bound of the test, not a claim about speed.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a stack is opened.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Samples worked on at once.
    pub(crate) concurrency: usize,
    /// Faults, in their text form.
    pub(crate) faults: &'static str,
    /// How long a received message stays hidden, in seconds; `None` leaves it at hours.
    pub(crate) visibility_s: Option<u32>,
    /// Time that the model takes.
    pub(crate) latency: Duration,
    /// Observer of every call to the services.
    pub(crate) recorder: Option<Recorder>,
    /// Variables beyond those that all tests set.
    pub(crate) vars: &'static [(&'static str, &'static str)],
    /// Protects callers' keys by KMS, as deployed functions do.
    pub(crate) kms: bool,
    /// A sandbox host that is like this; none where it is `None`.
    pub(crate) sandboxes: Option<Options>,
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
        }
    }
}

/// A stack, a model server, and a folder for both.
pub(crate) struct World {
    pub(crate) stack: Stack,
    pub(crate) model: ModelServer,
    /// The sandbox host, where there is one.
    pub(crate) sandboxes: Option<SandyServer>,
    settings: Settings,
    dir: tempfile::TempDir,
}

/// How a stack ends before it is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It may finish what it has in hand.
    Stopped,
    /// Everything it would still do fails: nothing is finished, nothing is told.
    Killed,
}

impl World {
    /// A stack that works at once, and a model that answers by `rule`.
    pub(crate) async fn start(
        settings: Settings,
        rule: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let mut world = Self::open(settings, rule).await;
        world.stack.start().await.unwrap();
        world
    }

    /// The same, but nothing drives the functions yet.
    pub(crate) async fn open(
        settings: Settings,
        rule: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = ModelServer::start(settings.latency, Arc::new(rule)).await.unwrap();
        let sandboxes = match &settings.sandboxes {
            Some(options) => Some(SandyServer::start(options.clone()).await.unwrap()),
            None => None,
        };
        let stack = open_stack(dir.path(), &settings, sandboxes.as_ref()).await;
        Self { stack, model, sandboxes, settings, dir }
    }

    /// Ends the stack and opens it again on the same directory.
    pub(crate) async fn reopen(self, end: End) -> Self {
        let Self { stack, model, sandboxes, settings, dir } = self;
        match end {
            End::Stopped => stack.stop(Duration::from_secs(10)).await,
            End::Killed => {
                // The services end first: from here on every call fails, as for a process that is gone.
                let embedded = stack.embedded.clone();
                tokio::task::spawn_blocking(move || embedded.close()).await.unwrap();
                drop(stack);
            }
        }
        let mut stack = open_stack(dir.path(), &settings, sandboxes.as_ref()).await;
        stack.start().await.unwrap();
        Self { stack, model, sandboxes, settings, dir }
    }

    /// Where tests keep files of their own.
    pub(crate) fn files(&self) -> &Path {
        self.dir.path()
    }

    /// The stack's data directory.
    pub(crate) fn data_dir(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    /// The sandbox host of this world.
    pub(crate) fn host(&self) -> &SandyServer {
        self.sandboxes.as_ref().unwrap()
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        self.stack.scheduler()
    }

    /// Does something again until it succeeds: it may meet injected faults.
    pub(crate) async fn insist<F, Fut, T, E>(&self, what: &str, act: F) -> T
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

    /// Waits until something is so.
    pub(crate) async fn until<F, Fut>(&self, what: &str, is_so: F)
    where
        F: Fn() -> Fut,
        Fut: Future<Output = bool>,
    {
        let start = Instant::now();
        while !is_so().await {
            assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The run as it is stored.
    pub(crate) async fn found(&self, run: RunId) -> RunWithBenchmarks {
        self.insist("read the run", || self.stack.state.run_with_benchmarks(run)).await.unwrap()
    }

    /// Waits for the end of a run and of what follows from it.
    pub(crate) async fn end_of(&self, run: RunId) -> RunStatus {
        self.end_with(run, None).await
    }

    /// The same, with reconciliation going on all the time, its grace scaled from ten minutes to `grace`.
    pub(crate) async fn end_reconciled(&self, run: RunId, grace: Duration) -> RunStatus {
        self.end_with(run, Some(grace)).await
    }

    async fn end_with(&self, run: RunId, grace: Option<Duration>) -> RunStatus {
        let (start, mut reconciled) = (Instant::now(), Instant::now());
        loop {
            let found = self.found(run).await;
            let unsettled = self.insist("list", || self.stack.state.list_unsettled(100)).await;
            if !found.run.state.status().is_open() && unsettled.iter().all(|left| left.run != run) {
                return found.run.state.status();
            }
            if let Some(grace) = grace.filter(|_| reconciled.elapsed() > Duration::from_millis(500)) {
                // What fails now is done by the next one.
                let _ = self.scheduler().reconcile_after(grace).await;
                reconciled = Instant::now();
            }
            assert!(start.elapsed() < PATIENCE, "the run does not end: {}", self.picture(run).await);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What is stored of a run, for the message of a test that fails.
    async fn picture(&self, run: RunId) -> String {
        let found = self.found(run).await;
        let mut open = Vec::new();
        for benchmark in &found.benchmarks {
            let samples = self.samples(&found, benchmark.name.as_str()).await;
            open.extend(samples.into_iter().filter(|sample| sample.finished.is_none()));
        }
        let depths = self.depths().await;
        format!("{:?}\nqueues {depths:?}\nopen {open:#?}", found.run.state)
    }

    /// Every sample of a benchmark's plan that is stored, in order.
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
                let (some, next) = self.insist("read samples", || page(from)).await;
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

    /// The address of one sample.
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

    /// Every queue with its depth and that of its dead-letter queue.
    pub(crate) async fn depths(&self) -> Vec<(QueueName, Depth, Depth)> {
        let mut depths = Vec::new();
        for name in QueueName::ALL {
            let queues = &self.stack.queues;
            let live = self.insist("read a queue", || queues.depth(name)).await;
            depths.push((name, live, self.insist("read a queue", || queues.dead_depth(name)).await));
        }
        depths
    }

    /// Cancels a run.
    pub(crate) async fn cancel(&self, run: RunId) {
        bench_api::cancel_run(&self.stack.api, run).await.unwrap();
    }

    /// Requeues a run.
    pub(crate) async fn requeue(&self, run: RunId, key: Option<&str>) {
        bench_api::requeue_run(&self.stack.api, run, key.and_then(Secret::new)).await.unwrap();
    }
}

async fn open_stack(dir: &Path, settings: &Settings, sandboxes: Option<&SandyServer>) -> Stack {
    let mut last = String::new();
    // Injected faults hit the opening too: who starts the program tries again.
    for _ in 0..10 {
        let mut options = StackOptions::new(dir.join("data"));
        options.durability = Durability::Normal;
        options.concurrency = settings.concurrency;
        options.again = Duration::ZERO;
        options.recorder = settings.recorder.clone();
        options.faults = (!settings.faults.is_empty()).then(|| settings.faults.parse().unwrap());
        options.key_wrapper = settings.kms.then(bench_tests::kms_wrapper);
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
        if let Some(server) = sandboxes {
            options.vars.insert("SANDY_BASE_URL".to_owned(), server.base_url());
            options.vars.insert("SANDY_API_KEY".to_owned(), testing::KEY.to_owned());
        }
        match Stack::open(options).await {
            Ok(stack) => {
                if let Some(seconds) = settings.visibility_s {
                    scale_visibility(&stack, seconds).await;
                }
                return stack;
            }
            // A turn of the stack before, which ends at this moment, may hold the folder still.
            Err(error) => last = format!("{error:#}"),
        }
        tokio::time::sleep(LOOK_EVERY * 5).await;
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
