//! SQS items: one sample, one answer, one score.
//!
//! A sample is claimed, asked, stored, graded and committed, in this order; where a judge has to say what the answer
//! is worth, or a sandbox, it is handed over to `turns` instead of committed, and where its item takes several questions
//! to the next attempt, which asks the next one. Killed between any two of these the next attempt
//! goes on behind the last one that was finished: an answer that was stored is graded, not asked for again.

mod ask;
pub(crate) mod earlier_run;
mod grade;
mod question;
pub(crate) mod recorded;

use crate::{AskError, Attempt, Desk, InHand, PipelineConfig, Services, Stage};
use async_trait::async_trait;
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent};

/// The worker's function.
pub struct Worker {
    pub(crate) desk: Desk,
}

impl Worker {
    /// A worker with its clients.
    pub fn new(services: Services, config: PipelineConfig) -> Self {
        Self { desk: Desk::new(Stage::Answer, services, config) }
    }

    /// Handles a batch of messages, all of them at once: waiting for ten answers costs one invocation.
    pub async fn handle(&self, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        self.desk.handle(event, deadline, self).await
    }

    /// Writes what operators are told and was not written yet: for the end of an invocation, after which nothing
    /// may run, and for the end of the process.
    pub async fn flush(&self) {
        self.desk.flush().await;
    }
}

#[async_trait]
impl Attempt for Worker {
    async fn attempt(&self, hand: &InHand<'_>) -> Result<(), AskError> {
        match self.desk.stored_body(hand).await? {
            Some((body, stored)) => self.read(hand, body, stored).await,
            None => self.ask(hand).await,
        }
    }
}
