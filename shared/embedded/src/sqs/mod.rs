//! SQS in the process: a durable queue of our own on a SQLite file, on a thread of its own.
//!
//! Standard queues only. What a message holds, and how often it was received, is in the file;
//! who has it in hand is not, because at the next open nobody does. Requests are parsed and
//! answers written on the caller's task.

mod answer;
mod attributes;
mod command;
mod content;
mod engine;
mod error;
mod queue;
mod ready;
mod receipt;
mod store;
#[cfg(test)]
mod tests;
mod wire;
mod worker;

use std::path::Path;
use std::sync::mpsc::sync_channel;

use tokio::sync::oneshot;

use crate::http_answer::HttpAnswer;
use crate::service_thread::{ServiceThread, Stopped};
use crate::{Durability, EmbeddedError};
use command::Job;
use worker::Worker;

/// Prefix of `X-Amz-Target`.
pub(crate) const TARGET_PREFIX: &str = "AmazonSQS.";

/// The service handle.
#[derive(Debug)]
pub(crate) struct Sqs {
    thread: ServiceThread<Job>,
}

impl Sqs {
    /// Opens or creates the file and starts the thread. Whatever was in flight is visible again.
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Self, EmbeddedError> {
        let store_error =
            |reason: String| EmbeddedError::Store { service: "SQS", path: path.to_owned(), reason };
        let (opened, open) = sync_channel(1);
        let file = path.to_owned();
        let thread = ServiceThread::start("embedded-sqs", move |own_jobs, jobs| {
            match Worker::open(&file, durability, own_jobs) {
                Ok(worker) => {
                    let _ = opened.send(Ok(()));
                    worker.run(&jobs);
                }
                Err(reason) => {
                    let _ = opened.send(Err(reason));
                }
            }
        })
        .map_err(|error| store_error(error.to_string()))?;
        open.recv().unwrap_or_else(|_| Err("its thread ended".to_owned())).map_err(store_error)?;
        Ok(Self { thread })
    }

    /// The queue a request names, for observers and fault rules.
    pub(crate) fn resource(body: &[u8]) -> Option<String> {
        wire::resource(body)
    }

    /// The answer of a service that is asked too often.
    pub(crate) fn throttled() -> HttpAnswer {
        error::SqsError::throttled().to_answer()
    }

    /// Runs a request. `copies` is asked for each message that is sent how often it shall be
    /// stored; it is 1 but for fault injection.
    pub(crate) async fn call(
        &self,
        action: &str,
        body: &[u8],
        copies: impl FnMut(&str) -> u8,
    ) -> Result<HttpAnswer, Stopped> {
        let call = match wire::parse(action, body, copies) {
            Ok(call) => call,
            Err(error) => return Ok(error.to_answer()),
        };
        let (answer, answered) = oneshot::channel();
        self.thread.send(Job::Call { command: call.command, answer })?;
        let reply = answered.await.map_err(|_| Stopped)?;
        Ok(answer::answer(call.shape, reply))
    }

    /// Hands out nothing of these message groups from now on, in any queue.
    pub(crate) async fn pause(&self, groups: Vec<String>) -> Result<(), Stopped> {
        let (done, paused) = oneshot::channel();
        self.thread.send(Job::Pause { groups, done })?;
        paused.await.map_err(|_| Stopped)
    }

    /// Hands out messages of a paused group again.
    pub(crate) fn resume(&self, group: String) -> Result<(), Stopped> {
        self.thread.send(Job::Resume { group })
    }

    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}
