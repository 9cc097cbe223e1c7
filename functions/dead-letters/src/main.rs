//! Lambda function that empties all dead-letter queues every five minutes.

use std::sync::Arc;

use bench_dead_letters::{AFTER_OUTAGE, DeadLetters, Drained};
use bench_lambda::{Init, WarmService, run_scheduled};
use bench_queue::QueueName;

// The function handles one event at a time and mostly waits, so one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init = Init::start(&[WarmService::Table, WarmService::DeadLetters(QueueName::Items)]).await?;
    let dead_letters =
        Arc::new(DeadLetters { state: init.state()?, queues: init.queues(), after_outage: AFTER_OUTAGE });
    run_scheduled(|input, deadline| {
        let dead_letters = Arc::clone(&dead_letters);
        async move {
            let drained = dead_letters.drain(&input, deadline).await?;
            if drained != Drained::default() {
                tracing::info!(?drained, "Drained");
            }
            Ok(())
        }
    })
    .await
}
