//! Polling for one mapping: receive, invoke, delete.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use aws_sdk_sqs::types::QueueAttributeName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::client::{QueueClient, problem};
use super::delete::Deleter;
use super::{Mapping, RECEIVE_MAX};

/// Time to collect free capacity before the next receive, so that it asks for several messages.
const GATHER_WAIT: Duration = Duration::from_millis(1);
/// Interval in which a mapping without a free place looks for messages.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Wait after a failed receive.
const RECEIVE_RETRY_WAIT: Duration = Duration::from_secs(1);
/// Delay before messages of a panicked or timed-out invocation are delivered again.
const REDELIVERY_DELAY_S: i32 = 5;

pub(super) async fn run(
    client: QueueClient,
    mapping: Mapping,
    capacity: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    let deleter = Deleter::start(client.clone(), mapping.queue_url.clone());
    let mut invocations = JoinSet::new();
    while !*stopped.borrow() {
        while invocations.try_join_next().is_some() {}
        let Some(permits) = acquire_permits(&client, &mapping, &capacity, &mut stopped).await else { break };
        let requested = i32::try_from(permits.len()).unwrap_or(1);
        let received = tokio::select! {
            received = client.receive(&mapping.queue_url, requested) => received,
            _ = stopped.changed() => break,
        };
        let messages = match received {
            Ok(messages) => messages,
            Err(problem) => {
                tracing::warn!(mapping = mapping.name, "Receiving for {} failed: {problem}", mapping.name);
                tokio::time::sleep(RECEIVE_RETRY_WAIT).await;
                continue;
            }
        };
        let mut permits = permits.into_iter();
        let mut messages = messages.into_iter().peekable();
        while messages.peek().is_some() {
            let batch: Vec<SqsMessage> =
                messages.by_ref().take(mapping.batch_size.clamp(1, RECEIVE_MAX)).collect();
            let acquired: Vec<OwnedSemaphorePermit> = permits.by_ref().take(batch.len()).collect();
            let (client, mapping, deleter) = (client.clone(), mapping.clone(), deleter.clone());
            invocations.spawn(async move {
                invoke(&client, &mapping, &deleter, batch).await;
                drop(acquired);
            });
        }
    }
    while invocations.join_next().await.is_some() {}
    deleter.flush().await;
}

/// Returns permits for new messages: at least one, and more if they become free at the same time.
async fn acquire_permits(
    client: &QueueClient,
    mapping: &Mapping,
    capacity: &Arc<Semaphore>,
    stopped: &mut watch::Receiver<bool>,
) -> Option<Vec<OwnedSemaphorePermit>> {
    let first = match Arc::clone(capacity).try_acquire_owned() {
        Ok(first) => first,
        Err(_) => tokio::select! {
            first = Arc::clone(capacity).acquire_owned() => first.ok()?,
            _ = stopped.changed() => return None,
            never = want_place(client, mapping) => match never {},
        },
    };
    let gather = RECEIVE_MAX.min(mapping.concurrency.max(1)).div_ceil(2);
    if capacity.available_permits() + 1 < gather {
        tokio::time::sleep(GATHER_WAIT).await;
    }
    let mut permits = vec![first];
    while permits.len() < RECEIVE_MAX {
        match Arc::clone(capacity).try_acquire_owned() {
            Ok(permit) => permits.push(permit),
            Err(_) => break,
        }
    }
    Some(permits)
}

/// Counts the mapping among those that want a place while its queue has messages.
async fn want_place(client: &QueueClient, mapping: &Mapping) -> Infallible {
    let Some(places_wanted) = &mapping.places_wanted else { return std::future::pending().await };
    loop {
        let wanted = has_messages(client, mapping).await.then(|| Wanted::new(places_wanted));
        tokio::time::sleep(LOOK_INTERVAL).await;
        drop(wanted);
    }
}

async fn has_messages(client: &QueueClient, mapping: &Mapping) -> bool {
    let name = QueueAttributeName::ApproximateNumberOfMessages;
    let asked = client.sdk.get_queue_attributes().queue_url(&mapping.queue_url).attribute_names(name.clone());
    let found = asked.send().await.ok().and_then(|found| found.attributes);
    found.and_then(|found| found.get(&name)?.parse::<u64>().ok()).is_some_and(|count| count > 0)
}

/// A place that is wanted until this is dropped.
struct Wanted<'a>(&'a AtomicUsize);

impl<'a> Wanted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn invoke(client: &QueueClient, mapping: &Mapping, deleter: &Deleter, batch: Vec<SqsMessage>) {
    let receipts: HashMap<String, String> = batch
        .iter()
        .filter_map(|message| Some((message.message_id.clone()?, message.receipt_handle.clone()?)))
        .collect();
    let mut event = SqsEvent::default();
    event.records = batch;
    let deadline = bench_clock::now().plus(mapping.timeout);
    // A separate task, so that a panic ends only this invocation. The task ends with the host.
    let mut invocation = AbortOnDropHandle::new(tokio::spawn((mapping.handler)(event, deadline)));
    let response = match tokio::time::timeout(mapping.timeout, &mut invocation).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            tracing::error!(mapping = mapping.name, %error, "An invocation of {} panicked or was canceled: {error}", mapping.name);
            return redeliver_soon(client, mapping, receipts.into_values()).await;
        }
        Err(_) => {
            invocation.abort();
            tracing::error!(mapping = mapping.name, "An invocation of {} timed out", mapping.name);
            return redeliver_soon(client, mapping, receipts.into_values()).await;
        }
    };
    let failed =
        |id: &String| response.batch_item_failures.iter().any(|failure| failure.item_identifier == *id);
    for (id, receipt) in receipts {
        if !failed(&id) {
            deleter.delete(receipt).await;
        }
    }
}

async fn redeliver_soon(client: &QueueClient, mapping: &Mapping, receipts: impl Iterator<Item = String>) {
    for receipt in receipts {
        let change =
            client.sdk.change_message_visibility().queue_url(&mapping.queue_url).receipt_handle(receipt);
        if let Err(error) = change.visibility_timeout(REDELIVERY_DELAY_S).send().await {
            tracing::warn!(
                mapping = mapping.name,
                problem = problem(&error),
                "A message is delivered again only after its visibility timeout"
            );
        }
    }
}
