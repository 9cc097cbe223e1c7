//! A table, and runs in it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bench_domain::run::{AuthMode, DatasetUse, ItemNaming, ModelRef, Owner, Plan};
use bench_domain::{
    BenchmarkName, Budget, Generation, ModelId, Position, RunId, RunSpec, SampleRef, Subset, Timestamp,
};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_state::{EventKind, NewEvent, PlannedSample, State};

const TABLE: &str = "bench";

/// A table that all tests share. It stays until the process ends.
pub(crate) struct Table {
    embedded: Embedded,
    runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

/// The one table, and whatever is to be done with it.
pub(crate) fn table() -> &'static Table {
    static SHARED: OnceLock<Table> = OnceLock::new();
    SHARED.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let embedded = Embedded::open(options).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let table = Table { embedded, runtime, _directory: directory };
        table.block_on(async { table.state(1).ensure_table().await.unwrap() });
        table
    })
}

impl Table {
    /// A host that was started so often.
    pub(crate) fn state(&self, epoch: u64) -> State {
        State::new(&self.embedded.sdk_config(), TABLE, epoch)
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// A planned benchmark of a run of its own.
pub(crate) struct Planned {
    pub(crate) run: RunId,
    pub(crate) benchmark: BenchmarkName,
    pub(crate) plan: Plan,
}

impl Planned {
    /// A run of so many items, each asked once, spread over so many shards.
    pub(crate) async fn write(state: &State, items: u32, shards: u32) -> Self {
        let (run, benchmark): (_, BenchmarkName) = (RunId::random(), "mmlu_pro".parse().unwrap());
        let created = NewEvent::new(EventKind::RunCreated, "created");
        let now = Timestamp::from_micros(0);
        assert!(state.create_run(&spec(run, &benchmark), &created, None, now).await.unwrap());
        let plan = plan(items, shards);
        let planned: Vec<PlannedSample> = (0..items)
            .map(|item| PlannedSample {
                item_id: format!("q{item}"),
                source_id: None,
                group: None,
                offset: 0,
                length: 1,
            })
            .collect();
        state.write_plan(run, &benchmark, &plan, &planned, now).await.unwrap();
        Self { run, benchmark, plan }
    }

    pub(crate) fn sample(&self, item: u32) -> SampleRef {
        SampleRef {
            run: self.run,
            benchmark: self.benchmark.clone(),
            plan: self.plan.attempt,
            shards: self.plan.shards,
            position: Position { item, sample: 0 },
        }
    }
}

fn spec(run: RunId, benchmark: &BenchmarkName) -> RunSpec {
    RunSpec {
        id: run,
        model: ModelRef {
            id: ModelId::of("openai-compatible", "acme/model"),
            provider: "openai-compatible".to_owned(),
            slug: "acme/model".to_owned(),
            base_url: None,
            replay_key: None,
            endpoint_host: None,
        },
        benchmarks: vec![benchmark.clone()],
        selected_benchmarks: None,
        subset: Subset::new(100, None, None).unwrap(),
        items: Vec::new(),
        item_naming: ItemNaming::SourceId,
        samples: None,
        generation: Generation::default(),
        datasets: BTreeMap::new(),
        protocols: BTreeMap::new(),
        options: BTreeMap::new(),
        judge: None,
        rejudges: None,
        owner: Owner::Local,
        auth: AuthMode::System,
        config: None,
        coverage_min: 0.9,
        price: None,
        budget: Budget::default(),
        schedule: None,
        software: "test".to_owned(),
        created_at: Timestamp::from_micros(0),
    }
}

fn plan(items: u32, shards: u32) -> Plan {
    Plan {
        attempt: 1,
        shards,
        items: items.into(),
        samples_per_item: 1,
        dataset_items: items.into(),
        dataset: DatasetUse {
            id: "acme/data".to_owned(),
            revision: "0123abcd".to_owned(),
            source: "hub".to_owned(),
            digest: "ab".repeat(32),
            data_key: "datasets/none".to_owned(),
            documents: None,
            attachments: BTreeMap::new(),
            note: None,
            demo_support: false,
        },
        prompt_digest: "cd".repeat(32),
        prompt_source: "own".to_owned(),
        protocol: "none".to_owned(),
        protocol_name: "none".to_owned(),
        options: BTreeMap::new(),
        generation: Generation::default(),
        templates: BTreeMap::new(),
        judge: None,
    }
}
