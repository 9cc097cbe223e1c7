//! Commands to the queue thread and its replies.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::error::SqsError;
use super::ready::GroupLimit;
use super::receipt::Receipt;
use super::store::Content;
use crate::service_thread::Message;

pub(super) type SqsResult<T> = Result<T, SqsError>;

/// A message to send, checked as far as possible without its queue.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    pub(super) content: Content,
    pub(super) group: Option<String>,
    pub(super) delay_seconds: Option<i64>,
    /// Size as counted by SQS.
    pub(super) bytes: usize,
    /// Number of copies: 1, unless fault injection drops (0) or duplicates (2) the message.
    pub(super) copies: u8,
}

/// A command to the queue thread. Queues are given by name.
#[derive(Debug)]
pub(super) enum Command {
    CreateQueue { name: String, attributes: BTreeMap<String, String> },
    DeleteQueue { queue: String },
    FindQueue { queue: String },
    ListQueues { prefix: String, after: Option<String>, queues_max: usize },
    Attributes { queue: String },
    SetAttributes { queue: String, attributes: BTreeMap<String, String> },
    Purge { queue: String },
    Send { queue: String, messages: Vec<SqsResult<OutgoingMessage>> },
    Receive { queue: String, messages_max: usize, visibility_seconds: Option<i64>, wait_seconds: Option<i64> },
    Delete { queue: String, receipts: Vec<SqsResult<Receipt>> },
    ChangeVisibility { queue: String, changes: Vec<SqsResult<(Receipt, i64)>> },
}

/// A delivered message.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) id: Uuid,
    pub(super) receipt: Receipt,
    pub(super) content: Content,
    pub(super) group: Option<String>,
    pub(super) sent_ms: i64,
    pub(super) first_received_ms: i64,
}

/// Reply to a command.
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
    /// Messages whose receiver ended before it got them.
    Return(Vec<Receipt>),
    /// Stop delivering messages of these groups, in any queue.
    Pause {
        groups: Vec<String>,
        done: oneshot::Sender<()>,
    },
    /// Resume delivering messages of this group.
    Resume {
        group: String,
    },
    /// Stop delivering messages, in any queue, or continue.
    Halt(bool),
    /// Replace the limits of message groups, in every queue.
    Limit(Vec<GroupLimit>),
}

impl Job {
    /// Returns true if the effect must survive a power failure once it is acknowledged, with [`Durability::Full`]. A receive or a
    /// delete needn't: the message is delivered again, as queues are allowed to do.
    ///
    /// [`Durability::Full`]: crate::Durability::Full
    pub(super) fn must_survive(&self) -> bool {
        let Self::Call { command, .. } = self else { return false };
        match command {
            Command::CreateQueue { .. }
            | Command::DeleteQueue { .. }
            | Command::SetAttributes { .. }
            | Command::Purge { .. }
            | Command::Send { .. } => true,
            Command::FindQueue { .. }
            | Command::ListQueues { .. }
            | Command::Attributes { .. }
            | Command::Receive { .. }
            | Command::Delete { .. }
            | Command::ChangeVisibility { .. } => false,
        }
    }
}

/// Messages on their way to a receiver. If no receiver takes them, they return to their queue, so
/// an aborted long poll loses no messages.
#[derive(Debug)]
pub(super) struct Delivery {
    messages: Vec<ReceivedMessage>,
    back: Sender<Message<Job>>,
}

impl Delivery {
    pub(super) fn new(messages: Vec<ReceivedMessage>, back: Sender<Message<Job>>) -> Self {
        Self { messages, back }
    }

    /// Takes the messages, on behalf of the receiver.
    pub(super) fn take(mut self) -> Vec<ReceivedMessage> {
        std::mem::take(&mut self.messages)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.messages.is_empty() {
            let receipts = self.messages.iter().map(|message| message.receipt).collect();
            // If the thread has ended, the next open makes them visible.
            let _ = self.back.send(Message::Job(Job::Return(receipts)));
        }
    }
}
