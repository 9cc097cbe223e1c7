//! Lambda function of the planner.

use std::sync::Arc;

use bench_datasets::{Library, LibraryConfig};
use bench_lambda::{Init, WarmService, run_sqs};
use bench_planner::Planner;
use bench_queue::QueueName;

/// Folder for downloads before they are copied into the bucket. Lambda functions can write only to `/tmp`.
const DOWNLOADS: &str = "/tmp/bench-downloads";

// The function handles one event at a time and mostly waits, so one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init =
        Init::start(&[WarmService::Table, WarmService::Bucket, WarmService::Queue(QueueName::Plans)]).await?;
    let is_benchmark = |name: &str| bench_benchmarks::find(name).is_some();
    let config = LibraryConfig::from_vars(DOWNLOADS, init.vars.all(), is_benchmark);
    let library = Library::new(init.blobs()?, config.map_err(anyhow::Error::msg)?);
    let planner = Arc::new(Planner::new(init.state()?, init.queues(), library));
    run_sqs(|event, deadline| {
        let planner = Arc::clone(&planner);
        async move { planner.handle(event, deadline).await }
    })
    .await
}
