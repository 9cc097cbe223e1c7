//! The worker as a Lambda function.

use std::sync::Arc;

use bench_inference::{ChatClient, InferenceConfig};
use bench_lambda::{Init, Warm, run_sqs};
use bench_pipeline::{Ledgers, PipelineConfig, Services, Worker};
use bench_queue::QueueName;

// One event at a time, and nearly all of it waiting: one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init = Init::start(&[Warm::Table, Warm::Bucket, Warm::Queue(QueueName::Items)]).await?;
    let inference = InferenceConfig::from_vars(init.vars.lookup())?;
    let services = Services {
        state: init.state()?,
        queues: init.queues(),
        blobs: init.blobs()?,
        credentials: init.credentials()?,
        chat: ChatClient::new(inference.http_options()),
        inference,
        ledgers: Ledgers::default(),
    };
    let worker = Arc::new(Worker::new(services, PipelineConfig::from_vars(init.vars.lookup())?));
    run_sqs(|event, deadline| {
        let worker = Arc::clone(&worker);
        async move {
            let response = worker.handle(event, deadline).await;
            worker.flush().await;
            response
        }
    })
    .await
}
