//! Services of one test, and planned runs in them.

use std::sync::Arc;
use std::time::Duration;

use bench_blobs::Blobs;
use bench_domain::run::{AuthMode, Owner, Plan};
use bench_domain::sample::SampleState;
use bench_domain::{
    BenchmarkName, Code, ModelRole, Outcome, Position, RunId, RunSpec, SampleRef, Secret, Stage, Subset,
    Usage, Verdict, testing,
};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_finisher::Finisher;
use bench_lambda::{Deadline, SqsEvent, SqsMessage};
use bench_queue::{Message, QueueName, QueueSettings, Queues};
use bench_state::credentials::{Credentials, KEY_BYTES, LocalKey};
use bench_state::{
    Claim, Commit, EventKind, NewEvent, PlanClaim, PlannedSample, RunWithBenchmarks, SampleResult, State,
    Transition,
};
use serde_json::json;

/// Time limit of one invocation.
const INVOCATION: Duration = Duration::from_secs(300);

/// Services of one test, and a finisher that uses them.
pub(crate) struct World {
    pub(crate) finisher: Finisher,
    _embedded: Embedded,
    _directory: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let embedded = Embedded::open(options).unwrap();
        let config = embedded.sdk_config();
        let state = State::new(&config, "bench", embedded.epoch());
        state.ensure_table().await.unwrap();
        let queues = Queues::create(&config, "bench-", QueueSettings::default()).await.unwrap();
        let blobs = Blobs::new(&config, "bench");
        blobs.ensure_bucket().await.unwrap();
        let key = Arc::new(LocalKey::new(&[7; KEY_BYTES]).unwrap());
        let credentials = Credentials::new(&config, "bench-credentials", key);
        credentials.ensure_table().await.unwrap();
        let finisher = Finisher { state, queues, blobs, credentials };
        Self { finisher, _embedded: embedded, _directory: directory }
    }

    pub(crate) fn state(&self) -> &State {
        &self.finisher.state
    }

    /// Has the finisher handle the message for a generation of a run. Returns `false` if it was reported as failed.
    pub(crate) async fn finish(&self, run: &Run, generation: u32) -> bool {
        let mut record = SqsMessage::default();
        record.message_id = Some("1".to_owned());
        record.body = Some(Message::Finish { run: run.id, generation }.to_body());
        let mut event = SqsEvent::default();
        event.records = vec![record];
        let response = self.finisher.handle(event, Deadline::after(INVOCATION)).await;
        response.batch_item_failures.is_empty()
    }

    /// Returns the number of delayed messages for the finisher.
    pub(crate) async fn finishes_later(&self) -> u64 {
        self.finisher.queues.depth(QueueName::Finishes).await.unwrap().delayed
    }
}

/// A planned run in AIME's form, with a caller's key.
pub(crate) struct Run {
    pub(crate) id: RunId,
    benchmark: BenchmarkName,
    plan: Plan,
}

impl Run {
    /// Creates a run with this number of items and one sample each, as the planner would.
    pub(crate) async fn planned(world: &World, items: u32) -> Self {
        Self::planned_with_responses(world, items, None).await
    }

    /// Creates a run like [`Run::planned`], with the key of an object that holds stored responses.
    pub(crate) async fn planned_with_responses(world: &World, items: u32, responses: Option<&str>) -> Self {
        let (state, now) = (world.state(), bench_clock::now());
        let (id, benchmark): (_, BenchmarkName) = (RunId::random(), "aime_2025".parse().unwrap());
        let fields = json!({
            "id": id, "benchmarks": [&benchmark], "selected_benchmarks": null,
            "model": {
                "id": bench_domain::ModelId::from_name("openai-compatible", "m"), "provider": "openai-compatible",
                "slug": "m", "replay_key": responses,
            },
            "subset": Subset::default(), "item_naming": "source-id", "owner": Owner::Local,
            "auth": AuthMode::ApiKey, "coverage_min": 0.9, "software": "test", "created_at": now,
        });
        let spec: RunSpec = serde_json::from_value(fields).unwrap();
        let key = Secret::new("sk-test").unwrap();
        let sealed = world.finisher.credentials.seal(id, ModelRole::Model, 1, &key).await.unwrap();
        let created = NewEvent::new(EventKind::RunCreated, "created");
        assert!(state.create_run_with(&spec, &created, None, now, Some(sealed)).await.unwrap());
        let planned = |item: u32| PlannedSample {
            item_id: item.to_string(),
            source_id: None,
            group: None,
            offset: 0,
            length: 1,
        };
        let planned: Vec<PlannedSample> = (0..items).map(planned).collect();
        let plan = testing::plan(items, 1);
        let claimed = state.claim_plan(id, 1, now, now.plus(INVOCATION)).await.unwrap();
        assert_eq!(claimed, PlanClaim::Claimed { attempt: plan.attempt });
        state.write_plan(id, &benchmark, &plan, &planned, now).await.unwrap();
        let run = Self { id, benchmark, plan };
        let found = run.found(world).await;
        let started = NewEvent::new(EventKind::RunStarted, "started");
        let next = found.run.state.start(now).unwrap();
        state.change_run(&found.run, &next, 1, &started, now).await.unwrap();
        let pending = &found.benchmarks[0];
        let next = pending.state.start(now).unwrap();
        state.change_benchmark(id, pending, &next, Some(&run.plan), None, now).await.unwrap();
        state.note_planned(id, 1).await.unwrap();
        run
    }

    pub(crate) async fn found(&self, world: &World) -> RunWithBenchmarks {
        world.state().any_run_with_benchmarks(self.id).await.unwrap().unwrap()
    }

    pub(crate) fn sample(&self, item: u32) -> SampleRef {
        SampleRef {
            run: self.id,
            benchmark: self.benchmark.clone(),
            plan: self.plan.attempt,
            shards: self.plan.shards,
            position: Position { item, sample: 0 },
        }
    }

    /// Claims an item's sample. Returns the number of the attempt.
    pub(crate) async fn claim(&self, world: &World, item: u32) -> u32 {
        let now = bench_clock::now();
        match world.state().claim(Stage::Answer, &self.sample(item), now, now.plus(INVOCATION)).await.unwrap()
        {
            Claim::Claimed(claimed) => {
                assert!(matches!(claimed.record.state, SampleState::Claimed(_)));
                claimed.attempt
            }
            other => panic!("{other:?}"),
        }
    }

    /// Ends an item's sample, as the attempt that holds it would.
    pub(crate) async fn end(&self, world: &World, item: u32, attempt: u32, verdict: Verdict) {
        let finished = SampleResult {
            verdict,
            body: None,
            item_hash: Some(format!("{item:012x}0000")),
            truncated: false,
            latency_ms: Some(1_000),
            usage: Some(Usage::counted(10, 5, 0)),
            model: Some("m-1".to_owned()),
            judge_usage: None,
            judge_latency_ms: None,
            judge_model: None,
            at: bench_clock::now(),
        };
        let found = self.found(world).await;
        let sort = found.benchmarks[0].sort();
        let committed = world
            .state()
            .commit(&self.sample(item), &sort, attempt, &finished, finished.usage.unwrap_or_default())
            .await
            .unwrap();
        assert!(matches!(committed, Commit::Done { .. }));
    }

    /// Claims an item's sample and ends it.
    pub(crate) async fn answer(&self, world: &World, item: u32, verdict: Verdict) {
        let attempt = self.claim(world, item).await;
        self.end(world, item, attempt, verdict).await;
    }

    /// Ends the run, as reaching its budget would.
    pub(crate) async fn stop(&self, world: &World) {
        let (found, now) = (self.found(world).await, bench_clock::now());
        let next = found.run.state.fail(now, Code::BudgetReached, "stopped: budget").unwrap();
        let event = NewEvent::new(EventKind::RunFailed, "Run failed");
        let changed = world.state().change_run(&found.run, &next, 1, &event, now).await.unwrap();
        assert_eq!(changed, Transition::Done);
    }

    /// Opens the benchmark of a requeued run and its samples without a grade again, as the planner would.
    pub(crate) async fn reopen(&self, world: &World) {
        let (state, now) = (world.state(), bench_clock::now());
        let found = self.found(world).await;
        let record = &found.benchmarks[0];
        for sample in state.samples_page(self.id, record, 0, self.plan.samples()).await.unwrap() {
            let place = self.sample(sample.position.item);
            state.reopen(&place, &record.sort(), &sample, now).await.unwrap();
        }
        let found = self.found(world).await;
        let record = &found.benchmarks[0];
        let next = record.state.requeue(true, now).unwrap();
        state.change_benchmark(self.id, record, &next, None, None, now).await.unwrap();
        let event = NewEvent::new(EventKind::RunStarted, "started");
        let next = found.run.state.start(now).unwrap();
        state.change_run(&found.run, &next, 2, &event, now).await.unwrap();
        state.note_planned(self.id, 2).await.unwrap();
    }

    /// Cancels the run, as its owner would.
    pub(crate) async fn cancel(&self, world: &World) {
        let (found, now) = (self.found(world).await, bench_clock::now());
        let next = found.run.state.cancel(now).unwrap();
        let event = NewEvent::new(EventKind::RunCanceled, "Run canceled by user");
        let changed = world.state().change_run(&found.run, &next, 1, &event, now).await.unwrap();
        assert_eq!(changed, Transition::Done);
    }

    /// Returns true if the caller's key still exists.
    pub(crate) async fn has_key(&self, world: &World) -> bool {
        world.finisher.credentials.get(self.id, ModelRole::Model).await.unwrap().is_some()
    }
}

pub(crate) fn correct() -> Verdict {
    Verdict::correct("7".to_owned())
}

pub(crate) fn wrong() -> Verdict {
    Verdict::wrong(Outcome::Incorrect, "it is 7")
}

pub(crate) fn error() -> Verdict {
    Verdict::ungraded(Code::ProviderError, "HTTP 500: down")
}
