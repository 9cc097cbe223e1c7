//! From an answer to a running job.

use std::time::Duration;

use crate::{AskError, InHand};
use bench_domain::{Job, JobSpec, JobState, Timestamp};
use bench_sandy::job::{self, JobError, Uploaded};
use bench_sandy::{ExecRequest, NewSandbox};
use bench_state::LedgerEntry;

use super::Work;
use crate::Turns;

/// How long a sandbox stays in the ledger beyond its job's time limit: for files on their way, turns that come late,
/// and a result that is fetched.
const LEASE_MARGIN: Duration = Duration::from_secs(2 * 3_600);
/// How long finding out what a sandbox has may take: Python packages are slow to import the first time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(120);
/// Characters of what a sandbox lacks.
const LACKING_CHARS_MAX: usize = 300;
/// When more of large files is sent, and when it is asked again whether the sandbox has downloaded them.
const SEND_AGAIN: Duration = Duration::ZERO;
const DOWNLOAD_AGAIN: Duration = Duration::from_secs(10);

impl Turns {
    /// Asks for a sandbox.
    pub(crate) async fn begin(&self, hand: &InHand<'_>, creating: &Job) -> Result<(), AskError> {
        let Some(work) = self.work(hand, creating).await? else { return Ok(()) };
        if let Err(error) = job::check(&work.spec) {
            return self.job_failed(hand, creating, &error).await;
        }
        if !self.save(hand, creating).await? {
            return Ok(());
        }
        let sandbox = match self.host.sandy.create(&NewSandbox::default()).await {
            Ok(sandbox) => sandbox,
            Err(error) => return self.job_failed(hand, creating, &JobError::from(error)).await,
        };
        let entry = LedgerEntry {
            sandbox: sandbox.clone(),
            host: self.host.name.clone(),
            sample: hand.sample.clone(),
            until: Timestamp::now().plus(work.spec.time_limit + LEASE_MARGIN),
        };
        let starting = creating.at(JobState::Starting { sandbox: sandbox.clone() });
        let noted = self.desk.state.note_sandbox(&entry).await;
        let saved = match noted {
            Ok(()) => self.save(hand, &starting).await,
            Err(error) => Err(error.into()),
        };
        match saved {
            Ok(true) => self.start_with(hand, &starting, &sandbox, work).await,
            // Nobody else knows of it.
            other => {
                self.end_sandbox(&sandbox).await;
                other.map(drop)
            }
        }
    }

    /// Puts the job's files into its sandbox and starts it.
    pub(crate) async fn start(
        &self,
        hand: &InHand<'_>,
        starting: &Job,
        sandbox: &str,
    ) -> Result<(), AskError> {
        match self.work(hand, starting).await? {
            Some(work) => self.start_with(hand, starting, sandbox, work).await,
            None => Ok(()),
        }
    }

    async fn start_with(
        &self,
        hand: &InHand<'_>,
        starting: &Job,
        sandbox: &str,
        work: Work<'_>,
    ) -> Result<(), AskError> {
        if !self.desk.is_open(hand).await? {
            self.end_sandbox(sandbox).await;
            return self.desk.give_back(hand).await;
        }
        match self.upload_and_start(sandbox, &work).await {
            Err(error) => self.job_failed(hand, starting, &error).await,
            Ok(Uploaded::Ready) => {
                let until = Timestamp::now().plus(job::overdue(work.spec.time_limit));
                let state = JobState::Running { sandbox: sandbox.to_owned(), until, polls: 0 };
                let running = starting.at(state);
                match self.save(hand, &running).await? {
                    true => self.look(hand, &running, Some(work)).await,
                    false => Ok(()),
                }
            }
            Ok(Uploaded::Underway { is_downloading }) => {
                let wait = if is_downloading { DOWNLOAD_AGAIN } else { SEND_AGAIN };
                self.go_on_later(hand, wait).await
            }
        }
    }

    async fn upload_and_start(&self, sandbox: &str, work: &Work<'_>) -> Result<Uploaded, JobError> {
        let (sandy, name) = (&self.host.sandy, &self.host.job);
        self.share_files(&work.spec).await?;
        if let Some(lacking) = self.lacking(sandbox, &work.spec).await? {
            return Err(JobError::Spec(lacking));
        }
        let source = self.source();
        let uploaded = job::upload(sandy, sandbox, name, &work.spec, &source).await?;
        if matches!(uploaded, Uploaded::Ready) {
            job::start(sandy, sandbox, name, &work.spec).await?;
        }
        Ok(uploaded)
    }

    /// What the sandbox lacks for the job, in a sentence. Asked before the answer is there: later, whatever is missing may
    /// be the answer's own doing.
    async fn lacking(&self, sandbox: &str, spec: &JobSpec) -> Result<Option<String>, JobError> {
        let Some(probe) = &spec.probe else { return Ok(None) };
        let command = ExecRequest::new(probe.as_str()).repeatable().within(PROBE_TIMEOUT);
        let output = self.host.sandy.exec(sandbox, &command).await?;
        if output.exit_code == 0 {
            return Ok(None);
        }
        let said = output.stdout.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
        let said: String = said.take(LACKING_CHARS_MAX).collect();
        Ok(Some(if said.is_empty() { "the sandbox has no python3 that works".to_owned() } else { said }))
    }

    /// Saves where the job stands. `false` when another attempt has the sample now.
    pub(crate) async fn save(&self, hand: &InHand<'_>, job: &Job) -> Result<bool, AskError> {
        let is_same = hand.claimed.record.turn.as_ref().and_then(|turn| turn.job.as_ref()) == Some(job);
        if is_same {
            return Ok(true);
        }
        let saved = self.desk.state.save_job(hand.sample, hand.claimed.attempt, job).await?;
        if !saved {
            tracing::info!(run.id = %hand.sample.run, "Sample {} was taken over", hand.sample);
        }
        Ok(saved)
    }
}
