//! Mappings of queues to functions, with concurrency and timeouts.

use std::sync::Arc;
use std::time::Duration;

use bench_embedded::host::{Handler, Mapping};
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent};
use bench_queue::QueueName;

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
            anyhow::Ok(Mapping { name, queue_url, handler, batch_size: 1, concurrency, timeout })
        };
        let answers = self.answer_time + 2 * RESERVE;
        let mut mappings = vec![
            mapping(
                "planner",
                QueueName::Plans,
                handler(
                    planner,
                    |planner, event, deadline| async move { planner.handle(event, deadline).await },
                ),
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
                timeout: SHORT_INVOCATION,
            });
        }
        Ok(mappings)
    }
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
