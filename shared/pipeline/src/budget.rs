//! Checks the budget of a run before every question, and ends the run when the budget is reached.
//!
//! Adds no calls to services for a run without a budget.

use std::time::Duration;

use bench_domain::budget::grouped;
use bench_domain::{Code, ModelRole, Prompt, Spending, Usage};
use bench_inference::Failure;
use bench_inference::tokens::estimate_prompt;

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

/// Interval at which an attempt checks again whether pending answers were committed.
const COMMIT_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Wait of a sample whose attempt has no time left to wait for pending commits.
const RETRY_WAIT: Duration = Duration::from_secs(5);

impl Pipeline {
    /// Returns true if the run may ask another question. Otherwise the run was stopped or the sample was put
    /// off.
    ///
    /// An estimate alone never stops a run, since tokens that this process received may already be in the
    /// counters. An attempt that reaches the limit waits until the counters include everything, or until too
    /// little of its time is left. No new question is asked meanwhile.
    pub(crate) async fn budget_allows(&self, claimed: &ClaimedSample) -> Result<bool, PipelineError> {
        let Some(ledger) = &claimed.run.ledger else { return Ok(true) };
        let (run, generation) = (claimed.sample.run, claimed.run.generation);
        let (budget, prices) = (claimed.run.spec.budget, claimed.run.spec.prices());
        ledger.refresh(&self.state, run, generation).await?;
        let mut waited = false;
        while budget.reached_by(ledger.estimate(), prices).is_some() {
            ledger.read_now(&self.state, run, generation).await?;
            let committed = ledger.committed();
            if let Some(reached) = budget.reached_by(committed.spending(), prices) {
                let (done, expected) = (grouped(committed.done), grouped(committed.expected));
                let why = format!("stopped: {reached}, {done} of {expected} samples done");
                // Counts every sample answered until now.
                self.fail_run(claimed, Code::BudgetReached, &why).await?;
                return Ok(false);
            }
            if claimed.deadline.remaining(self.config.reserve) <= COMMIT_POLL_INTERVAL {
                self.put_off(claimed, RETRY_WAIT, claimed.record.history).await?;
                return Ok(false);
            }
            tokio::time::sleep(COMMIT_POLL_INTERVAL).await;
            waited = true;
        }
        let answer_time = self.answer_limit(claimed, ModelRole::Model);
        if waited && claimed.deadline.remaining(self.config.reserve) < answer_time {
            // The wait must not shorten the time that the model has for its answer.
            self.put_off(claimed, Duration::ZERO, claimed.record.history).await?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Counts the cost of an attempt that got no answer, if the run has a budget.
    pub(crate) async fn count_failed(
        &self,
        claimed: &ClaimedSample,
        role: ModelRole,
        prompt: &Prompt,
        failure: &Failure,
    ) {
        let Some(mut usage) = failure.usage.filter(|usage| usage.total() > 0) else { return };
        if usage.input_tokens == 0 {
            usage = usage.plus(Usage::counted(estimate_prompt(prompt), 0, 0).estimated());
        }
        self.count_spent(claimed, role.spending(usage)).await;
    }

    /// Counts tokens that no commit will count, if the run has a budget.
    pub(crate) async fn count_spent(&self, claimed: &ClaimedSample, spent: Spending) {
        if spent.total() == 0 {
            return;
        }
        let Some(receipt) = claimed.run.receive(spent) else { return };
        // A sample must not fail because of bookkeeping.
        match self.state.add_spent(&claimed.sample, spent).await {
            Ok(()) => receipt.committed(),
            Err(error) => {
                tracing::warn!(run.id = %claimed.sample.run, %error, "{} tokens could not be counted: {error}", spent.total());
            }
        }
    }
}
