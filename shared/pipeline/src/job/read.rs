//! Reading what a job left: a verdict, or another round.

use crate::{AskError, InHand, StoredBody};
use bench_benchmarks::Round;
use bench_domain::{Job, Timestamp, Usage, Verdict};
use bench_state::{BodyRef, Finished};

use super::{Work, new_round};
use crate::Turns;

impl Turns {
    /// Commits the verdict in a stored execution. Without one the answer is run again, as often as its benchmark allows.
    pub(crate) async fn read_execution(
        &self,
        hand: &InHand<'_>,
        work: &Work<'_>,
        job: &Job,
        stored: StoredBody,
    ) -> Result<(), AskError> {
        let Some(execution) = &work.body.execution else { return Ok(()) };
        let (round, report) = (execution.round, &execution.report);
        let verdict = match work.grader.read(
            &work.item,
            &work.body,
            report,
            Round { number: round, nonce: &job.nonce },
        ) {
            Ok(mut verdict) => {
                if let Some(isolation) = &report.isolation {
                    verdict.detail.entry("isolation").or_insert_with(|| isolation.as_str().into());
                }
                verdict
            }
            Err(none) if none.again && round < work.grader.facts().rounds_max => {
                tracing::info!(run.id = %hand.sample.run, "Sample {} is run again: {none}", hand.sample);
                return self.round(hand, &new_round(round + 1)).await;
            }
            Err(none) if !none.again => {
                // Every sandbox would end like that: what is said begins with what helps.
                tracing::warn!(run.id = %hand.sample.run, error.code = %none.code, "Sample {}: {}", hand.sample, none.why);
                Verdict::ungraded(none.code, none.why)
            }
            Err(none) => {
                let times = if round == 1 { "one sandbox".to_owned() } else { format!("{round} sandboxes") };
                tracing::warn!(run.id = %hand.sample.run, error.code = %none.code, "Sample {}: no verdict in {times}", hand.sample);
                let why = format!("the answer was run in {times} and got no verdict: {}", none.why);
                Verdict::ungraded(none.code, why)
            }
        };
        let finished = Finished {
            body: Some(BodyRef { attempt: stored.attempt, sha256: stored.sha256 }),
            ..hand.claimed.record.ended(verdict, Timestamp::now())
        };
        // What the model's answer cost was counted when it was handed over.
        self.desk.commit(hand, work.benchmark, &finished, Usage::default()).await
    }
}
