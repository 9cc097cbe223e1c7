//! The queue thread: runs queued jobs in one transaction, commits and sends the replies.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::ErrorCode;

use super::command::Job;
use super::engine::{Engine, PendingReply, storage_failed};
use super::store::Store;
use crate::Durability;
use crate::service_thread::Message;

/// Maximum number of jobs that share one transaction.
const GROUP_JOBS_MAX: usize = 256;
const SWEEP_INTERVAL_MS: i64 = 60_000;

/// Clock in milliseconds since 1970 that never goes back, whatever happens to the system clock.
#[derive(Debug)]
struct Clock {
    wall_ms_at_start: i64,
    start: Instant,
}

impl Clock {
    fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            wall_ms_at_start: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX / 2),
            start: Instant::now(),
        }
    }

    fn now_ms(&self) -> i64 {
        self.wall_ms_at_start
            .saturating_add(i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

pub(super) struct Worker {
    engine: Engine,
    clock: Clock,
    next_sweep_ms: i64,
    replies: Vec<PendingReply>,
    /// True if the file couldn't be reloaded after a failure. Until it can, no request is answered
    /// from memory.
    must_reload: bool,
    /// True after an input or output error at a commit. Earlier commits that didn't wait for the disk may be lost, and with them
    /// all that follow them in the log, so no request succeeds until the next open.
    is_broken: bool,
}

impl Worker {
    pub(super) fn open(
        path: &Path,
        durability: Durability,
        own_jobs: Sender<Message<Job>>,
    ) -> Result<Self, String> {
        let store = Store::open(path, durability)?;
        let clock = Clock::start();
        let engine = Engine::load(store, own_jobs, clock.now_ms()).map_err(|error| error.to_string())?;
        let next_sweep_ms = clock.now_ms() + SWEEP_INTERVAL_MS;
        Ok(Self { engine, clock, next_sweep_ms, replies: Vec::new(), must_reload: false, is_broken: false })
    }

    pub(super) fn run(mut self, jobs: &Receiver<Message<Job>>) {
        let mut stop = false;
        let mut group = VecDeque::with_capacity(GROUP_JOBS_MAX);
        while !stop {
            match jobs.recv_timeout(self.time_to_next_event()) {
                Ok(Message::Job(job)) => group.push_back(job),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => stop = true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            while !stop && !group.is_empty() && group.len() < GROUP_JOBS_MAX {
                match jobs.try_recv() {
                    Ok(Message::Job(job)) => group.push_back(job),
                    Ok(Message::Stop) => stop = true,
                    Err(_) => break,
                }
            }
            self.run_group(&mut group);
        }
    }

    /// Returns the time until something has to be done unless a job arrives.
    fn time_to_next_event(&self) -> Duration {
        let next_ms = self.engine.next_wake_ms().map_or(self.next_sweep_ms, |ms| ms.min(self.next_sweep_ms));
        Duration::from_millis(u64::try_from(next_ms - self.clock.now_ms()).unwrap_or(0))
    }

    fn run_group(&mut self, group: &mut VecDeque<Job>) {
        let now_ms = self.clock.now_ms();
        if self.is_broken {
            self.refuse(group, now_ms);
            return self.send_replies();
        }
        let outcome = self.reload_if_needed(now_ms).and_then(|()| self.run_jobs(group, now_ms));
        if let Err(error) = outcome.and_then(|()| self.commit()) {
            match error.sqlite_error_code() {
                // The processes that use the queues say it to people.
                Some(ErrorCode::DiskFull) => tracing::info!("The disk that holds the queues is full"),
                _ => tracing::error!(%error, "The queue's file could not be written: {error}"),
            }
            self.refuse(group, now_ms);
            self.must_reload = !self.is_broken;
            if let Err(error) = self.reload_if_needed(now_ms) {
                tracing::error!(%error, "The queue's file could not be read again: {error}");
            }
        }
        self.send_replies();
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        let committed = self.engine.commit();
        let code = committed.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
        self.is_broken = code == Some(ErrorCode::SystemIoFailure);
        committed
    }

    /// Answers all calls of the group with an error, and if the file is broken, the waiting receives as well.
    fn refuse(&mut self, group: &mut VecDeque<Job>, now_ms: i64) {
        for (_, reply) in &mut self.replies {
            *reply = Err(storage_failed());
        }
        for job in group.drain(..) {
            if let Some(Job::Call { answer, .. }) = self.run_unstored(job) {
                self.replies.push((answer, Err(storage_failed())));
            }
        }
        if self.is_broken {
            self.engine.refuse_waiters(&mut self.replies);
            self.next_sweep_ms = now_ms + SWEEP_INTERVAL_MS;
        }
    }

    /// Runs a job whose effect isn't stored in the file, or returns any other one.
    fn run_unstored(&mut self, job: Job) -> Option<Job> {
        match job {
            Job::Pause { groups, done } => {
                self.engine.pause(groups);
                // The caller may be gone.
                let _ = done.send(());
            }
            Job::Resume { group } => self.engine.resume(group),
            Job::Halt(halted) => self.engine.halt(halted),
            Job::Limit(limits) => self.engine.set_limits(limits),
            Job::Call { .. } | Job::Return(_) => return Some(job),
        }
        None
    }

    fn send_replies(&mut self) {
        for (answer, reply) in self.replies.drain(..) {
            // A receiver that is gone returns its messages when the reply is dropped.
            drop(answer.send(reply));
        }
    }

    fn reload_if_needed(&mut self, now_ms: i64) -> rusqlite::Result<()> {
        if self.must_reload {
            self.engine.roll_back(now_ms)?;
            self.must_reload = false;
        }
        Ok(())
    }

    /// Runs the jobs. After a failure, the remaining ones are still in `group`.
    fn run_jobs(&mut self, group: &mut VecDeque<Job>, now_ms: i64) -> rusqlite::Result<()> {
        self.engine.set_waits_for_disk(group.iter().any(Job::must_survive))?;
        while let Some(job) = group.pop_front() {
            match self.run_unstored(job) {
                Some(Job::Call { command, answer }) => {
                    self.engine.run(command, answer, now_ms, &mut self.replies)?;
                }
                Some(Job::Return(receipts)) => self.engine.return_undelivered(&receipts, now_ms)?,
                _ => {}
            }
        }
        if now_ms >= self.next_sweep_ms {
            self.next_sweep_ms = now_ms + SWEEP_INTERVAL_MS;
            self.engine.sweep(now_ms)?;
        }
        self.engine.serve_waiters(now_ms, &mut self.replies)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::sync::oneshot;

    use super::super::command::{Command, Reply, SqsResult};
    use super::*;

    type Answer = oneshot::Receiver<SqsResult<Reply>>;

    fn worker(dir: &tempfile::TempDir, durability: Durability) -> Worker {
        Worker::open(&dir.path().join("sqs.sqlite"), durability, channel().0).unwrap()
    }

    /// Runs commands in one transaction.
    fn run(worker: &mut Worker, commands: Vec<Command>) -> Vec<Answer> {
        let (mut group, mut answers) = (VecDeque::new(), Vec::new());
        for command in commands {
            let (answer, answered) = oneshot::channel();
            group.push_back(Job::Call { command, answer });
            answers.push(answered);
        }
        worker.run_group(&mut group);
        answers
    }

    fn queue() -> String {
        "q".to_owned()
    }

    fn receive() -> Command {
        Command::Receive {
            queue: queue(),
            messages_max: 1,
            visibility_seconds: Some(30),
            wait_seconds: Some(20),
        }
    }

    fn send() -> Command {
        Command::Send { queue: queue(), messages: vec![] }
    }

    fn create() -> Command {
        Command::CreateQueue { name: queue(), attributes: [].into() }
    }

    #[test]
    fn only_commands_that_must_survive_wait_for_the_disk() {
        // `PRAGMA synchronous`: 1 is `NORMAL`, 2 is `FULL`.
        for (durability, waiting) in [(Durability::Full, 2), (Durability::Normal, 1)] {
            let dir = tempfile::tempdir().unwrap();
            let mut worker = worker(&dir, durability);
            let mut synchronous_in = |commands| {
                run(&mut worker, commands);
                worker.engine.store().synchronous()
            };
            let delete = || Command::Delete { queue: queue(), receipts: vec![] };
            assert_eq!(synchronous_in(vec![create()]), waiting);
            assert_eq!(synchronous_in(vec![receive()]), 1);
            assert_eq!(synchronous_in(vec![receive(), send(), delete()]), waiting);
            assert_eq!(synchronous_in(vec![delete()]), 1);
            assert_eq!(synchronous_in(vec![Command::Purge { queue: queue() }]), waiting);
            let change = Command::ChangeVisibility { queue: queue(), changes: vec![] };
            assert_eq!(synchronous_in(vec![change]), 1);
            assert_eq!(synchronous_in(vec![Command::DeleteQueue { queue: queue() }]), waiting);
        }
    }

    #[test]
    fn after_an_error_of_the_disk_no_call_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let mut worker = worker(&dir, Durability::Full);
        run(&mut worker, vec![create()]).pop().unwrap().try_recv().unwrap().unwrap();
        let mut waits = run(&mut worker, vec![receive()]).pop().unwrap();
        assert!(waits.try_recv().is_err(), "the queue is empty");
        worker.is_broken = true;
        let mut sent = run(&mut worker, vec![send()]).pop().unwrap();
        for answer in [&mut sent, &mut waits] {
            assert_eq!(answer.try_recv().unwrap().unwrap_err().code, "InternalError");
        }
        assert!(worker.time_to_next_event() > Duration::from_secs(1), "the thread waits for the next job");
    }
}
