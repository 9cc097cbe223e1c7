//! The SNS topic of a deployed installation.

use std::time::Duration;

use aws_types::SdkConfig;

use crate::topic::{Publishing, Topic};

/// Maximum time for one message.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An SNS topic.
#[derive(Debug)]
pub struct SnsTopic {
    client: aws_sdk_sns::Client,
    arn: String,
}

impl SnsTopic {
    /// Creates a client for the topic with this ARN.
    pub fn new(sdk: &SdkConfig, arn: impl Into<String>) -> Self {
        Self { client: aws_sdk_sns::Client::new(sdk), arn: arn.into() }
    }
}

impl Topic for SnsTopic {
    fn publish(&self, subject: String, text: String) -> Publishing<'_> {
        let request = self.client.publish().topic_arn(&self.arn).subject(subject).message(text).send();
        Box::pin(async move {
            match tokio::time::timeout(TIMEOUT, request).await {
                Err(_) => Err(format!("sns:Publish took more than {} s", TIMEOUT.as_secs())),
                Ok(Err(error)) => {
                    Err(format!("sns:Publish failed: {}", aws_sdk_sns::error::DisplayErrorContext(&error)))
                }
                Ok(Ok(_)) => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sns::config::{BehaviorVersion, Credentials, Region};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use bench_domain::Timestamp;
    use bench_domain::schedule::{Firing, Schedule};
    use serde_json::json;

    use super::*;
    use crate::notify::{body, publish};

    /// Answers one request as SNS would, and returns the request.
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
        let topic = SnsTopic { client: aws_sdk_sns::Client::from_conf(config), arn };
        let schedule: Schedule = serde_json::from_value(json!({
            "id": bench_domain::ScheduleId::random(), "name": name, "owner": {"kind": "local"},
            "timing": {"cron": "0 2 * * *", "time_zone": "UTC"}, "auth": "system", "enabled": true,
            "run": {
                "model": {"id": bench_domain::ModelId::from_name("a", "b"), "provider": "oracle", "slug": "oracle"},
                "benchmarks": ["mmlu_pro"], "subset": {"pct": 100, "count": null, "seed": "s"}, "coverage_min": 0.9,
            },
            "created_at": Timestamp::default(), "updated_at": Timestamp::default(), "next_at": null,
        }))
        .unwrap();
        let mut firing = Firing::missed(schedule.id, Timestamp::default(), 0, Timestamp::default());
        firing.notify(bench_domain::schedule::NoticeKind::Missed, "It was missed", false, true);
        let result = publish(&topic, &schedule, &body(&schedule, &firing, &firing.notices[0])).await;
        (result, server.await.unwrap())
    }

    #[tokio::test]
    async fn the_topic_is_notified_in_text_and_json() {
        let answer = r#"<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>"#;
        let (result, heard) = publish_once("200 OK", answer, "nächtlich\u{7f}").await;
        assert_eq!(result, Ok(()));
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
        let (result, _) = publish_once("403 Forbidden", answer, "nightly").await;
        let error = result.unwrap_err();
        assert!(error.contains("sns:Publish") && error.contains("AuthorizationError"), "{error}");
    }
}
