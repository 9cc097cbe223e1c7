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

use crate::counts::{Counts, count};
use crate::scheduler::Scheduler;
use crate::topic::Topic;

/// How long delivering may take: five notices by two ways, ten seconds each.
const LEASE: Duration = Duration::from_secs(180);
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
                    Some(topic) => publish(topic.as_ref(), schedule, &body).await,
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

/// Publishes a notice: its sentence, then all of it as JSON.
pub(crate) async fn publish(topic: &dyn Topic, schedule: &Schedule, body: &Value) -> Result<(), String> {
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    // Subjects are ASCII without control characters.
    let name: String =
        schedule.name.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    let subject: String = format!("Bench Runner: {kind}: {name}").chars().take(SUBJECT_CHARS_MAX).collect();
    let text = body.get("message").and_then(Value::as_str).unwrap_or_default();
    topic.publish(subject, format!("{text}\n\n{body:#}")).await
}
