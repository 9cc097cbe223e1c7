//! Threads that run jobs in the order in which they were submitted.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until the queue is closed and empty.
    fn work(&self) {
        loop {
            let mut queue = self.lock();
            let job = loop {
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                if queue.is_closed {
                    return;
                }
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            job();
        }
    }
}

/// A fixed number of threads with an unbounded queue.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts the threads.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let threads = (0..threads)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || shared.work())
            })
            .collect();
        Self { shared, threads }
    }

    /// Adds a job to the queue.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Handle<T> {
        let (sender, result) = mpsc::channel();
        let job = move || {
            let outcome = panic::catch_unwind(AssertUnwindSafe(job)).map_err(|payload| message(&*payload));
            // The handle may have been dropped.
            let _ = sender.send(outcome);
        };
        self.shared.lock().jobs.push_back(Box::new(job));
        self.shared.changed.notify_one();
        Handle { result }
    }
}

impl Drop for Pool {
    /// Runs all jobs that are left and ends the threads.
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Result of a job, once it has one.
pub struct Handle<T> {
    result: Receiver<Result<T, String>>,
}

impl<T> Handle<T> {
    /// Waits for the result. An error is the message of a panic.
    pub fn wait(self) -> Result<T, String> {
        self.result.recv().unwrap_or_else(|_| Err("the pool is gone".to_owned()))
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "unknown panic".to_owned()
    }
}
