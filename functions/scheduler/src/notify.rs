//! Delivers notices to the schedule's webhook and the installation's topic.
//!
//! Each message is delivered at least once. A tick takes a lease before it delivers, so that concurrent ticks deliver
//! a message only once. A message is repeated only if a process ends after delivering it and before recording that.
//! Receivers recognize repeats by their `id`.

use std::time::Duration;

use bench_domain::Timestamp;
use bench_domain::schedule::{Firing, FiringState, Notice, Schedule};
use bench_state::{FiringRecord, StateError};
use serde_json::{Value, json};

use crate::counts::{Counts, count};
use crate::scheduler::Scheduler;
use crate::topic::Topic;

/// Lease for a delivery: up to five notices over two channels, ten seconds each.
const LEASE: Duration = Duration::from_secs(180);
/// Maximum number of characters of an SNS subject.
const SUBJECT_CHARS_MAX: usize = 99;

impl Scheduler {
    /// Delivers the open notices of a firing.
    pub(crate) async fn deliver_notices(
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
                    count(&counts.delivered);
                }
                notice.webhook = notice.webhook.after_attempt(sent.map(|()| now));
            }
            if notice.topic.is_open() {
                let sent = match &self.config.topic {
                    Some(topic) => publish(topic.as_ref(), schedule, &body).await,
                    None => Err("there is no topic any more".to_owned()),
                };
                if let Err(error) = &sent {
                    tracing::error!(schedule.id = %schedule.id, %error, "The topic was not reached: {error}");
                } else {
                    count(&counts.delivered);
                }
                notice.topic = notice.topic.after_attempt(sent.map(|()| now));
            }
        }
        // If another process holds the firing now, our lease has ended, and it delivers the notices again.
        self.state.save_firing(&record, firing, None).await.map(drop)
    }
}

/// Returns the body of a notice. It names the run but contains no prompts or answers.
pub(crate) fn body(schedule: &Schedule, firing: &Firing, notice: &Notice) -> Value {
    let (status, score, comparison) = match &firing.state {
        FiringState::Ended { run_status, score, comparison, .. } => {
            (run_status.map(|status| status.as_str()), *score, comparison.as_ref())
        }
        _ => (None, None, None),
    };
    let (error, code) = firing.error();
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
        "error_code": code,
        "comparison": comparison,
    })
}

/// Publishes a notice: its text, then the whole body as JSON.
pub(crate) async fn publish(topic: &dyn Topic, schedule: &Schedule, body: &Value) -> Result<(), String> {
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    // SNS requires ASCII subjects without control characters.
    let name: String =
        schedule.name.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    let subject: String = format!("Bench Runner: {kind}: {name}").chars().take(SUBJECT_CHARS_MAX).collect();
    let text = body.get("message").and_then(Value::as_str).unwrap_or_default();
    topic.publish(subject, format!("{text}\n\n{body:#}")).await
}
