//! The DynamoDB thread: runs jobs, makes them durable and sends the responses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dynoxide::DynoxideError;
use dynoxide::actions::transact_write_items::TransactWriteItemsResponse;
use dynoxide::storage::Storage;
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::expiry;
use super::operations::{Engine, Request, Response};
use super::tokens::{TokenStatus, Tokens};
use super::wal::WriteAheadLog;
use crate::Durability;
use crate::full_disk::database_name;
use crate::service_thread::Message;

/// Maximum number of jobs that share one wait for the disk.
const GROUP_JOBS_MAX: usize = 64;
/// Interval between deletions of expired items. AWS deletes them within days; a minute keeps the
/// file small.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Interval while there may be more expired items.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);
const STATEMENTS_CACHED_MAX: usize = 256;

type Outcome = Result<Response, DynoxideError>;

/// Jobs of the thread.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every job is a call")]
pub(super) enum Job {
    Call { request: Request, digest: u64, answer: oneshot::Sender<Outcome> },
    Sweep { answer: oneshot::Sender<Result<usize, DynoxideError>> },
}

pub(super) struct Worker {
    engine: Engine,
    tokens: Tokens,
    /// Present with `Durability::Full`.
    log: Option<WriteAheadLog>,
    /// Set after the disk failed to confirm a write: the content on the disk is unknown until the
    /// next open.
    failed: Option<String>,
}

impl Worker {
    pub(super) fn open(path: &Path, durability: Durability) -> Result<Self, String> {
        let name = database_name(path);
        let name = name.to_str().ok_or("its path is not valid UTF-8")?;
        let storage = Storage::new(name).map_err(|error| error.to_string())?;
        let connection = storage.conn();
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
        // The data directory is locked, so no other process opens the file: without exclusive mode, each statement would
        // lock and unlock it. The log is checkpointed every 16 MB instead of 4, so a page that many commits change is
        // written to the database less often.
        connection
            .execute_batch(
                "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4000; PRAGMA mmap_size = 0; \
                 PRAGMA temp_store = MEMORY; PRAGMA locking_mode = EXCLUSIVE; PRAGMA wal_autocheckpoint = 4000;",
            )
            .map_err(|error| error.to_string())?;
        let log = (durability == Durability::Full).then(|| WriteAheadLog::for_database(path));
        Ok(Self { engine: Engine::new(storage), tokens: Tokens::default(), log, failed: None })
    }

    pub(super) fn run(mut self, jobs: &Receiver<Message<Job>>) {
        let mut next_sweep = Instant::now() + SWEEP_INTERVAL;
        loop {
            match jobs.recv_timeout(next_sweep.saturating_duration_since(Instant::now())) {
                Ok(Message::Job(job)) => {
                    if !self.run_group(job, jobs) {
                        return;
                    }
                }
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => match self.sweep() {
                    Ok(expiry::SWEPT_MAX..) => {
                        next_sweep = Instant::now() + SWEEP_PAUSE;
                        continue;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "Could not delete expired DynamoDB items: {error}");
                    }
                },
            }
            let now = Instant::now();
            if now >= next_sweep {
                next_sweep = now + SWEEP_INTERVAL;
            }
        }
    }

    /// Runs `job` and, if responses have to wait for the disk anyway, further queued jobs. Returns
    /// false at a stop.
    fn run_group(&mut self, job: Job, jobs: &Receiver<Message<Job>>) -> bool {
        let mut waiting: Vec<(oneshot::Sender<Outcome>, Outcome)> = Vec::new();
        let mut next = Some(job);
        let mut go_on = true;
        while let Some(job) = next.take() {
            match job {
                Job::Call { request, digest, answer } => {
                    let wrote = request.writes() && self.log.is_some();
                    let outcome = self.call(request, digest);
                    // A read after an unconfirmed write may have seen that write, so it waits too.
                    if wrote || !waiting.is_empty() {
                        waiting.push((answer, outcome));
                    } else {
                        // The caller may be gone; the effect stays, as on AWS.
                        let _ = answer.send(outcome);
                    }
                }
                Job::Sweep { answer } => {
                    let _ = answer.send(self.sweep());
                }
            }
            if !waiting.is_empty() && waiting.len() < GROUP_JOBS_MAX {
                match jobs.try_recv() {
                    Ok(Message::Job(job)) => next = Some(job),
                    Ok(Message::Stop) => go_on = false,
                    Err(_) => {}
                }
            }
        }
        if !waiting.is_empty() {
            self.confirm();
        }
        for (answer, outcome) in waiting {
            let _ = answer.send(match &self.failed {
                None => outcome,
                Some(reason) => Err(DynoxideError::InternalServerError(reason.clone())),
            });
        }
        go_on
    }

    fn confirm(&mut self) {
        if let Some(log) = &mut self.log
            && let Err(error) = log.sync()
        {
            tracing::error!(%error, "The DynamoDB log could not be written to the disk: {error}");
            self.failed = Some(format!("the database log could not be written to the disk: {error}"));
        }
    }

    fn call(&mut self, request: Request, digest: u64) -> Outcome {
        if let Some(reason) = &self.failed {
            return Err(DynoxideError::InternalServerError(reason.clone()));
        }
        let token = match &request {
            Request::TransactWriteItems(write) => write.client_request_token.clone(),
            _ => None,
        };
        if let Some(token) = &token {
            match self.tokens.status(token, digest, Instant::now()) {
                TokenStatus::New => {}
                TokenStatus::Done => {
                    return Ok(Response::TransactWriteItems(TransactWriteItemsResponse::default()));
                }
                TokenStatus::Mismatch => {
                    return Err(DynoxideError::IdempotentParameterMismatchException(
                        "Another request has been made with the same client token".to_owned(),
                    ));
                }
            }
        }
        let outcome = self.execute(request);
        if let (Some(token), Ok(_)) = (token, &outcome) {
            self.tokens.remember(token, digest, Instant::now());
        }
        outcome
    }

    fn execute(&mut self, request: Request) -> Outcome {
        let engine = &self.engine;
        let outcome = catch_unwind(AssertUnwindSafe(|| ready(request.run(engine))));
        self.end_open_transaction();
        outcome.unwrap_or_else(|_| {
            Err(DynoxideError::InternalServerError("the operation ended unexpectedly".to_owned()))
        })
    }

    /// Deletes expired items, at most [`expiry::SWEPT_MAX`].
    fn sweep(&mut self) -> Result<usize, DynoxideError> {
        let engine = &self.engine;
        let swept = catch_unwind(AssertUnwindSafe(|| ready(expiry::sweep(engine))));
        self.end_open_transaction();
        swept.unwrap_or_else(|_| {
            Err(DynoxideError::InternalServerError("the sweep ended unexpectedly".to_owned()))
        })
    }

    /// Rolls back a transaction that a failed job left open.
    fn end_open_transaction(&self) {
        if !self.engine.storage.conn().is_autocommit()
            && let Err(error) = self.engine.storage.rollback()
        {
            tracing::error!(%error, "A DynamoDB transaction could not be rolled back: {error}");
        }
    }
}

/// Polls the future once. The native storage never waits, so its futures are ready at the first
/// poll.
fn ready<T>(future: impl Future<Output = Result<T, DynoxideError>>) -> Result<T, DynoxideError> {
    future.now_or_never().unwrap_or_else(|| {
        Err(DynoxideError::InternalServerError("the storage did not answer at once".to_owned()))
    })
}
