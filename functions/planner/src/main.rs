//! The planner as a Lambda function.

use std::sync::Arc;

use bench_datasets::{Library, LibraryConfig};
use bench_lambda::{init_tracing, resources, run_sqs, sdk_config};
use bench_planner::Planner;

/// Where downloads rest on their way into the bucket; `/tmp` is what Lambda gives.
const DOWNLOADS: &str = "/tmp/bench-downloads";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_tracing();
    let config = sdk_config().await;
    let library =
        Library::new(resources::blobs(&config)?, LibraryConfig::from_vars(DOWNLOADS, std::env::vars()));
    let planner = Arc::new(Planner::new(resources::state(&config)?, resources::queues(&config), library));
    run_sqs(|event, deadline| {
        let planner = Arc::clone(&planner);
        async move { planner.handle(event, deadline).await }
    })
    .await
}
