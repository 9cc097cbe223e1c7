//! Makes the run of a planned time.

use std::time::Duration;

use bench_domain::schedule::{FiringState, NoticeKind, Schedule};
use bench_domain::{Code, Timestamp};
use bench_state::{FiringRecord, StateError};

use crate::counts::{Counts, count};
use crate::scheduler::Scheduler;

/// Time for which making a run is retried.
pub(crate) const RETRY_FOR: Duration = Duration::from_secs(3_600);
impl Scheduler {
    /// Makes the run of a firing. Returns `None` if another process has continued the firing.
    pub(crate) async fn start(
        &self,
        schedule: &Schedule,
        record: FiringRecord,
        now: Timestamp,
        counts: &Counts,
    ) -> Result<Option<FiringRecord>, StateError> {
        let FiringState::Starting { since, tries, .. } = record.firing.state else { return Ok(Some(record)) };
        let planned = record.firing.planned;
        let mut firing = record.firing.clone();
        let made = if schedule.enabled {
            let maintenance = self.config.maintenance.as_deref();
            let made = self.runs.create_scheduled(schedule, planned, now, maintenance).await;
            made.map_err(|error| (error.to_string(), error.code()))
        } else {
            Err(("the schedule was switched off".to_owned(), Code::ScheduleDisabled))
        };
        match made {
            Ok(run) => firing.state = FiringState::Started { run, started_at: now },
            Err((error, code)) if schedule.enabled && now.since(since) < RETRY_FOR => {
                tracing::warn!(
                    schedule.id = %schedule.id,
                    %planned,
                    %error,
                    error.code = %code,
                    "The run of schedule {} for {planned} could not be made and is tried again: {error}",
                    schedule.name
                );
                let (error, code) = (Some(error), Some(code));
                firing.state = FiringState::Starting { since, tries: tries + 1, error, code };
            }
            Err((error, code)) => {
                firing.state = FiringState::NotStarted { at: now, error: error.clone(), code: Some(code) };
                if schedule.enabled {
                    let text =
                        format!("The run of schedule {} for {planned} did not start: {error}", schedule.name);
                    tracing::error!(schedule.id = %schedule.id, %planned, error.code = %code, "{text}");
                    self.note(&mut firing, schedule, NoticeKind::NotStarted, text);
                }
            }
        }
        let saved = self.state.save_firing(&record, firing, None).await?;
        match saved.as_ref().map(|saved| &saved.firing.state) {
            Some(FiringState::Started { .. }) => count(&counts.started),
            Some(FiringState::NotStarted { .. }) if schedule.enabled => count(&counts.not_started),
            _ => {}
        }
        Ok(saved)
    }
}
