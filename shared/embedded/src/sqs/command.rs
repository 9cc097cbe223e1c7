//! What the queue thread is asked and what it answers.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::error::SqsError;
use super::receipt::Receipt;
use super::store::Content;
use crate::service_thread::Message;

pub(super) type SqsResult<T> = Result<T, SqsError>;

/// A message to be sent, checked as far as possible without its queue.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) content: Content,
    pub(super) group: Option<String>,
    pub(super) delay_seconds: Option<i64>,
    /// Size as SQS counts it.
    pub(super) bytes: usize,
    /// 1, unless fault injection drops (0) or doubles (2) the message.
    pub(super) copies: u8,
}

/// A command to the queue thread. Queues are named.
#[derive(Debug)]
pub(super) enum Command {
    CreateQueue { name: String, attributes: BTreeMap<String, String> },
    DeleteQueue { queue: String },
    FindQueue { queue: String },
    ListQueues { prefix: String, after: Option<String>, queues_max: usize },
    Attributes { queue: String },
    SetAttributes { queue: String, attributes: BTreeMap<String, String> },
    Purge { queue: String },
    Send { queue: String, messages: Vec<SqsResult<Outgoing>> },
    Receive { queue: String, messages_max: usize, visibility_seconds: Option<i64>, wait_seconds: Option<i64> },
    Delete { queue: String, receipts: Vec<SqsResult<Receipt>> },
    ChangeVisibility { queue: String, changes: Vec<SqsResult<(Receipt, i64)>> },
}

/// A message handed out.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) id: Uuid,
    pub(super) receipt: Receipt,
    pub(super) content: Content,
    pub(super) group: Option<String>,
    pub(super) sent_ms: i64,
    pub(super) first_received_ms: i64,
}

/// The answer to a command.
#[derive(Debug)]
pub(super) enum Reply {
    Done,
    Queues { names: Vec<String>, more: bool },
    Attributes(BTreeMap<String, String>),
    Sent(Vec<SqsResult<Uuid>>),
    Received(Delivery),
    Each(Vec<SqsResult<()>>),
}

/// A job of the queue thread.
#[derive(Debug)]
pub(super) enum Job {
    Call {
        command: Command,
        answer: oneshot::Sender<SqsResult<Reply>>,
    },
    /// Messages whose receiver went away before it saw them.
    Return(Vec<Receipt>),
    /// Message groups of which nothing is handed out any more, in any queue.
    Pause {
        groups: Vec<String>,
        done: oneshot::Sender<()>,
    },
    /// A message group of which messages are handed out again.
    Resume {
        group: String,
    },
}

/// Messages on their way to a receiver. If nobody takes them, they go back to their queue: a
/// long poll that was given up on swallows nothing.
#[derive(Debug)]
pub(super) struct Delivery {
    messages: Vec<Received>,
    back: Sender<Message<Job>>,
}

impl Delivery {
    pub(super) fn new(messages: Vec<Received>, back: Sender<Message<Job>>) -> Self {
        Self { messages, back }
    }

    /// The receiver is here.
    pub(super) fn take(mut self) -> Vec<Received> {
        std::mem::take(&mut self.messages)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.messages.is_empty() {
            let receipts = self.messages.iter().map(|message| message.receipt).collect();
            // If the thread is gone, the next open makes them visible.
            let _ = self.back.send(Message::Job(Job::Return(receipts)));
        }
    }
}
