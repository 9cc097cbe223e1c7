//! An episode, and its turns.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bench_domain::{AgentRecord, EpisodeReport, EpisodeState, JobReport, VerificationReport};
use bench_environments::{EngineHost, EnvironmentError, Labels};
use bench_sandy::Sandy;
use tokio::time::Instant;

use crate::kept;
use crate::phases::{self, Course};
use crate::program::Program;
use crate::stop::Stop;
use crate::stored::{LOGS_BYTES_MAX, log_of};
use crate::task::{EpisodeTask, environment_name};
use crate::thinker::ModelRequest;

/// Maximum length of the end of the test output in the report, in characters.
const TEST_OUTPUT_CHARS_MAX: usize = 5_000;
/// Name of the log with the engine's own output.
const ENGINE_LOG: &str = "engine.txt";

/// An episode in its sandbox.
#[derive(Debug, Clone, Copy)]
pub struct Episode<'a> {
    /// Client of the sandbox host.
    pub sandy: &'a Sandy,
    /// Id of the sandbox, which was requested with a container engine.
    pub sandbox: &'a str,
    /// Task, agent and variables.
    pub task: EpisodeTask<'a>,
    /// Number of queues whose messages find no place. A turn doesn't linger then.
    pub places_wanted: &'a AtomicUsize,
}

/// Result of a turn.
#[derive(Debug)]
pub enum Advance {
    /// An operation is running. The checkpoint has changed; the next turn follows after this wait.
    Waiting(Duration),
    /// An operation failed and is repeated after this wait, for the reason in one sentence. The checkpoint has changed.
    Delayed(Duration, String),
    /// The agent asks its model. The caller puts the answer into [`Thinker::answer`](crate::Thinker) and repeats the call.
    Asks(ModelRequest),
    /// The agent made a step. The caller stores the record, adds it to the transcript, sets the checkpoint's agent to its
    /// progress, saves the checkpoint, and repeats the call.
    Stepped(Box<AgentRecord>),
    /// The agent of a [`WorkspaceEpisode`](crate::WorkspaceEpisode) has ended, and its files were collected: the report of that
    /// job follows the episode's.
    Worked(Box<EpisodeReport>, Box<JobReport>),
    /// The agent of an [`InstanceTask`](crate::InstanceTask) has ended, and this is its change.
    Changed(Box<EpisodeReport>, String),
    /// The verification is over.
    Verified(Box<VerificationReport>),
    /// The episode is over, and its environments are removed as far as the engine could be reached.
    Ended(Box<EpisodeReport>),
    /// The sandbox, its host or its engine failed. The turn can be repeated, or the episode started over in another
    /// sandbox, depending on the error's kind.
    Failed(EnvironmentError),
}

impl Episode<'_> {
    /// Carries the episode on until it ends, or `linger` is over and an operation is still running.
    pub async fn advance(&self, state: &mut EpisodeState, linger: Duration) -> Advance {
        let round = state.round;
        let mut program = Program {
            host: EngineHost::new(self.sandy, self.sandbox),
            state,
            leave_at: Instant::now() + linger,
            places_wanted: self.places_wanted,
        };
        let mut course = Course::new(&self.task, &program.state.nonce);
        course.report = EpisodeReport { agent: self.task.agent_name(), round, ..EpisodeReport::default() };
        let ended = Box::pin(phases::run(&mut program, &mut course)).await;
        match ended {
            Ok(()) => {}
            Err(Stop::Wait(wait)) => return Advance::Waiting(wait),
            Err(Stop::Delay(wait, why)) => return Advance::Delayed(wait, why),
            Err(Stop::Failure(error)) => return Advance::Failed(error),
            Err(Stop::Ask(request)) => return Advance::Asks(request),
            Err(Stop::Stepped(record)) => return Advance::Stepped(record),
            Err(Stop::Exception(exception, log)) => {
                course
                    .report
                    .logs
                    .extend(log.and_then(|text| log_of(ENGINE_LOG, text.as_bytes(), LOGS_BYTES_MAX)));
                course.report.exception = Some(exception);
            }
        }
        let keepings = std::mem::take(&mut course.keepings);
        match kept::collect(&mut program, &mut course.report, &keepings).await {
            // Fetching files asks no model.
            Ok(()) | Err(Stop::Exception(..) | Stop::Ask(_) | Stop::Stepped(_)) => {}
            Err(Stop::Wait(wait)) => return Advance::Waiting(wait),
            Err(Stop::Delay(wait, why)) => return Advance::Delayed(wait, why),
            Err(Stop::Failure(error)) => return Advance::Failed(error),
        }
        let shown =
            course.report.logs.iter().rev().find(|log| log.name.ends_with("verifier/test-stdout.txt"));
        course.report.test_output = shown.map(|log| end_of(&log.text)).unwrap_or_default();
        self.remove(&program.state.nonce).await;
        Advance::Ended(Box::new(course.report))
    }

    async fn remove(&self, nonce: &str) {
        // The end of the sandbox, or a later round, removes the rest.
        drop(Box::pin(remove_environments(EngineHost::new(self.sandy, self.sandbox), nonce)).await);
    }
}

/// Uses a sandbox without changing anything in it, so that its host doesn't end it as unused.
///
/// # Errors
/// If the sandbox or its engine can't be reached.
pub async fn keep(sandy: &Sandy, sandbox: &str) -> Result<(), EnvironmentError> {
    EngineHost::new(sandy, sandbox).probe().await.map(drop)
}

/// Removes what a round of an episode has at the engine, after stopping the operation that is running. Where sandboxes
/// share an engine, any of them will do if the round's own was lost.
///
/// # Errors
/// If the engine could not be reached through this sandbox.
pub async fn cancel(sandy: &Sandy, sandbox: &str, state: &EpisodeState) -> Result<(), EnvironmentError> {
    let host = EngineHost::new(sandy, sandbox);
    if let Some(open) = &state.open
        && let (Ok(environment), Ok(name)) = (open.environment.parse(), open.name.parse())
    {
        drop(host.stop(&environment, &name).await);
    }
    remove_environments(host, &state.nonce).await
}

/// Removes what rounds of a sample other than this one left at the engine, because their sandboxes were lost.
///
/// # Errors
/// If the engine could not be reached through this sandbox.
pub async fn remove_other_rounds(
    sandy: &Sandy,
    sandbox: &str,
    labels: &Labels,
    nonce: &str,
) -> Result<(), EnvironmentError> {
    let host = EngineHost::new(sandy, sandbox);
    host.remove_labeled(labels, Some(&environment_name(nonce))).await
}

/// Removes all environments of a round: the agent's and those of verifiers.
pub(crate) async fn remove_environments(host: EngineHost<'_>, nonce: &str) -> Result<(), EnvironmentError> {
    let main = environment_name(nonce);
    let left = host.leftovers().await.unwrap_or_default();
    let others = left
        .into_iter()
        .map(|left| left.environment)
        .filter(|name| name.strip_prefix(&main).is_some_and(|rest| rest.starts_with("-v")));
    // Also if nothing is left of it: nothing of it can start afterwards.
    host.remove_all(others.chain([main.clone()])).await
}

/// Returns the end of a text.
fn end_of(text: &str) -> String {
    let start = text.char_indices().rev().nth(TEST_OUTPUT_CHARS_MAX - 1).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_cut_at_a_character() {
        assert_eq!(end_of("abc"), "abc");
        assert_eq!(end_of(&"ä".repeat(6_000)), "ä".repeat(5_000));
    }
}
