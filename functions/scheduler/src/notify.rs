//! Telling people: by the schedule's webhook and the installation's topic.
//!
//! Each message is delivered at least once. Who delivers takes a lease first, so that two ticks at once deliver
//! it once; only a process that ends between delivering and noting it lets the next one deliver it again.
//! Receivers know such a repeat by its `id`.

use std::time::Duration;

use bench_domain::Timestamp;
use bench_domain::schedule::{Firing, FiringState, Notice, Schedule};
use bench_state::{FiringRecord, StateError};
use serde_json::{Value, json};

use crate::config::Topic;
use crate::counts::{Counts, count};
use crate::scheduler::Scheduler;

/// How long delivering may take: five notices by two ways, ten seconds each.
const LEASE: Duration = Duration::from_secs(180);
/// Longest time for one message to the topic.
const TOPIC_WAIT: Duration = Duration::from_secs(10);
/// SNS: characters of a subject.
const SUBJECT_CHARS_MAX: usize = 99;

impl Scheduler {
    /// Delivers what is still to be delivered of a firing.
    pub(crate) async fn tell(
        &self,
        schedule: &Schedule,
        record: FiringRecord,
        now: Timestamp,
        counts: &Counts,
    ) -> Result<(), StateError> {
        let firing = &record.firing;
        if !firing.notices.iter().any(Notice::is_open) || record.lease_until.is_some_and(|until| until > now)
        {
            return Ok(());
        }
        let same = firing.clone();
        let Some(record) = self.state.save_firing(&record, same, Some(now.plus(LEASE))).await? else {
            return Ok(());
        };
        let mut firing = record.firing.clone();
        for index in 0..firing.notices.len() {
            let body = body(schedule, &firing, &firing.notices[index]);
            let notice = &mut firing.notices[index];
            if notice.webhook.is_open() {
                let sent = match &schedule.webhook {
                    Some(webhook) => self.webhooks.post(webhook, &body).await,
                    None => Err("the schedule has no webhook any more".to_owned()),
                };
                if let Err(error) = &sent {
                    tracing::warn!(schedule.id = %schedule.id, %error, "A webhook was not reached: {error}");
                } else {
                    count(&counts.told);
                }
                notice.webhook = notice.webhook.after(sent.map(|()| now));
            }
            if notice.topic.is_open() {
                let sent = match &self.config.topic {
                    Some(topic) => publish(topic, schedule, &body).await,
                    None => Err("there is no topic any more".to_owned()),
                };
                if let Err(error) = &sent {
                    tracing::error!(schedule.id = %schedule.id, %error, "The topic was not reached: {error}");
                } else {
                    count(&counts.told);
                }
                notice.topic = notice.topic.after(sent.map(|()| now));
            }
        }
        // When somebody else holds the firing now our lease was over, and it is told again.
        self.state.save_firing(&record, firing, None).await.map(drop)
    }
}

/// What is told. Names the run, never what it asked or answered.
fn body(schedule: &Schedule, firing: &Firing, notice: &Notice) -> Value {
    let (status, score, error, comparison) = match &firing.state {
        FiringState::Ended { run_status, score, error, comparison, .. } => {
            (run_status.map(|status| status.as_str()), *score, error.as_deref(), comparison.as_ref())
        }
        FiringState::NotStarted { error, .. } => (None, None, Some(error.as_str()), None),
        _ => (None, None, None, None),
    };
    json!({
        "id": format!("{}/{}/{}", schedule.id, firing.planned, notice.kind.as_str()),
        "kind": notice.kind.as_str(),
        "message": notice.text,
        "schedule": { "id": schedule.id, "name": schedule.name, "model": schedule.run.model.qualified() },
        "planned_at": firing.planned,
        "run": firing.run(),
        "run_status": status,
        "score": score,
        "error": error,
        "comparison": comparison,
    })
}

async fn publish(topic: &Topic, schedule: &Schedule, body: &Value) -> Result<(), String> {
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    // Subjects are ASCII without control characters.
    let name: String =
        schedule.name.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    let subject: String = format!("Bench Runner: {kind}: {name}").chars().take(SUBJECT_CHARS_MAX).collect();
    let text = body.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = format!("{text}\n\n{body:#}");
    let publish = topic.client.publish().topic_arn(&topic.arn).subject(subject).message(message).send();
    match tokio::time::timeout(TOPIC_WAIT, publish).await {
        Err(_) => Err(format!("sns:Publish took more than {} s", TOPIC_WAIT.as_secs())),
        Ok(Err(error)) => {
            Err(format!("sns:Publish failed: {}", aws_sdk_sns::error::DisplayErrorContext(&error)))
        }
        Ok(Ok(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sns::config::{BehaviorVersion, Credentials, Region};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request as SNS would, and gives what was asked.
    async fn publish_once(
        status: &'static str,
        answer: &'static str,
        name: &str,
    ) -> (Result<(), String>, String) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut heard, mut buffer) = (Vec::new(), vec![0; 65_536]);
            loop {
                let read = stream.read(&mut buffer).await.unwrap();
                heard.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&heard).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let lower = head.to_ascii_lowercase();
                let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                if body.len() >= length.parse().unwrap() {
                    break;
                }
            }
            let length = answer.len();
            let response = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/xml\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{answer}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
            String::from_utf8(heard).unwrap()
        });
        let config = aws_sdk_sns::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .endpoint_url(format!("http://{address}"))
            .retry_config(aws_sdk_sns::config::retry::RetryConfig::disabled())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .build();
        let arn = "arn:aws:sns:eu-central-1:123456789012:bench".to_owned();
        let topic = Topic { client: aws_sdk_sns::Client::from_conf(config), arn };
        let schedule: Schedule = serde_json::from_value(json!({
            "id": bench_domain::ScheduleId::random(), "name": name, "owner": {"kind": "local"},
            "timing": {"cron": "0 2 * * *", "time_zone": "UTC"}, "auth": "system", "enabled": true,
            "run": {
                "model": {"id": bench_domain::ModelId::of("a", "b"), "provider": "oracle", "slug": "oracle"},
                "benchmarks": ["mmlu_pro"], "subset": {"pct": 100, "count": null, "seed": "s"}, "coverage_min": 0.9,
            },
            "created_at": Timestamp::default(), "updated_at": Timestamp::default(), "next_at": null,
        }))
        .unwrap();
        let mut firing = Firing::missed(schedule.id, Timestamp::default(), 0, Timestamp::default());
        firing.notify(bench_domain::schedule::NoticeKind::Missed, "It was missed", false, true);
        let told = publish(&topic, &schedule, &body(&schedule, &firing, &firing.notices[0])).await;
        (told, server.await.unwrap())
    }

    #[tokio::test]
    async fn the_topic_is_told_in_text_and_json() {
        let answer = r#"<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>"#;
        let (told, heard) = publish_once("200 OK", answer, "nächtlich\u{7f}").await;
        assert_eq!(told, Ok(()));
        for part in [
            "Action=Publish",
            "TopicArn=arn%3Aaws%3Asns",
            "It%20was%20missed",
            "n%3Fchtlich%3F",
            "%22missed%22",
        ] {
            assert!(heard.contains(part), "{part} in {heard}");
        }
    }

    #[tokio::test]
    async fn a_refusal_names_the_action() {
        let answer = r#"<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>AuthorizationError</Code><Message>not allowed</Message></Error><RequestId>1</RequestId></ErrorResponse>"#;
        let (told, _) = publish_once("403 Forbidden", answer, "nightly").await;
        let error = told.unwrap_err();
        assert!(error.contains("sns:Publish") && error.contains("AuthorizationError"), "{error}");
    }
}
