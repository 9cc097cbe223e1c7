//! One queue in memory: which messages are visible, delayed or in flight, and who waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::attributes::Attributes;
use super::command::{Reply, SqsResult};
use super::ready::{Group, Ready};
use super::receipt::Receipt;
use super::store::{MessageRow, QueueRow};

/// What a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Can be received.
    Ready,
    /// Its delay has not passed.
    Delayed,
    /// Somebody has it until its visibility timeout passes.
    InFlight,
}

/// A message without its content.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: Uuid,
    pub(super) group: Group,
    pub(super) sent_ms: i64,
    /// When a delayed or in-flight message becomes visible.
    pub(super) due_ms: i64,
    pub(super) receives: u32,
    pub(super) first_received_ms: Option<i64>,
    pub(super) state: State,
}

impl Message {
    pub(super) fn from_row(row: &MessageRow) -> Self {
        Self {
            id: row.id,
            group: row.group.as_deref().map(Arc::from),
            sent_ms: row.sent_ms,
            due_ms: row.due_ms,
            receives: row.receives,
            first_received_ms: row.first_received_ms,
            state: State::Ready,
        }
    }

    /// From the random id; part of receipt handles.
    pub(super) fn tag(&self) -> u64 {
        self.id.as_u64_pair().1
    }
}

/// A long poll.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) answer: oneshot::Sender<SqsResult<Reply>>,
    pub(super) messages_max: usize,
    pub(super) visibility_seconds: i64,
    pub(super) deadline_ms: i64,
}

/// A queue.
///
/// Invariant: a message is in `ready` if its state is `Ready`, else in `timers` under its
/// `due_ms`; `in_flight` and `delayed` count the other two states.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) attributes: Attributes,
    pub(super) created_s: i64,
    pub(super) modified_s: i64,
    pub(super) messages: HashMap<i64, Message>,
    pub(super) ready: Ready,
    timers: BTreeSet<(i64, i64)>,
    pub(super) in_flight: usize,
    pub(super) delayed: usize,
    pub(super) waiters: VecDeque<Waiter>,
}

impl Queue {
    /// An empty queue that hands out nothing of the paused groups.
    pub(super) fn from_row(row: QueueRow, paused: &HashSet<Group>) -> Self {
        let mut ready = Ready::default();
        paused.iter().for_each(|group| ready.pause(group.clone()));
        Self {
            id: row.id,
            name: row.name,
            attributes: row.attributes,
            created_s: row.created_s,
            modified_s: row.modified_s,
            messages: HashMap::new(),
            ready,
            timers: BTreeSet::new(),
            in_flight: 0,
            delayed: 0,
            waiters: VecDeque::new(),
        }
    }

    pub(super) fn arn(&self) -> String {
        format!("arn:aws:sqs:{}:{}:{}", crate::REGION, crate::ACCOUNT_ID, self.name)
    }

    /// Adds a message that is in no set yet, in the state its `state` says.
    pub(super) fn add(&mut self, seq: i64, message: Message) {
        match message.state {
            State::Ready => self.ready.insert(&message.group, seq),
            State::Delayed | State::InFlight => {
                self.timers.insert((message.due_ms, seq));
                *self.count_of(message.state) += 1;
            }
        }
        self.messages.insert(seq, message);
    }

    /// Takes a message out of everything.
    pub(super) fn remove(&mut self, seq: i64) -> Option<Message> {
        let message = self.messages.remove(&seq)?;
        match message.state {
            State::Ready => self.ready.remove(&message.group, seq),
            State::Delayed | State::InFlight => {
                self.timers.remove(&(message.due_ms, seq));
                *self.count_of(message.state) -= 1;
            }
        }
        Some(message)
    }

    /// Moves a message to another state.
    pub(super) fn set_state(&mut self, seq: i64, state: State, due_ms: i64) {
        if let Some(mut message) = self.remove(seq) {
            message.state = state;
            message.due_ms = due_ms;
            self.add(seq, message);
        }
    }

    fn count_of(&mut self, state: State) -> &mut usize {
        if state == State::Delayed { &mut self.delayed } else { &mut self.in_flight }
    }

    /// Makes everything visible that is due.
    pub(super) fn release_due(&mut self, now_ms: i64) {
        while let Some((due_ms, seq)) = self.timers.first().copied()
            && due_ms <= now_ms
        {
            self.set_state(seq, State::Ready, due_ms);
        }
    }

    /// When something happens that a waiter should see. `None` while nobody waits.
    pub(super) fn next_wake_ms(&self) -> Option<i64> {
        let deadline = self.waiters.iter().map(|waiter| waiter.deadline_ms).min()?;
        Some(self.timers.first().map_or(deadline, |(due_ms, _)| deadline.min(*due_ms)))
    }

    /// The message a receipt is about, if it is the latest receipt of a message that exists.
    pub(super) fn current(&self, receipt: &Receipt) -> Option<&Message> {
        self.messages
            .get(&receipt.seq)
            .filter(|message| message.tag() == receipt.tag && message.receives == receipt.receives)
    }

    /// Everything `GetQueueAttributes` can report.
    pub(super) fn all_attributes(&self) -> BTreeMap<String, String> {
        let mut all = self.attributes.to_map();
        for (name, value) in [
            ("ApproximateNumberOfMessages", self.ready.len().to_string()),
            ("ApproximateNumberOfMessagesNotVisible", self.in_flight.to_string()),
            ("ApproximateNumberOfMessagesDelayed", self.delayed.to_string()),
            ("CreatedTimestamp", self.created_s.to_string()),
            ("LastModifiedTimestamp", self.modified_s.to_string()),
            ("QueueArn", self.arn()),
        ] {
            all.insert(name.to_owned(), value);
        }
        all
    }
}
