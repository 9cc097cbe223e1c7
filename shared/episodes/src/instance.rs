//! Instances: images that come with a repository. An agent changes the repository in a container, and the change is verified in a
//! second container of the same image, each as a durable program in a sandbox of its own.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bench_domain::{Agent, EpisodeReport, EpisodeState, Verdict, VerificationReport};
use bench_environments::{
    ContainerLimits, EngineHost, Environment, EnvironmentError, InvalidName, Labels, TaskFile, task_bundle,
};
use bench_sandy::Sandy;
use bench_terminal_tasks::Exception;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::episode::{Advance, remove_environments};
use crate::phases;
use crate::program::Program;
use crate::stop::{HOST_UNSUITABLE, Stop, TASK_REFUSED, is_by_agent};
use crate::stored::{LOGS_BYTES_MAX, log_of};
use crate::thinker::Thinker;
use crate::verdict::of_exception;

/// Name of the log with the engine's own output.
const ENGINE_LOG: &str = "engine.txt";

/// Image of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceImage {
    /// An image of a registry, by its name with tag.
    Pulled(String),
    /// An image that is built from files, with a `Dockerfile` among them.
    Built(Vec<TaskFile>),
}

/// An instance, and what its containers get.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    /// Its image.
    pub image: &'a InstanceImage,
    /// Architecture of a pulled image, as Docker names it; `None` for any.
    pub architecture: Option<&'a str>,
    /// True if its verification needs a network.
    pub needs_network: bool,
    /// Memory of a container in bytes.
    pub memory_bytes: u64,
    /// Number of processors of a container.
    pub cpus: f64,
    /// Maximum number of bytes that a container may write to its file system.
    pub disk_bytes_max: u64,
    /// Labels of everything that it has at the container engine.
    pub labels: &'a Labels,
}

impl Instance<'_> {
    /// Returns the environment of this name.
    pub(crate) fn environment(&self, name: &str) -> Result<Environment, Stop> {
        let invalid = |why: String| Stop::Failure(EnvironmentError::Invalid(why));
        let name = name.parse().map_err(|error: InvalidName| invalid(error.to_string()))?;
        let content = match self.image {
            InstanceImage::Pulled(reference) => reference.clone().into_bytes(),
            InstanceImage::Built(files) => {
                task_bundle(files).map_err(|error| Stop::refused(error.to_string()))?
            }
        };
        let content_hash = hex::encode(Sha256::digest(content));
        Ok(Environment { name, labels: self.labels.clone(), content_hash })
    }

    pub(crate) const fn limits(&self, pids: u32) -> ContainerLimits {
        ContainerLimits { cpus: self.cpus, memory_bytes: self.memory_bytes, pids }
    }
}

/// Work of an agent in the container of an instance, which has no network.
#[derive(Debug, Clone, Copy)]
pub struct InstanceTask<'a> {
    /// The instance.
    pub instance: Instance<'a>,
    /// The agent, which runs commands.
    pub agent: Agent,
    /// What the agent needs to ask its model.
    pub thinker: &'a Thinker,
    /// Text about the task for the agent.
    pub instruction: &'a str,
    /// Folder of the repository.
    pub folder: &'a str,
    /// Shell script that prepares the repository before the agent's work. It fails if that isn't possible.
    pub preparation: &'a str,
    /// Shell script that writes the change to [`Self::change_path`] after the agent's work.
    pub collection: &'a str,
    /// Absolute path of the file with the change.
    pub change_path: &'a str,
    /// Exit code by which that script says that the change is too large.
    pub too_large_exit: i32,
    /// Maximum time of that script.
    pub collection_time_limit: Duration,
    /// Maximum size of the change in bytes.
    pub change_bytes_max: u64,
    /// Maximum time of the agent's work.
    pub time_limit: Duration,
}

/// Verification of an answer in a container of an instance, which has a network.
#[derive(Debug, Clone, Copy)]
pub struct VerificationTask<'a> {
    /// The instance.
    pub instance: Instance<'a>,
    /// Absolute path of the folder for the files and the outputs.
    pub workspace: &'a str,
    /// Files to put there.
    pub files: &'a [TaskFile],
    /// Command line for the shell.
    pub command: &'a str,
    /// Maximum time of the command.
    pub time_limit: Duration,
    /// Names of the output files in the workspace, the most important one first.
    pub outputs: &'a [&'a str],
    /// Maximum size of an output file in bytes. Logs that are larger are shortened, others left out. The first file is kept byte
    /// for byte or not at all.
    pub output_bytes_max: u64,
}

/// Programs of instances in their sandbox.
#[derive(Debug, Clone, Copy)]
pub struct InstanceEpisode<'a> {
    /// Client of the sandbox host.
    pub sandy: &'a Sandy,
    /// Id of the sandbox, which was requested with a container engine.
    pub sandbox: &'a str,
    /// Number of queues whose messages find no place. A turn doesn't linger then.
    pub places_wanted: &'a AtomicUsize,
}

impl InstanceEpisode<'_> {
    /// Carries an agent's work on until it ends, or `linger` is over and an operation is still running.
    pub async fn advance(
        &self,
        task: &InstanceTask<'_>,
        state: &mut EpisodeState,
        linger: Duration,
    ) -> Advance {
        let mut report = EpisodeReport {
            agent: task.agent.as_str().to_owned(),
            round: state.round,
            ..EpisodeReport::default()
        };
        let mut program = self.program(state, linger);
        match Box::pin(phases::instance::work(&mut program, task, &mut report)).await {
            Ok(change) => {
                self.remove(&program.state.nonce).await;
                Advance::Changed(Box::new(report), change)
            }
            Err(Stop::Exception(exception, log)) => {
                report.logs.extend(engine_log(log));
                report.exception = Some(exception);
                self.remove(&program.state.nonce).await;
                Advance::Ended(Box::new(report))
            }
            Err(stop) => advance_of(stop),
        }
    }

    /// Carries a verification on until it ends, or `linger` is over and an operation is still running.
    pub async fn verify(
        &self,
        task: &VerificationTask<'_>,
        state: &mut EpisodeState,
        linger: Duration,
    ) -> Advance {
        let mut report = VerificationReport { round: state.round, ..VerificationReport::default() };
        let mut program = self.program(state, linger);
        match Box::pin(phases::verification::run(&mut program, task, &mut report)).await {
            Ok(()) => {}
            Err(Stop::Exception(exception, log)) => {
                report.logs.extend(engine_log(log));
                report.exception = Some(exception);
            }
            Err(stop) => return advance_of(stop),
        }
        self.remove(&program.state.nonce).await;
        Advance::Verified(Box::new(report))
    }

    fn program<'p>(&'p self, state: &'p mut EpisodeState, linger: Duration) -> Program<'p> {
        Program {
            host: EngineHost::new(self.sandy, self.sandbox),
            state,
            leave_at: Instant::now() + linger,
            places_wanted: self.places_wanted,
        }
    }

    async fn remove(&self, nonce: &str) {
        // The end of the sandbox, or a later round, removes the rest.
        drop(Box::pin(remove_environments(EngineHost::new(self.sandy, self.sandbox), nonce)).await);
    }
}

/// Returns the verdict on a verification that ended before its outputs could be read, unless that is the answer's own doing.
pub fn verification_failure(report: &VerificationReport) -> Option<Verdict> {
    let exception = report.exception.as_ref().filter(|exception| !is_by_agent(&exception.name))?;
    let mut verdict = of_exception(&exception.name, &exception.message);
    verdict.detail.insert("exception".to_owned(), exception.name.as_str().into());
    if !report.engine.is_empty() {
        verdict.detail.insert("engine".to_owned(), report.engine.as_str().into());
    }
    Some(verdict)
}

/// Returns true if a verification may end differently in another sandbox.
pub fn is_verified_again(report: &VerificationReport) -> bool {
    report.exception.as_ref().is_some_and(|exception| {
        !matches!(exception.name.as_str(), TASK_REFUSED | HOST_UNSUITABLE)
            && !is_by_agent(&exception.name)
            && Exception::of(&exception.name).is_retried
    })
}

fn engine_log(log: Option<String>) -> Option<bench_domain::EpisodeLog> {
    log.and_then(|text| log_of(ENGINE_LOG, text.as_bytes(), LOGS_BYTES_MAX))
}

/// Returns what a stop means that isn't the end.
fn advance_of(stop: Stop) -> Advance {
    match stop {
        Stop::Wait(wait) => Advance::Waiting(wait),
        Stop::Delay(wait, why) => Advance::Delayed(wait, why),
        Stop::Failure(error) => Advance::Failed(error),
        Stop::Ask(request) => Advance::Asks(request),
        Stop::Stepped(record) => Advance::Stepped(record),
        Stop::Exception(exception, _) => Advance::Failed(EnvironmentError::Invalid(exception.message)),
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, EpisodeException, Outcome};

    use super::*;

    fn report(name: &str) -> VerificationReport {
        let exception = EpisodeException { name: name.to_owned(), message: "it happened".to_owned() };
        VerificationReport { exception: Some(exception), ..VerificationReport::default() }
    }

    #[test]
    fn only_failures_of_host_and_image_are_no_grade() {
        assert_eq!(verification_failure(&VerificationReport::default()), None);
        for (name, code, is_again) in [
            ("EnvironmentGoneError", None, false),
            ("DiskLimitExceededError", None, false),
            (HOST_UNSUITABLE, Some(Code::SandboxSetupNeeded), false),
            ("RuntimeError", Some(Code::SandboxFailed), true),
            (TASK_REFUSED, Some(Code::TaskRefused), false),
        ] {
            let verdict = verification_failure(&report(name));
            assert_eq!(verdict.as_ref().and_then(|verdict| verdict.code), code, "{name}");
            assert!(verdict.is_none_or(|verdict| verdict.outcome == Outcome::InfrastructureError), "{name}");
            assert_eq!(is_verified_again(&report(name)), is_again, "{name}");
        }
    }

    #[test]
    fn containers_of_one_image_are_of_one_environment() {
        let labels = Labels { owner: "o".to_owned(), run: "r".to_owned(), sample: "s".to_owned() };
        let hash = |image: &InstanceImage| {
            let instance = Instance {
                image,
                architecture: None,
                needs_network: false,
                memory_bytes: 1,
                cpus: 1.0,
                disk_bytes_max: 1,
                labels: &labels,
            };
            instance.environment("episode-1").unwrap().content_hash
        };
        let file = |text: &str| TaskFile {
            path: "Dockerfile".to_owned(),
            is_executable: false,
            bytes: text.as_bytes().to_vec(),
        };
        let built = |text: &str| InstanceImage::Built(vec![file(text)]);
        assert_eq!(hash(&built("FROM a")), hash(&built("FROM a")));
        assert_ne!(hash(&built("FROM a")), hash(&built("FROM b")));
        assert_ne!(
            hash(&InstanceImage::Pulled("a".to_owned())),
            hash(&InstanceImage::Pulled("b".to_owned()))
        );
    }
}
