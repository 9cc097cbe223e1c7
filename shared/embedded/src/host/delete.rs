//! Deletion of handled messages in batches.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::RECEIVE_MAX;
use super::client::QueueClient;

/// Time for which a receipt waits for others.
const LINGER: Duration = Duration::from_millis(5);
/// Maximum number of waiting receipts; above it, handlers wait.
const WAITING_MAX: usize = 1_000;

enum Job {
    Delete(String),
    Flush(oneshot::Sender<()>),
}

/// Deletes messages of one queue by their receipts.
#[derive(Clone)]
pub(super) struct Deleter {
    jobs: mpsc::Sender<Job>,
}

impl Deleter {
    pub(super) fn start(client: QueueClient, queue_url: String) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(work(client, queue_url, waiting));
        Self { jobs }
    }

    /// Deletes a handled message.
    pub(super) async fn delete(&self, receipt: String) {
        // The receiver lives as long as this sender.
        let _ = self.jobs.send(Job::Delete(receipt)).await;
    }

    /// Waits until all previous messages are deleted.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.jobs.send(Job::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

async fn work(client: QueueClient, queue_url: String, mut waiting: mpsc::Receiver<Job>) {
    while let Some(first) = waiting.recv().await {
        let mut receipts = Vec::with_capacity(RECEIVE_MAX);
        let mut flush = None;
        let mut next = Some(first);
        let linger = tokio::time::sleep(LINGER);
        tokio::pin!(linger);
        loop {
            match next.take() {
                Some(Job::Delete(receipt)) => receipts.push(receipt),
                Some(Job::Flush(done)) => {
                    flush = Some(done);
                    break;
                }
                None => break,
            }
            if receipts.len() == RECEIVE_MAX {
                break;
            }
            tokio::select! {
                job = waiting.recv() => next = job,
                () = &mut linger => break,
            }
        }
        delete(&client, &queue_url, receipts).await;
        if let Some(done) = flush {
            let _ = done.send(());
        }
    }
}

async fn delete(client: &QueueClient, queue_url: &str, receipts: Vec<String>) {
    if receipts.is_empty() {
        return;
    }
    // A message that couldn't be deleted is delivered again, and is then found to be done.
    match client.delete(queue_url, receipts).await {
        Ok(0) => {}
        Ok(failed) => {
            tracing::warn!("{failed} messages could not be deleted and will be delivered again");
        }
        Err(problem) => {
            tracing::warn!("Messages could not be deleted and will be delivered again: {problem}");
        }
    }
}
