//! Shares the waits that a provider asked for among all requests with the same credential and model.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bench_domain::Timestamp;
use bench_inference::{Failure, FailureKind, GaveUpBy};

use crate::Pipeline;
use crate::context::ModelClient;
use crate::error::PipelineError;

/// Maximum age of what this process knows about a provider's wait.
const READ_EVERY: Duration = Duration::from_secs(1);

impl Pipeline {
    /// Returns the failure that stands in for a request while the provider's wait lasts. Reads the wait at
    /// most once a second.
    pub(super) async fn active_wait(
        &self,
        client: &ModelClient,
        now: Timestamp,
    ) -> Result<Option<Failure>, PipelineError> {
        let wait = &client.wait;
        let read_at = Timestamp::from_micros(wait.read_at.load(Ordering::Relaxed));
        if now.since(read_at) >= READ_EVERY {
            wait.read_at.store(now.as_micros(), Ordering::Relaxed);
            let until = self.state.not_before(&wait.credential, &wait.model).await?.unwrap_or_default();
            wait.until.store(until.as_micros(), Ordering::Relaxed);
        }
        let until = Timestamp::from_micros(wait.until.load(Ordering::Relaxed));
        Ok((until > now).then(|| Failure {
            kind: FailureKind::RateLimited,
            status: None,
            cause: "the provider asked to wait".to_owned(),
            request_id: None,
            retry_after: Some(until.since(now)),
            gave_up_by: GaveUpBy::Runner,
            usage: None,
        }))
    }

    /// Makes all processes with the same credential and model wait.
    pub(super) async fn share_wait(
        &self,
        client: &ModelClient,
        duration: Duration,
    ) -> Result<(), PipelineError> {
        let (wait, now) = (&client.wait, bench_clock::now());
        wait.until.fetch_max(now.plus(duration).as_micros(), Ordering::Relaxed);
        Ok(self.state.extend_wait(&wait.credential, &wait.model, now, duration).await?)
    }
}
