//! The budget of a run: asked before every question, and the end of the run when it is reached.
//!
//! A run without a budget comes by here without any call to a service.

pub(crate) mod ledger;

use std::time::Duration;

use bench_domain::budget::grouped;
use bench_domain::sample::Stage;
use bench_domain::{Code, Prompt, Spending, Usage};
use bench_inference::Failure;
use bench_inference::tokens::estimate_prompt;

use crate::{AskError, Desk, InHand};

/// How soon answers that are being committed are looked for again.
const COMMITS_TAKE: Duration = Duration::from_millis(50);

impl Desk {
    /// Why the run must not ask any more; `None` while its budget lasts.
    ///
    /// Nobody is stopped by an estimate: what this process has received may be in the counters already. Whoever
    /// meets the limit waits until they have it all; nothing new is asked meanwhile.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub async fn budget_reached(&self, hand: &InHand<'_>) -> Result<Option<String>, AskError> {
        let Some(ledger) = &hand.run.ledger else { return Ok(None) };
        let (run, generation) = (hand.sample.run, hand.run.generation);
        let (budget, prices) = (hand.run.spec.budget, hand.run.spec.prices());
        ledger.refresh(&self.state, run, generation).await?;
        while budget.reached_by(ledger.estimate(), prices).is_some() {
            ledger.read_now(&self.state, run, generation).await?;
            let committed = ledger.committed();
            if let Some(reached) = budget.reached_by(committed.spending(), prices) {
                let (done, expected) = (grouped(committed.done), grouped(committed.expected));
                return Ok(Some(format!("{reached}, {done} of {expected} samples done")));
            }
            tokio::time::sleep(COMMITS_TAKE).await;
        }
        Ok(None)
    }

    /// Ends the run as failed, with what was answered until now.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn stop_run(&self, hand: &InHand<'_>, why: &str) -> Result<(), AskError> {
        self.fail_run(hand, Code::BudgetReached, &format!("stopped: {why}")).await
    }

    /// Tokens of this stage as they count for a budget.
    pub const fn spending_of(&self, usage: Usage) -> Spending {
        match self.stage {
            Stage::Answer => Spending { answers: usage, judge: Usage::ZERO },
            Stage::Judge | Stage::Sandbox => Spending::of_judge(usage),
        }
    }

    /// Counts what an attempt without an answer has cost, where the run has a budget.
    pub async fn count_failed(&self, hand: &InHand<'_>, prompt: &Prompt, failure: &Failure) {
        let Some(mut usage) = failure.usage.filter(|usage| usage.total() > 0) else { return };
        if usage.input_tokens == 0 {
            usage = usage.plus(Usage::counted(estimate_prompt(prompt), 0, 0).estimated());
        }
        self.count(hand, usage).await;
    }

    /// Counts tokens that no commit will count, where the run has a budget.
    pub async fn count(&self, hand: &InHand<'_>, usage: Usage) {
        let Some(ledger) = &hand.run.ledger else { return };
        let spent = self.spending_of(usage);
        let receipt = ledger.receive(spent);
        // A sample must not fail because of the accounts.
        match self.state.add_spent(hand.sample, spent).await {
            Ok(()) => receipt.committed(),
            Err(error) => {
                tracing::warn!(run.id = %hand.sample.run, %error, "{} tokens are in no account: {error}", usage.total());
            }
        }
    }
}
