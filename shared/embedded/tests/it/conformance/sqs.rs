//! SQS standard queues. Waits are real and short, since SQS counts in seconds.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::operation::receive_message::builders::ReceiveMessageFluentBuilder;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, Message, MessageAttributeValue,
    MessageSystemAttributeName as System, QueueAttributeName as Attribute, SendMessageBatchRequestEntry,
};

use super::Stack;

struct Queue {
    client: Client,
    url: String,
}

async fn queue_with(stack: &Stack, name: &str, attributes: &[(Attribute, &str)]) -> Queue {
    let client = Client::new(&stack.config);
    let mut create = client.create_queue().queue_name(stack.name(name));
    for (attribute, value) in attributes {
        create = create.attributes(attribute.clone(), *value);
    }
    let url = create.send().await.unwrap().queue_url.unwrap();
    Queue { client, url }
}

async fn queue(stack: &Stack) -> Queue {
    queue_with(stack, "queue", &[]).await
}

impl Queue {
    async fn send(&self, body: &str) {
        self.client.send_message().queue_url(&self.url).message_body(body).send().await.unwrap();
    }

    fn receive(&self) -> ReceiveMessageFluentBuilder {
        self.client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(10)
            .message_system_attribute_names(System::All)
            .message_attribute_names("All")
    }

    async fn now(&self) -> Vec<Message> {
        self.receive().send().await.unwrap().messages.unwrap_or_default()
    }

    async fn receive_within(&self, seconds: i32) -> Vec<Message> {
        self.receive().wait_time_seconds(seconds).send().await.unwrap().messages.unwrap_or_default()
    }

    async fn change(&self, message: &Message, seconds: i32) {
        let change = self.client.change_message_visibility().queue_url(&self.url);
        change
            .receipt_handle(message.receipt_handle().unwrap())
            .visibility_timeout(seconds)
            .send()
            .await
            .unwrap();
    }

    async fn attributes(&self) -> HashMap<Attribute, String> {
        let get = self.client.get_queue_attributes().queue_url(&self.url).attribute_names(Attribute::All);
        get.send().await.unwrap().attributes.unwrap()
    }

    async fn counts(&self) -> [usize; 3] {
        let all = self.attributes().await;
        [
            Attribute::ApproximateNumberOfMessages,
            Attribute::ApproximateNumberOfMessagesNotVisible,
            Attribute::ApproximateNumberOfMessagesDelayed,
        ]
        .map(|name| all[&name].parse().unwrap())
    }
}

fn system<'a>(message: &'a Message, name: &System) -> &'a str {
    &message.attributes().unwrap()[name]
}

fn text_attribute(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap()
}

pub(crate) async fn queues_are_created_once(stack: &Stack) {
    let q = queue_with(stack, "queue", &[(Attribute::VisibilityTimeout, "60")]).await;
    let again = queue_with(stack, "queue", &[(Attribute::VisibilityTimeout, "60")]).await;
    assert_eq!(again.url, q.url);
    let other = q
        .client
        .create_queue()
        .queue_name(stack.name("queue"))
        .attributes(Attribute::VisibilityTimeout, "61");
    assert!(other.send().await.unwrap_err().into_service_error().is_queue_name_exists());
    let found = q.client.get_queue_url().queue_name(stack.name("queue")).send().await.unwrap();
    assert_eq!(found.queue_url(), Some(q.url.as_str()));
    let absent = q.client.get_queue_url().queue_name(stack.name("absent")).send().await;
    assert!(absent.unwrap_err().into_service_error().is_queue_does_not_exist());
    let listed = q.client.list_queues().queue_name_prefix(&stack.prefix).send().await.unwrap();
    assert_eq!(listed.queue_urls(), std::slice::from_ref(&q.url));

    let set = q.client.set_queue_attributes().queue_url(&q.url).attributes(Attribute::DelaySeconds, "3");
    set.send().await.unwrap();
    let attributes = q.attributes().await;
    assert_eq!(attributes[&Attribute::DelaySeconds], "3");
    assert_eq!(attributes[&Attribute::VisibilityTimeout], "60");
    assert!(attributes[&Attribute::QueueArn].ends_with(&stack.name("queue")));
    let wrong = q.client.set_queue_attributes().queue_url(&q.url).attributes(Attribute::DelaySeconds, "901");
    assert_eq!(wrong.send().await.unwrap_err().code(), Some("InvalidAttributeValue"));

    q.client.delete_queue().queue_url(&q.url).send().await.unwrap();
    let gone = q.client.send_message().queue_url(&q.url).message_body("a").send().await;
    assert!(gone.unwrap_err().into_service_error().is_queue_does_not_exist());
}

pub(crate) async fn messages_carry_attributes_and_checksums(stack: &Stack) {
    let q = queue(stack).await;
    let binary = MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new(vec![0, 1, 2]));
    let sent = q
        .client
        .send_message()
        .queue_url(&q.url)
        .message_body("hello")
        .message_group_id("run-1")
        .message_attributes("a", text_attribute("x"))
        .message_attributes("b", binary.build().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(sent.md5_of_message_body(), Some("5d41402abc4b2a76b9719d911017c592"));
    let message = &q.now().await[0];
    assert_eq!(message.body(), Some("hello"));
    assert_eq!(message.message_id(), sent.message_id());
    assert_eq!(message.md5_of_body(), sent.md5_of_message_body());
    assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
    assert_eq!(message.message_attributes().unwrap()["a"].string_value(), Some("x"));
    assert_eq!(message.message_attributes().unwrap()["b"].binary_value().unwrap().as_ref(), [0, 1, 2]);
    assert_eq!(system(message, &System::ApproximateReceiveCount), "1");
    assert_eq!(system(message, &System::MessageGroupId), "run-1");
    let sent_ms: i64 = system(message, &System::SentTimestamp).parse().unwrap();
    let first_ms: i64 = system(message, &System::ApproximateFirstReceiveTimestamp).parse().unwrap();
    assert!(sent_ms > 1_600_000_000_000 && first_ms >= sent_ms);

    q.change(message, 0).await;
    let plain = q.client.receive_message().queue_url(&q.url).send().await.unwrap();
    let plain = &plain.messages()[0];
    assert!(plain.attributes().is_none_or(HashMap::is_empty));
    assert!(plain.message_attributes().is_none_or(HashMap::is_empty));
    assert_eq!(plain.md5_of_message_attributes(), None);
    let delete = q.client.delete_message().queue_url(&q.url).receipt_handle(plain.receipt_handle().unwrap());
    delete.send().await.unwrap();
    assert_eq!(q.counts().await, [0, 0, 0]);
}

fn entry(id: &str, body: &str) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry::builder().id(id).message_body(body).build().unwrap()
}

pub(crate) async fn batches_are_limited(stack: &Stack) {
    let q = queue(stack).await;
    let send = |entries: Vec<SendMessageBatchRequestEntry>| {
        q.client.send_message_batch().queue_url(&q.url).set_entries(Some(entries)).send()
    };
    let ten: Vec<_> = (0..10).map(|i| entry(&i.to_string(), "x")).collect();
    let sent = send(ten.clone()).await.unwrap();
    assert_eq!((sent.successful().len(), sent.failed().len()), (10, 0));
    let eleven = ten.into_iter().chain([entry("more", "x")]).collect();
    assert!(send(eleven).await.unwrap_err().into_service_error().is_too_many_entries_in_batch_request());
    assert!(send(vec![]).await.unwrap_err().into_service_error().is_empty_batch_request());
    let same = send(vec![entry("a", "x"), entry("a", "y")]).await;
    assert!(same.unwrap_err().into_service_error().is_batch_entry_ids_not_distinct());
    assert!(
        send(vec![entry("a b", "x")]).await.unwrap_err().into_service_error().is_invalid_batch_entry_id()
    );

    let messages = q.now().await;
    assert_eq!(messages.len(), 10);
    let mut changes = Vec::new();
    let mut deletes = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        let handle = message.receipt_handle().unwrap();
        if i < 4 {
            let change = ChangeMessageVisibilityBatchRequestEntry::builder().id(i.to_string());
            changes.push(change.receipt_handle(handle).visibility_timeout(0).build().unwrap());
        } else {
            let delete = DeleteMessageBatchRequestEntry::builder().id(i.to_string());
            deletes.push(delete.receipt_handle(handle).build().unwrap());
        }
    }
    let bad = DeleteMessageBatchRequestEntry::builder().id("bad").receipt_handle("nonsense").build().unwrap();
    let changed = q.client.change_message_visibility_batch().queue_url(&q.url).set_entries(Some(changes));
    assert_eq!(changed.send().await.unwrap().successful().len(), 4);
    let deleted = q.client.delete_message_batch().queue_url(&q.url).set_entries(Some(deletes)).entries(bad);
    let deleted = deleted.send().await.unwrap();
    assert_eq!(deleted.successful().len(), 6);
    assert_eq!(deleted.failed()[0].id(), "bad");
    assert!(deleted.failed()[0].sender_fault());
    assert_eq!(q.counts().await, [4, 0, 0]);
}

pub(crate) async fn sizes_are_limited(stack: &Stack) {
    let q = queue(stack).await;
    let send =
        |bytes: usize| q.client.send_message().queue_url(&q.url).message_body("x".repeat(bytes)).send();
    send(1 << 20).await.unwrap();
    assert_eq!(send((1 << 20) + 1).await.unwrap_err().code(), Some("InvalidParameterValue"));
    let bad = q.client.send_message().queue_url(&q.url).message_body("a\u{1}").send().await;
    assert!(bad.unwrap_err().into_service_error().is_invalid_message_contents());
    let half = "x".repeat((1 << 19) + 1);
    let batch =
        q.client.send_message_batch().queue_url(&q.url).entries(entry("a", &half)).entries(entry("b", &half));
    assert!(batch.send().await.unwrap_err().into_service_error().is_batch_request_too_long());
    assert_eq!(q.now().await[0].body().map(str::len), Some(1 << 20));
}

pub(crate) async fn a_long_poll_wakes_up(stack: &Stack) {
    let q = queue(stack).await;
    let idle = queue_with(stack, "idle", &[]).await;
    let mut idle_wait = Box::pin(idle.receive_within(20));
    assert!(futures_util::poll!(&mut idle_wait).is_pending());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let woken = async {
        let (messages, ()) = tokio::join!(q.receive_within(20), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            q.send("a").await;
        });
        messages
    };
    // The send ends the wait. Otherwise the wait that began a second earlier would end first, however slow the machine is.
    let messages = tokio::select! {
        biased;
        messages = woken => messages,
        messages = &mut idle_wait => panic!("it waited for its whole time: {messages:?}"),
    };
    assert_eq!(messages[0].body(), Some("a"));
    q.change(&messages[0], 1).await;
    assert_eq!(q.receive_within(20).await[0].body(), Some("a"));
}

pub(crate) async fn visibility_is_changed_and_expires(stack: &Stack) {
    let q = queue(stack).await;
    q.send("a").await;
    let zero = q.receive().visibility_timeout(0).send().await.unwrap();
    assert_eq!(zero.messages().len(), 1);
    let first = q.now().await;
    assert_eq!(system(&first[0], &System::ApproximateReceiveCount), "2");
    assert!(q.now().await.is_empty());
    q.change(&first[0], 0).await;
    let second = q.receive().visibility_timeout(600).send().await.unwrap().messages.unwrap();
    assert!(q.now().await.is_empty());
    q.change(&second[0], 0).await;
    let second = q.receive().visibility_timeout(2).send().await.unwrap().messages.unwrap();
    let third = q.receive_within(20).await;
    assert_eq!(system(&third[0], &System::ApproximateReceiveCount), "5");
    let delete =
        q.client.delete_message().queue_url(&q.url).receipt_handle(third[0].receipt_handle().unwrap());
    delete.send().await.unwrap();
    let change = q.client.change_message_visibility().queue_url(&q.url).visibility_timeout(5);
    let late = change.receipt_handle(second[0].receipt_handle().unwrap()).send().await;
    let late = late.unwrap_err();
    assert!(matches!(late.code(), Some("InvalidParameterValue" | "ReceiptHandleIsInvalid")), "{late:?}");
    let change = q.client.change_message_visibility().queue_url(&q.url).visibility_timeout(5);
    let nonsense = change.receipt_handle("nonsense").send().await;
    assert!(nonsense.unwrap_err().into_service_error().is_receipt_handle_is_invalid());
}

pub(crate) async fn delayed_messages_come_later(stack: &Stack) {
    let q = queue(stack).await;
    let send =
        |body: &str, s| q.client.send_message().queue_url(&q.url).message_body(body).delay_seconds(s).send();
    send("much later", 900).await.unwrap();
    assert!(q.now().await.is_empty());
    assert_eq!(q.counts().await, [0, 0, 1]);
    let start = Instant::now();
    send("later", 2).await.unwrap();
    let messages = q.receive_within(20).await;
    assert_eq!(messages[0].body(), Some("later"));
    assert!(start.elapsed() >= Duration::from_millis(1_990), "{:?}", start.elapsed());
    if stack.checks_limits() {
        let wrong =
            q.client.send_message().queue_url(&q.url).message_body("a").delay_seconds(901).send().await;
        assert_eq!(wrong.unwrap_err().code(), Some("InvalidParameterValue"));
    }
}

pub(crate) async fn poison_goes_to_the_dead_letter_queue(stack: &Stack) {
    let dead = queue_with(stack, "dead", &[]).await;
    let arn = dead.attributes().await.remove(&Attribute::QueueArn).unwrap();
    let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":2}}"#);
    let q = queue_with(stack, "queue", &[(Attribute::RedrivePolicy, &policy)]).await;
    q.send("poison").await;
    let mut id = None;
    for count in ["1", "2"] {
        let message = &q.receive_within(20).await[0];
        assert_eq!(system(message, &System::ApproximateReceiveCount), count);
        id = message.message_id().map(str::to_owned);
        q.change(message, 0).await;
    }
    let (live, dead_messages) = tokio::join!(q.receive_within(1), dead.receive_within(20));
    assert!(live.is_empty());
    assert_eq!(dead_messages[0].body(), Some("poison"));
    assert_eq!(dead_messages[0].message_id().map(str::to_owned), id);
    let source = system(&dead_messages[0], &System::DeadLetterQueueSourceArn);
    assert_eq!(source, q.attributes().await[&Attribute::QueueArn]);
    let absent = policy.replace(&stack.name("dead"), &stack.name("absent"));
    let wrong =
        q.client.set_queue_attributes().queue_url(&q.url).attributes(Attribute::RedrivePolicy, absent);
    let wrong = wrong.send().await.unwrap_err();
    assert!(matches!(wrong.code(), Some("InvalidParameterValue" | "InvalidAttributeValue")), "{wrong:?}");
}

pub(crate) async fn counts_and_purge(stack: &Stack) {
    let q = queue(stack).await;
    for _ in 0..3 {
        q.send("a").await;
    }
    let delayed = q.client.send_message().queue_url(&q.url).message_body("a").delay_seconds(900);
    delayed.send().await.unwrap();
    assert_eq!(q.receive().max_number_of_messages(1).send().await.unwrap().messages().len(), 1);
    assert_eq!(q.counts().await, [2, 1, 1]);
    q.client.purge_queue().queue_url(&q.url).send().await.unwrap();
    assert_eq!(q.counts().await, [0, 0, 0]);
}

pub(crate) async fn a_large_group_does_not_starve_a_small_one(stack: &Stack) {
    // Fair queues promise bounded waiting times; the exact order is our own.
    if !stack.is_embedded() {
        return;
    }
    let q = queue(stack).await;
    let send = |group: &'static str, count: usize| {
        let entries = (0..count).map(|i| {
            let entry = SendMessageBatchRequestEntry::builder().id(i.to_string()).message_body(group);
            entry.message_group_id(group).build().unwrap()
        });
        q.client.send_message_batch().queue_url(&q.url).set_entries(Some(entries.collect())).send()
    };
    for _ in 0..30 {
        send("large", 10).await.unwrap();
    }
    send("small", 5).await.unwrap();
    let first = q.now().await;
    assert_eq!(first.iter().filter(|message| message.body() == Some("small")).count(), 5);
}

pub(crate) async fn receives_are_limited(stack: &Stack) {
    let q = queue(stack).await;
    if stack.checks_limits() {
        for wrong in [0, 11] {
            let error = q.receive().max_number_of_messages(wrong).send().await.unwrap_err();
            assert_eq!(error.code(), Some("InvalidParameterValue"));
        }
        assert_eq!(
            q.receive().wait_time_seconds(21).send().await.unwrap_err().code(),
            Some("InvalidParameterValue")
        );
    }
    let absent = q.url.replace(&stack.name("queue"), &stack.name("absent"));
    let error = q.client.receive_message().queue_url(absent).send().await.unwrap_err();
    assert!(error.into_service_error().is_queue_does_not_exist());
}
