//! The thread that writes the index. It combines queued changes into one transaction.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::{mpsc, oneshot};

use super::error::StoreError;
use super::files::{Files, NewFile};
use super::receive::Payload;

/// Maximum number of changes in one transaction.
const BATCH_MAX: usize = 256;

/// Maximum number of queued changes; above it, callers wait.
const QUEUE_MAX: usize = 1024;

/// Submits changes to the writing thread.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
}

impl Writer {
    /// Starts the thread. It ends when the last `Writer` is dropped and the queue is empty.
    pub(super) fn start(conn: Connection, files: Arc<Files>) -> Result<(Self, JoinHandle<()>), StoreError> {
        let next_content_id =
            conn.query_row("SELECT coalesce(max(id), 0) + 1 FROM content", [], |row| row.get(0))?;
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let state = State { conn, files, next_content_id };
        let thread = thread::Builder::new().name("s3-writer".into()).spawn(move || state.run(jobs))?;
        Ok((Self { queue }, thread))
    }

    /// Runs `work` in the next transaction and returns after its commit.
    ///
    /// `work` may run twice (the second time alone, if its batch failed), and must not have written anything when it
    /// returns an error that the request caused.
    pub(super) async fn submit<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Call { work, outcome: None, reply });
        self.queue.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

trait Job: Send {
    /// Runs the job. An error is a fault of the store and requires a rollback.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError>;
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Call<T, F> {
    work: F,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        match (self.work)(tx) {
            Err(error) if error.is_fault() => Err(error),
            outcome => {
                self.outcome = Some(outcome);
                Ok(())
            }
        }
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { work, outcome, reply } = *self;
        // Remove files that weren't kept before the caller gets the result.
        drop(work);
        let answer = committed.and_then(|()| outcome.unwrap_or(Err(StoreError::Closed)));
        // The caller may be gone; the change stays.
        let _ = reply.send(answer);
    }
}

struct State {
    conn: Connection,
    files: Arc<Files>,
    next_content_id: i64,
}

impl State {
    fn run(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Some(first) = queue.blocking_recv() {
            batch.push(first);
            while batch.len() < BATCH_MAX
                && let Ok(next) = queue.try_recv()
            {
                batch.push(next);
            }
            self.run_batch(&mut batch);
        }
    }

    fn run_batch(&mut self, batch: &mut Vec<Box<dyn Job>>) {
        match self.attempt(batch) {
            Ok(()) => batch.drain(..).for_each(|job| job.finish(Ok(()))),
            // A change must not fail because of another one in its batch.
            Err(_) if batch.len() > 1 => {
                for mut job in batch.drain(..) {
                    let committed = self.attempt(std::slice::from_mut(&mut job));
                    job.finish(committed);
                }
            }
            Err(error) => {
                if let Some(job) = batch.pop() {
                    job.finish(Err(error));
                }
            }
        }
    }

    fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
        let mut effects = Effects::default();
        let mut run = |state: &mut Self, effects: &mut Effects| -> Result<(), StoreError> {
            state.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let mut tx = Tx { conn: &state.conn, next_content_id: &mut state.next_content_id, effects };
            for job in jobs.iter_mut() {
                job.run(&mut tx)?;
            }
            state.conn.prepare_cached("COMMIT")?.execute([])?;
            Ok(())
        };
        if let Err(error) = run(self, &mut effects) {
            if !self.conn.is_autocommit()
                && let Err(rollback) = self.conn.execute_batch("ROLLBACK")
            {
                tracing::error!(error = %rollback, "The object index could not roll back");
            }
            return Err(error);
        }
        for file in effects.kept {
            file.keep();
        }
        for (content_id, names) in effects.pending_removal {
            self.files.remove_unreferenced(content_id, names);
        }
        Ok(())
    }
}

/// Effects on files after the transaction is committed.
#[derive(Default)]
struct Effects {
    kept: Vec<Arc<NewFile>>,
    pending_removal: Vec<(i64, Vec<String>)>,
}

/// The transaction of a change.
pub(super) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    next_content_id: &'a mut i64,
    effects: &'a mut Effects,
}

impl Tx<'_> {
    pub(super) fn bucket_id(&self, name: &str) -> Result<i64, StoreError> {
        self.conn
            .prepare_cached("SELECT id FROM bucket WHERE name = ?1")?
            .query_row([name], |row| row.get(0))
            .optional()?
            .ok_or(StoreError::NoSuchBucket)
    }

    /// Returns an id that no content has had in this process, so that a pin always refers to one content.
    pub(super) fn new_content_id(&mut self) -> i64 {
        let id = *self.next_content_id;
        *self.next_content_id += 1;
        id
    }

    /// Adds a content; its files are kept after the commit.
    pub(super) fn insert_content(&mut self, payload: &Payload) -> Result<i64, StoreError> {
        let id = self.new_content_id();
        let mut insert = self.conn.prepare_cached("INSERT INTO content (id, data) VALUES (?1, ?2)")?;
        match payload {
            Payload::Inline(bytes) => {
                insert.execute(params![id, &bytes[..]])?;
            }
            Payload::Files(files) => {
                insert.execute(params![id, Option::<&[u8]>::None])?;
                let mut segment = self.conn.prepare_cached(
                    "INSERT INTO segment (content_id, seq, file, size) VALUES (?1, ?2, ?3, ?4)",
                )?;
                for (seq, file) in files.iter().enumerate() {
                    segment.execute(params![id, seq as i64, file.name, file.size_bytes as i64])?;
                    self.effects.kept.push(file.clone());
                }
            }
        }
        Ok(id)
    }

    /// Removes a content; its files are removed after the commit.
    pub(super) fn remove_content(&mut self, id: i64, segments: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM content WHERE id = ?1")?.execute([id])?;
        if segments > 0 {
            let names = self
                .conn
                .prepare_cached("DELETE FROM segment WHERE content_id = ?1 RETURNING file")?
                .query_map([id], |row| row.get(0))?
                .collect::<Result<Vec<String>, _>>()?;
            self.effects.pending_removal.push((id, names));
        }
        Ok(())
    }
}
