//! Limits the requests per minute of a run.
//!
//! All processes take their slots from one record per credential and model (`bench_state::RequestSlot`), so the limit holds
//! in a deployed system, too. Runs that share credential and model, and limit their requests, share the slots. A sample
//! whose slot isn't near is put off, which counts neither as an attempt nor as a wait for the provider.

use std::time::Duration;

use bench_domain::ModelRole;
use bench_state::RequestSlot;

use crate::Pipeline;
use crate::context::{ClaimedSample, ModelClient};
use crate::error::PipelineError;
use crate::model::AskResult;

/// Maximum time for which an attempt waits for its slot. A sample whose slot is later is put off.
const AHEAD: Duration = Duration::from_secs(5);
impl Pipeline {
    /// Waits for the next slot for a request, if the run limits its requests. Returns a result if no request may be sent:
    /// the sample was put off, or the run ended meanwhile.
    pub(super) async fn wait_for_slot(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Result<Option<AskResult>, PipelineError> {
        let limit = claimed.run.spec.limits.requests_per_minute.filter(|_| client.role == ModelRole::Model);
        let Some(per_minute) = limit else { return Ok(None) };
        let interval = Duration::from_secs(60) / per_minute.max(1);
        let (now, wait) = (bench_clock::now(), &client.wait);
        let slot = self
            .state
            .take_request_slot((&wait.key.credential, &wait.key.model), now, interval, AHEAD)
            .await?;
        match slot {
            RequestSlot::Taken(at) => {
                if at <= now {
                    return Ok(None);
                }
                tokio::time::sleep(at.since(now)).await;
                let found = self.state.run(claimed.sample.run).await?;
                let is_open = found.is_some_and(|found| found.state.status().is_open());
                Ok((!is_open).then_some(AskResult::RunOver))
            }
            RequestSlot::Busy(free_at) => {
                let due = wait.paced.next_try(free_at, now, interval);
                self.put_off(claimed, due.since(now), claimed.record.history).await?;
                Ok(Some(AskResult::PutOff))
            }
        }
    }
}
