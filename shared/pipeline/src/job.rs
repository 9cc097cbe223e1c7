//! Stage `sandbox`: runs a stored answer in a sandbox, and grades it by the job's output.
//!
//! A job is started, polled until it ends, harvested and read, each in its own attempt if it takes long. Its
//! state ([`JobState`]) is saved before each side effect, so that a turn that was killed is repeated from
//! there. Every side effect is idempotent in the sandbox:
//!
//! 1. `creating` is saved. A sandbox is requested, entered into the ledger, and saved as `starting`. If the
//!    process is killed in between, one sandbox is lost to us: a host takes no labels, and ends it by its own
//!    rules.
//! 2. The job's files are copied there and its script is started; both can safely be repeated. `running` is
//!    saved.
//! 3. The job is polled, often at first, then in separate turns after 1, 2, 4 … 60 seconds.
//! 4. Its output is stored beside the answer before anything else is done. Its sandbox is ended, the result
//!    read, and the verdict committed.
//!
//! A lost sandbox is replaced by another with the same time limit, as often as the benchmark allows. Problems
//! with sandboxes are an infrastructure-error of the sample or the end of the run, never a verdict. The
//! answer is kept, and a requeue runs it again without asking the model.

mod begin;
mod failure;
mod files;
mod poll;
mod read;

use bench_benchmarks::{JobMaterial, SandboxGrader};
use bench_domain::{Code, Job, JobSpec, JobState, SampleBody, SampleRef, Stage};
use bench_items::Item;
use bench_state::{StateError, Turn};

use self::poll::RunningJob;
use crate::Pipeline;
use crate::commit::StoredBody;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

/// A claimed sample with its turn, as of the claim.
#[derive(Clone, Copy)]
struct JobTurn<'a> {
    claimed: &'a ClaimedSample,
    handed_over: &'a Turn,
}

/// An answer to run, and how to grade it.
struct JobWork<'a> {
    grader: &'static dyn SandboxGrader,
    item: &'a Item,
    /// Body with the answer.
    body: SampleBody,
    spec: JobSpec,
}

impl Pipeline {
    /// Performs the next step of the sample's job. `stored` is a body that an earlier attempt stored without
    /// committing it.
    pub(crate) async fn sandbox_job(
        &self,
        claimed: &ClaimedSample,
        turn: &Turn,
        stored: Option<(SampleBody, StoredBody)>,
    ) -> Result<(), PipelineError> {
        let job = saved_job(turn)?.unwrap_or_else(|| new_round(1));
        let turn = JobTurn { claimed, handed_over: turn };
        if let Some((body, stored)) = stored
            && let Some(execution) = &body.execution
            && execution.round == job.round
        {
            if let Some(sandbox) = job.state.sandbox() {
                self.end_sandbox(sandbox).await;
            }
            let Some(work) = self.prepare_job(turn, &job).await? else { return Ok(()) };
            let execution = execution.clone();
            return self.read_execution(turn, &JobWork { body, ..work }, &job, &execution, stored).await;
        }
        match &job.state {
            JobState::Creating => self.create_sandbox(turn, &job).await,
            JobState::Starting { sandbox } => self.start_job(turn, &job, sandbox).await,
            JobState::Running { sandbox, until, polls } => {
                let running = RunningJob { job: &job, sandbox, until: *until, polls: *polls };
                self.poll_job(turn, running, None).await
            }
        }
    }

    /// Builds the work to run. If that isn't possible, ends the sample and returns `None`.
    async fn prepare_job<'a>(
        &self,
        turn: JobTurn<'a>,
        job: &Job,
    ) -> Result<Option<JobWork<'a>>, PipelineError> {
        let benchmark = &turn.claimed.benchmark;
        let Some(grader) = benchmark.benchmark.sandbox() else {
            return self
                .end_job_without_verdict(turn, Code::InternalError, "this benchmark runs no answers")
                .await
                .map(|()| None);
        };
        let stored = &turn.handed_over.answer.body;
        let found = self.blobs.get_body(&turn.claimed.sample, stored.attempt, Some(&stored.sha256)).await?;
        let Some((body, _)) = found else {
            return self
                .end_job_without_verdict(turn, Code::StoredDataMissing, "the stored answer is gone")
                .await
                .map(|()| None);
        };
        let item = turn.claimed.item(&self.blobs).await?;
        let templates = benchmark.templates(&self.blobs).await?;
        let material =
            JobMaterial { templates, attachments: &benchmark.plan.dataset.attachments, nonce: &job.nonce };
        match grader.job(item, &body, &material) {
            Ok(spec) => Ok(Some(JobWork { grader, item, body, spec })),
            Err(problem) => self
                .end_job_without_verdict(turn, Code::InvalidItem, &problem.to_string())
                .await
                .map(|()| None),
        }
    }

    /// Ends the sandbox of a sample whose run is over or deleted: its job's or its episode's. Another attempt may still
    /// hold the sample.
    pub(crate) async fn end_job_of(&self, sample: &SampleRef) -> Result<(), PipelineError> {
        let Some(record) = self.state.sample(sample).await? else { return Ok(()) };
        if record.finished.is_some() {
            return Ok(());
        }
        if let Some(turn) = &record.turn {
            self.end_episode_of(turn).await?;
        }
        let job = record.turn.as_ref().map(saved_job).transpose()?.flatten();
        if let Some(sandbox) = job.as_ref().and_then(|job| job.state.sandbox()) {
            self.end_sandbox(sandbox).await;
        }
        Ok(())
    }

    /// Ends a sandbox and removes it from the ledger. If that fails it stays there, and reconciliation ends
    /// it after its lease.
    pub(crate) async fn end_sandbox(&self, sandbox: &str) {
        if let Err(error) = self.sandboxes.sandy.terminate(sandbox).await {
            tracing::warn!(%error, "A sandbox could not be ended now: {error}");
            return;
        }
        if let Err(error) = self.state.forget_sandbox(sandbox).await {
            tracing::warn!(%error, "A sandbox that is gone stays in the ledger: {error}");
        }
    }
}

/// Reads the saved job. `None` before the first one.
fn saved_job(turn: &Turn) -> Result<Option<Job>, StateError> {
    if turn.stage == Stage::Sandbox { turn.checkpoint() } else { Ok(None) }
}

/// Returns a new round with a fresh nonce.
fn new_round(round: u32) -> Job {
    let nonce: [u8; 32] = rand::random();
    Job { round, nonce: hex::encode(nonce), state: JobState::Creating }
}
