//! Jobs of an episode as calls that return at once if they are over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bench_domain::job::poll_wait;
use bench_domain::{EpisodeState, FileContent, JobEnd, JobReport, JobSpec, OpenOperation};
use bench_environments::{EnvironmentError, Limit};
use bench_sandy::job::{self, JobError, JobName, JobStatus, NoFiles, RunStatus, UploadProgress};
use bench_sandy::{Sandy, SandyError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::MARK;
use crate::stop::{Stop, WORKSPACE_LOST};

/// Maximum size of a job that is run by one call, in bytes of its script and files.
const SMALL_BYTES_MAX: usize = 48 << 10;
/// Maximum time that one call waits for the end of a job, and the interval of polls of a large one.
const CALL_WAIT_MAX: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(150);
/// Number of turns in which the sandbox failed to run anything after the agent's commands, in the checkpoint, and their maximum.
const FAILURES: &str = "failures";
const FAILURES_MAX: u32 = 5;

/// Jobs of an episode in one turn.
pub(crate) struct Jobs<'a> {
    pub(crate) sandy: &'a Sandy,
    pub(crate) sandbox: &'a str,
    pub(crate) state: &'a mut EpisodeState,
    /// Time at which the turn stops waiting for jobs.
    pub(crate) leave_at: Instant,
    /// Number of queues whose messages find no place.
    pub(crate) places_wanted: &'a AtomicUsize,
}

impl Jobs<'_> {
    /// Runs a job once, or returns its report if it is over. `is_agents` says that the agent's commands run in it or ran before:
    /// what keeps it from running is their doing then. Otherwise an agent could avoid a bad grade by it.
    pub(crate) async fn run(
        &mut self,
        name: &str,
        spec: &JobSpec,
        is_agents: bool,
    ) -> Result<JobReport, Stop> {
        let job: JobName = name
            .parse()
            .map_err(|error: JobError| Stop::Failure(EnvironmentError::Invalid(error.to_string())))?;
        loop {
            match Box::pin(self.advance(&job, spec)).await {
                Ok(Some(report)) if report.end == JobEnd::OverLimit => {
                    return Err(over_limit(
                        "its programs exceeded its limits of memory, processes or disk",
                        is_agents,
                    ));
                }
                Ok(Some(report)) => {
                    self.state.open = None;
                    self.state.done.remove(FAILURES);
                    return Ok(report);
                }
                Ok(None) if self.lingers() => {}
                Ok(None) => return Err(Stop::Wait(poll_wait(self.note_open(name)))),
                Err(JobError::Sandy(SandyError::OverLimit(why))) => return Err(over_limit(&why, is_agents)),
                Err(error) => return Err(self.failed(error, is_agents)),
            }
        }
    }

    /// Reads a value of the checkpoint.
    pub(crate) fn known<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.state.done.get(key).and_then(|value| serde_json::from_value(value.clone()).ok())
    }

    /// Writes a value into the checkpoint.
    pub(crate) fn keep<T: Serialize>(&mut self, key: &str, value: &T) {
        // A value that JSON can't represent is computed again in the next turn.
        if let Ok(value) = serde_json::to_value(value) {
            self.state.done.insert(key.to_owned(), value);
        }
    }

    /// Starts the job unless it was started, waits for a while, and returns its report once it is over.
    async fn advance(&self, name: &JobName, spec: &JobSpec) -> Result<Option<JobReport>, JobError> {
        let (sandy, sandbox) = (self.sandy, self.sandbox);
        if is_small(spec) {
            let wait = match self.lingers() {
                true => self.leave_at.saturating_duration_since(Instant::now()).min(CALL_WAIT_MAX),
                false => Duration::ZERO,
            };
            return Ok(match job::run(sandy, sandbox, name, spec, wait).await? {
                RunStatus::Over(report) => Some(report),
                RunStatus::Running => None,
            });
        }
        match job::look(sandy, sandbox, name).await? {
            JobStatus::NotStarted => {
                if matches!(job::upload(sandy, sandbox, name, spec, &NoFiles).await?, UploadProgress::Ready) {
                    job::start(sandy, sandbox, name, spec).await?;
                }
                Ok(None)
            }
            JobStatus::Running { .. } => {
                tokio::time::sleep(POLL_INTERVAL).await;
                Ok(None)
            }
            JobStatus::Over(end) => job::harvest(sandy, sandbox, name, spec, end).await.map(Some),
        }
    }

    /// Decides what a failed call means: another try, or the end of the agent's work.
    fn failed(&mut self, error: JobError, is_agents: bool) -> Stop {
        let is_refused =
            matches!(error, JobError::Failed { .. } | JobError::UnexpectedAnswer { .. } | JobError::NoPython);
        if !(is_agents && is_refused) {
            return Stop::Failure(error.into());
        }
        let failures = self.known::<u32>(FAILURES).unwrap_or(0).saturating_add(1);
        self.keep(FAILURES, &failures);
        match failures >= FAILURES_MAX {
            true => Stop::exception(WORKSPACE_LOST, format!("it runs no commands any more: {error}")),
            // Another try may find room, or processes.
            false => {
                Stop::Failure(EnvironmentError::Host(JobError::UnexpectedAnswer { step: "run a command" }))
            }
        }
    }

    fn lingers(&self) -> bool {
        Instant::now() < self.leave_at && self.places_wanted.load(Ordering::Relaxed) == 0
    }

    /// Notes that a turn left a job running. Returns the number of such turns.
    fn note_open(&mut self, name: &str) -> u32 {
        let same = self.state.open.take().filter(|open| open.environment == MARK && open.name == name);
        let polls = same.map_or(0, |open| open.polls).saturating_add(1);
        self.state.open = Some(OpenOperation { environment: MARK.to_owned(), name: name.to_owned(), polls });
        polls
    }
}

fn over_limit(why: &str, is_agents: bool) -> Stop {
    match is_agents {
        true => Stop::exception(WORKSPACE_LOST, why),
        false => Stop::Failure(EnvironmentError::LimitExceeded {
            limit: Limit::Sandbox,
            why: why.to_owned(),
            log: String::new(),
        }),
    }
}

fn is_small(spec: &JobSpec) -> bool {
    let bytes = |content: &FileContent| match content {
        FileContent::Bytes(bytes) => bytes.len(),
        FileContent::Stored(_) => SMALL_BYTES_MAX,
    };
    let files = spec.files.iter().map(|file| file.path.len() + bytes(&file.content));
    files.sum::<usize>() + spec.script.len() < SMALL_BYTES_MAX
}
