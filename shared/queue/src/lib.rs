//! Messages between the functions in SQS: batches and planned waits.
//!
//! A message is a reference. It can be lost, doubled, late or from another version of the program
//! without harm: what is true is in the state, and who receives a message looks there first.
//!
//! | queue | message | sent by | received by |
//! | --- | --- | --- | --- |
//! | `plans` | [`Message::Plan`] | api, scheduler, `bench run` | planner |
//! | `items` | [`Message::Sample`] | planner, worker (planned waits), dead-letters, scheduler | worker |
//! | `turns` | [`Message::Turn`] | worker, turns (planned waits), planner, dead-letters, scheduler | turns |
//! | `finishes` | [`Message::Finish`] | worker, turns, planner, api, dead-letters, scheduler | finisher |
//!
//! Each has a dead-letter queue of the same name with `-dead` at the end. The message group is the
//! run, so that SQS delivers fairly between runs.

mod message;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use futures_util::{StreamExt, TryStreamExt, stream};

pub use message::{MESSAGE_VERSION, Message, MessageError};

/// SQS delays a message by 15 minutes at most; a longer wait is several messages.
pub const DELAY_MAX: Duration = Duration::from_secs(900);
/// Messages of one batch: SQS's own limit.
pub const BATCH_MAX: usize = 10;
/// Deliveries of a message before it goes to the dead-letter queue.
pub const RECEIVES_MAX: u32 = 5;
/// When a message that failed comes again the first time: five deliveries then spread over seven minutes.
const AGAIN: Duration = Duration::from_secs(5);
/// How often a part of a batch that SQS did not take is sent again.
const RESENDS_MAX: u32 = 8;
/// Longest wait before a part of a batch is sent again.
const RESEND_WAIT_MS_MAX: u64 = 5_000;
/// Batches in flight while many messages are sent.
const BATCHES_IN_FLIGHT: usize = 8;

/// The queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueName {
    /// Runs to be planned.
    Plans,
    /// Samples to be answered and scored.
    Items,
    /// Samples whose answers are to be judged, or run in a sandbox.
    Turns,
    /// Runs whose samples are all over.
    Finishes,
}

impl QueueName {
    /// Every queue.
    pub const ALL: [Self; 4] = [Self::Plans, Self::Items, Self::Turns, Self::Finishes];

    /// The queue whose dead-letter queue has this ARN: its name ends in `-plans-dead` and the like.
    pub fn of_dead_letter_arn(arn: &str) -> Option<Self> {
        let name = arn.rsplit(':').next()?.strip_suffix("-dead")?;
        let last = name.rsplit('-').next()?;
        Self::ALL.into_iter().find(|queue| queue.as_str() == last)
    }

    /// The name in queue names and variables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plans => "plans",
            Self::Items => "items",
            Self::Turns => "turns",
            Self::Finishes => "finishes",
        }
    }
}

/// Messages that could not be sent or read.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// SQS refused or could not be reached. May succeed when repeated.
    #[error("could not {verb} queue `{queue}`: {problem}")]
    Service {
        /// What was tried.
        verb: &'static str,
        /// Which queue.
        queue: &'static str,
        /// What SQS said.
        problem: String,
    },
    /// A queue whose address is not configured.
    #[error("the address of queue `{0}` is not set: set {1}")]
    NotConfigured(&'static str, String),
}

/// How many messages are in a queue, as SQS estimates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Waiting to be received.
    pub visible: u64,
    /// Received and not deleted.
    pub in_flight: u64,
    /// Not due yet.
    pub delayed: u64,
}

/// The queues, and how to reach them.
#[derive(Debug, Clone)]
pub struct Queues {
    client: Client,
    urls: BTreeMap<QueueName, String>,
    again: Duration,
}

/// How the queues are made on the embedded stack. Deployed, the template makes them.
#[derive(Debug, Clone, Copy)]
pub struct QueueSettings {
    /// How long a received message stays hidden: at least six times the function's time limit.
    pub visibility_timeout: Duration,
    /// How long messages are kept.
    pub retention: Duration,
    /// When a message that failed comes again the first time; each further time after four times as long.
    pub again: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            visibility_timeout: Duration::from_secs(12 * 3_600),
            retention: Duration::from_secs(14 * 86_400),
            again: AGAIN,
        }
    }
}

impl Queues {
    /// The queues under known addresses.
    pub fn new(config: &aws_types::SdkConfig, urls: BTreeMap<QueueName, String>) -> Self {
        Self { client: Client::new(config), urls, again: AGAIN }
    }

    /// The queues under the addresses in `BENCH_QUEUE_PLANS_URL`, `BENCH_QUEUE_ITEMS_URL`, `BENCH_QUEUE_TURNS_URL`
    /// and `BENCH_QUEUE_FINISHES_URL`. A function that does not send to a queue need not know it.
    pub fn from_vars(config: &aws_types::SdkConfig, var: impl Fn(&str) -> Option<String>) -> Self {
        let urls = QueueName::ALL.into_iter().filter_map(|name| Some((name, var(&variable(name))?)));
        Self::new(config, urls.collect())
    }

    /// Makes the queues and their dead-letter queues, or finds them, under names that start with `prefix`.
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
            let dead_url = make(&client, &format!("{prefix}{}-dead", name.as_str()), &attributes)
                .await
                .map_err(|problem| service("create", problem))?;
            let dead = client
                .get_queue_attributes()
                .queue_url(dead_url)
                .attribute_names(QueueAttributeName::QueueArn)
                .send()
                .await
                .map_err(|error| service("read", told(error)))?;
            let arn = dead.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn));
            let redrive = format!(
                r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":{RECEIVES_MAX}}}"#,
                arn.map(String::as_str).unwrap_or_default()
            );
            attributes.insert(QueueAttributeName::RedrivePolicy, redrive);
            let url = make(&client, &format!("{prefix}{}", name.as_str()), &attributes)
                .await
                .map_err(|problem| service("create", problem))?;
            urls.insert(name, url);
        }
        Ok(Self { client, urls, again: settings.again })
    }

    /// The same queues, reached with another configuration.
    #[must_use]
    pub fn through(&self, config: &aws_types::SdkConfig) -> Self {
        Self { client: Client::new(config), ..self.clone() }
    }

    /// The client, for who receives.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The address of a queue.
    pub fn url(&self, name: QueueName) -> Result<&str, QueueError> {
        let url = self.urls.get(&name);
        url.map(String::as_str).ok_or_else(|| QueueError::NotConfigured(name.as_str(), variable(name)))
    }

    /// The address of a queue's dead-letter queue: its name has `-dead` at the end.
    pub fn dead_letter_url(&self, name: QueueName) -> Result<String, QueueError> {
        Ok(format!("{}-dead", self.url(name)?))
    }

    /// Sends one message. `delay` is cut to [`DELAY_MAX`]; who receives it early sends it again.
    pub async fn send(&self, message: &Message, delay: Duration) -> Result<(), QueueError> {
        self.send_all(std::slice::from_ref(message), delay).await
    }

    /// Sends many messages in batches. When it fails some may have been sent: all can be sent again.
    pub async fn send_all(&self, messages: &[Message], delay: Duration) -> Result<(), QueueError> {
        let mut by_queue: BTreeMap<QueueName, Vec<&Message>> = BTreeMap::new();
        for message in messages {
            by_queue.entry(message.queue()).or_default().push(message);
        }
        for (name, messages) in by_queue {
            let url = self.url(name)?;
            // Collected first: a closure that borrows would make this future not `Send`.
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
        for resend in 0..RESENDS_MAX {
            if resend > 0 {
                // Up to 100, 200, 400 … 5000 ms: what was not taken was too much at once.
                let ceiling_ms = 50_u64.saturating_mul(1 << resend).min(RESEND_WAIT_MS_MAX);
                tokio::time::sleep(Duration::from_millis(rand::random_range(1..=ceiling_ms))).await;
            }
            let sent = self
                .client
                .send_message_batch()
                .queue_url(url)
                .set_entries(Some(entries.clone()))
                .send()
                .await
                .map_err(|error| service(told(error)))?;
            let failed = sent.failed();
            if failed.is_empty() {
                return Ok(());
            }
            if let Some(fault) = failed.iter().find(|entry| entry.sender_fault()) {
                return Err(service(format!("{}: {}", fault.code(), fault.message().unwrap_or_default())));
            }
            entries.retain(|entry| failed.iter().any(|f| f.id() == entry.id()));
        }
        Err(service(format!("{} messages were not taken after {RESENDS_MAX} tries", entries.len())))
    }

    /// Sends a body that this program cannot read as it is, so that another version can.
    pub async fn put_back(&self, name: QueueName, body: &str, delay: Duration) -> Result<(), QueueError> {
        let delay_s = i32::try_from(delay.min(DELAY_MAX).as_secs()).unwrap_or(0);
        let sent = self.client.send_message().queue_url(self.url(name)?).message_body(body);
        let sent = sent.message_group_id("other-version").delay_seconds(delay_s).send().await;
        sent.map(drop).map_err(|error| QueueError::Service {
            verb: "send to",
            queue: name.as_str(),
            problem: told(error),
        })
    }

    /// Lets a message that failed come again sooner than its visibility timeout ends: the `deliveries`-th time
    /// after 5, 20, 80, 320 s. After its last delivery it is dead at once: nobody receives it any more.
    /// `dead`: the message is in the queue's dead-letter queue.
    pub async fn come_again(
        &self,
        name: QueueName,
        dead: bool,
        receipt: &str,
        deliveries: u32,
    ) -> Result<(), QueueError> {
        self.hide(name, dead, receipt, wait_after(self.again, dead, deliveries)).await
    }

    /// Leaves a message in its queue's dead-letter queue, to be delivered again after `wait`.
    pub async fn look_away(&self, name: QueueName, receipt: &str, wait: Duration) -> Result<(), QueueError> {
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
            problem: told(error),
        })
    }

    /// How many messages are in a queue.
    pub async fn depth(&self, name: QueueName) -> Result<Depth, QueueError> {
        self.depth_of(name, self.url(name)?).await
    }

    /// How many messages are in a queue's dead-letter queue on the embedded stack.
    pub async fn dead_depth(&self, name: QueueName) -> Result<Depth, QueueError> {
        self.depth_of(name, &self.dead_letter_url(name)?).await
    }

    async fn depth_of(&self, name: QueueName, url: &str) -> Result<Depth, QueueError> {
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
                problem: told(error),
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

/// How long a message that failed stays hidden after so many deliveries.
fn wait_after(again: Duration, dead: bool, deliveries: u32) -> Duration {
    if !dead && deliveries >= RECEIVES_MAX {
        return Duration::ZERO;
    }
    again.saturating_mul(4_u32.saturating_pow(deliveries.clamp(1, RECEIVES_MAX) - 1)).min(DELAY_MAX)
}

fn variable(name: QueueName) -> String {
    format!("BENCH_QUEUE_{}_URL", name.as_str().to_uppercase())
}

/// Makes a queue with these attributes and returns its address. One that an earlier start made under other settings gets
/// these attributes.
async fn make(
    client: &Client,
    name: &str,
    attributes: &HashMap<QueueAttributeName, String>,
) -> Result<String, String> {
    match client.create_queue().queue_name(name).set_attributes(Some(attributes.clone())).send().await {
        Ok(made) => Ok(made.queue_url().unwrap_or_default().to_owned()),
        Err(error) if matches!(error.code(), Some("QueueNameExists" | "QueueAlreadyExists")) => {
            let found = client.get_queue_url().queue_name(name).send().await.map_err(told)?;
            let url = found.queue_url().unwrap_or_default().to_owned();
            let set = client.set_queue_attributes().queue_url(&url).set_attributes(Some(attributes.clone()));
            set.send().await.map_err(told)?;
            Ok(url)
        }
        Err(error) => Err(told(error)),
    }
}

/// What the service said, without the rest of its answer.
fn told<E>(error: SdkError<E>) -> String
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
        let of =
            |name: &str| QueueName::of_dead_letter_arn(&format!("arn:aws:sqs:eu-west-1:123456789012:{name}"));
        for queue in QueueName::ALL {
            for stack in ["bench", "bench-dev", "items-dead"] {
                assert_eq!(of(&format!("{stack}-{}-dead", queue.as_str())), Some(queue));
            }
            assert_eq!(of(&format!("bench-{}", queue.as_str())), None, "not the queue itself");
        }
        for other in ["", "dead", "-dead", "bench-dreams-dead", "bench-xitems-dead"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(QueueName::of_dead_letter_arn(""), None);
    }

    #[test]
    fn a_message_is_dead_right_after_its_last_delivery() {
        let waits = |dead| [1, 2, 3, 4, 5, 6].map(|deliveries| wait_after(AGAIN, dead, deliveries).as_secs());
        assert_eq!(waits(false), [5, 20, 80, 320, 0, 0]);
        assert_eq!(waits(true), [5, 20, 80, 320, 900, 900]);
    }
}
