//! Shows in a run's record and events that the run waits for a provider.
//!
//! No sample depends on it: a failed write is logged, and work goes on.

use std::time::Duration;

use bench_domain::eta::format_duration_seconds;
use bench_domain::{ModelRole, Timestamp};
use bench_inference::Failure;
use bench_state::{EventKind, NewEvent, ProviderWait, StateError, WaitKind, WaitNoted};

use crate::Pipeline;
use crate::context::{ClaimedSample, ModelClient};

/// Minimum wait that is shown at once. Shorter ones are part of ordinary work, and are shown if they repeat.
const SHOWN_AT_ONCE: Duration = Duration::from_secs(10);
/// Number of requests that must fail one after the other before the provider counts as unavailable.
const FAILURES_MIN: u32 = 3;

impl Pipeline {
    /// Shows that the run waits because of a wait that another request or run met.
    pub(super) async fn note_shared_wait(&self, claimed: &ClaimedSample, client: &ModelClient) {
        let Some((kind, until)) = self.next_request(claimed, client).await else { return };
        let wait = shown_wait(claimed, client, kind, until, None);
        self.write_wait(claimed, wait).await;
    }

    /// Shows that the run waits for an unavailable provider, once several requests have failed one after the other.
    pub(crate) async fn note_failed_request(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
        wait: Duration,
    ) {
        let failures = claimed.run.waits.note_failure(client.role);
        let history = claimed.record.history;
        if failures < FAILURES_MIN || (history.failures == 0 && history.waits == 0) {
            return;
        }
        let now = bench_clock::now();
        let (until, message) = (now.plus(wait), Some(failure.cause.as_str()));
        let waits = &claimed.run.waits;
        let wait = waits.begin_or_extend(client.role, WaitKind::Unavailable, until, message, now);
        self.write_wait(claimed, wait).await;
    }

    /// Writes a wait into the run's record, if it is new.
    pub(super) async fn write_wait(&self, claimed: &ClaimedSample, wait: Option<ProviderWait>) {
        let Some(wait) = wait else { return };
        if let Err(error) = self.try_write_wait(claimed, &wait, bench_clock::now()).await {
            tracing::debug!(run.id = %claimed.sample.run, %error, "The run's wait was not noted");
        }
    }

    async fn try_write_wait(
        &self,
        claimed: &ClaimedSample,
        wait: &ProviderWait,
        now: Timestamp,
    ) -> Result<(), StateError> {
        let run = claimed.sample.run;
        let WaitNoted::Noted(earlier) = self.state.note_provider_wait(run, wait).await? else {
            return Ok(());
        };
        // Another process may have announced the same wait before.
        let is_announced = wait.announced_until != wait.until
            || earlier.is_some_and(|earlier| {
                earlier.role == wait.role
                    && earlier.kind == wait.kind
                    && wait.since != earlier.since
                    && earlier.until >= now
            });
        if is_announced {
            return Ok(());
        }
        self.state.add_event(run, &started_event(wait), now).await.map(drop)
    }

    /// Removes the wait from the run's record if an answer has ended it.
    pub(crate) async fn end_provider_wait(&self, claimed: &ClaimedSample) {
        let Some(wait) = claimed.run.waits.take_ended() else { return };
        let (run, now) = (claimed.sample.run, bench_clock::now());
        let ended = async {
            if self.state.end_provider_wait(run, &wait).await? {
                self.state.add_event(run, &ended_event(&wait, now), now).await?;
            }
            Ok::<_, StateError>(())
        };
        if let Err(error) = ended.await {
            tracing::debug!(run.id = %run, %error, "The end of the run's wait was not noted");
        }
    }
}

/// Returns the wait that the run's record should get, if any: it isn't short, and not known yet.
pub(super) fn shown_wait(
    claimed: &ClaimedSample,
    client: &ModelClient,
    kind: WaitKind,
    until: Timestamp,
    message: Option<&str>,
) -> Option<ProviderWait> {
    let now = bench_clock::now();
    let waited = claimed.record.history.waiting_since.map_or(Duration::ZERO, |since| now.since(since));
    if until.since(now).max(waited) < SHOWN_AT_ONCE {
        return None;
    }
    claimed.run.waits.begin_or_extend(client.role, kind, until, message, now)
}

const fn provider(wait: &ProviderWait) -> &'static str {
    match wait.role {
        ModelRole::Model => "provider",
        ModelRole::Judge => "judge's provider",
        ModelRole::UserModel => "user model's provider",
    }
}

fn data(wait: &ProviderWait) -> serde_json::Value {
    serde_json::json!({
        "kind": wait.kind,
        "waits_for": wait.role.as_str(),
        "since": wait.since,
        "until": wait.until,
        "message": wait.message,
    })
}

fn started_event(wait: &ProviderWait) -> NewEvent {
    let problem = match wait.kind {
        WaitKind::RateLimited => "limits the rate of requests",
        WaitKind::Unavailable => "is unavailable",
    };
    let mut text =
        format!("The {} {problem}; next request at {}", provider(wait), wait.until.whole_seconds());
    if let Some(message) = &wait.message {
        text.push_str(&format!(" ({message})"));
    }
    NewEvent::new(EventKind::ProviderWaitStarted, text).with_data(data(wait))
}

fn ended_event(wait: &ProviderWait, now: Timestamp) -> NewEvent {
    let waited = format_duration_seconds(Some(now.since(wait.since).as_secs_f64().round()));
    let text = format!("The {} answers again after {waited}", provider(wait));
    NewEvent::new(EventKind::ProviderWaitEnded, text).with_data(data(wait))
}
