//! A service on a separate thread: jobs are sent through a channel, and responses return through
//! one-shot channels in the jobs. Tokio's workers never wait for a disk.

use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The service's thread has ended; it answers no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServiceStopped;

/// Messages to a service thread.
pub(crate) enum Message<J> {
    Job(J),
    Stop,
}

/// Handle of a running service thread. The thread ends at [`ServiceThread::stop`], at the latest
/// when the handle is dropped.
#[derive(Debug)]
pub(crate) struct ServiceThread<J> {
    sender: Sender<Message<J>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<J: Send + 'static> ServiceThread<J> {
    /// Starts `run` on a thread. `run` returns when it receives [`Message::Stop`] or the channel is
    /// closed; it also gets a sender to its own queue.
    pub(crate) fn start(
        name: &str,
        run: impl FnOnce(Sender<Message<J>>, Receiver<Message<J>>) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let own = sender.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(own, receiver))?;
        Ok(Self { sender, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn send(&self, job: J) -> Result<(), ServiceStopped> {
        self.sender.send(Message::Job(job)).map_err(|_| ServiceStopped)
    }
}

impl<J> ServiceThread<J> {
    /// Ends the thread after the jobs that were already sent, and waits for it.
    pub(crate) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Fails only if the thread has already ended.
            let _ = self.sender.send(Message::Stop);
            let _ = thread.join();
        }
    }
}

impl<J> Drop for ServiceThread<J> {
    fn drop(&mut self) {
        self.stop();
    }
}
