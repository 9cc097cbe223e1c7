//! The worker as a Lambda function: answers, from the queue `items`.

use std::sync::Arc;

use bench_lambda::{Init, WarmService, run_sqs};
use bench_pipeline::Pipeline;
use bench_queue::QueueName;

// One event at a time, and nearly all of it waiting: one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init =
        Init::start(&[WarmService::Table, WarmService::Bucket, WarmService::Queue(QueueName::Items)]).await?;
    let pipeline = Arc::new(Pipeline::from_init(&init)?);
    run_sqs(|event, deadline| {
        let pipeline = Arc::clone(&pipeline);
        async move {
            let response = pipeline.handle(QueueName::Items, event, deadline).await;
            pipeline.flush().await;
            response
        }
    })
    .await
}
