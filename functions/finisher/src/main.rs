//! Lambda function of the finisher.

use std::sync::Arc;

use bench_finisher::Finisher;
use bench_lambda::{Init, WarmService, run_sqs};
use bench_queue::QueueName;

// The function handles one event at a time and mostly waits, so one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init = Init::start(&[WarmService::Table, WarmService::Queue(QueueName::Finishes)]).await?;
    let finisher = Arc::new(Finisher {
        state: init.state()?,
        queues: init.queues(),
        blobs: init.blobs()?,
        credentials: init.credentials_to_remove()?,
    });
    run_sqs(|event, deadline| {
        let finisher = Arc::clone(&finisher);
        async move { finisher.handle(event, deadline).await }
    })
    .await
}
