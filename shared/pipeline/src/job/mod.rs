//! Stage `sandbox`: runs a stored answer in a sandbox, and reads from what it left what the answer is worth.
//!
//! A job is begun, polled until it is over, harvested and read, each in an attempt of its own if it takes long. Where it
//! stands ([`JobState`]) is saved before each side effect, so that a turn that was killed is repeated from there, and
//! what it does twice is done once in the sandbox:
//!
//! 1. `creating` is saved, a sandbox asked for, entered into the ledger, and saved as `starting`. Killed in the moment
//!    between, one sandbox is lost to us: a host takes no labels, and ends it by its own rules.
//! 2. The job's files are put there and its script is started: both may be done twice. `running` is saved.
//! 3. It is looked at, often at first, then in turns of their own after 1, 2, 4 … 60 seconds.
//! 4. What it left is stored beside the answer before anything else is done. Its sandbox is ended, the result read, the
//!    verdict committed.
//!
//! A sandbox that is lost is followed by another with the same time limit, as often as the benchmark allows. What goes
//! wrong with sandboxes is an infrastructure-error of the sample or the end of the run, never a verdict; the answer is
//! kept, and a requeue runs it again without asking the model.

mod begin;
mod files;
mod poll;
mod read;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use bench_benchmarks::{JobMaterial, SandboxGrader};
use bench_domain::{Code, Job, JobSpec, JobState, SampleBody, SampleRef, Stage};
use bench_items::Item;
use bench_sandy::job::JobName;
use bench_sandy::{Sandy, SandyConfig};
use bench_state::{StateError, Turn};

use self::poll::RunningJob;
use crate::Pipeline;
use crate::claim::ClaimedSample;
use crate::commit::StoredBody;
use crate::error::PipelineError;

/// The host that makes sandboxes.
#[derive(Debug)]
pub struct SandboxHost {
    sandy: Sandy,
    /// Each sandbox has one job.
    job: JobName,
    /// Its name in the ledger of sandboxes.
    name: String,
    /// How long an attempt stays with a job that was just started, before it leaves the rest to later ones.
    linger: Duration,
    /// A folder that all sandboxes of this host see, with large files by their SHA-256; `None` when the host is on another
    /// machine.
    files: Option<PathBuf>,
}

impl SandboxHost {
    /// The service, wherever it is. An attempt stays with a job for two seconds: on Lambda waiting is paid for.
    pub fn new(config: SandyConfig) -> Self {
        let name = config.host().unwrap_or_default();
        Self {
            sandy: Sandy::new(config),
            job: JobName::default(),
            name,
            linger: Duration::from_secs(2),
            files: None,
        }
    }

    /// The same on the machine of this process, where waiting costs nothing: with a folder that its sandboxes see.
    #[must_use]
    pub fn on_this_machine(self, files: PathBuf) -> Self {
        Self { linger: Duration::from_secs(20), files: Some(files), ..self }
    }
}

/// A claimed sample with its job, as it was when the sample was claimed.
#[derive(Clone, Copy)]
struct JobTurn<'a> {
    claimed: &'a ClaimedSample,
    handed_over: &'a Turn,
}

/// What is run, and how it is graded.
struct Work<'a> {
    grader: &'static dyn SandboxGrader,
    item: &'a Item,
    /// The answer.
    body: SampleBody,
    spec: JobSpec,
}

impl Pipeline {
    /// Makes the next step of the sample's job. `stored` is what an earlier attempt stored and did not commit.
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
            return self.read_execution(turn, &Work { body, ..work }, &job, &execution, stored).await;
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

    /// Makes what is run. Ends the sample and returns `None` if that can't be said.
    async fn prepare_job<'a>(&self, turn: JobTurn<'a>, job: &Job) -> Result<Option<Work<'a>>, PipelineError> {
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
        let item = turn.claimed.item(self).await?;
        let templates = benchmark.templates(&self.blobs).await?;
        let material =
            JobMaterial { templates, attachments: &benchmark.plan.dataset.attachments, nonce: &job.nonce };
        match grader.job(item, &body, &material) {
            Ok(spec) => Ok(Some(Work { grader, item, body, spec })),
            Err(problem) => self
                .end_job_without_verdict(turn, Code::InvalidItem, &problem.to_string())
                .await
                .map(|()| None),
        }
    }

    /// Ends the sandbox of a sample whose run is over or gone. Another attempt may still hold the sample.
    pub(crate) async fn end_job_of(&self, sample: &SampleRef) -> Result<(), PipelineError> {
        let Some(record) = self.state.sample(sample).await? else { return Ok(()) };
        if record.finished.is_some() {
            return Ok(());
        }
        let job = record.turn.as_ref().map(saved_job).transpose()?.flatten();
        if let Some(sandbox) = job.as_ref().and_then(|job| job.state.sandbox()) {
            self.end_sandbox(sandbox).await;
        }
        Ok(())
    }

    /// Ends a sandbox and takes it out of the ledger. Where that fails it stays there, and reconciliation ends it when
    /// its lease is over.
    async fn end_sandbox(&self, sandbox: &str) {
        if let Err(error) = self.sandboxes.sandy.terminate(sandbox).await {
            tracing::warn!(%error, "A sandbox could not be ended now: {error}");
            return;
        }
        if let Err(error) = self.state.forget_sandbox(sandbox).await {
            tracing::warn!(%error, "A sandbox that is gone stays in the ledger: {error}");
        }
    }
}

/// Reads where the job stands; `None` before there is one.
fn saved_job(turn: &Turn) -> Result<Option<Job>, StateError> {
    if turn.stage == Stage::Sandbox { turn.checkpoint() } else { Ok(None) }
}

/// Returns a round that is to begin, with a nonce of its own.
fn new_round(round: u32) -> Job {
    let nonce: [u8; 32] = rand::random();
    Job { round, nonce: hex::encode(nonce), state: JobState::Creating }
}
