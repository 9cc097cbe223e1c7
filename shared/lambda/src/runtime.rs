//! The Lambda runtime for the handlers.

use std::future::Future;
use std::time::{Duration, SystemTime};

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use lambda_runtime::{LambdaEvent, service_fn};

use crate::Deadline;
use crate::metrics;

pub(crate) fn deadline_of(context: &lambda_runtime::Context) -> Deadline {
    let left = context.deadline().duration_since(SystemTime::now()).unwrap_or(Duration::ZERO);
    Deadline(bench_clock::now().plus(left))
}

/// Serves SQS batches until the environment is shut down.
pub async fn run_sqs<F, Fut>(handle: F) -> anyhow::Result<()>
where
    F: Fn(SqsEvent, Deadline) -> Fut,
    Fut: Future<Output = SqsBatchResponse>,
{
    let handle = &handle;
    let service = service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let _print = metrics::PrintAtEnd;
        let deadline = deadline_of(&event.context);
        Ok::<_, lambda_runtime::Error>(handle(event.payload, deadline).await)
    });
    lambda_runtime::run(service).await.map_err(|error| anyhow::anyhow!(error))
}

/// Serves scheduled events until the environment is shut down. The handler receives the schedule's payload unchanged.
pub async fn run_scheduled<F, Fut>(handle: F) -> anyhow::Result<()>
where
    F: Fn(serde_json::Value, Deadline) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let handle = &handle;
    let service = service_fn(|event: LambdaEvent<serde_json::Value>| async move {
        let _print = metrics::PrintAtEnd;
        let deadline = deadline_of(&event.context);
        handle(event.payload, deadline).await.map_err(|error| {
            metrics::count_failure(metrics::HANDLER_ERRORS);
            tracing::error!("The function failed: {error:#}");
            lambda_runtime::Error::from(format!("{error:#}"))
        })
    });
    lambda_runtime::run(service).await.map_err(|error| anyhow::anyhow!(error))
}
