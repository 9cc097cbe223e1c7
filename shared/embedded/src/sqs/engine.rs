//! The queues: commands on the file and its copy in memory.
//!
//! Every change is written to the file first, inside the open transaction, then to memory. If the file fails, the
//! transaction is rolled back and memory is reloaded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc::Sender;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::attributes::Attributes;
use super::command::{Command, Delivery, Job, OutgoingMessage, ReceivedMessage, Reply, SqsResult};
use super::error::SqsError;
use super::queue::{Message, Queue, State, Waiter};
use super::ready::{Group, GroupLimit};
use super::receipt::Receipt;
use super::store::{MessageRow, Store};
use crate::service_thread;

/// Maximum number of in-flight messages of a queue, as on AWS.
const IN_FLIGHT_MAX: usize = 120_000;

/// Reason for which a command failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The caller's request is invalid.
    Refused(SqsError),
    /// The file failed; the whole transaction is void.
    Storage(rusqlite::Error),
}

impl From<SqsError> for Failure {
    fn from(error: SqsError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error)
    }
}

/// A reply that waits for the commit.
pub(super) type PendingReply = (oneshot::Sender<SqsResult<Reply>>, SqsResult<Reply>);

/// All queues. Times are in milliseconds since 1970 and never go back during the engine's lifetime.
#[derive(Debug)]
pub(super) struct Engine {
    store: Store,
    queues: BTreeMap<i64, Queue>,
    ids: HashMap<String, i64>,
    next_seq: i64,
    /// Paused message groups, until the process ends.
    paused: HashSet<Group>,
    /// Limits of message groups, until the process ends.
    limits: Vec<GroupLimit>,
    /// True if no messages are delivered.
    halted: bool,
    own_jobs: Sender<service_thread::Message<Job>>,
}

impl Engine {
    /// Loads the file. No message is in flight afterwards; delays continue.
    ///
    /// Deliveries that were in flight when the last process ended aren't counted: if a machine is switched off, many
    /// messages are in flight, and none of them caused it. Otherwise five restarts would turn messages that never
    /// failed into dead letters.
    pub(super) fn load(
        store: Store,
        own_jobs: Sender<service_thread::Message<Job>>,
        now_ms: i64,
    ) -> rusqlite::Result<Self> {
        let mut engine = Self {
            store,
            queues: BTreeMap::new(),
            ids: HashMap::new(),
            next_seq: 1,
            paused: HashSet::new(),
            limits: Vec::new(),
            halted: false,
            own_jobs,
        };
        engine.read_file(now_ms)?;
        for message in engine.queues.values_mut().flat_map(|queue| queue.messages.values_mut()) {
            message.receives = message.receives.saturating_sub(1);
        }
        Ok(engine)
    }

    fn read_file(&mut self, now_ms: i64) -> rusqlite::Result<()> {
        let old = &self.queues;
        let (mut ids, mut queues) = (HashMap::new(), BTreeMap::new());
        for row in self.store.queues()? {
            ids.insert(row.name.clone(), row.id);
            queues.insert(row.id, Queue::from_row(row, &self.paused, &self.limits));
        }
        let mut last_seq = 0;
        self.store.for_each_message(|row| {
            last_seq = row.seq;
            let Some(queue) = queues.get_mut(&row.queue) else { return };
            let mut message = Message::from_row(&row);
            let in_flight =
                old.get(&row.queue).and_then(|queue| queue.messages.get(&row.seq)).filter(|in_flight| {
                    in_flight.state == State::InFlight
                        && in_flight.receives == row.receives
                        && in_flight.id == row.id
                });
            if let Some(in_flight) = in_flight {
                (message.state, message.due_ms) = (State::InFlight, in_flight.due_ms);
            } else if row.receives == 0 && row.due_ms > now_ms {
                message.state = State::Delayed;
            }
            queue.add(row.seq, message);
        })?;
        for (id, old) in &mut self.queues {
            if let Some(queue) = queues.get_mut(id) {
                queue.waiters = std::mem::take(&mut old.waiters);
            }
        }
        (self.ids, self.queues) = (ids, queues);
        self.next_seq = self.next_seq.max(last_seq + 1);
        Ok(())
    }

    /// Stops delivering messages of these groups. The messages stay unchanged.
    pub(super) fn pause(&mut self, groups: Vec<String>) {
        for group in groups {
            let group: Group = Some(group.into());
            self.queues.values_mut().for_each(|queue| queue.ready.pause(group.clone()));
            self.paused.insert(group);
        }
    }

    /// Resumes delivering messages of a paused group, the delayed ones at once.
    pub(super) fn resume(&mut self, group: String) {
        let group: Group = Some(group.into());
        self.paused.remove(&group);
        for queue in self.queues.values_mut() {
            queue.ready.resume(&group);
            queue.end_delays(&group);
        }
    }

    /// Stops or continues the delivery of all messages.
    pub(super) fn halt(&mut self, halted: bool) {
        self.halted = halted;
    }

    /// Replaces the limits of message groups.
    pub(super) fn set_limits(&mut self, limits: Vec<GroupLimit>) {
        self.queues.values_mut().for_each(|queue| queue.set_limits(&limits));
        self.limits = limits;
    }

    /// Sets whether the following commits wait for the disk, as [`Store::set_waits_for_disk`] does.
    pub(super) fn set_waits_for_disk(&mut self, waits: bool) -> rusqlite::Result<()> {
        self.store.set_waits_for_disk(waits)
    }

    /// Commits all changes since the last commit.
    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        self.store.commit()
    }

    /// Discards all changes since the last commit. Messages that were in flight before stay in flight.
    pub(super) fn roll_back(&mut self, now_ms: i64) -> rusqlite::Result<()> {
        self.store.rollback()?;
        self.read_file(now_ms)
    }

    /// Runs a command. If its reply is available already, it is added to `replies`.
    pub(super) fn run(
        &mut self,
        command: Command,
        answer: oneshot::Sender<SqsResult<Reply>>,
        now_ms: i64,
        replies: &mut Vec<PendingReply>,
    ) -> rusqlite::Result<()> {
        let outcome = match command {
            Command::Receive { queue, messages_max, visibility_seconds, wait_seconds } => {
                match self.receive_or_wait(&queue, messages_max, visibility_seconds, wait_seconds, now_ms) {
                    Ok((received, None)) => Ok(Reply::Received(received)),
                    Ok((_, Some((id, wait)))) => {
                        if let Some(queue) = self.queues.get_mut(&id) {
                            queue.waiters.push_back(wait.into_waiter(answer));
                        }
                        return Ok(());
                    }
                    Err(failure) => Err(failure),
                }
            }
            Command::CreateQueue { name, attributes } => self.create_queue(&name, &attributes, now_ms),
            Command::DeleteQueue { queue } => self.delete_queue(&queue, replies),
            Command::FindQueue { queue } => self.id(&queue).map(|_| Reply::Done).map_err(Failure::from),
            Command::ListQueues { prefix, after, queues_max } => {
                Ok(self.list_queues(&prefix, after.as_deref(), queues_max))
            }
            Command::Attributes { queue } => self.attributes(&queue, now_ms),
            Command::SetAttributes { queue, attributes } => self.set_attributes(&queue, &attributes, now_ms),
            Command::Purge { queue } => self.purge(&queue),
            Command::Send { queue, messages } => self.send(&queue, messages, now_ms),
            Command::Delete { queue, receipts } => self.delete(&queue, receipts),
            Command::ChangeVisibility { queue, changes } => self.change_visibility(&queue, changes, now_ms),
        };
        match outcome {
            Ok(reply) => replies.push((answer, Ok(reply))),
            Err(Failure::Refused(error)) => replies.push((answer, Err(error))),
            Err(Failure::Storage(error)) => {
                replies.push((answer, Err(storage_failed())));
                return Err(error);
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    fn id(&self, name: &str) -> SqsResult<i64> {
        self.ids.get(name).copied().ok_or_else(SqsError::no_such_queue)
    }

    fn queue(&mut self, name: &str) -> SqsResult<&mut Queue> {
        let id = self.id(name)?;
        self.queues.get_mut(&id).ok_or_else(SqsError::no_such_queue)
    }

    fn create_queue(
        &mut self,
        name: &str,
        requested: &BTreeMap<String, String>,
        now_ms: i64,
    ) -> Result<Reply, Failure> {
        if let Ok(queue) = self.queue(name) {
            return match queue.attributes.first_difference(requested)? {
                None => Ok(Reply::Done),
                Some(attribute) => Err(SqsError::queue_exists(&attribute).into()),
            };
        }
        let mut attributes = Attributes::default();
        attributes.apply(requested)?;
        self.check_redrive(&attributes)?;
        let now_s = now_ms / 1000;
        let id = self.store.insert_queue(name, &attributes, now_s)?;
        let row = super::store::QueueRow {
            id,
            name: name.to_owned(),
            attributes,
            created_s: now_s,
            modified_s: now_s,
        };
        self.queues.insert(id, Queue::from_row(row, &self.paused, &self.limits));
        self.ids.insert(name.to_owned(), id);
        Ok(Reply::Done)
    }

    fn check_redrive(&self, attributes: &Attributes) -> SqsResult<()> {
        match &attributes.redrive {
            Some(redrive) if self.find_by_arn(&redrive.target_arn).is_none() => {
                Err(SqsError::invalid_parameter(format!(
                    "Value {} for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist.",
                    redrive.target_arn
                )))
            }
            _ => Ok(()),
        }
    }

    fn find_by_arn(&self, arn: &str) -> Option<i64> {
        let id = *self.ids.get(arn.rsplit(':').next()?)?;
        self.queues.get(&id).filter(|queue| queue.arn() == arn).map(|queue| queue.id)
    }

    fn delete_queue(&mut self, name: &str, replies: &mut Vec<PendingReply>) -> Result<Reply, Failure> {
        let id = self.id(name)?;
        self.store.delete_queue(id)?;
        self.ids.remove(name);
        if let Some(queue) = self.queues.remove(&id) {
            let gone = |waiter: Waiter| (waiter.answer, Err(SqsError::no_such_queue()));
            replies.extend(queue.waiters.into_iter().map(gone));
        }
        Ok(Reply::Done)
    }

    fn list_queues(&self, prefix: &str, after: Option<&str>, queues_max: usize) -> Reply {
        let mut names: Vec<String> =
            self.ids.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        names.sort_unstable();
        if let Some(after) = after {
            names.retain(|name| name.as_str() > after);
        }
        let more = names.len() > queues_max;
        names.truncate(queues_max);
        Reply::Queues { names, more }
    }

    fn attributes(&mut self, name: &str, now_ms: i64) -> Result<Reply, Failure> {
        let queue = self.queue(name)?;
        queue.release_due(now_ms);
        Ok(Reply::Attributes(queue.all_attributes()))
    }

    fn set_attributes(
        &mut self,
        name: &str,
        changes: &BTreeMap<String, String>,
        now_ms: i64,
    ) -> Result<Reply, Failure> {
        let queue = self.queue(name)?;
        let (id, mut attributes) = (queue.id, queue.attributes.clone());
        attributes.apply(changes)?;
        self.check_redrive(&attributes)?;
        self.store.update_queue(id, &attributes, now_ms / 1000)?;
        let queue = self.queue(name)?;
        queue.attributes = attributes;
        queue.modified_s = now_ms / 1000;
        Ok(Reply::Done)
    }

    fn purge(&mut self, name: &str) -> Result<Reply, Failure> {
        let id = self.id(name)?;
        self.store.purge(id)?;
        let queue = self.queue(name)?;
        let seqs: Vec<i64> = queue.messages.keys().copied().collect();
        for seq in seqs {
            queue.remove(seq);
        }
        Ok(Reply::Done)
    }

    fn send(
        &mut self,
        name: &str,
        messages: Vec<SqsResult<OutgoingMessage>>,
        now_ms: i64,
    ) -> Result<Reply, Failure> {
        let id = self.id(name)?;
        let mut sent = Vec::with_capacity(messages.len());
        for message in messages {
            sent.push(match message {
                Err(error) => Err(error),
                Ok(message) => match self.send_one(id, &message, now_ms) {
                    Ok(id) => Ok(id),
                    Err(Failure::Refused(error)) => Err(error),
                    Err(storage) => return Err(storage),
                },
            });
        }
        Ok(Reply::Sent(sent))
    }

    fn send_one(&mut self, queue_id: i64, outgoing: &OutgoingMessage, now_ms: i64) -> Result<Uuid, Failure> {
        let queue = self.queues.get_mut(&queue_id).ok_or_else(SqsError::no_such_queue)?;
        let bytes_max = queue.attributes.message_bytes_max;
        if i64::try_from(outgoing.bytes).unwrap_or(i64::MAX) > bytes_max {
            return Err(SqsError::invalid_parameter(format!(
                "One or more parameters are invalid. Reason: Message must be shorter than {bytes_max} bytes."
            ))
            .into());
        }
        let delay_ms = outgoing.delay_seconds.unwrap_or(queue.attributes.delay_seconds) * 1000;
        let id = Uuid::new_v4();
        for _ in 0..outgoing.copies {
            let row = MessageRow {
                seq: self.next_seq,
                queue: queue_id,
                id,
                group: outgoing.group.clone(),
                sent_ms: now_ms,
                due_ms: now_ms + delay_ms,
                receives: 0,
                first_received_ms: None,
            };
            self.store.insert_message(&row, &outgoing.content)?;
            self.next_seq += 1;
            let mut message = Message::from_row(&row);
            if delay_ms > 0 {
                message.state = State::Delayed;
            }
            queue.add(row.seq, message);
        }
        Ok(id)
    }

    fn receive_or_wait(
        &mut self,
        name: &str,
        messages_max: usize,
        visibility_seconds: Option<i64>,
        wait_seconds: Option<i64>,
        now_ms: i64,
    ) -> Result<(Delivery, Option<(i64, Wait)>), Failure> {
        let queue = self.queue(name)?;
        let id = queue.id;
        let visibility_seconds = visibility_seconds.unwrap_or(queue.attributes.visibility_seconds);
        let wait_ms = wait_seconds.unwrap_or(queue.attributes.wait_seconds) * 1000;
        let received = self.receive(id, messages_max, visibility_seconds, now_ms)?;
        let wait = (received.messages.is_empty() && wait_ms > 0)
            .then_some((id, Wait { messages_max, visibility_seconds, deadline_ms: now_ms + wait_ms }));
        Ok((Delivery::new(received.messages, self.own_jobs.clone()), wait))
    }

    fn receive(
        &mut self,
        id: i64,
        messages_max: usize,
        visibility_seconds: i64,
        now_ms: i64,
    ) -> rusqlite::Result<Batch> {
        let mut batch = Batch::default();
        let dead_letters = self.queues.get(&id).and_then(|queue| queue.attributes.redrive.as_ref()).and_then(
            // Without its target, a policy has no effect, so that no message is lost.
            |redrive| Some((self.find_by_arn(&redrive.target_arn)?, redrive.receives_max)),
        );
        let Some(queue) = self.queues.get_mut(&id) else { return Ok(batch) };
        queue.release_due(now_ms);
        if self.halted {
            return Ok(batch);
        }
        let retention_ms = queue.attributes.retention_seconds * 1000;
        let mut handed_out = Vec::new();
        let mut dead = Vec::new();
        while handed_out.len() < messages_max && queue.in_flight < IN_FLIGHT_MAX {
            let Some(seq) = queue.ready.pop() else { break };
            let Some(message) = queue.messages.get_mut(&seq) else { continue };
            if now_ms - message.sent_ms >= retention_ms {
                self.store.delete_message(seq)?;
                queue.messages.remove(&seq);
                continue;
            }
            if dead_letters.is_some_and(|(_, receives_max)| message.receives >= receives_max) {
                dead.extend(queue.messages.remove(&seq).map(|message| (seq, message)));
                continue;
            }
            message.receives = message.receives.saturating_add(1);
            let first_received_ms = *message.first_received_ms.get_or_insert(now_ms);
            let Some(content) = self.store.receive(seq, message.receives, first_received_ms)? else {
                queue.messages.remove(&seq);
                continue;
            };
            batch.messages.push(ReceivedMessage {
                id: message.id,
                receipt: Receipt { queue: id, seq, receives: message.receives, tag: message.tag() },
                content,
                group: message.group.as_deref().map(str::to_owned),
                sent_ms: message.sent_ms,
                first_received_ms,
            });
            // Counted at once, since the state changes later.
            queue.ready.start_flight(&message.group);
            handed_out.push((seq, message.group.clone()));
        }
        // Only change the state now, so that a visibility timeout of 0 doesn't deliver a message twice in one response.
        let state = if visibility_seconds > 0 { State::InFlight } else { State::Ready };
        for (seq, group) in handed_out {
            queue.ready.end_flight(&group);
            queue.set_state(seq, state, now_ms + visibility_seconds * 1000);
        }
        let source_arn = queue.arn();
        for (seq, mut message) in dead {
            let Some((target, _)) = dead_letters else { continue };
            self.store.move_message(seq, target, &source_arn)?;
            (message.receives, message.first_received_ms, message.state) = (0, None, State::Ready);
            if let Some(target) = self.queues.get_mut(&target) {
                target.add(seq, message);
            }
            batch.redriven = true;
        }
        Ok(batch)
    }

    fn delete(&mut self, name: &str, receipts: Vec<SqsResult<Receipt>>) -> Result<Reply, Failure> {
        let id = self.id(name)?;
        let mut results = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            results.push(match receipt {
                Err(error) => Err(error),
                Ok(receipt) if receipt.queue != id => Err(SqsError::invalid_receipt_handle()),
                Ok(receipt) => {
                    let queue = self.queue(name)?;
                    // A receipt that is outdated, or of a deleted message, succeeds without effect.
                    if queue.current(&receipt).is_some() {
                        self.store.delete_message(receipt.seq)?;
                        self.queue(name)?.remove(receipt.seq);
                    }
                    Ok(())
                }
            });
        }
        Ok(Reply::Each(results))
    }

    fn change_visibility(
        &mut self,
        name: &str,
        changes: Vec<SqsResult<(Receipt, i64)>>,
        now_ms: i64,
    ) -> Result<Reply, Failure> {
        let queue = self.queue(name)?;
        queue.release_due(now_ms);
        let change = |change: SqsResult<(Receipt, i64)>| {
            let (receipt, seconds) = change?;
            if receipt.queue != queue.id {
                return Err(SqsError::invalid_receipt_handle());
            }
            match queue.current(&receipt).map(|message| message.state) {
                None => Err(SqsError::invalid_parameter(format!(
                    "Value {} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not \
                     available for visibility timeout change.",
                    receipt.to_handle()
                ))),
                Some(State::InFlight) => {
                    let state = if seconds > 0 { State::InFlight } else { State::Ready };
                    queue.set_state(receipt.seq, state, now_ms + seconds * 1000);
                    Ok(())
                }
                Some(State::Ready | State::Delayed) => Err(SqsError::not_in_flight()),
            }
        };
        Ok(Reply::Each(changes.into_iter().map(change).collect()))
    }

    /// Returns messages to their queue that their receiver never got, as if they hadn't been received.
    pub(super) fn return_undelivered(&mut self, receipts: &[Receipt], now_ms: i64) -> rusqlite::Result<()> {
        for receipt in receipts {
            let Some(queue) = self.queues.get_mut(&receipt.queue) else { continue };
            let Some(message) = queue.current(receipt) else { continue };
            let receives = message.receives.saturating_sub(1);
            let first_received_ms = message.first_received_ms.filter(|_| receives > 0);
            self.store.unreceive(receipt.seq, receives, first_received_ms)?;
            queue.set_state(receipt.seq, State::Ready, now_ms);
            if let Some(message) = queue.messages.get_mut(&receipt.seq) {
                (message.receives, message.first_received_ms) = (receives, first_received_ms);
            }
        }
        Ok(())
    }

    /// Delivers visible messages to waiting receivers, and ends expired waits.
    pub(super) fn serve_waiters(
        &mut self,
        now_ms: i64,
        replies: &mut Vec<PendingReply>,
    ) -> rusqlite::Result<()> {
        let ids: Vec<i64> = self.queues.keys().copied().collect();
        // A redrive can make a message visible in a queue that was already processed.
        let mut again = true;
        while std::mem::take(&mut again) {
            for id in &ids {
                again |= self.serve_waiters_of(*id, now_ms, replies)?;
            }
        }
        let back = &self.own_jobs;
        for queue in self.queues.values_mut() {
            for waiter in std::mem::take(&mut queue.waiters) {
                if waiter.answer.is_closed() {
                    continue;
                }
                if waiter.deadline_ms <= now_ms {
                    let nothing = Delivery::new(Vec::new(), back.clone());
                    replies.push((waiter.answer, Ok(Reply::Received(nothing))));
                } else {
                    queue.waiters.push_back(waiter);
                }
            }
        }
        Ok(())
    }

    /// Returns true if a message was moved to a dead-letter queue.
    fn serve_waiters_of(
        &mut self,
        id: i64,
        now_ms: i64,
        replies: &mut Vec<PendingReply>,
    ) -> rusqlite::Result<bool> {
        let mut redriven = false;
        loop {
            let Some(queue) = self.queues.get_mut(&id) else { return Ok(redriven) };
            if queue.waiters.is_empty() {
                return Ok(redriven);
            }
            queue.release_due(now_ms);
            if queue.ready.is_empty() {
                return Ok(redriven);
            }
            let Some(waiter) = queue.waiters.pop_front() else { return Ok(redriven) };
            if waiter.answer.is_closed() {
                continue;
            }
            let batch = match self.receive(id, waiter.messages_max, waiter.visibility_seconds, now_ms) {
                Ok(batch) => batch,
                Err(error) => {
                    replies.push((waiter.answer, Err(storage_failed())));
                    return Err(error);
                }
            };
            redriven |= batch.redriven;
            if batch.messages.is_empty() {
                if let Some(queue) = self.queues.get_mut(&id) {
                    queue.waiters.push_front(waiter);
                }
                return Ok(redriven);
            }
            let delivery = Delivery::new(batch.messages, self.own_jobs.clone());
            replies.push((waiter.answer, Ok(Reply::Received(delivery))));
        }
    }

    /// Returns the time at which a waiter has to be checked next.
    pub(super) fn next_wake_ms(&self) -> Option<i64> {
        self.queues.values().filter_map(Queue::next_wake_ms).min()
    }

    /// Answers all waiting receives with an error.
    pub(super) fn refuse_waiters(&mut self, replies: &mut Vec<PendingReply>) {
        for queue in self.queues.values_mut() {
            replies.extend(queue.waiters.drain(..).map(|waiter| (waiter.answer, Err(storage_failed()))));
        }
    }

    /// Deletes messages older than the retention period of their queue. Returns their number.
    pub(super) fn sweep(&mut self, now_ms: i64) -> rusqlite::Result<usize> {
        let mut deleted = 0;
        for queue in self.queues.values_mut() {
            let oldest_ms = now_ms - queue.attributes.retention_seconds * 1000;
            let expired = queue.messages.iter().filter(|(_, message)| message.sent_ms <= oldest_ms);
            let expired: Vec<i64> = expired.map(|(seq, _)| *seq).collect();
            for seq in expired {
                self.store.delete_message(seq)?;
                queue.remove(seq);
                deleted += 1;
            }
        }
        Ok(deleted)
    }
}

/// Error for callers when the file failed. The log has the cause.
pub(super) fn storage_failed() -> SqsError {
    SqsError::internal("The queue's file could not be written.")
}

#[derive(Debug, Default)]
struct Batch {
    messages: Vec<ReceivedMessage>,
    redriven: bool,
}

#[derive(Debug)]
struct Wait {
    messages_max: usize,
    visibility_seconds: i64,
    deadline_ms: i64,
}

impl Wait {
    fn into_waiter(self, answer: oneshot::Sender<SqsResult<Reply>>) -> Waiter {
        Waiter {
            answer,
            messages_max: self.messages_max,
            visibility_seconds: self.visibility_seconds,
            deadline_ms: self.deadline_ms,
        }
    }
}
