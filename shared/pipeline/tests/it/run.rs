//! Planned runs.

use bench_blobs::compress;
use bench_domain::run::{AuthMode, Owner, Plan};
use bench_domain::sample::SampleState;
use bench_domain::{BenchmarkName, Position, RunId, RunSpec, SampleRef, Subset, testing};
use bench_queue::Message;
use bench_state::{EventKind, NewEvent, PlannedSample, RunWithBenchmarks, SampleRecord, SampleResult};
use serde_json::{Value, json};

use crate::world::World;

/// A planned run of one benchmark with one sample per item.
pub(crate) struct Run {
    pub(crate) id: RunId,
    benchmark: BenchmarkName,
    plan: Plan,
}

/// Returns a model at the provider of `world`.
pub(crate) fn model(world: &World) -> Value {
    json!({
        "id": bench_domain::ModelId::from_name("openai-compatible", "m"), "provider": "openai-compatible", "slug": "m",
        "base_url": world.provider.base_url(),
    })
}

/// Returns an answer source that isn't a provider.
pub(crate) fn source(name: &str, replay_key: Option<&str>) -> Value {
    json!({
        "id": bench_domain::ModelId::from_name(name, name), "provider": name, "slug": name, "replay_key": replay_key,
    })
}

impl Run {
    /// Creates a run in AIME's form with this number of items. The answer to problem `n` is `n + 7`.
    pub(crate) async fn aime(world: &World, items: usize, model: Value, more: Value) -> Self {
        let item = |number: usize| {
            let problem = format!("What is {number} + 7?");
            let row =
                json!({"id": format!("I-{number}"), "problem": problem, "answer": (number + 7).to_string()});
            json!({"id": number.to_string(), "row": row})
        };
        Self::place(world, "aime_2025", (0..items).map(item).collect(), model, more).await
    }

    /// Creates a run in AIME's form with one item that has a further column of this many numbers, which compress badly. The
    /// answer is 7.
    pub(crate) async fn aime_with_column(world: &World, numbers: u64, model: Value) -> Self {
        let column: String = (0..numbers).map(|n| (n * n * 2_654_435_761).to_string()).collect();
        let row = json!({"id": "I-0", "problem": "What is 0 + 7?", "answer": "7", "solution": column});
        Self::place(world, "aime_2025", vec![json!({"id": "0", "row": row})], model, json!({})).await
    }

    /// Creates a run in AA-Omniscience's form with one item, whose answers need a judge.
    pub(crate) async fn judged(world: &World, judge: Value, more: Value) -> Self {
        let row = json!({
            "question_id": 0, "domain": "Law", "topic": "Own", "answer": "gold", "question": "What glitters?",
        });
        let mut fields = json!({"judge": {"model": judge, "auth": AuthMode::System}});
        merge(&mut fields, more);
        let items = vec![json!({"id": "0", "group": "Law", "row": row})];
        Self::place(world, "aa_omniscience", items, model(world), fields).await
    }

    async fn place(world: &World, benchmark: &str, items: Vec<Value>, model: Value, more: Value) -> Self {
        let (id, benchmark): (_, BenchmarkName) = (RunId::random(), benchmark.parse().unwrap());
        let mut fields = json!({
            "id": id, "benchmarks": [&benchmark], "selected_benchmarks": null, "model": model,
            "subset": Subset::default(), "item_naming": "source-id", "owner": Owner::Local,
            "auth": AuthMode::System, "coverage_min": 0.9, "software": "test", "created_at": bench_clock::now(),
        });
        merge(&mut fields, more);
        let spec: RunSpec = serde_json::from_value(fields).unwrap();
        let data_key = format!("datasets/{id}");
        let (mut object, mut planned) = (Vec::new(), Vec::new());
        for item in &items {
            let frame = compress(item.to_string().as_bytes()).unwrap();
            planned.push(PlannedSample {
                item_id: item["id"].as_str().unwrap().to_owned(),
                source_id: item["row"]["id"].as_str().map(str::to_owned),
                group: item["group"].as_str().map(str::to_owned),
                offset: object.len() as u64,
                length: frame.len() as u64,
            });
            object.extend(frame);
        }
        world.blobs.put(&data_key, object.into(), "application/octet-stream").await.unwrap();
        let mut plan = testing::plan(u32::try_from(planned.len()).unwrap(), 1);
        plan.dataset.data_key = data_key;
        let run = Self { id, benchmark, plan };
        run.write(world, &spec, &planned).await;
        run
    }

    /// Writes the run as the planner would.
    async fn write(&self, world: &World, spec: &RunSpec, planned: &[PlannedSample]) {
        let (state, now) = (&world.state, bench_clock::now());
        let created = NewEvent::new(EventKind::RunCreated, "created");
        assert!(state.create_run(spec, &created, None, now).await.unwrap());
        state.write_plan(self.id, &self.benchmark, &self.plan, planned, now).await.unwrap();
        let found = self.stored_run(world).await;
        let started = NewEvent::new(EventKind::RunStarted, "started");
        let next = found.run.state.start(now).unwrap();
        state.change_run(&found.run, &next, 1, &started, now).await.unwrap();
        let benchmark = &found.benchmarks[0];
        let next = benchmark.state.start(now).unwrap();
        state.change_benchmark(self.id, benchmark, &next, Some(&self.plan), None, now).await.unwrap();
        state.note_planned(self.id, 1).await.unwrap();
    }

    pub(crate) async fn stored_run(&self, world: &World) -> RunWithBenchmarks {
        world.state.run_with_benchmarks(self.id).await.unwrap().unwrap()
    }

    /// Returns the address of an item's sample.
    pub(crate) fn sample(&self, item: u32) -> SampleRef {
        SampleRef {
            run: self.id,
            benchmark: self.benchmark.clone(),
            plan: self.plan.attempt,
            shards: self.plan.shards,
            position: Position { item, sample: 0 },
        }
    }

    /// Returns the message that asks for an item's answer.
    pub(crate) fn answer_message(&self, item: u32) -> Message {
        Message::Sample { sample: self.sample(item), generation: 1 }
    }

    /// Returns the message for an item's later stages.
    pub(crate) fn turn_message(&self, item: u32) -> Message {
        Message::Turn { sample: self.sample(item), generation: 1 }
    }

    pub(crate) async fn record(&self, world: &World, item: u32) -> SampleRecord {
        world.state.sample(&self.sample(item)).await.unwrap().unwrap()
    }

    /// Returns the end of an item's sample. Panics if the sample is open.
    pub(crate) async fn sample_result(&self, world: &World, item: u32) -> SampleResult {
        self.record(world, item).await.finished.unwrap()
    }

    /// Returns true if any attempt may claim the item's sample.
    pub(crate) async fn is_open(&self, world: &World, item: u32) -> bool {
        matches!(self.record(world, item).await.state, SampleState::Open { .. })
    }
}

fn merge(fields: &mut Value, more: Value) {
    let Value::Object(more) = more else { panic!("more fields are an object") };
    fields.as_object_mut().unwrap().extend(more);
}
