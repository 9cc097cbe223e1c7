//! Durable operations as calls that return at once if they are over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bench_domain::job::poll_wait;
use bench_domain::{EpisodeState, FileContent, OpenOperation};
use bench_environments::{EngineFacts, EngineHost, Environment, EnvironmentError, Operation, Progress};
use bench_sandy::job::{NoFiles, UploadProgress};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::engine::FACTS;
use crate::stop::{Phase, Stop};

/// Maximum time that one call waits for the end of an operation.
const CALL_WAIT_MAX: Duration = Duration::from_secs(20);
/// Number of tries to remove an environment, and the wait after each of them.
const REMOVALS_MAX: u32 = 10;
const REMOVAL_WAIT: Duration = Duration::from_secs(15);

/// Execution of an episode's program in one turn.
pub(crate) struct Program<'a> {
    pub(crate) host: EngineHost<'a>,
    pub(crate) state: &'a mut EpisodeState,
    /// Time at which the turn stops waiting for operations.
    pub(crate) leave_at: Instant,
    /// Number of queues whose messages find no place.
    pub(crate) places_wanted: &'a AtomicUsize,
}

impl Program<'_> {
    /// Runs a durable operation, or returns its result if it is over.
    pub(crate) async fn run<O: Operation>(
        &mut self,
        environment: &Environment,
        name: &str,
        operation: &O,
        phase: Phase,
    ) -> Result<O::Output, Stop> {
        // Boxed, because calls of operations are nested deeply, and each level would hold the states of all below it: threads of
        // workers have little stack.
        Box::pin(self.advance(environment, name, operation)).await.map_err(|error| match error {
            Unfinished::Wait(wait) => Stop::Wait(wait),
            Unfinished::Failed(error) => Stop::of(error, phase),
        })
    }

    /// Does the same, and keeps a small value of the result in the checkpoint, so that later turns make no call.
    pub(crate) async fn run_once<O: Operation, T: Serialize + DeserializeOwned>(
        &mut self,
        environment: &Environment,
        name: &str,
        operation: &O,
        phase: Phase,
        kept: impl FnOnce(O::Output) -> T,
    ) -> Result<T, Stop> {
        let key = format!("{}/{name}", environment.name);
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let value = kept(self.run(environment, name, operation, phase).await?);
        self.keep(key, &value);
        Ok(value)
    }

    /// Runs a durable operation whose failures callers tell apart, or returns its result if it is over.
    pub(crate) async fn try_run<O: Operation>(
        &mut self,
        environment: &Environment,
        name: &str,
        operation: &O,
    ) -> Result<Result<O::Output, EnvironmentError>, Stop> {
        match Box::pin(self.advance(environment, name, operation)).await {
            Ok(done) => Ok(Ok(done)),
            Err(Unfinished::Failed(error)) => Ok(Err(error)),
            Err(Unfinished::Wait(wait)) => Err(Stop::Wait(wait)),
        }
    }

    /// Returns the facts about the engine.
    pub(crate) async fn facts(&mut self) -> Result<EngineFacts, Stop> {
        if let Some(facts) = self.known(FACTS) {
            return Ok(facts);
        }
        let facts = Box::pin(self.host.probe()).await.map_err(Stop::Failure)?;
        self.keep(FACTS.to_owned(), &facts);
        Ok(facts)
    }

    /// Sends the task's files to the sandbox.
    pub(crate) async fn upload(
        &mut self,
        content_hash: &str,
        bundle: impl FnOnce() -> Result<Vec<u8>, bench_environments::BundleError>,
    ) -> Result<(), Stop> {
        if self.known::<bool>("uploaded").is_some() {
            return Ok(());
        }
        let bundle = bundle().map_err(|error| Stop::refused(error.to_string()))?;
        loop {
            let content = FileContent::Bytes(bundle.clone());
            match Box::pin(self.host.upload(content_hash, content, &NoFiles)).await.map_err(Stop::Failure)? {
                UploadProgress::Ready => break,
                UploadProgress::Underway { .. } if self.lingers() => {}
                UploadProgress::Underway { .. } => return Err(Stop::Wait(Duration::ZERO)),
            }
        }
        self.keep("uploaded".to_owned(), &true);
        Ok(())
    }

    /// Connects a container to its network or disconnects it, once in this order of calls.
    pub(crate) async fn switch_network(
        &mut self,
        environment: &Environment,
        name: &str,
        service: &str,
        container: &str,
        is_connected: bool,
    ) -> Result<(), Stop> {
        let key = format!("{}/{name}", environment.name);
        if self.known::<bool>(&key).is_some() {
            return Ok(());
        }
        let switched =
            Box::pin(self.host.switch_network(environment, service, container, is_connected)).await;
        switched.map_err(|error| Stop::of(error, Phase::Agent))?;
        self.keep(key, &true);
        Ok(())
    }

    /// Removes an environment of this episode before its end, once.
    pub(crate) async fn remove(&mut self, environment: &Environment) -> Result<(), Stop> {
        let key = format!("{}/removed", environment.name);
        if self.known::<bool>(&key).is_some() {
            return Ok(());
        }
        match Box::pin(self.host.remove(&environment.name)).await {
            Ok(_) => {}
            Err(error @ EnvironmentError::Engine { .. }) => {
                // An agent may have made so many files that the engine is busy with their removal for minutes.
                let tries_key = format!("{}/removals", environment.name);
                let tries = self.known::<u32>(&tries_key).unwrap_or_default() + 1;
                if tries >= REMOVALS_MAX {
                    return Err(Stop::Failure(error));
                }
                self.keep(tries_key, &tries);
                return Err(Stop::Wait(REMOVAL_WAIT));
            }
            Err(error) => return Err(Stop::Failure(error)),
        }
        self.keep(key, &true);
        Ok(())
    }

    /// Reads a value of the checkpoint.
    pub(crate) fn known<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.state.done.get(key).and_then(|value| serde_json::from_value(value.clone()).ok())
    }

    /// Writes a value into the checkpoint.
    pub(crate) fn keep<T: Serialize>(&mut self, key: String, value: &T) {
        // A value that JSON can't represent is computed again in the next turn.
        if let Ok(value) = serde_json::to_value(value) {
            self.state.done.insert(key, value);
        }
    }

    async fn advance<O: Operation>(
        &mut self,
        environment: &Environment,
        name: &str,
        operation: &O,
    ) -> Result<O::Output, Unfinished> {
        let parsed = name.parse().map_err(|error: bench_environments::InvalidName| {
            Unfinished::Failed(EnvironmentError::Invalid(error.to_string()))
        })?;
        loop {
            let wait = match self.lingers() {
                true => self.leave_at.saturating_duration_since(Instant::now()).min(CALL_WAIT_MAX),
                false => Duration::ZERO,
            };
            let progress = self.host.advance(environment, &parsed, operation, wait).await;
            match progress.map_err(Unfinished::Failed)? {
                Progress::Done(done) => {
                    self.state.open = None;
                    return Ok(done);
                }
                _ if self.lingers() => {}
                Progress::Uploading => return Err(Unfinished::Wait(Duration::ZERO)),
                Progress::Running => {
                    let polls = self.note_open(environment, name);
                    return Err(Unfinished::Wait(poll_wait(polls)));
                }
            }
        }
    }

    /// Returns true if the turn waits for what is running.
    fn lingers(&self) -> bool {
        Instant::now() < self.leave_at && self.places_wanted.load(Ordering::Relaxed) == 0
    }

    /// Notes that a turn left an operation running. Returns the number of such turns.
    fn note_open(&mut self, environment: &Environment, name: &str) -> u32 {
        let environment = environment.name.as_str().to_owned();
        let same = self.state.open.take().filter(|open| open.environment == environment && open.name == name);
        let polls = same.map_or(0, |open| open.polls).saturating_add(1);
        self.state.open = Some(OpenOperation { environment, name: name.to_owned(), polls });
        polls
    }
}

/// Reason for which an operation has no result yet.
enum Unfinished {
    Wait(Duration),
    Failed(EnvironmentError),
}
