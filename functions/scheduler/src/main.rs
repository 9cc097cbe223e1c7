//! The scheduler as a Lambda function.

use std::sync::Arc;

use bench_lambda::{init_tracing, resources, run_scheduled, sdk_config};
use bench_scheduler::Scheduler;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_tracing();
    let config = sdk_config().await;
    let scheduler =
        Arc::new(Scheduler { state: resources::state(&config)?, queues: resources::queues(&config) });
    run_scheduled(|_| {
        let scheduler = Arc::clone(&scheduler);
        async move {
            scheduler.reconcile().await?;
            Ok(())
        }
    })
    .await
}
