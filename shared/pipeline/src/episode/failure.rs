//! Handles failures of sandboxes, their host and its container engine, for the sample and the run.

use std::time::Duration;

use bench_domain::sample::{AttemptHistory, backoff};
use bench_domain::{Code, EpisodeState, Verdict};
use bench_environments::{EnvironmentError, ErrorKind};
use bench_lambda::metrics;
use bench_sandy::job::{JobError, JobErrorKind};

use super::{EpisodeTurn, new_round};
use crate::Pipeline;
use crate::error::PipelineError;

/// Maximum time for which an episode waits for a sandbox host that can't be reached.
const HOST_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Maximum number of sandboxes of an episode, if they are lost or their engine fails.
const ROUNDS_MAX: u32 = 5;
/// Maximum number of repetitions of an episode after an exception that another sandbox might not have.
const EXCEPTION_REPEATS_MAX: u32 = 1;
/// Shortest and longest wait for a free sandbox, unless the host says how long to wait.
const FULL_WAIT: Duration = Duration::from_secs(2);
const FULL_WAIT_MAX: Duration = Duration::from_secs(30);

impl Pipeline {
    /// Handles a failed turn: repeats it, starts the episode over in another sandbox, or ends the sample or the run.
    pub(super) async fn handle_episode_failure(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        error: &EnvironmentError,
    ) -> Result<(), PipelineError> {
        // The host was sent a key, which its errors may quote.
        let why = turn.claimed.run.keys.redact(&error.to_string()).into_owned();
        let history = turn.claimed.record.history;
        if let EnvironmentError::Host(JobError::MissingPackages(_) | JobError::NoPython) = error {
            // Each sandbox of this host lacks it.
            self.end_episode_sandbox(state).await;
            return self.end_ungraded(turn, state, Code::SandboxSetupNeeded, &why).await;
        }
        match error.kind() {
            ErrorKind::Busy if is_full(error) => {
                self.save_episode(turn, state).await?;
                self.wait_for_sandbox(turn, error.retry_after()).await
            }
            ErrorKind::Busy => {
                self.save_episode(turn, state).await?;
                let wait = backoff(history.waits.saturating_add(1));
                self.wait_or_end(turn.claimed, Code::SandboxUnavailable, &why, wait, HOST_PATIENCE).await
            }
            ErrorKind::SandboxLost | ErrorKind::Infrastructure | ErrorKind::Caller => {
                self.next_episode_round(turn, state, &why).await
            }
            ErrorKind::Unavailable => {
                self.end_episode_sandbox(state).await;
                self.fail_run(turn.claimed, Code::SandboxNotConfigured, &why).await
            }
            // Operations turn these into exceptions of the episode; a query may not have.
            ErrorKind::Task | ErrorKind::Limit => {
                self.end_episode_sandbox(state).await;
                self.end_ungraded(turn, state, Code::SandboxFailed, &why).await
            }
        }
    }

    /// Puts the sample off until a sandbox may be free. Other episodes have all of them, which is no failure, however long it
    /// lasts.
    pub(super) async fn wait_for_sandbox(
        &self,
        turn: EpisodeTurn<'_>,
        retry_after: Option<Duration>,
    ) -> Result<(), PipelineError> {
        let history = turn.claimed.record.history;
        let wait = backoff(history.waits.saturating_add(2)).clamp(FULL_WAIT, FULL_WAIT_MAX);
        let wait = retry_after.unwrap_or(wait).mul_f64(rand::random_range(0.8..=1.2));
        metrics::count(metrics::SAMPLES_WAITED, 1.0);
        let history =
            AttemptHistory { waits: history.waits.saturating_add(1), waiting_since: None, ..history };
        self.put_off(turn.claimed, wait, history).await
    }

    /// Ends the sample without an episode's report. Names the engine if the checkpoint does.
    pub(super) async fn end_ungraded(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        code: Code,
        why: &str,
    ) -> Result<(), PipelineError> {
        let mut verdict = Verdict::ungraded(code, why);
        if let Some(engine) = bench_episodes::known_engine(state) {
            verdict.detail.insert("engine".to_owned(), engine.into());
        }
        self.end(turn.claimed, verdict).await
    }

    /// Starts an episode that ended with an exception over in a new sandbox, and counts the exception.
    pub(super) async fn repeat_episode(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        why: &str,
    ) -> Result<(), PipelineError> {
        let counted = EpisodeState { exceptions: state.exceptions.saturating_add(1), ..state.clone() };
        self.next_episode_round(turn, &counted, why).await
    }

    /// Starts the episode over in a new sandbox, or ends the sample after too many of them.
    pub(super) async fn next_episode_round(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        why: &str,
    ) -> Result<(), PipelineError> {
        metrics::count(metrics::SANDBOXES_LOST, 1.0);
        let round = state.round.saturating_add(1);
        if round <= ROUNDS_MAX {
            self.end_episode_sandbox(state).await;
        } else {
            self.end_last_episode_sandbox(state).await;
            let why = format!("{why}, the last time in sandbox {}", state.round);
            return self.end_ungraded(turn, state, Code::SandboxFailed, &why).await;
        }
        let sample = &turn.claimed.sample;
        tracing::info!(run.id = %sample.run, "Sample {sample} starts over in another sandbox: {why}");
        if !self.save_episode(turn, &in_round(state, round)).await? {
            return Ok(());
        }
        self.put_episode_off(turn, Duration::ZERO).await
    }
}

/// Returns true if an exception in this round may be repeated.
pub(super) const fn is_repeatable(state: &EpisodeState) -> bool {
    state.exceptions < EXCEPTION_REPEATS_MAX
}

/// Returns the checkpoint of the same episode in another sandbox.
fn in_round(state: &EpisodeState, round: u32) -> EpisodeState {
    match bench_episodes::is_dialogue(state) {
        // Its messages are stored, so that no model is asked again.
        true => bench_episodes::in_another_sandbox(state, round),
        false => EpisodeState {
            paid: state.paid,
            started_at: state.started_at,
            exceptions: state.exceptions,
            ..new_round(round)
        },
    }
}

fn is_full(error: &EnvironmentError) -> bool {
    matches!(error, EnvironmentError::Host(error) if error.kind() == JobErrorKind::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_sandboxes_use_up_no_repetition() {
        for is_dialogue in [false, true] {
            let mut state = new_round(1);
            if is_dialogue {
                bench_episodes::note_dialogue(&mut state);
            }
            // The sandboxes of rounds 1 and 2 are lost, and round 3 ends with an exception.
            let lost = in_round(&in_round(&state, 2), 3);
            assert_eq!((lost.round, lost.exceptions), (3, 0));
            assert!(is_repeatable(&lost), "{is_dialogue}");
            let repeated = in_round(&EpisodeState { exceptions: 1, ..lost }, 4);
            // Another lost sandbox doesn't grant one more repetition.
            for state in [in_round(&repeated, 5), repeated] {
                assert!(!is_repeatable(&state), "{is_dialogue} {}", state.round);
            }
        }
    }

    #[test]
    fn checkpoints_of_older_versions_have_no_exceptions() {
        let stored = serde_json::to_value(new_round(2)).unwrap();
        assert_eq!(stored.get("exceptions"), None);
        assert_eq!(serde_json::from_value::<EpisodeState>(stored).unwrap().exceptions, 0);
        let counted = EpisodeState { exceptions: 1, ..new_round(2) };
        let stored = serde_json::to_value(&counted).unwrap();
        assert_eq!(serde_json::from_value::<EpisodeState>(stored).unwrap(), counted);
    }
}
