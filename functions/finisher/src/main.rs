//! The finisher as a Lambda function.

use std::sync::Arc;

use bench_finisher::Finisher;
use bench_lambda::{init_tracing, resources, run_sqs, sdk_config};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_tracing();
    let config = sdk_config().await;
    let finisher = Arc::new(Finisher {
        state: resources::state(&config)?,
        queues: resources::queues(&config),
        blobs: resources::blobs(&config)?,
        credentials: resources::credentials(&config, resources::master_key()?)?,
    });
    run_sqs(|event, deadline| {
        let finisher = Arc::clone(&finisher);
        async move { finisher.handle(event, deadline).await }
    })
    .await
}
