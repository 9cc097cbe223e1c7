//! SQS messages between the functions: batches, delays and redelivery.
//!
//! A message is only a reference. Messages may be lost, duplicated, late or from another version of the program without
//! harm: the state in the database is authoritative, and receivers check it first.
//!
//! | queue | message | sent by | received by |
//! | --- | --- | --- | --- |
//! | `plans` | [`Message::Plan`] | api, scheduler, `bench run` | planner |
//! | `items` | [`Message::Sample`] | planner, worker (planned waits), dead-letters, scheduler | worker |
//! | `turns` | [`Message::Turn`] | worker, turns (planned waits), planner, dead-letters, scheduler | turns |
//! | `finishes` | [`Message::Finish`] | worker, turns, planner, api, dead-letters, scheduler | finisher |
//!
//! Each queue has a dead-letter queue with the suffix `-dead`. The message group is the run, so that SQS delivers
//! fairly between runs.

mod dead;
mod message;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use futures_util::{StreamExt, TryStreamExt, stream};

pub use aws_sdk_sqs::types::Message as DeliveredMessage;
pub use message::{MESSAGE_VERSION, Message, MessageError};

/// Longest delay of a message in SQS, 15 minutes. A longer wait takes several messages.
pub const DELAY_MAX: Duration = Duration::from_secs(900);

/// Delay of the finisher for a run that ended while samples were in progress. By then, no process still considers the
/// run open, since the pipeline checks this every second.
pub const FINISH_DELAY: Duration = Duration::from_secs(2);
/// Maximum number of messages in a batch, SQS's own limit.
pub const BATCH_MAX: usize = 10;
/// Number of deliveries of a message before it goes to the dead-letter queue.
pub const RECEIVES_MAX: u32 = 5;
/// Delay before a failed message is delivered the second time. Five deliveries then spread over seven minutes.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Longest wait before a dead letter that failed is received again. It is shorter than the five minutes between two
/// invocations of the function that empties the dead-letter queues, so that each of them counts the message and its
/// alarm stays on.
const DEAD_RETRY_WAIT_MAX: Duration = Duration::from_secs(240);
/// Maximum number of times that a batch is sent while SQS rejects some of its messages.
const SENDS_MAX: u32 = 8;
/// Longest wait before the rejected part of a batch is sent again, in milliseconds.
const RESEND_WAIT_MS_MAX: u64 = 5_000;
/// Number of batches that are sent concurrently.
const BATCHES_IN_FLIGHT: usize = 8;

/// The queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueName {
    /// Runs to plan.
    Plans,
    /// Samples to answer and score.
    Items,
    /// Samples whose answers are waiting for the judge or a sandbox.
    Turns,
    /// Runs whose samples are all done.
    Finishes,
}

impl QueueName {
    /// All queues.
    pub const ALL: [Self; 4] = [Self::Plans, Self::Items, Self::Turns, Self::Finishes];

    /// Returns the queue whose dead-letter queue has this ARN, which ends in the queue's name and `-dead`, as in
    /// `-plans-dead`.
    pub fn from_dead_letter_arn(arn: &str) -> Option<Self> {
        let name = arn.rsplit(':').next()?.strip_suffix("-dead")?;
        let last = name.rsplit('-').next()?;
        Self::ALL.into_iter().find(|queue| queue.as_str() == last)
    }

    /// Returns the name that is part of queue names and variables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plans => "plans",
            Self::Items => "items",
            Self::Turns => "turns",
            Self::Finishes => "finishes",
        }
    }
}

/// Errors of sending and reading messages.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// SQS refused the request or could not be reached. A retry may succeed.
    #[error("could not {verb} queue `{queue}`: {problem}")]
    Service {
        /// Operation that failed, as a verb.
        verb: &'static str,
        /// Name of the queue.
        queue: &'static str,
        /// Error of SQS.
        problem: String,
    },
    /// The address of the queue isn't configured.
    #[error("the address of queue `{0}` is not set: set {1}")]
    NotConfigured(&'static str, String),
}

/// Number of messages in a queue, as estimated by SQS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Messages waiting to be received.
    pub visible: u64,
    /// Messages that are received but not deleted.
    pub in_flight: u64,
    /// Messages whose delay hasn't passed.
    pub delayed: u64,
}

/// Client of the queues.
#[derive(Debug, Clone)]
pub struct Queues {
    client: Client,
    urls: BTreeMap<QueueName, String>,
    retry_delay: Duration,
}

/// Settings of the queues on the embedded stack. In AWS, the template creates the queues.
#[derive(Debug, Clone, Copy)]
pub struct QueueSettings {
    /// Time for which a received message stays hidden: at least six times the function's time limit.
    pub visibility_timeout: Duration,
    /// Time for which messages are kept.
    pub retention: Duration,
    /// Delay before a failed message is delivered the second time. Each further delay is four times as long.
    pub retry_delay: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            visibility_timeout: Duration::from_secs(12 * 3_600),
            retention: Duration::from_secs(14 * 86_400),
            retry_delay: RETRY_DELAY,
        }
    }
}

impl Queues {
    /// Creates a client of queues with known addresses.
    pub fn new(config: &aws_types::SdkConfig, urls: BTreeMap<QueueName, String>) -> Self {
        Self { client: Client::new(config), urls, retry_delay: RETRY_DELAY }
    }

    /// Creates a client from the addresses in `BENCH_QUEUE_PLANS_URL`, `BENCH_QUEUE_ITEMS_URL`, `BENCH_QUEUE_TURNS_URL`
    /// and `BENCH_QUEUE_FINISHES_URL`. A function needs only the addresses of the queues that it sends to.
    pub fn from_vars(config: &aws_types::SdkConfig, var: impl Fn(&str) -> Option<String>) -> Self {
        let urls = QueueName::ALL.into_iter().filter_map(|name| Some((name, var(&variable(name))?)));
        Self::new(config, urls.collect())
    }

    /// Creates the queues and their dead-letter queues if they don't exist, under names that start with `prefix`.
    pub async fn create(
        config: &aws_types::SdkConfig,
        prefix: &str,
        settings: QueueSettings,
    ) -> Result<Self, QueueError> {
        let client = Client::new(config);
        let mut urls = BTreeMap::new();
        for name in QueueName::ALL {
            let service = |verb, problem: String| QueueError::Service { verb, queue: name.as_str(), problem };
            let common = [
                (QueueAttributeName::MessageRetentionPeriod, settings.retention.as_secs().to_string()),
                (QueueAttributeName::VisibilityTimeout, settings.visibility_timeout.as_secs().to_string()),
            ];
            let mut attributes = HashMap::from(common);
            let dead_url = create_queue(&client, &format!("{prefix}{}-dead", name.as_str()), &attributes)
                .await
                .map_err(|problem| service("create", problem))?;
            let dead = client
                .get_queue_attributes()
                .queue_url(dead_url)
                .attribute_names(QueueAttributeName::QueueArn)
                .send()
                .await
                .map_err(|error| service("read", error_text(error)))?;
            let arn = dead.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn));
            let redrive = format!(
                r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":{RECEIVES_MAX}}}"#,
                arn.map(String::as_str).unwrap_or_default()
            );
            attributes.insert(QueueAttributeName::RedrivePolicy, redrive);
            let url = create_queue(&client, &format!("{prefix}{}", name.as_str()), &attributes)
                .await
                .map_err(|problem| service("create", problem))?;
            urls.insert(name, url);
        }
        Ok(Self { client, urls, retry_delay: settings.retry_delay })
    }

    /// Finds the queues that another process has created, without changing their settings.
    ///
    /// # Errors
    /// Returns an error if a queue is missing or the service fails.
    pub async fn find(
        config: &aws_types::SdkConfig,
        prefix: &str,
        retry_delay: Duration,
    ) -> Result<Self, QueueError> {
        let client = Client::new(config);
        let mut urls = BTreeMap::new();
        for name in QueueName::ALL {
            let found = client.get_queue_url().queue_name(format!("{prefix}{}", name.as_str())).send().await;
            let found = found.map_err(|error| QueueError::Service {
                verb: "find",
                queue: name.as_str(),
                problem: error_text(error),
            })?;
            urls.insert(name, found.queue_url().unwrap_or_default().to_owned());
        }
        Ok(Self { client, urls, retry_delay })
    }

    /// Returns a client of the same queues with another configuration.
    #[must_use]
    pub fn with_config(&self, config: &aws_types::SdkConfig) -> Self {
        Self { client: Client::new(config), ..self.clone() }
    }

    /// Returns the SQS client, for receivers.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the address of a queue.
    pub fn url(&self, name: QueueName) -> Result<&str, QueueError> {
        let url = self.urls.get(&name);
        url.map(String::as_str).ok_or_else(|| QueueError::NotConfigured(name.as_str(), variable(name)))
    }

    /// Returns the address of a queue's dead-letter queue, whose name has the suffix `-dead`.
    pub fn dead_letter_url(&self, name: QueueName) -> Result<String, QueueError> {
        Ok(format!("{}-dead", self.url(name)?))
    }

    /// Sends one message. `delay` is limited to [`DELAY_MAX`]; a receiver that gets the message too early sends it
    /// again.
    pub async fn send(&self, message: &Message, delay: Duration) -> Result<(), QueueError> {
        self.send_all(std::slice::from_ref(message), delay).await
    }

    /// Sends messages in batches. After an error, some may have been sent; it is safe to send all of them again.
    pub async fn send_all(&self, messages: &[Message], delay: Duration) -> Result<(), QueueError> {
        let mut by_queue: BTreeMap<QueueName, Vec<&Message>> = BTreeMap::new();
        for message in messages {
            by_queue.entry(message.queue()).or_default().push(message);
        }
        for (name, messages) in by_queue {
            let url = self.url(name)?;
            // Collected first, since a closure that borrows would make this future not `Send`.
            let batches: Vec<_> =
                messages.chunks(BATCH_MAX).map(|batch| self.send_batch(name, url, batch, delay)).collect();
            stream::iter(batches).buffer_unordered(BATCHES_IN_FLIGHT).try_collect::<()>().await?;
        }
        Ok(())
    }

    async fn send_batch(
        &self,
        name: QueueName,
        url: &str,
        messages: &[&Message],
        delay: Duration,
    ) -> Result<(), QueueError> {
        let service =
            |problem: String| QueueError::Service { verb: "send to", queue: name.as_str(), problem };
        let delay_s = i32::try_from(delay.min(DELAY_MAX).as_secs()).unwrap_or(0);
        let mut entries = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            let entry = SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(message.to_body())
                .message_group_id(message.run().to_string())
                .set_delay_seconds((delay_s > 0).then_some(delay_s))
                .build()
                .map_err(|error| service(error.to_string()))?;
            entries.push(entry);
        }
        for attempt in 0..SENDS_MAX {
            if attempt > 0 {
                // Wait up to 100, 200, 400 … 5000 ms: SQS rejected these messages because there were too many at once.
                let ceiling_ms = 50_u64.saturating_mul(1 << attempt).min(RESEND_WAIT_MS_MAX);
                tokio::time::sleep(Duration::from_millis(rand::random_range(1..=ceiling_ms))).await;
            }
            let sent = self
                .client
                .send_message_batch()
                .queue_url(url)
                .set_entries(Some(entries.clone()))
                .send()
                .await
                .map_err(|error| service(error_text(error)))?;
            let failed = sent.failed();
            if failed.is_empty() {
                return Ok(());
            }
            if let Some(fault) = failed.iter().find(|entry| entry.sender_fault()) {
                return Err(service(format!("{}: {}", fault.code(), fault.message().unwrap_or_default())));
            }
            entries.retain(|entry| failed.iter().any(|f| f.id() == entry.id()));
        }
        Err(service(format!("{} messages were rejected {SENDS_MAX} times", entries.len())))
    }

    /// Sends a body of another program version unchanged, so that a process of that version can read it.
    pub async fn put_back(&self, name: QueueName, body: &str, delay: Duration) -> Result<(), QueueError> {
        let delay_s = i32::try_from(delay.min(DELAY_MAX).as_secs()).unwrap_or(0);
        let sent = self.client.send_message().queue_url(self.url(name)?).message_body(body);
        let sent = sent.message_group_id("other-version").delay_seconds(delay_s).send().await;
        sent.map(drop).map_err(|error| QueueError::Service {
            verb: "send to",
            queue: name.as_str(),
            problem: error_text(error),
        })
    }

    /// Makes a failed message visible before its visibility timeout ends: after 5, 20, 80 or 320 s, depending on
    /// `deliveries`. After its last delivery it is moved to the dead-letter queue at once. `dead`: the message is in
    /// the queue's dead-letter queue, where it waits 240 s at most and is never moved.
    pub async fn retry_later(
        &self,
        name: QueueName,
        dead: bool,
        receipt: &str,
        deliveries: u32,
    ) -> Result<(), QueueError> {
        self.hide(name, dead, receipt, retry_wait(self.retry_delay, dead, deliveries)).await
    }

    /// Leaves a message in its queue's dead-letter queue and hides it for `wait`.
    pub async fn hide_dead_letter(
        &self,
        name: QueueName,
        receipt: &str,
        wait: Duration,
    ) -> Result<(), QueueError> {
        self.hide(name, true, receipt, wait).await
    }

    async fn hide(
        &self,
        name: QueueName,
        dead: bool,
        receipt: &str,
        wait: Duration,
    ) -> Result<(), QueueError> {
        let url = if dead { self.dead_letter_url(name)? } else { self.url(name)?.to_owned() };
        let wait_s = i32::try_from(wait.as_secs()).unwrap_or(0);
        let change = self.client.change_message_visibility().queue_url(url).receipt_handle(receipt);
        let changed = change.visibility_timeout(wait_s).send().await;
        changed.map(drop).map_err(|error| QueueError::Service {
            verb: "change a message of",
            queue: name.as_str(),
            problem: error_text(error),
        })
    }

    /// Returns the number of messages in a queue.
    pub async fn depth(&self, name: QueueName) -> Result<Depth, QueueError> {
        self.queue_depth(name, self.url(name)?).await
    }

    /// Returns the number of messages in a queue's dead-letter queue on the embedded stack.
    pub async fn dead_depth(&self, name: QueueName) -> Result<Depth, QueueError> {
        self.queue_depth(name, &self.dead_letter_url(name)?).await
    }

    async fn queue_depth(&self, name: QueueName, url: &str) -> Result<Depth, QueueError> {
        let got = self
            .client
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(QueueAttributeName::All)
            .send()
            .await
            .map_err(|error| QueueError::Service {
                verb: "read",
                queue: name.as_str(),
                problem: error_text(error),
            })?;
        let count = |attribute| {
            let text = got.attributes().and_then(|all| all.get(&attribute));
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        Ok(Depth {
            visible: count(QueueAttributeName::ApproximateNumberOfMessages),
            in_flight: count(QueueAttributeName::ApproximateNumberOfMessagesNotVisible),
            delayed: count(QueueAttributeName::ApproximateNumberOfMessagesDelayed),
        })
    }
}

/// Returns the time for which a failed message stays hidden after `deliveries` deliveries.
fn retry_wait(retry_delay: Duration, dead: bool, deliveries: u32) -> Duration {
    if !dead && deliveries >= RECEIVES_MAX {
        return Duration::ZERO;
    }
    let wait_max = if dead { DEAD_RETRY_WAIT_MAX } else { DELAY_MAX };
    retry_delay.saturating_mul(4_u32.saturating_pow(deliveries.clamp(1, RECEIVES_MAX) - 1)).min(wait_max)
}

fn variable(name: QueueName) -> String {
    format!("BENCH_QUEUE_{}_URL", name.as_str().to_uppercase())
}

/// Creates a queue with these attributes and returns its address. An existing queue with other attributes gets these.
async fn create_queue(
    client: &Client,
    name: &str,
    attributes: &HashMap<QueueAttributeName, String>,
) -> Result<String, String> {
    match client.create_queue().queue_name(name).set_attributes(Some(attributes.clone())).send().await {
        Ok(created) => Ok(created.queue_url().unwrap_or_default().to_owned()),
        Err(error) if matches!(error.code(), Some("QueueNameExists" | "QueueAlreadyExists")) => {
            let found = client.get_queue_url().queue_name(name).send().await.map_err(error_text)?;
            let url = found.queue_url().unwrap_or_default().to_owned();
            let set = client.set_queue_attributes().queue_url(&url).set_attributes(Some(attributes.clone()));
            set.send().await.map_err(error_text)?;
            Ok(url)
        }
        Err(error) => Err(error_text(error)),
    }
}

/// Formats a service error without the rest of its response.
fn error_text<E>(error: SdkError<E>) -> String
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => DisplayErrorContext(error).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_letter_queues_are_known_by_their_arn() {
        let of = |name: &str| {
            QueueName::from_dead_letter_arn(&format!("arn:aws:sqs:eu-west-1:123456789012:{name}"))
        };
        for queue in QueueName::ALL {
            for stack in ["bench", "bench-dev", "items-dead"] {
                assert_eq!(of(&format!("{stack}-{}-dead", queue.as_str())), Some(queue));
            }
            assert_eq!(of(&format!("bench-{}", queue.as_str())), None, "not the queue itself");
        }
        for other in ["", "dead", "-dead", "bench-dreams-dead", "bench-xitems-dead"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(QueueName::from_dead_letter_arn(""), None);
    }

    #[test]
    fn a_message_is_dead_right_after_its_last_delivery() {
        let waits =
            |dead| [1, 2, 3, 4, 5, 6].map(|deliveries| retry_wait(RETRY_DELAY, dead, deliveries).as_secs());
        assert_eq!(waits(false), [5, 20, 80, 320, 0, 0]);
        assert_eq!(waits(true), [5, 20, 80, 240, 240, 240]);
    }
}
