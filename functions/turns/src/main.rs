//! Turns as a Lambda function.

use std::sync::Arc;

use bench_inference::{ChatClient, InferenceConfig};
use bench_lambda::{Init, Warm, run_sqs};
use bench_pipeline::{Ledgers, PipelineConfig, SandboxHost, Services, Turns};
use bench_queue::QueueName;
use bench_sandy::SandyConfig;

// One event at a time, and nearly all of it waiting: one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init = Init::start(&[Warm::Table, Warm::Bucket, Warm::Queue(QueueName::Turns)]).await?;
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
    let sandy = SandyConfig::from_vars(init.vars.lookup()).map_err(anyhow::Error::msg)?;
    let config = PipelineConfig::from_vars(init.vars.lookup())?;
    let turns = Arc::new(Turns::new(services, config, SandboxHost::new(sandy)));
    run_sqs(|event, deadline| {
        let turns = Arc::clone(&turns);
        async move {
            let response = turns.handle(event, deadline).await;
            turns.flush().await;
            response
        }
    })
    .await
}
