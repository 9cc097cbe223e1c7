//! Polls a running job and fetches its output.

use std::time::Duration;

use bench_domain::job::poll_wait;
use bench_domain::sample::AttemptHistory;
use bench_domain::{Execution, Job, JobEnd, JobState, SampleBody, Spending, Timestamp};
use bench_lambda::metrics;
use bench_sandy::job::{self, JobStatus};

use super::{JobTurn, JobWork};
use crate::Pipeline;
use crate::error::PipelineError;

/// Wait before an attempt's second poll. Doubles up to the maximum.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A job whose script was started.
#[derive(Clone, Copy)]
pub(super) struct RunningJob<'a> {
    pub(super) job: &'a Job,
    pub(super) sandbox: &'a str,
    /// Latest time for its end.
    pub(super) until: Timestamp,
    /// Number of attempts that polled it and left it running.
    pub(super) polls: u32,
}

impl Pipeline {
    /// Polls a running job until it ends, or leaves that to a later attempt. `work` is given if this attempt
    /// has started the job.
    pub(super) async fn poll_job(
        &self,
        turn: JobTurn<'_>,
        running: RunningJob<'_>,
        work: Option<JobWork<'_>>,
    ) -> Result<(), PipelineError> {
        let RunningJob { job, sandbox, until, polls } = running;
        let (sandy, name) = (&self.sandboxes.sandy, &self.sandboxes.job);
        // A job that has been running for long is unlikely to end within this attempt, so one poll is enough.
        let linger = if polls == 0 { self.sandboxes.linger } else { Duration::ZERO };
        let now = bench_clock::now();
        let left = turn.claimed.deadline.0.since(now).saturating_sub(self.config.reserve);
        let leave_at = now.plus(linger.min(left));
        let mut wait = FIRST_WAIT;
        loop {
            match job::look(sandy, sandbox, name).await {
                Err(error) => return self.handle_job_failure(turn, job, &error).await,
                Ok(status) => {
                    if let JobStatus::Over(end) = status.once_started() {
                        return self.harvest_job(turn, running, work, end).await;
                    }
                }
            }
            if !self.runs.is_open(turn.claimed).await? {
                self.end_sandbox(sandbox).await;
                return self.give_back(turn.claimed).await;
            }
            let now = bench_clock::now();
            if now > until {
                // The job has prevented its own time limit from ending it.
                return match job::stop(sandy, sandbox, name).await {
                    Ok(()) => self.harvest_job(turn, running, work, JobEnd::TimedOut).await,
                    Err(error) => self.handle_job_failure(turn, job, &error).await,
                };
            }
            if now.plus(wait) > leave_at || (wait > FIRST_WAIT && self.sandboxes.is_place_wanted()) {
                break;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
        let polls = polls.saturating_add(1);
        let state = JobState::Running { sandbox: sandbox.to_owned(), until, polls };
        if !self.save_job(turn, &job.with_state(state)).await? {
            return Ok(());
        }
        self.continue_job_later(turn, poll_wait(polls)).await
    }

    /// Leaves the rest to a later attempt. Resets the counts of failures and waits, since this attempt made progress.
    pub(super) async fn continue_job_later(
        &self,
        turn: JobTurn<'_>,
        wait: Duration,
    ) -> Result<(), PipelineError> {
        let history =
            AttemptHistory { failures: 0, waiting_since: None, lost: 0, ..turn.claimed.record.history };
        self.put_off(turn.claimed, wait, history).await
    }

    /// Fetches the job's output, stores it, ends the sandbox, and reads the output.
    async fn harvest_job(
        &self,
        turn: JobTurn<'_>,
        running: RunningJob<'_>,
        work: Option<JobWork<'_>>,
        end: JobEnd,
    ) -> Result<(), PipelineError> {
        let RunningJob { job, sandbox, .. } = running;
        let work = match work {
            Some(work) => Some(work),
            None => self.prepare_job(turn, job).await?,
        };
        let Some(work) = work else { return Ok(()) };
        let host = &self.sandboxes;
        let mut report = match job::harvest(&host.sandy, sandbox, &host.job, &work.spec, end).await {
            Ok(report) => report,
            Err(error) => return self.handle_job_failure(turn, job, &error).await,
        };
        metrics::count(metrics::JOBS_DONE, 1.0);
        turn.claimed.run.keys.redact_report(&mut report);
        let execution = Execution { round: job.round, report };
        let body = SampleBody { execution: Some(execution.clone()), ..work.body };
        let stored = self.store(turn.claimed, &body, Spending::default()).await?;
        self.end_sandbox(sandbox).await;
        self.read_execution(turn, &JobWork { body, ..work }, job, &execution, stored).await
    }
}
