//! Lambda function of the scheduler.

use bench_lambda::{Init, WarmService, metrics, run_scheduled};
use bench_scheduler::{Scheduler, SchedulerConfig, SnsTopic};
use std::sync::Arc;

// The function handles one event at a time and mostly waits, so one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init = Init::start(&[WarmService::Table]).await?;
    let mut settings = SchedulerConfig::from_vars(init.vars.lookup(), false, env!("CARGO_PKG_VERSION"))?;
    // SNS topic for notices to operators.
    if let Some(arn) = init.vars.get("BENCH_TOPIC_ARN") {
        settings.topic = Some(Arc::new(SnsTopic::new(&init.aws, arn.trim())));
    }
    let scheduler = Arc::new(Scheduler::new(init.state()?, init.queues(), init.credentials()?, settings));
    run_scheduled(|input, _| {
        let scheduler = Arc::clone(&scheduler);
        async move {
            let done = scheduler.handle(&input, bench_clock::now()).await?;
            for (name, count) in done.metrics() {
                metrics::count(name, count);
            }
            tracing::info!(?done, "Done");
            Ok(())
        }
    })
    .await
}
