//! Starts planned times of schedules when they are due, and continues their firings until they are complete.
//!
//! Starting one is a single conditional write ([`State::fire`](bench_state::State::fire)). All later steps work from
//! the list of open firings, so a process may stop at any point: the next tick continues.

use bench_domain::Timestamp;
use bench_domain::schedule::{DueTimes, Firing, FiringState, NoticeKind};
use bench_state::{FiringRef, ScheduleRecord, StateError, Transition};
use futures_util::{StreamExt, stream};

use crate::counts::{Counts, FiringError, Ticked, count};
use crate::scheduler::Scheduler;

/// Number of firings handled concurrently. Each may wait for a webhook.
const FIRINGS_AT_ONCE: usize = 8;
/// Maximum number of open firings per tick.
const FIRINGS_MAX: usize = 5_000;

impl Scheduler {
    /// Fires the planned times that are due by `now`, makes their runs, checks runs made before, and delivers
    /// notices.
    ///
    /// # Errors
    /// Fails if the lists could not be read. An error in one schedule doesn't affect the others.
    pub async fn tick(&self, now: Timestamp) -> Result<Ticked, StateError> {
        // Boxed, because the future is large and callers nest it further.
        Box::pin(self.tick_all(now)).await
    }

    async fn tick_all(&self, now: Timestamp) -> Result<Ticked, StateError> {
        let counts = Counts::default();
        for record in self.state.list_schedules().await? {
            let Some(due) = record.schedule.due(now) else { continue };
            if let Err(error) = self.fire_due(&record, &due, now, &counts).await {
                count(&counts.skipped);
                let id = record.schedule.id;
                tracing::error!(schedule.id = %id, %error, "The tick passed over schedule {id}: {error}");
            }
        }
        let open = self.state.open_firings(FIRINGS_MAX).await?;
        // Collected first, because a closure that borrows would make this future not `Send`.
        let visits: Vec<_> =
            open.into_iter().map(|firing| self.continue_firing(firing, now, &counts)).collect();
        stream::iter(visits).for_each_concurrent(FIRINGS_AT_ONCE, |visit| visit).await;
        let ticked = counts.sum();
        if ticked != Ticked::default() {
            tracing::info!(
                ticked.started,
                ticked.not_started,
                ticked.missed,
                ticked.ended,
                ticked.not_finished,
                ticked.regressed,
                "Schedules: {} started, {} not started, {} ended",
                ticked.started,
                ticked.not_started,
                ticked.ended
            );
        }
        Ok(ticked)
    }

    async fn fire_due(
        &self,
        record: &ScheduleRecord,
        due: &DueTimes,
        now: Timestamp,
        counts: &Counts,
    ) -> Result<(), StateError> {
        let schedule = &record.schedule;
        let mut firings: Vec<Firing> = Vec::with_capacity(due.missed.len() + 1);
        for (index, planned) in due.missed.iter().enumerate() {
            let earlier = if index == 0 { due.earlier } else { 0 };
            firings.push(Firing::missed(schedule.id, *planned, earlier, now));
        }
        if let (None, Some(latest)) = (due.fire, firings.last_mut()) {
            let text = format!(
                "Schedule {} did not run as planned for {}: the scheduler was not running then, and it is too late now",
                schedule.name, latest.planned
            );
            latest.notify(NoticeKind::Missed, text, schedule.webhook.is_some(), self.config.topic.is_some());
        }
        firings.extend(due.fire.map(|planned| Firing::starting(schedule.id, planned, now)));
        // `Raced`: another process fired it, or its owner changed the schedule.
        if self.state.fire(record, due.next, &firings, now).await? == Transition::Done {
            for missed in &due.missed {
                count(&counts.missed);
                tracing::error!(
                    schedule.id = %schedule.id,
                    planned = %missed,
                    "Schedule {} missed its time {missed}",
                    schedule.name
                );
            }
            if due.fire.is_none() {
                count(&counts.not_started);
            }
        }
        Ok(())
    }

    async fn continue_firing(&self, firing: FiringRef, now: Timestamp, counts: &Counts) {
        if let Err(error) = self.advance_firing(firing, now, counts).await {
            count(&counts.skipped);
            let FiringRef { schedule, planned } = firing;
            tracing::error!(
                schedule.id = %schedule,
                %planned,
                %error,
                "The tick passed over the time {planned} of schedule {schedule}: {error}"
            );
        }
    }

    async fn advance_firing(
        &self,
        firing: FiringRef,
        now: Timestamp,
        counts: &Counts,
    ) -> Result<(), FiringError> {
        let record = self.state.firing(firing).await?;
        let schedule = self.state.schedule(firing.schedule).await?;
        let (Some(record), Some(schedule)) = (record, schedule) else {
            // The schedule was deleted. A run that it made belongs to its owner like any other.
            return Ok(self.state.forget_firing(firing).await?);
        };
        let schedule = schedule.schedule;
        let record = match record.firing.state {
            FiringState::Starting { .. } => self.start(&schedule, record, now, counts).await?,
            FiringState::Started { .. } => self.watch(&schedule, record, now, counts).await?,
            _ => Some(record),
        };
        if let Some(record) = record {
            self.deliver_notices(&schedule, record, now, counts).await?;
        }
        Ok(())
    }
}
