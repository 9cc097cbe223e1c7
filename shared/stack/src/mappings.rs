//! Mappings of queues to functions, with concurrency and timeouts.

use std::sync::Arc;
use std::time::Duration;

use bench_domain::RunId;
use bench_embedded::Embedded;
use bench_embedded::host::{Handler, Mapping};
use bench_lambda::{BatchItemFailure, Deadline, SqsBatchResponse, SqsEvent};
use bench_queue::QueueName;
use bench_state::State;

use crate::Stack;

/// Timeout of planning or closing a run, including the download of a large dataset.
pub(crate) const LONG_INVOCATION: Duration = Duration::from_secs(3_600);
/// Timeout of handling dead letters.
const SHORT_INVOCATION: Duration = Duration::from_secs(300);
/// Time of an invocation in addition to the time limit of its answers.
pub(crate) const RESERVE: Duration = Duration::from_secs(60);

impl Stack {
    pub(crate) fn mappings(&self) -> anyhow::Result<Vec<Mapping>> {
        let functions = &self.functions;
        let (planner, worker) = (Arc::clone(&functions.planner), Arc::clone(&functions.worker));
        let (turns, finisher) = (Arc::clone(&functions.turns), Arc::clone(&functions.finisher));
        let mapping = |name, queue, handler, concurrency, timeout| {
            let queue_url = self.queues.url(queue)?.to_owned();
            let adjustable = matches!(queue, QueueName::Items | QueueName::Turns);
            let places_wanted = self.places_wanted.clone().filter(|_| adjustable);
            anyhow::Ok(Mapping {
                name,
                queue_url,
                handler,
                batch_size: 1,
                concurrency,
                adjustable,
                timeout,
                places_wanted,
            })
        };
        let embedded = self.embedded.clone();
        let answers = self.sample_time();
        let mut mappings = vec![
            mapping(
                "planner",
                QueueName::Plans,
                handler(planner, move |planner, event, deadline| {
                    let embedded = embedded.clone();
                    async move {
                        let (event, refused) = set_aside(&planner.state, &embedded, event).await;
                        let mut response = planner.handle(event, deadline).await;
                        response.batch_item_failures.extend(refused);
                        response
                    }
                }),
                4,
                LONG_INVOCATION,
            )?,
            mapping(
                "worker",
                QueueName::Items,
                handler(worker, |worker, event, deadline| async move {
                    worker.handle(QueueName::Items, event, deadline).await
                }),
                self.concurrency,
                answers,
            )?,
            mapping(
                "turns",
                QueueName::Turns,
                handler(turns, |turns, event, deadline| async move {
                    turns.handle(QueueName::Turns, event, deadline).await
                }),
                self.concurrency,
                answers,
            )?,
            mapping(
                "finisher",
                QueueName::Finishes,
                handler(finisher, |finisher, event, deadline| async move {
                    finisher.handle(event, deadline).await
                }),
                2,
                LONG_INVOCATION,
            )?,
        ];
        for queue in QueueName::ALL {
            let dead_letters = Arc::clone(&functions.dead_letters);
            let handler = handler(dead_letters, |dead_letters, event, deadline| async move {
                dead_letters.handle(event, deadline).await
            });
            let queue_url = self.queues.dead_letter_url(queue)?;
            mappings.push(Mapping {
                name: "dead-letters",
                queue_url,
                handler,
                batch_size: 10,
                concurrency: 10,
                adjustable: false,
                timeout: SHORT_INVOCATION,
                places_wanted: None,
            });
        }
        Ok(mappings)
    }
}

/// Sets aside the messages of runs that this process doesn't work on: another command ordered them for a server. Their
/// messages stay in the queues for the next owner of the data directory.
async fn set_aside(
    state: &State,
    embedded: &Embedded,
    mut event: SqsEvent,
) -> (SqsEvent, Vec<BatchItemFailure>) {
    let mut set_aside = Vec::new();
    let mut kept = Vec::with_capacity(event.records.len());
    for record in event.records.drain(..) {
        let group = record.attributes.get("MessageGroupId").cloned().unwrap_or_default();
        let found_run = group.parse::<RunId>().ok();
        let run = match found_run {
            Some(run) => state.run(run).await.ok().flatten(),
            None => None,
        };
        if run.is_none_or(|run| state.works_on(&run) || !run.state.status().is_open())
            || embedded.pause_groups(vec![group]).await.is_err()
        {
            kept.push(record);
            continue;
        }
        // It may have been resumed meanwhile.
        if let Some(run) = found_run
            && let Ok(Some(record)) = state.run(run).await
            && state.works_on(&record)
        {
            embedded.resume_group(run.to_string());
        }
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = record.message_id.unwrap_or_default();
        set_aside.push(failure);
    }
    event.records = kept;
    (event, set_aside)
}

/// Wraps a function in the form that the host calls.
fn handler<T, F, Fut>(function: Arc<T>, call: F) -> Handler
where
    T: Send + Sync + 'static,
    F: Fn(Arc<T>, SqsEvent, Deadline) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = SqsBatchResponse> + Send + 'static,
{
    Arc::new(move |event, until| Box::pin(call(Arc::clone(&function), event, Deadline(until))))
}
