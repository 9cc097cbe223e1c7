//! Programs of instances: an agent changes the repository in a container, and the change is verified in a second container of the
//! same image, each as a durable program in a sandbox of its own.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bench_domain::{EpisodeReport, EpisodeState, Verdict, VerificationReport};
use bench_environments::{EngineHost, EnvironmentError};
use bench_sandy::Sandy;
use bench_terminal_tasks::Exception;
use tokio::time::Instant;

use crate::episode::{Advance, remove_environments};
use crate::instance::{InstanceTask, VerificationTask};
use crate::phases;
use crate::program::Program;
use crate::stop::{ENVIRONMENT_GONE, HOST_UNSUITABLE, Stop, TASK_REFUSED, is_by_agent};
use crate::stored::{LOGS_BYTES_MAX, log_of};
use crate::verdict::of_exception;

/// Name of the log with the engine's own output.
const ENGINE_LOG: &str = "engine.txt";

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
    report.exception.as_ref().is_some_and(|exception| match exception.name.as_str() {
        TASK_REFUSED | HOST_UNSUITABLE => false,
        // Also what a failure of the engine looks like. If it happens again, it is the answer's doing.
        ENVIRONMENT_GONE => true,
        name => !is_by_agent(name) && Exception::of(name).is_retried,
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
            ("EnvironmentGoneError", None, true),
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
}
