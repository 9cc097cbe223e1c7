//! DynamoDB in the process: `dynoxide` on a SQLite file, on a separate thread.
//!
//! The caller's task parses requests and writes responses; the thread only runs them, one after another. So the only
//! transaction conflicts are injected ones.

pub(crate) mod direct;
mod expiry;
mod operations;
mod tokens;
mod units;
mod unprocessed;
mod wal;
mod worker;

use std::path::Path;

use bytes::Bytes;
use dynoxide::DynoxideError;
use tokio::sync::oneshot;

use crate::service_response::ServiceResponse;
use crate::service_thread::{ServiceStopped, ServiceThread};
use crate::{Durability, EmbeddedError};

pub(crate) use operations::{Request, Response};
pub(crate) use units::{Units, is_refused_write};
pub(crate) use unprocessed::WithheldRequests;
use worker::{Job, Worker};

/// Prefix of `X-Amz-Target`.
pub(crate) const TARGET_PREFIX: &str = "DynamoDB_20120810.";

/// Handle of the service.
#[derive(Debug)]
pub(crate) struct DynamoDb {
    thread: ServiceThread<Job>,
}

/// A parsed request with a digest that identifies its retries.
pub(crate) struct ParsedCall {
    pub(crate) request: Request,
    /// Digest of the body of a request with an idempotency token.
    digest: u64,
}

impl ParsedCall {
    /// Creates a call without an idempotency token.
    pub(crate) const fn without_token(request: Request) -> Self {
        Self { request, digest: 0 }
    }
}

impl DynamoDb {
    /// Opens or creates the database file and starts the thread.
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Self, EmbeddedError> {
        let store_error =
            |reason: String| EmbeddedError::Store { service: "DynamoDB", path: path.to_owned(), reason };
        let worker = Worker::open(path, durability).map_err(store_error)?;
        let thread = ServiceThread::start("embedded-dynamodb", move |_, jobs| worker.run(&jobs))
            .map_err(|error| store_error(error.to_string()))?;
        Ok(Self { thread })
    }

    /// Parses a request. The error is a complete AWS error response.
    pub(crate) fn parse(action: &str, body: &[u8]) -> Result<ParsedCall, ServiceResponse> {
        let request = Request::parse(action, body).map_err(|error| error_answer(&error))?;
        let digest = match &request {
            Request::TransactWriteItems(write) if write.client_request_token.is_some() => {
                crate::json_digest::json_digest(body).unwrap_or_default()
            }
            _ => 0,
        };
        Ok(ParsedCall { request, digest })
    }

    /// Runs a request and returns the consumed units, if the request asks for them. `withheld` are requests that fault
    /// injection took out, which are returned as unprocessed.
    pub(crate) async fn call(
        &self,
        call: ParsedCall,
        withheld: WithheldRequests,
    ) -> Result<(ServiceResponse, Units), ServiceStopped> {
        Ok(match self.run(call, withheld).await? {
            Ok(response) => {
                let units = response.units();
                match response.to_json() {
                    Ok(json) => (ServiceResponse::json_1_0(200, Bytes::from(json)), units),
                    Err(error) => {
                        (error_answer(&DynoxideError::InternalServerError(error.to_string())), units)
                    }
                }
            }
            Err(error) => (error_answer(&error), Units::default()),
        })
    }

    /// Runs a request, which needs no digest if it has no idempotency token.
    pub(crate) async fn run(
        &self,
        call: ParsedCall,
        withheld: WithheldRequests,
    ) -> Result<Result<Response, DynoxideError>, ServiceStopped> {
        let (answer, answered) = oneshot::channel();
        self.thread.send(Job::Call { request: call.request, digest: call.digest, answer })?;
        let result = answered.await.map_err(|_| ServiceStopped)?;
        Ok(result.map(|mut response| {
            withheld.add_unprocessed(&mut response);
            response
        }))
    }

    /// Deletes every item whose time to live has passed. Returns their number.
    pub(crate) async fn sweep(&self) -> Result<usize, EmbeddedError> {
        let mut deleted = 0;
        loop {
            let (answer, answered) = oneshot::channel();
            self.thread.send(Job::Sweep { answer }).map_err(|ServiceStopped| EmbeddedError::Closed)?;
            let result = answered.await.map_err(|_| EmbeddedError::Closed)?;
            let failed = |error: DynoxideError| EmbeddedError::Failed {
                service: "DynamoDB",
                reason: error.to_string(),
            };
            let swept = result.map_err(failed)?;
            deleted += swept;
            if swept < expiry::SWEPT_MAX {
                return Ok(deleted);
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}

fn error_answer(error: &DynoxideError) -> ServiceResponse {
    ServiceResponse::json_1_0(error.status_code(), error.to_json())
}
