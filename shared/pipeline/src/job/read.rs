//! Reads the output of a job: a verdict, or another round.

use bench_benchmarks::Round;
use bench_domain::{Execution, Job, Spending, Verdict};
use bench_state::SampleResult;

use super::{JobTurn, JobWork, new_round};
use crate::Pipeline;
use crate::commit::StoredBody;
use crate::error::PipelineError;

impl Pipeline {
    /// Commits the verdict in a stored execution. Without a verdict, runs the answer again, as often as its
    /// benchmark allows.
    pub(super) async fn read_execution(
        &self,
        turn: JobTurn<'_>,
        work: &JobWork<'_>,
        job: &Job,
        execution: &Execution,
        stored: StoredBody,
    ) -> Result<(), PipelineError> {
        let (sample, record) = (&turn.claimed.sample, &turn.claimed.record);
        let Execution { round: number, report } = execution;
        let round = Round { number: *number, nonce: &job.nonce };
        let verdict = match work.grader.read(work.item, &work.body, report, round) {
            Ok(mut verdict) => {
                if let Some(report) = &work.body.episode {
                    bench_episodes::describe_change(report, &mut verdict);
                }
                if let Some(isolation) = &report.isolation {
                    verdict.detail.entry("isolation").or_insert_with(|| isolation.as_str().into());
                }
                verdict
            }
            Err(none) if none.retry && *number < work.grader.metadata().rounds_max => {
                tracing::info!(run.id = %sample.run, "Sample {sample} is run again: {none}");
                return self.begin_round(turn, &new_round(number + 1)).await;
            }
            Err(none) if !none.retry => {
                // Every sandbox would end the same way. The message begins with what operators can do.
                tracing::warn!(run.id = %sample.run, error.code = %none.code, "Sample {sample}: {}", none.why);
                Verdict::ungraded(none.code, none.why)
            }
            Err(none) => {
                let times = match number {
                    1 => "one sandbox".to_owned(),
                    number => format!("{number} sandboxes"),
                };
                tracing::warn!(run.id = %sample.run, error.code = %none.code, "Sample {sample}: no verdict in {times}");
                let why = format!("the answer was run in {times} and got no verdict: {}", none.why);
                Verdict::ungraded(none.code, why)
            }
        };
        let finished =
            SampleResult { body: Some(stored.into()), ..record.to_finished(verdict, bench_clock::now()) };
        // The cost of the model's answer was counted when the sample was handed over.
        self.commit(turn.claimed, &finished, Spending::default(), None).await
    }
}
