//! Shares the waits that a provider asked for among all requests with the same credential and model.
//!
//! A wait can be an hour, and the provider may answer again long before. So one request every ten minutes, the *probe*, is
//! sent nevertheless, and one soon after a run was ordered or resumed. The other samples wait for its response. An answer
//! ends the wait; a refusal sets its new end.

use std::time::Duration;

use bench_domain::Timestamp;
use bench_inference::{Failure, FailureKind, GaveUpBy};
use bench_state::{SharedWait, WaitKind};
use tokio::sync::MutexGuard;

use crate::Pipeline;
use crate::context::{ClaimedSample, KnownWait, ModelClient};
use crate::error::PipelineError;

/// Maximum age of what this process knows about a provider's wait.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Interval between two probes.
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(10 * 60);
/// Minimum time between the latest request and the probe of a run that was ordered or resumed since.
const PROBE_FOR_ORDER_AFTER: Duration = Duration::from_secs(30);
/// Minimum time for which a sample waits for the response to a probe. It waits longer, the longer that takes.
const PROBE_TIME_MIN: Duration = Duration::from_secs(10);

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// Send it.
    Send,
    /// Send it if this process can take the probe.
    Probe(SharedWait),
    /// Don't send it for this time.
    Wait(Duration),
}

/// Permission to send a request.
pub(super) enum Admission {
    /// The request may be sent; as the probe of this wait if there is one.
    Send(Option<SharedWait>),
    /// The request has to wait.
    Wait(Failure),
}

impl Pipeline {
    /// Decides whether a request may be sent while the provider's wait lasts. Reads the wait at most once a second. A probe
    /// has to be taken by [`Self::take_probe`].
    pub(super) async fn admit(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Result<Admission, PipelineError> {
        let now = bench_clock::now();
        let Some(wait) = self.known_wait(client, now).await?.wait else { return Ok(Admission::Send(None)) };
        Ok(match decide(&wait, claimed.run.opened_at(), now) {
            Decision::Send => Admission::Send(None),
            Decision::Probe(wait) => Admission::Send(Some(wait)),
            Decision::Wait(time) => Admission::Wait(wait_failure(time)),
        })
    }

    /// Takes the probe of a wait for this attempt. Returns a failure if another request is the probe.
    pub(super) async fn take_probe(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        wait: &SharedWait,
    ) -> Result<Option<Failure>, PipelineError> {
        let now = bench_clock::now();
        let mut known = client.wait.known.lock().await;
        if self.state.take_probe(&client.wait.key, wait, now).await? {
            known.wait = Some(SharedWait { asked_at: now, is_probing: true, ..*wait });
            // Another attempt of this sample would be another request.
            let _ = claimed.probed_at.set(now);
            return Ok(None);
        }
        known.read_at = Timestamp::default();
        Ok(Some(wait_failure(PROBE_TIME_MIN)))
    }

    /// Ends the wait if this attempt was its probe and the provider `answers`. An answer that comes when no wait lasts also
    /// ends what the run shows.
    pub(super) async fn note_end(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        answers: bool,
    ) -> Result<(), PipelineError> {
        self.end_probe(claimed, client, answers).await?;
        if answers && claimed.run.waits.is_waiting(client.role) {
            let now = bench_clock::now();
            let known = self.known_wait(client, now).await?;
            if known.wait.is_none_or(|wait| wait.until <= now) {
                claimed.run.waits.note_over(client.role);
            }
        }
        Ok(())
    }

    /// Ends the probe of this attempt, if it was one.
    async fn end_probe(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        answers: bool,
    ) -> Result<(), PipelineError> {
        let Some(probed_at) = claimed.probed_at.get().copied() else { return Ok(()) };
        let now = bench_clock::now();
        let mut known = self.known_wait(client, now).await?;
        let Some(wait) = known.wait else { return Ok(()) };
        let until = if answers { now.min(wait.until) } else { wait.until };
        self.state.end_probe(&client.wait.key, probed_at, until, wait.kind).await?;
        known.read_at = Timestamp::default();
        Ok(())
    }

    /// Makes all processes with the same credential and model wait.
    pub(super) async fn share_wait(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        until: Timestamp,
        kind: WaitKind,
    ) -> Result<(), PipelineError> {
        let (shared, now) = (&client.wait.key, bench_clock::now());
        let mut known = client.wait.known.lock().await;
        let longest = known.wait.map_or(until, |wait| wait.until.max(until));
        // No request may be sent even if the write fails.
        known.wait = Some(SharedWait { until: longest, kind, asked_at: now, is_probing: false });
        match claimed.probed_at.get() {
            Some(probed_at) => self.state.end_probe(shared, *probed_at, until, kind).await?,
            None => self.state.extend_wait(shared, until, kind, now).await?,
        }
        known.read_at = Timestamp::default();
        Ok(())
    }

    /// Returns the reason for the wait and the time of the next request, as this process knows them; `None` if the sample
    /// may be asked, and while a probe is under way.
    pub(super) async fn next_request(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Option<(WaitKind, Timestamp)> {
        let now = bench_clock::now();
        let wait = client.wait.known.lock().await.wait.filter(|wait| !wait.is_probing)?;
        match decide(&wait, claimed.run.opened_at(), now) {
            Decision::Wait(time) => Some((wait.kind, now.plus(time))),
            Decision::Send | Decision::Probe(_) => None,
        }
    }

    /// Returns the wait, read in the last second. Only one request reads it; the others wait for the result.
    async fn known_wait<'a>(
        &self,
        client: &'a ModelClient,
        now: Timestamp,
    ) -> Result<MutexGuard<'a, KnownWait>, PipelineError> {
        let mut known = client.wait.known.lock().await;
        if now.since(known.read_at) >= READ_EVERY {
            known.wait = self.state.shared_wait(&client.wait.key).await?;
            known.read_at = now;
        }
        Ok(known)
    }
}

/// Decides about a request of a run that was ordered or last resumed at `opened_at`.
fn decide(wait: &SharedWait, opened_at: Timestamp, now: Timestamp) -> Decision {
    let probe_at = wait.asked_at.plus(PROBE_EVERY);
    if wait.until <= now {
        return Decision::Send;
    }
    if wait.is_probing && now < probe_at {
        let response_in = PROBE_TIME_MIN.max(now.since(wait.asked_at) / 2);
        return Decision::Wait(response_in.min(probe_at.since(now)));
    }
    let probe_at = match opened_at > wait.asked_at {
        true => probe_at.min(wait.asked_at.plus(PROBE_FOR_ORDER_AFTER)),
        false => probe_at,
    };
    match probe_at.min(wait.until) {
        next if next <= now => Decision::Probe(*wait),
        next => Decision::Wait(next.since(now)),
    }
}

/// Returns the failure that stands in for a request that isn't sent.
fn wait_failure(time: Duration) -> Failure {
    Failure {
        kind: FailureKind::RateLimited,
        status: None,
        cause: "the provider asked to wait".to_owned(),
        request_id: None,
        retry_after: Some(time),
        gave_up_by: GaveUpBy::Runner,
        usage: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn seconds(seconds: u64) -> Decision {
        Decision::Wait(Duration::from_secs(seconds))
    }

    #[test]
    fn one_request_in_ten_minutes_is_a_probe() {
        let wait = SharedWait {
            until: at(10_000),
            kind: WaitKind::RateLimited,
            asked_at: at(1_000),
            is_probing: false,
        };
        assert_eq!(decide(&wait, at(0), at(1_001)), seconds(599));
        assert_eq!(decide(&wait, at(0), at(1_600)), Decision::Probe(wait));
        assert_eq!(decide(&wait, at(0), at(10_000)), Decision::Send);
        let short = SharedWait { until: at(1_060), ..wait };
        assert_eq!(decide(&short, at(0), at(1_001)), seconds(59));
        assert_eq!(decide(&short, at(0), at(1_060)), Decision::Send);
    }

    #[test]
    fn a_resumed_run_probes_soon() {
        let wait = SharedWait {
            until: at(10_000),
            kind: WaitKind::RateLimited,
            asked_at: at(1_000),
            is_probing: false,
        };
        assert_eq!(decide(&wait, at(1_010), at(1_010)), seconds(20));
        assert_eq!(decide(&wait, at(1_300), at(1_300)), Decision::Probe(wait));
        let short = SharedWait { until: at(1_020), ..wait };
        assert_eq!(decide(&short, at(1_010), at(1_010)), seconds(10));
    }

    #[test]
    fn samples_wait_for_the_response_to_a_probe() {
        let wait = SharedWait {
            until: at(10_000),
            kind: WaitKind::RateLimited,
            asked_at: at(1_000),
            is_probing: true,
        };
        assert_eq!(decide(&wait, at(0), at(1_001)), seconds(10));
        assert_eq!(decide(&wait, at(1_001), at(1_100)), seconds(50), "a resumed run, too");
        assert_eq!(decide(&wait, at(0), at(1_590)), seconds(10));
        // Its process may have ended.
        assert_eq!(decide(&wait, at(0), at(1_600)), Decision::Probe(wait));
    }
}
