//! A queue in memory: its visible, delayed and in-flight messages, and waiting receivers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::attributes::Attributes;
use super::command::{Reply, SqsResult};
use super::ready::{Group, GroupLimit, ReadyMessages};
use super::receipt::Receipt;
use super::store::{MessageRow, QueueRow};

/// State of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The message can be received.
    Ready,
    /// The message's delay hasn't passed.
    Delayed,
    /// A receiver has the message until its visibility timeout passes.
    InFlight,
}

/// A message without its content.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: Uuid,
    pub(super) group: Group,
    pub(super) sent_ms: i64,
    /// Time at which a delayed or in-flight message becomes visible.
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

    /// Returns a part of the random id for receipt handles.
    pub(super) fn tag(&self) -> u64 {
        self.id.as_u64_pair().1
    }
}

/// A waiting long poll.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) answer: oneshot::Sender<SqsResult<Reply>>,
    pub(super) messages_max: usize,
    pub(super) visibility_seconds: i64,
    pub(super) deadline_ms: i64,
}

/// A queue.
///
/// Invariants: a message is in `ready` if its state is `Ready`, otherwise in `timers` under its
/// `due_ms`; `in_flight` and `delayed` count the other two states.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) attributes: Attributes,
    pub(super) created_s: i64,
    pub(super) modified_s: i64,
    pub(super) messages: HashMap<i64, Message>,
    pub(super) ready: ReadyMessages,
    timers: BTreeSet<(i64, i64)>,
    pub(super) in_flight: usize,
    pub(super) delayed: usize,
    pub(super) waiters: VecDeque<Waiter>,
}

impl Queue {
    /// Creates an empty queue that doesn't deliver messages of the paused groups, and not more than the limits allow.
    pub(super) fn from_row(row: QueueRow, paused: &HashSet<Group>, limits: &[GroupLimit]) -> Self {
        let mut ready = ReadyMessages::default();
        paused.iter().for_each(|group| ready.pause(group.clone()));
        ready.set_limits(limits, std::iter::empty());
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

    /// Adds a message in the state that its `state` field has.
    pub(super) fn add(&mut self, seq: i64, message: Message) {
        match message.state {
            State::Ready => self.ready.insert(&message.group, seq),
            State::Delayed | State::InFlight => {
                self.timers.insert((message.due_ms, seq));
                *self.counter(message.state) += 1;
                if message.state == State::InFlight {
                    self.ready.start_flight(&message.group);
                }
            }
        }
        self.messages.insert(seq, message);
    }

    /// Removes a message.
    pub(super) fn remove(&mut self, seq: i64) -> Option<Message> {
        let message = self.messages.remove(&seq)?;
        match message.state {
            State::Ready => self.ready.remove(&message.group, seq),
            State::Delayed | State::InFlight => {
                self.timers.remove(&(message.due_ms, seq));
                *self.counter(message.state) -= 1;
                if message.state == State::InFlight {
                    self.ready.end_flight(&message.group);
                }
            }
        }
        Some(message)
    }

    /// Changes the state of a message.
    pub(super) fn set_state(&mut self, seq: i64, state: State, due_ms: i64) {
        if let Some(mut message) = self.remove(seq) {
            message.state = state;
            message.due_ms = due_ms;
            self.add(seq, message);
        }
    }

    /// Replaces the limits of message groups.
    pub(super) fn set_limits(&mut self, limits: &[GroupLimit]) {
        let in_flight = self.messages.values().filter(|message| message.state == State::InFlight);
        self.ready.set_limits(limits, in_flight.map(|message| &message.group));
    }

    fn counter(&mut self, state: State) -> &mut usize {
        if state == State::Delayed { &mut self.delayed } else { &mut self.in_flight }
    }

    /// Makes all messages visible that are due.
    pub(super) fn release_due(&mut self, now_ms: i64) {
        while let Some((due_ms, seq)) = self.timers.first().copied()
            && due_ms <= now_ms
        {
            self.set_state(seq, State::Ready, due_ms);
        }
    }

    /// Makes all delayed messages of a group visible. The file keeps their delays, which matter only until they are received.
    pub(super) fn end_delays(&mut self, group: &Group) {
        let is_delayed = |message: &Message| message.state == State::Delayed && message.group == *group;
        let delayed: Vec<(i64, i64)> = self
            .messages
            .iter()
            .filter(|(_, message)| is_delayed(message))
            .map(|(seq, message)| (*seq, message.due_ms))
            .collect();
        for (seq, due_ms) in delayed {
            self.set_state(seq, State::Ready, due_ms);
        }
    }

    /// Returns the time of the next event that concerns a waiter; `None` without waiters.
    pub(super) fn next_wake_ms(&self) -> Option<i64> {
        let deadline = self.waiters.iter().map(|waiter| waiter.deadline_ms).min()?;
        Some(self.timers.first().map_or(deadline, |(due_ms, _)| deadline.min(*due_ms)))
    }

    /// Returns the message of a receipt, if it is the latest receipt of an existing message.
    pub(super) fn current(&self, receipt: &Receipt) -> Option<&Message> {
        self.messages
            .get(&receipt.seq)
            .filter(|message| message.tag() == receipt.tag && message.receives == receipt.receives)
    }

    /// Returns all attributes that `GetQueueAttributes` can report.
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
