//! Shared table of the tests, and runs in it.

use std::sync::{Arc, OnceLock};

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use bench_domain::run::Plan;
use bench_domain::{BenchmarkName, Position, RunId, SampleRef, Timestamp, testing};
use bench_embedded::{DirectTables, Durability, Embedded, EmbeddedOptions};
use bench_state::{DirectTable, EventKind, NewEvent, PlannedSample, State};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

const TABLE: &str = "bench";

/// Table that all tests share. It stays until the process ends.
pub(crate) struct Table {
    embedded: Embedded,
    runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

/// Returns the shared table.
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
    /// Creates the state of a host with this start count.
    pub(crate) fn state(&self, epoch: u64) -> State {
        State::new(&self.embedded.sdk_config(), TABLE, epoch)
    }

    /// Creates the state of a host with this start count that calls the table without HTTP.
    pub(crate) fn direct_state(&self, epoch: u64) -> State {
        with_direct_table(self.state(epoch), &self.embedded)
    }

    /// Removes a record, as if it had never been written.
    pub(crate) async fn remove(&self, partition: &str, sort: &str) {
        let client = aws_sdk_dynamodb::Client::new(&self.embedded.sdk_config());
        let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
        let call = client.delete_item().table_name(TABLE).key("pk", text(partition)).key("sk", text(sort));
        let removed = call.return_values(aws_sdk_dynamodb::types::ReturnValue::AllOld).send().await.unwrap();
        assert!(removed.attributes.is_some(), "no record {partition} {sort}");
    }

    /// Returns true if there is such a record.
    pub(crate) async fn has(&self, partition: &str, sort: &str) -> bool {
        let client = aws_sdk_dynamodb::Client::new(&self.embedded.sdk_config());
        let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
        let call = client.get_item().table_name(TABLE).key("pk", text(partition)).key("sk", text(sort));
        call.consistent_read(true).send().await.unwrap().item.is_some()
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// Returns the state with the table of the same process.
pub(crate) fn with_direct_table(state: State, embedded: &Embedded) -> State {
    state.with_direct_table(Arc::new(Direct(embedded.direct_tables_for("worker").unwrap())))
}

#[derive(Debug)]
struct Direct(DirectTables);

impl DirectTable for Direct {
    fn update_item<'a>(
        &'a self,
        input: &'a UpdateItemInputBuilder,
    ) -> BoxFuture<'a, Option<UpdateItemOutput>> {
        self.0.update_item(input).boxed()
    }

    fn transact_write_items<'a>(
        &'a self,
        input: &'a TransactWriteItemsInputBuilder,
    ) -> BoxFuture<'a, Option<()>> {
        self.0.transact_write_items(input).boxed()
    }

    fn batch_write_item<'a>(&'a self, input: &'a BatchWriteItemInputBuilder) -> BoxFuture<'a, Option<()>> {
        self.0.batch_write_item(input).boxed()
    }

    fn batch_get_item<'a>(
        &'a self,
        input: &'a BatchGetItemInputBuilder,
    ) -> BoxFuture<'a, Option<BatchGetItemOutput>> {
        self.0.batch_get_item(input).boxed()
    }
}

/// Planned benchmark of its own run.
pub(crate) struct PlannedRun {
    pub(crate) run: RunId,
    pub(crate) benchmark: BenchmarkName,
    pub(crate) plan: Plan,
}

impl PlannedRun {
    /// Writes a run of `items` items with one sample each, spread over `shards` shards.
    pub(crate) async fn write(state: &State, items: u32, shards: u32) -> Self {
        let (run, benchmark): (_, BenchmarkName) = (RunId::random(), "mmlu_pro".parse().unwrap());
        let created = NewEvent::new(EventKind::RunCreated, "created");
        let now = Timestamp::from_micros(0);
        let spec = testing::spec(run, testing::template("openai-compatible/acme/model", benchmark.as_str()));
        assert!(state.create_run(&spec, &created, None, now).await.unwrap());
        let plan = testing::plan(items, shards);
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
