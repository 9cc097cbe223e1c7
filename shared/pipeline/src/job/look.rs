//! Looking at a running job, and fetching what it left.

use std::time::Duration;

use crate::{AskError, InHand};
use bench_domain::job::poll_wait;
use bench_domain::sample::Effort;
use bench_domain::{Execution, Job, JobEnd, JobState, SampleBody, Timestamp};
use bench_lambda::metrics;
use bench_sandy::job::{self, JobStatus};

use super::Work;
use crate::Turns;

/// The first look, and the longest wait between looks of one turn.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LOOK_WAIT_MAX: Duration = Duration::from_secs(1);

impl Turns {
    /// Looks at a running job until it is over, or leaves that to a later turn. `work` is what is run, where this turn has
    /// started it.
    pub(crate) async fn look(
        &self,
        hand: &InHand<'_>,
        job: &Job,
        work: Option<Work<'_>>,
    ) -> Result<(), AskError> {
        let JobState::Running { sandbox, until, polls } = &job.state else { return Ok(()) };
        // A job that has run for long is not over within this turn: one look is enough.
        let linger = if *polls == 0 { self.host.linger } else { Duration::ZERO };
        let now = Timestamp::now();
        let left = hand.deadline.0.since(now).saturating_sub(self.desk.config.reserve);
        let leave_at = now.plus(linger.min(left));
        let mut wait = FIRST_LOOK;
        loop {
            match job::look(&self.host.sandy, sandbox, &self.host.job).await {
                Err(error) => return self.job_failed(hand, job, &error).await,
                Ok(status) => {
                    if let JobStatus::Over(end) = status.once_started() {
                        return self.harvest(hand, job, work, sandbox, end).await;
                    }
                }
            }
            if !self.desk.is_open(hand).await? {
                self.end_sandbox(sandbox).await;
                return self.desk.give_back(hand).await;
            }
            let now = Timestamp::now();
            if now > *until {
                // It has kept its own time limit from ending it.
                return match job::stop(&self.host.sandy, sandbox, &self.host.job).await {
                    Ok(()) => self.harvest(hand, job, work, sandbox, JobEnd::TimedOut).await,
                    Err(error) => self.job_failed(hand, job, &error).await,
                };
            }
            if now.plus(wait) > leave_at {
                break;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LOOK_WAIT_MAX);
        }
        let polls = polls.saturating_add(1);
        let state = JobState::Running { sandbox: sandbox.clone(), until: *until, polls };
        match self.save(hand, &job.at(state)).await? {
            true => self.go_on_later(hand, poll_wait(polls)).await,
            false => Ok(()),
        }
    }

    /// Leaves the rest to a later turn. What was waited for is there now.
    pub(crate) async fn go_on_later(&self, hand: &InHand<'_>, wait: Duration) -> Result<(), AskError> {
        let effort = Effort { failures: 0, waiting_since: None, lost: 0, ..hand.claimed.record.effort };
        self.desk.put_off(hand, wait, effort).await
    }

    /// Fetches what the job left, stores it, ends the sandbox, and reads it.
    async fn harvest(
        &self,
        hand: &InHand<'_>,
        job: &Job,
        work: Option<Work<'_>>,
        sandbox: &str,
        end: JobEnd,
    ) -> Result<(), AskError> {
        let work = match work {
            Some(work) => Some(work),
            None => self.work(hand, job).await?,
        };
        let Some(work) = work else { return Ok(()) };
        let report = match job::harvest(&self.host.sandy, sandbox, &self.host.job, &work.spec, end).await {
            Ok(report) => report,
            Err(error) => return self.job_failed(hand, job, &error).await,
        };
        metrics::count(metrics::JOBS_DONE, 1.0);
        let mut report = report;
        hand.run.keys.redact_report(&mut report);
        let execution = Some(Execution { round: job.round, report });
        let body = SampleBody { execution, ..work.body };
        let stored = self.desk.store(hand, &body).await?;
        self.end_sandbox(sandbox).await;
        self.read_execution(hand, &Work { body, ..work }, job, stored).await
    }
}
