//! End of stage `verification`: the report is stored beside the answer, and its verdict committed.

use std::time::Duration;

use bench_domain::sample::AttemptHistory;
use bench_domain::{Code, EpisodeState, SampleBody, Spending, VerificationReport};
use bench_lambda::metrics;

use super::{EpisodeTurn, failure};
use crate::Pipeline;
use crate::commit::StoredBody;
use crate::error::PipelineError;

impl Pipeline {
    /// Stores the report of a verification and commits its verdict, or starts it over in another sandbox.
    pub(super) async fn keep_verification(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        mut report: VerificationReport,
    ) -> Result<(), PipelineError> {
        if bench_episodes::is_verified_again(&report) && failure::is_repeatable(state) {
            let why = report.exception.map(|exception| exception.message).unwrap_or_default();
            return self.repeat_episode(turn, state, &why).await;
        }
        let keys = &turn.claimed.run.keys;
        let texts = report.outputs.iter_mut().chain(&mut report.logs).map(|log| &mut log.text);
        for text in texts.chain(report.exception.as_mut().map(|exception| &mut exception.message)) {
            keys.redact_in(text);
        }
        let Some(body) = self.handed_over_body(turn, state).await? else { return Ok(()) };
        let body = SampleBody { verification: Some(report), ..body };
        let stored = self.store(turn.claimed, &body, Spending::default()).await?;
        self.end_verification(turn, state, &body, stored).await
    }

    /// Commits the verdict on a stored report of a verification.
    pub(super) async fn end_verification(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        body: &SampleBody,
        stored: StoredBody,
    ) -> Result<(), PipelineError> {
        self.end_reported_sandbox(state).await;
        let claimed = turn.claimed;
        let report = body.verification.clone().unwrap_or_default();
        let verdict =
            match (bench_episodes::verification_failure(&report), claimed.benchmark.benchmark.instance()) {
                (Some(failed), _) => failed,
                (None, Some(protocol)) => {
                    let mut verdict =
                        protocol.grade(claimed.item(&self.blobs).await?, &body.answer.text, &report);
                    if let Some(episode) = &body.episode {
                        bench_episodes::describe_change(episode, &mut verdict);
                    }
                    if !report.engine.is_empty() {
                        verdict.detail.insert("engine".to_owned(), report.engine.as_str().into());
                    }
                    if let Some(exception) = &report.exception {
                        verdict.detail.insert("exception".to_owned(), exception.name.as_str().into());
                    }
                    verdict
                }
                (None, None) => {
                    let why = "this benchmark verifies no answers";
                    return self.end_ungraded(turn, state, Code::InternalError, why).await;
                }
            };
        self.commit_report(turn, state, stored, verdict, None).await
    }

    /// Puts the sample off until an operation that failed is repeated. The checkpoint counts its repeats, so that this counts
    /// against no other limit.
    pub(super) async fn delay_episode(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        wait: Duration,
        why: &str,
    ) -> Result<(), PipelineError> {
        if !self.save_episode(turn, state).await? {
            return Ok(());
        }
        let sample = &turn.claimed.sample;
        tracing::info!(run.id = %sample.run, "Sample {sample} waits {} s: {why}", wait.as_secs());
        metrics::count(metrics::SAMPLES_WAITED, 1.0);
        let history = turn.claimed.record.history;
        let history = AttemptHistory {
            failures: 0,
            waits: history.waits.saturating_add(1),
            waiting_since: None,
            lost: 0,
            ..history
        };
        self.put_off(turn.claimed, wait.mul_f64(rand::random_range(0.8..=1.2)), history).await
    }
}
