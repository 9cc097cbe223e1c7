//! SQS in the process: our own durable queue on a SQLite file, on a separate thread.
//!
//! Only standard queues are supported. The file contains the messages and their receive counts.
//! In-flight state is only in memory, since no message is in flight after an open. The caller's
//! task parses requests and writes responses.

mod attributes;
mod command;
mod content;
mod engine;
mod error;
mod queue;
mod ready;
mod receipt;
mod response;
mod store;
#[cfg(test)]
mod tests;
mod wire;
mod worker;

use std::path::Path;
use std::sync::mpsc::sync_channel;

use tokio::sync::oneshot;

use crate::service_response::ServiceResponse;
use crate::service_thread::{ServiceStopped, ServiceThread};
use crate::{Durability, EmbeddedError};
use command::Job;
pub use ready::GroupLimit;
use worker::Worker;

/// Prefix of `X-Amz-Target`.
pub(crate) const TARGET_PREFIX: &str = "AmazonSQS.";

/// Handle of the service.
#[derive(Debug)]
pub(crate) struct Sqs {
    thread: ServiceThread<Job>,
}

impl Sqs {
    /// Opens or creates the file and starts the thread. Messages that were in flight are visible
    /// again.
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

    /// Returns the queue of a request, for observers and fault rules.
    pub(crate) fn resource(body: &[u8]) -> Option<String> {
        wire::resource(body)
    }

    /// Returns the response for throttled requests.
    pub(crate) fn throttled() -> ServiceResponse {
        error::SqsError::throttled().to_answer()
    }

    /// Runs a request. Calls `copies` for each sent message to get the number of stored copies,
    /// which is 1 without fault injection.
    pub(crate) async fn call(
        &self,
        action: &str,
        body: &[u8],
        copies: impl FnMut(&str) -> u8,
    ) -> Result<ServiceResponse, ServiceStopped> {
        let call = match wire::parse(action, body, copies) {
            Ok(call) => call,
            Err(error) => return Ok(error.to_answer()),
        };
        let (answer, answered) = oneshot::channel();
        self.thread.send(Job::Call { command: call.command, answer })?;
        let reply = answered.await.map_err(|_| ServiceStopped)?;
        Ok(response::format_response(call.shape, reply))
    }

    /// Stops delivering messages of these groups, in any queue.
    pub(crate) async fn pause(&self, groups: Vec<String>) -> Result<(), ServiceStopped> {
        let (done, paused) = oneshot::channel();
        self.thread.send(Job::Pause { groups, done })?;
        paused.await.map_err(|_| ServiceStopped)
    }

    /// Resumes delivering messages of a paused group.
    pub(crate) fn resume(&self, group: String) -> Result<(), ServiceStopped> {
        self.thread.send(Job::Resume { group })
    }

    /// Stops or continues the delivery of all messages.
    pub(crate) fn halt(&self, halted: bool) -> Result<(), ServiceStopped> {
        self.thread.send(Job::Halt(halted))
    }

    /// Replaces the limits of message groups.
    pub(crate) fn set_limits(&self, limits: Vec<GroupLimit>) -> Result<(), ServiceStopped> {
        self.thread.send(Job::Limit(limits))
    }

    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}
