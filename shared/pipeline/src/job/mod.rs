//! A sandbox's turns: an answer is run, and what comes of it says what the answer is worth.
//!
//! A job is begun, looked at until it is over, harvested and read, each in a turn of its own if it takes long. Where it
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
mod look;
mod read;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use crate::{AskError, BenchmarkContext, InHand, StoredBody};
use bench_benchmarks::{JobMaterial, SandboxGrader};
use bench_domain::{Code, Job, JobSpec, JobState, SampleBody, SampleRef};
use bench_items::Item;
use bench_sandy::job::JobName;
use bench_sandy::{Sandy, SandyConfig};

use crate::Turns;

/// Who makes sandboxes for this function.
#[derive(Debug)]
pub struct SandboxHost {
    pub(crate) sandy: Sandy,
    /// Each sandbox has one job.
    pub(crate) job: JobName,
    /// Which one it is, as the ledger names it.
    pub(crate) name: String,
    /// How long a turn stays with a job that was just started, before it leaves the rest to later turns.
    pub(crate) linger: Duration,
    /// A folder that all sandboxes of this host see, where large files are found by their SHA-256; `None` when the host
    /// is elsewhere.
    pub(crate) files: Option<PathBuf>,
}

impl SandboxHost {
    /// The service, wherever it is. A turn stays with a job for two seconds: on Lambda waiting is paid for.
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

/// What is to be run, and how it is graded.
pub(crate) struct Work<'a> {
    pub(crate) benchmark: &'a BenchmarkContext,
    pub(crate) grader: &'static dyn SandboxGrader,
    pub(crate) item: Item,
    /// The answer.
    pub(crate) body: SampleBody,
    pub(crate) spec: JobSpec,
}

impl Turns {
    /// The next step of the sample's job. `stored` is what an earlier attempt stored and did not commit.
    pub(crate) async fn job(
        &self,
        hand: &InHand<'_>,
        stored: Option<(SampleBody, StoredBody)>,
    ) -> Result<(), AskError> {
        let Some(turn) = &hand.claimed.record.turn else { return Ok(()) };
        let job = turn.job.clone().unwrap_or_else(|| new_round(1));
        if let Some((body, stored)) = stored
            && body.execution.as_ref().is_some_and(|execution| execution.round == job.round)
        {
            if let Some(sandbox) = job.state.sandbox() {
                self.end_sandbox(sandbox).await;
            }
            let Some(work) = self.work(hand, &job).await? else { return Ok(()) };
            return self.read_execution(hand, &Work { body, ..work }, &job, stored).await;
        }
        match &job.state {
            JobState::Creating => self.begin(hand, &job).await,
            JobState::Starting { sandbox } => self.start(hand, &job, sandbox).await,
            JobState::Running { .. } => self.look(hand, &job, None).await,
        }
    }

    /// What is to be run; `None` when that cannot be said, which ends the sample.
    async fn work<'a>(&self, hand: &'a InHand<'_>, job: &Job) -> Result<Option<Work<'a>>, AskError> {
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(None) };
        let Some(turn) = &hand.claimed.record.turn else { return Ok(None) };
        let Some(grader) = benchmark.benchmark.sandbox() else {
            return self
                .end_job_without(hand, Code::InternalError, "this benchmark runs no answers")
                .await
                .map(|()| None);
        };
        let stored = &turn.answer.body;
        let found = self.desk.blobs.get_body(hand.sample, stored.attempt, Some(&stored.sha256)).await?;
        let Some((body, _)) = found else {
            return self
                .end_job_without(hand, Code::StoredDataMissing, "the stored answer is gone")
                .await
                .map(|()| None);
        };
        let item = benchmark.item(&self.desk.blobs, hand).await?;
        let templates = benchmark.templates(&self.desk.blobs).await?;
        let material =
            JobMaterial { templates, attachments: &benchmark.plan.dataset.attachments, nonce: &job.nonce };
        match grader.job(&item, &body, &material) {
            Ok(spec) => Ok(Some(Work { benchmark, grader, item, body, spec })),
            Err(problem) => {
                self.end_job_without(hand, Code::InvalidItem, &problem.to_string()).await.map(|()| None)
            }
        }
    }

    /// Ends the sandbox of a sample whose run is over.
    pub(crate) async fn end_job(&self, sample: &SampleRef) -> Result<(), AskError> {
        let Some(record) = self.desk.state.sample(sample).await? else { return Ok(()) };
        if record.finished.is_some() {
            return Ok(());
        }
        let job = record.turn.as_ref().and_then(|turn| turn.job.as_ref());
        if let Some(sandbox) = job.and_then(|job| job.state.sandbox()) {
            self.end_sandbox(sandbox).await;
        }
        Ok(())
    }

    /// Ends a sandbox and takes it out of the ledger. Where that fails it stays there, and reconciliation ends it when
    /// its lease is over.
    pub(crate) async fn end_sandbox(&self, sandbox: &str) {
        if let Err(error) = self.host.sandy.terminate(sandbox).await {
            tracing::warn!(%error, "A sandbox could not be ended now: {error}");
            return;
        }
        if let Err(error) = self.desk.state.forget_sandbox(sandbox).await {
            tracing::warn!(%error, "A sandbox that is gone stays in the ledger: {error}");
        }
    }
}

/// A round that is to begin, with a nonce of its own.
pub(crate) fn new_round(round: u32) -> Job {
    let nonce: [u8; 32] = rand::random();
    Job { round, nonce: hex::encode(nonce), state: JobState::Creating }
}
