//! The function behind the dead-letter queues as a Lambda function: one for each queue.

use std::sync::Arc;

use anyhow::Context;
use bench_dead_letters::{AFTER_OUTAGE, DeadLetters};
use bench_lambda::{init_tracing, required, resources, run_sqs, sdk_config};
use bench_queue::QueueName;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_tracing();
    let name = required("BENCH_DEAD_LETTERS_OF")?;
    let queue = QueueName::ALL.into_iter().find(|queue| queue.as_str() == name);
    let queue = queue.with_context(|| format!("BENCH_DEAD_LETTERS_OF: there is no queue `{name}`"))?;
    let config = sdk_config().await;
    let dead_letters = Arc::new(DeadLetters {
        state: resources::state(&config)?,
        queues: resources::queues(&config),
        after_outage: AFTER_OUTAGE,
    });
    run_sqs(|event, deadline| {
        let dead_letters = Arc::clone(&dead_letters);
        async move { dead_letters.handle(event, queue, deadline).await }
    })
    .await
}
