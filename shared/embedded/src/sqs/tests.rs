//! The engine with a simulated clock and with a failing file.

use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use super::command::{Command, Delivery, Job, OutgoingMessage, ReceivedMessage, Reply, SqsResult};
use super::engine::Engine;
use super::receipt::Receipt;
use super::store::{Content, Store};
use crate::Durability;
use crate::service_thread::Message;

struct TestQueues {
    engine: Engine,
    own_jobs: Sender<Message<Job>>,
    back: Receiver<Message<Job>>,
    now_ms: i64,
    _dir: tempfile::TempDir,
}

const START_MS: i64 = 1_800_000_000_000;

impl TestQueues {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("sqs.sqlite"), Durability::Normal).unwrap();
        let (own_jobs, back) = channel();
        let engine = Engine::load(store, own_jobs.clone(), START_MS).unwrap();
        Self { engine, own_jobs, back, now_ms: START_MS, _dir: dir }
    }

    /// Reopens the same file after the end of the process, `later_ms` later.
    fn reopen(mut self, later_ms: i64) -> Self {
        let path = self._dir.path().join("sqs.sqlite");
        let (own_jobs, back) = channel();
        self.now_ms += later_ms;
        drop(self.engine);
        let store = Store::open(&path, Durability::Normal).unwrap();
        let engine = Engine::load(store, own_jobs.clone(), self.now_ms).unwrap();
        Self { engine, own_jobs, back, now_ms: self.now_ms, _dir: self._dir }
    }

    /// Runs a command in its own transaction; `None` if it waits.
    fn run(&mut self, command: Command) -> Option<SqsResult<Reply>> {
        let mut answered = self.start(command);
        answered.try_recv().ok()
    }

    fn start(&mut self, command: Command) -> oneshot::Receiver<SqsResult<Reply>> {
        let (answer, answered) = oneshot::channel();
        let mut replies = Vec::new();
        self.engine.run(command, answer, self.now_ms, &mut replies).unwrap();
        self.engine.serve_waiters(self.now_ms, &mut replies).unwrap();
        self.engine.commit().unwrap();
        for (answer, reply) in replies {
            drop(answer.send(reply));
        }
        answered
    }

    /// Advances the clock, then lets the engine serve its waiters.
    fn advance(&mut self, ms: i64) {
        self.now_ms += ms;
        let mut replies = Vec::new();
        self.engine.serve_waiters(self.now_ms, &mut replies).unwrap();
        while let Ok(Message::Job(Job::Return(receipts))) = self.back.try_recv() {
            self.engine.return_undelivered(&receipts, self.now_ms).unwrap();
        }
        self.engine.serve_waiters(self.now_ms, &mut replies).unwrap();
        self.engine.commit().unwrap();
        for (answer, reply) in replies {
            drop(answer.send(reply));
        }
    }

    fn create(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let attributes = attributes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        self.run(Command::CreateQueue { name: name.to_owned(), attributes }).unwrap().unwrap();
    }

    fn send_to(&mut self, queue: &str, body: &str, group: Option<&str>, delay_seconds: Option<i64>) {
        let content = Content { body: body.to_owned(), ..Content::default() };
        let group = group.map(str::to_owned);
        let message = OutgoingMessage { content, group, delay_seconds, bytes: body.len(), copies: 1 };
        let command = Command::Send { queue: queue.to_owned(), messages: vec![Ok(message)] };
        self.run(command).unwrap().unwrap();
    }

    fn send(&mut self, body: &str) {
        self.send_to("q", body, None, None);
    }

    fn receive_from(
        &mut self,
        queue: &str,
        messages_max: usize,
        visibility_seconds: i64,
    ) -> Vec<ReceivedMessage> {
        match self.run(receive(queue, messages_max, visibility_seconds, 0)) {
            Some(Ok(Reply::Received(delivery))) => delivery.take(),
            other => panic!("{other:?}"),
        }
    }

    fn receive(&mut self) -> Vec<ReceivedMessage> {
        self.receive_from("q", 10, 30)
    }

    fn delete(&mut self, receipt: Receipt) {
        let command = Command::Delete { queue: "q".to_owned(), receipts: vec![Ok(receipt)] };
        self.run(command).unwrap().unwrap();
    }

    fn counts(&mut self, queue: &str) -> [usize; 3] {
        let Some(Ok(Reply::Attributes(all))) = self.run(Command::Attributes { queue: queue.to_owned() })
        else {
            panic!("no attributes")
        };
        ["", "NotVisible", "Delayed"]
            .map(|suffix| all[&format!("ApproximateNumberOfMessages{suffix}")].parse().unwrap())
    }
}

fn receive(queue: &str, messages_max: usize, visibility_seconds: i64, wait_seconds: i64) -> Command {
    Command::Receive {
        queue: queue.to_owned(),
        messages_max,
        visibility_seconds: Some(visibility_seconds),
        wait_seconds: Some(wait_seconds),
    }
}

fn bodies(messages: &[ReceivedMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.content.body.as_str()).collect()
}

#[test]
fn visibility_expires_to_the_millisecond() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("a");
    assert_eq!(bodies(&bench.receive_from("q", 1, 5)), ["a"]);
    assert_eq!(bench.counts("q"), [0, 1, 0]);
    bench.advance(4_999);
    assert!(bench.receive().is_empty());
    bench.advance(1);
    let again = bench.receive();
    assert_eq!(again[0].receipt.receives, 2);
    assert_eq!(again[0].first_received_ms, START_MS);
}

#[test]
fn an_older_receipt_does_nothing() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("a");
    let first = bench.receive_from("q", 1, 1)[0].receipt;
    bench.advance(1_000);
    let second = bench.receive()[0].receipt;
    bench.delete(first);
    assert_eq!(bench.counts("q"), [0, 1, 0]);
    bench.delete(second);
    assert_eq!(bench.counts("q"), [0, 0, 0]);
    bench.delete(second);
}

#[test]
fn a_receipt_deletes_after_its_visibility_expired() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("a");
    let receipt = bench.receive_from("q", 1, 1)[0].receipt;
    bench.advance(5_000);
    bench.delete(receipt);
    assert_eq!(bench.counts("q"), [0, 0, 0]);
}

#[test]
fn a_receipt_of_a_deleted_message_does_not_fit_a_later_one() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("a");
    let old = bench.receive()[0].receipt;
    bench.delete(old);
    // After a restart, the highest number is free again.
    let mut bench = bench.reopen(0);
    bench.send("b");
    let new = bench.receive()[0].receipt;
    assert_eq!((old.queue, old.seq, old.receives), (new.queue, new.seq, new.receives));
    bench.delete(old);
    assert_eq!(bench.counts("q"), [0, 1, 0]);
}

#[test]
fn delays_survive_a_restart_and_in_flight_state_does_not() {
    let mut bench = TestQueues::new();
    bench.create("q", &[("DelaySeconds", "7")]);
    bench.send("default");
    bench.send_to("q", "none", None, Some(0));
    bench.send_to("q", "long", None, Some(900));
    assert_eq!(bench.counts("q"), [1, 0, 2]);
    assert_eq!(bodies(&bench.receive()), ["none"]);
    let mut bench = bench.reopen(1_000);
    assert_eq!(bench.counts("q"), [1, 0, 2]);
    let back = bench.receive();
    assert_eq!((bodies(&back), back[0].receipt.receives), (vec!["none"], 1));
    bench.advance(6_000);
    assert_eq!(bodies(&bench.receive()), ["default"]);
    bench.advance(893_000 - 1);
    assert_eq!(bench.receive().len(), 2, "those that were in flight, not the delayed one");
    bench.advance(1);
    assert_eq!(bodies(&bench.receive()), ["long"]);
}

#[test]
fn retention_is_from_the_first_send_and_kept_in_the_dead_letter_queue() {
    let mut bench = TestQueues::new();
    bench.create("dead", &[("MessageRetentionPeriod", "120")]);
    let arn = format!("arn:aws:sqs:{}:{}:dead", crate::REGION, crate::ACCOUNT_ID);
    let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":2}}"#);
    bench.create("q", &[("RedrivePolicy", &policy), ("MessageRetentionPeriod", "60")]);
    bench.send("a");
    for _ in 0..2 {
        assert_eq!(bench.receive_from("q", 1, 1).len(), 1);
        bench.advance(1_000);
    }
    assert!(bench.receive().is_empty());
    let dead = bench.receive_from("dead", 1, 0);
    assert_eq!((dead[0].sent_ms, dead[0].receipt.receives), (START_MS, 1));
    assert_eq!(dead[0].content.source_arn.as_deref(), Some(bench_arn("q").as_str()));
    bench.send("b");
    bench.advance(60_000);
    assert_eq!(bench.engine.sweep(bench.now_ms).unwrap(), 1, "the one in `q`");
    bench.advance(58_000);
    assert!(bench.receive_from("dead", 1, 0).is_empty());
}

fn bench_arn(name: &str) -> String {
    format!("arn:aws:sqs:{}:{}:{name}", crate::REGION, crate::ACCOUNT_ID)
}

#[test]
fn a_waiter_causes_the_redrive_it_waits_behind_and_the_dead_letter_waiter_gets_it() {
    let mut bench = TestQueues::new();
    // The dead-letter queue has the smaller id, so it is processed before the other queue.
    bench.create("dead", &[]);
    let policy = format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":1}}"#, bench_arn("dead"));
    bench.create("q", &[("RedrivePolicy", &policy)]);
    bench.send("a");
    assert_eq!(bench.receive_from("q", 1, 5).len(), 1);
    let mut dead = bench.start(receive("dead", 1, 30, 20));
    let mut live = bench.start(receive("q", 1, 30, 20));
    assert_eq!(bench.engine.next_wake_ms(), Some(START_MS + 5_000));
    bench.advance(5_000);
    assert!(live.try_recv().is_err());
    let Ok(Ok(Reply::Received(delivery))) = dead.try_recv() else { panic!("nothing came") };
    assert_eq!(bodies(&delivery.take()), ["a"]);
    bench.advance(15_000);
    let Ok(Ok(Reply::Received(delivery))) = live.try_recv() else { panic!("the wait did not end") };
    assert!(delivery.take().is_empty());
}

#[test]
fn without_its_target_a_redrive_policy_loses_nothing() {
    let mut bench = TestQueues::new();
    bench.create("dead", &[]);
    let policy = format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":1}}"#, bench_arn("dead"));
    bench.create("q", &[("RedrivePolicy", &policy)]);
    bench.send("a");
    bench.run(Command::DeleteQueue { queue: "dead".to_owned() }).unwrap().unwrap();
    for receives in 1..=3 {
        assert_eq!(bench.receive_from("q", 1, 0)[0].receipt.receives, receives);
    }
}

#[test]
fn an_aborted_long_poll_loses_no_messages() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    drop(bench.start(receive("q", 10, 30, 20)));
    bench.send("a");
    assert_eq!(bench.receive()[0].receipt.receives, 1);

    // The reply was on its way when the receiver ended.
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    let waiting = bench.start(receive("q", 10, 30, 20));
    bench.send("a");
    drop(waiting);
    bench.advance(0);
    let message = &bench.receive()[0];
    assert_eq!((message.receipt.receives, message.first_received_ms), (1, START_MS));
}

#[test]
fn a_taken_delivery_is_not_returned() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("a");
    assert_eq!(bench.receive().len(), 1);
    bench.advance(0);
    assert_eq!(bench.counts("q"), [0, 1, 0]);
    // Neither does a delivery whose message has been received again since.
    bench.advance(30_000);
    let older = ReceivedMessage {
        receipt: Receipt { receives: 1, ..bench.receive()[0].receipt },
        ..received_message()
    };
    drop(Delivery::new(vec![older], bench.own_jobs.clone()));
    bench.advance(0);
    assert_eq!(bench.counts("q"), [0, 1, 0]);
}

fn received_message() -> ReceivedMessage {
    let receipt = Receipt { queue: 0, seq: 0, receives: 0, tag: 0 };
    let content = Content::default();
    ReceivedMessage { id: uuid::Uuid::nil(), receipt, content, group: None, sent_ms: 0, first_received_ms: 0 }
}

#[test]
fn groups_take_turns_through_the_engine() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    for n in 0..300 {
        bench.send_to("q", &format!("large{n}"), Some("large"), None);
    }
    for n in 0..10 {
        bench.send_to("q", &format!("small{n}"), Some("small"), None);
    }
    let mut small = 0;
    for _ in 0..2 {
        let messages = bench.receive();
        small += messages.iter().filter(|message| message.group.as_deref() == Some("small")).count();
    }
    assert_eq!(small, 10);
    let mut bench = bench.reopen(0);
    let groups: Vec<_> = bench.receive().iter().map(|message| message.group.clone()).collect();
    assert_eq!(groups.iter().filter(|group| group.as_deref() == Some("small")).count(), 5);
}

#[test]
fn a_rollback_leaves_no_trace_and_keeps_older_in_flight_messages() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("held");
    let held = bench.receive()[0].receipt;
    bench.send("visible");
    let mut replies = Vec::new();
    let (answer, _answered) = oneshot::channel();
    bench.engine.run(receive("q", 10, 30, 0), answer, bench.now_ms, &mut replies).unwrap();
    let content = Content { body: "void".to_owned(), ..Content::default() };
    let message = OutgoingMessage { content, group: None, delay_seconds: None, bytes: 4, copies: 1 };
    let (answer, _answered) = oneshot::channel();
    let command = Command::Send { queue: "q".to_owned(), messages: vec![Ok(message)] };
    bench.engine.run(command, answer, bench.now_ms, &mut replies).unwrap();
    bench.engine.roll_back(bench.now_ms).unwrap();
    drop(replies);
    bench.advance(0);
    assert_eq!(bench.counts("q"), [1, 1, 0]);
    let visible = bench.receive();
    assert_eq!((bodies(&visible), visible[0].receipt.receives), (vec!["visible"], 1));
    bench.delete(held);
    assert_eq!(bench.counts("q"), [0, 1, 0]);
}

#[test]
fn copies_are_separate_messages() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    for copies in [0, 2] {
        let content = Content { body: copies.to_string(), ..Content::default() };
        let message = OutgoingMessage { content, group: None, delay_seconds: None, bytes: 1, copies };
        let command = Command::Send { queue: "q".to_owned(), messages: vec![Ok(message)] };
        bench.run(command).unwrap().unwrap();
    }
    let messages = bench.receive();
    assert_eq!(bodies(&messages), ["2", "2"]);
    assert_eq!(messages[0].id, messages[1].id);
    bench.delete(messages[0].receipt);
    assert_eq!(bench.counts("q"), [0, 1, 0]);
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("kept");
    bench.engine.store().limit_pages(20);
    let large = || {
        let content = Content { body: "x".repeat(200_000), ..Content::default() };
        let message =
            OutgoingMessage { content, group: None, delay_seconds: None, bytes: 200_000, copies: 1 };
        Command::Send { queue: "q".to_owned(), messages: vec![Ok(message)] }
    };
    let (answer, _answered) = oneshot::channel();
    let mut replies = Vec::new();
    bench.engine.run(large(), answer, bench.now_ms, &mut replies).unwrap_err();
    assert_eq!(replies.pop().unwrap().1.unwrap_err().code, "InternalError");
    bench.engine.roll_back(bench.now_ms).unwrap();
    assert_eq!(bench.counts("q"), [1, 0, 0]);
    bench.engine.store().limit_pages(1_000_000);
    bench.run(large()).unwrap().unwrap();
    assert_eq!(bench.counts("q"), [2, 0, 0]);
    assert_eq!(bodies(&bench.receive())[0], "kept");
}

/// Messages of a paused group are not received, not counted as received and not lost, whatever happens to others.
#[test]
fn a_paused_group_stays_untouched() {
    let mut bench = TestQueues::new();
    bench.create("dead", &[]);
    let redrive = r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":2}"#;
    bench.create("q", &[("RedrivePolicy", redrive)]);
    bench.send_to("q", "a1", Some("a"), None);
    bench.send_to("q", "a2", Some("a"), Some(5));
    bench.engine.pause(vec!["a".to_owned()]);
    bench.send_to("q", "b1", Some("b"), None);
    bench.send_to("q", "a3", Some("a"), None);
    for _ in 0..5 {
        bench.advance(10_000);
        let received = bench.receive_from("q", 10, 0);
        assert!(received.iter().all(|message| message.content.body == "b1"), "{received:?}");
    }
    assert_eq!(bench.counts("q"), [0, 0, 0]);
    // Memory is reloaded after a failed write: the group stays paused.
    bench.engine.roll_back(bench.now_ms).unwrap();
    assert!(bench.receive().is_empty());
    let mut waiting = bench.start(receive("q", 10, 30, 20));
    assert!(waiting.try_recv().is_err());
    bench.engine.resume("a".to_owned());
    bench.advance(0);
    let Ok(Ok(Reply::Received(delivery))) = waiting.try_recv() else { panic!("nothing was handed out") };
    let received = delivery.take();
    assert_eq!(bodies(&received), ["a1", "a2", "a3"]);
    assert!(received.iter().all(|message| message.receipt.receives == 1), "{received:?}");
}

/// What a message was delayed for may have happened while its group was paused.
#[test]
fn a_resumed_group_has_no_delays() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send_to("q", "a1", Some("a"), Some(600));
    bench.send_to("q", "b1", Some("b"), Some(600));
    bench.engine.pause(vec!["a".to_owned()]);
    bench.engine.resume("a".to_owned());
    assert_eq!(bench.counts("q"), [1, 0, 1]);
    assert_eq!(bodies(&bench.receive_from("q", 10, 3_600)), ["a1"]);
    bench.advance(600_000);
    assert_eq!(bodies(&bench.receive_from("q", 10, 0)), ["b1"]);
}

#[test]
fn halted_queues_deliver_nothing_until_they_continue() {
    let mut bench = TestQueues::new();
    bench.create("q", &[]);
    bench.send("now");
    bench.send_to("q", "later", None, Some(5));
    bench.engine.halt(true);
    bench.advance(10_000);
    assert!(bench.receive_from("q", 10, 0).is_empty());
    assert_eq!(bench.counts("q"), [2, 0, 0]);
    let mut waiting = bench.start(receive("q", 10, 30, 20));
    bench.engine.halt(false);
    bench.advance(0);
    let Ok(Ok(Reply::Received(delivery))) = waiting.try_recv() else { panic!("nothing was handed out") };
    assert_eq!(bodies(&delivery.take()), ["now", "later"]);
}
