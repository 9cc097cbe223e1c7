//! Creates a sandbox for an answer and starts its job.

use std::time::Duration;

use bench_domain::{Job, JobState, Stage};
use bench_sandy::NewSandbox;
use bench_sandy::job::{self, JobError, UploadProgress};
use bench_state::LedgerEntry;

use super::poll::RunningJob;
use super::{JobTurn, JobWork, saved_job};
use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

/// Time for which a sandbox stays in the ledger beyond its job's time limit, to cover file transfers, late
/// turns and fetching the result.
const LEASE_MARGIN: Duration = Duration::from_secs(2 * 3_600);
/// Waits before sending more of a large file, and before checking again whether the sandbox has downloaded
/// its files.
const SEND_AGAIN: Duration = Duration::ZERO;
const DOWNLOAD_AGAIN: Duration = Duration::from_secs(10);

impl Pipeline {
    /// Requests a sandbox from the host.
    pub(super) async fn create_sandbox(
        &self,
        turn: JobTurn<'_>,
        creating: &Job,
    ) -> Result<(), PipelineError> {
        let Some(work) = self.prepare_job(turn, creating).await? else { return Ok(()) };
        if let Err(error) = job::check(&work.spec) {
            return self.handle_job_failure(turn, creating, &error).await;
        }
        if !self.save_job(turn, creating).await? {
            return Ok(());
        }
        let sandbox = match self.sandboxes.sandy.create(&NewSandbox::default()).await {
            Ok(sandbox) => sandbox,
            Err(error) => return self.handle_job_failure(turn, creating, &JobError::from(error)).await,
        };
        let entry = LedgerEntry {
            sandbox: sandbox.clone(),
            host: self.sandboxes.name.clone(),
            sample: turn.claimed.sample.clone(),
            until: bench_clock::now().plus(work.spec.time_limit + LEASE_MARGIN),
            has_engine: false,
        };
        let starting = creating.with_state(JobState::Starting { sandbox: sandbox.clone() });
        let noted = self.state.note_sandbox(&entry).await;
        let saved = match noted {
            Ok(()) => self.save_job(turn, &starting).await,
            Err(error) => Err(error.into()),
        };
        match saved {
            Ok(true) => self.start_prepared(turn, &starting, &sandbox, work).await,
            // Without the saved record, no other attempt knows of this sandbox.
            other => {
                self.end_sandbox(&sandbox).await;
                other.map(drop)
            }
        }
    }

    /// Copies the job's files into its sandbox and starts it.
    pub(super) async fn start_job(
        &self,
        turn: JobTurn<'_>,
        starting: &Job,
        sandbox: &str,
    ) -> Result<(), PipelineError> {
        match self.prepare_job(turn, starting).await? {
            Some(work) => self.start_prepared(turn, starting, sandbox, work).await,
            None => Ok(()),
        }
    }

    async fn start_prepared(
        &self,
        turn: JobTurn<'_>,
        starting: &Job,
        sandbox: &str,
        work: JobWork<'_>,
    ) -> Result<(), PipelineError> {
        if !self.runs.is_open(turn.claimed).await? {
            self.end_sandbox(sandbox).await;
            return self.give_back(turn.claimed).await;
        }
        match self.upload_and_start(sandbox, &work).await {
            Err(error) => self.handle_job_failure(turn, starting, &error).await,
            Ok(UploadProgress::Ready) => {
                let until = bench_clock::now().plus(job::overdue(work.spec.time_limit));
                let state = JobState::Running { sandbox: sandbox.to_owned(), until, polls: 0 };
                let job = starting.with_state(state);
                if !self.save_job(turn, &job).await? {
                    return Ok(());
                }
                self.poll_job(turn, RunningJob { job: &job, sandbox, until, polls: 0 }, Some(work)).await
            }
            Ok(UploadProgress::Underway { is_downloading }) => {
                let wait = if is_downloading { DOWNLOAD_AGAIN } else { SEND_AGAIN };
                self.continue_job_later(turn, wait).await
            }
        }
    }

    async fn upload_and_start(&self, sandbox: &str, work: &JobWork<'_>) -> Result<UploadProgress, JobError> {
        let (sandy, name) = (&self.sandboxes.sandy, &self.sandboxes.job);
        self.share_files(&work.spec).await?;
        job::probe(sandy, sandbox, &work.spec).await?;
        let source = self.stored_files();
        let uploaded = job::upload(sandy, sandbox, name, &work.spec, &source).await?;
        if matches!(uploaded, UploadProgress::Ready) {
            job::start(sandy, sandbox, name, &work.spec).await?;
        }
        Ok(uploaded)
    }

    /// Saves the state of the job. Returns `false` if another attempt holds the sample now.
    pub(super) async fn save_job(&self, turn: JobTurn<'_>, job: &Job) -> Result<bool, PipelineError> {
        let ClaimedSample { sample, attempt, .. } = turn.claimed;
        if saved_job(turn.handed_over)?.as_ref() == Some(job) {
            return Ok(true);
        }
        let saved = self.state.save_checkpoint(sample, *attempt, Stage::Sandbox, job, false).await?;
        if !saved {
            tracing::info!(run.id = %sample.run, "Another attempt took over sample {sample}");
        }
        Ok(saved)
    }
}
